"""A dry run: what an erasure would come to now, counted as it would count, with nothing changed.

It is walked in one request, so a large tenant is looked at in part: the counts are then of that part.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from factbook.domain.access.erasing import Selector
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.ports.deadline import Deadline
from factbook.ports.erasure.records import COUNTED
from factbook.ports.facts.store import Head
from factbook.usecases.erasure.ports import ErasurePorts
from factbook.usecases.erasure.reaching import MOST_HELD, Causes, Reach, Words, heads
from factbook.usecases.erasure.requesting import require_there
from factbook.usecases.erasure.silencing import ENTRIES_AT_ONCE, ENTRY_BYTES, RUNS_AT_ONCE
from factbook.usecases.erasure.sweeping import OBJECTS_AT_ONCE, nobodys
from factbook.usecases.merging import NEWEST, at_once
from factbook.usecases.retrieval.messages import is_message

KEYS_BETWEEN_LOOKS = 100


@dataclass(frozen=True)
class Trial:
    """`held`: ids of facts that would keep the erasure from beginning, at most 100. `complete`: all of the tenant was looked at,
    and could be read.
    """

    counts: dict[str, int]
    held: list[str]
    complete: bool


Found = TypeVar("Found")


class _TimeIsOver(Exception):
    """What is counted by then is answered."""


def try_erasure(ports: ErasurePorts, principal: Principal, selector: Selector, deadline: Deadline) -> Trial:
    """Raises PermissionDenied, FactNotFound, FactUnreadable."""
    require_admin(principal)
    require_there(ports, principal.tenant, selector)
    look = _Look(ports, Reach(principal.tenant, selector), deadline)
    complete = True
    try:
        for count in (look.facts, look.keys, look.uploads, look.messages):
            count()
    except _TimeIsOver:
        complete = False
    complete = complete and not look.unreadable
    return Trial({name: look.counts[name] for name in COUNTED}, look.held[:MOST_HELD], complete)


class _Look:
    def __init__(self, ports: ErasurePorts, reach: Reach, deadline: Deadline) -> None:
        self._ports = ports
        self._reach = reach
        self._causes = Causes(ports.log, reach, Words(ports.keys, reach))
        self._deadline = deadline
        self._now = ports.clock.now()
        self.counts: Counter[str] = Counter()
        self.held: list[str] = []
        self.unreadable = 0

    def facts(self) -> None:
        for page in self._pages(self._heads):
            reached = [head for head in page if self._reach.names(head)]
            self.held += [head.fact.id for head in reached if head.fact.held]
            self.counts["facts"] += len(reached)
            self.counts["revisions"] += sum(head.fact.version for head in reached)
            self.counts["blobs"] += sum(at_once(self._objects_of, reached))
            self.counts["documents"] += len(reached) if self._ports.index is not None else 0
            self.counts["derived"] += sum(self._would_wait(head) for head in page if head not in reached)

    def _heads(self, after: str | None) -> tuple[list[Head], str | None]:
        page = heads(self._ports, self._reach, after)
        self.unreadable += page.unreadable
        return page.records, page.next

    def _objects_of(self, head: Head) -> int:
        return sum(1 for _ in self._ports.blobs.of_fact(self._reach.tenant, head.fact.id))

    def _would_wait(self, head: Head) -> bool:
        texts = [head.fact] if head.confirmed is None else [head.fact, head.confirmed.fact]
        return not head.fact.over(self._now) and any(map(self._causes.reach_one_of, texts))

    def keys(self) -> None:
        if not self._reach.has_words:
            return
        for number, key in enumerate(self._ports.keys.walk(self._reach.tenant)):
            if number % KEYS_BETWEEN_LOOKS == 0:
                self._require_time()
            self.counts["keys"] += key.destroyed_at is None and self._reach.names_key(key)

    def uploads(self) -> None:
        if not self._reach.has_words:
            return
        walk = partial(self._ports.blobs.of_tenant, self._reach.tenant, limit=OBJECTS_AT_ONCE)
        for objects in self._pages(walk):
            self.counts["uploads"] += len(nobodys(self._ports, self._reach, objects))

    def messages(self) -> None:
        if self._ports.index is None or not self._reach.has_words:
            return
        for run_id in self._runs():
            since: int | None = 0
            while since is not None:
                self._require_time()
                found, more = self._ports.log.entries(
                    self._reach.tenant, run_id, since, ENTRIES_AT_ONCE, ENTRY_BYTES
                )
                self.counts["messages"] += sum(map(is_message, found))
                since = found[-1].sequence + 1 if more and found else None

    def _runs(self) -> Iterator[str]:
        log, tenant = self._ports.log, self._reach.tenant
        for shard in range(log.run_shards(None)):
            before, more = NEWEST, True
            while more:
                self._require_time()
                rows, more = log.runs(tenant, None, shard, before, RUNS_AT_ONCE)
                yield from (row.run_id for row in rows if self._reach.names_scope(row.scope))
                before = rows[-1].order if rows else before
                more = more and bool(rows)

    def _pages(self, read: Callable[[str | None], tuple[list[Found], str | None]]) -> Iterator[list[Found]]:
        after: str | None = None
        while True:
            self._require_time()
            found, after = read(after)
            yield found
            if after is None:
                return

    def _require_time(self) -> None:
        if self._deadline.passed:
            raise _TimeIsOver
