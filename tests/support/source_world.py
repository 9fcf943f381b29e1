"""Mirrored facts on fakes: a store, a log, and sources that answer what a test says."""

import secrets
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from factbook.adapters.aes_gcm import AesGcm
from factbook.adapters.dynamodb.key_parts import shard_of
from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts.fact import Fact, FactChanges, Source
from factbook.domain.facts.freshness import due_at, priority_of
from factbook.domain.sources.circuits import CLOSED, Circuit
from factbook.domain.strict_json import dump_json
from factbook.ports.clock import Clock
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.ports.sources.handlers import Answer, Ask, Fetched, HandlerMissing, SourceUnavailable, Unchanged
from factbook.ports.sources.stores import DeadLetter, Due, Letter, Taken, Wanted
from factbook.usecases.facts import changes
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.log.sealing import Vault
from factbook.usecases.sources.ports import RefreshPorts
from factbook.usecases.sources.refreshing import How, Refreshed, refresh_fact
from support.fakes import FakeClock, FakeFacts, fake_memory
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import principal

ADMIN = principal("acme", "boss", admin=True)
Says = Callable[[Ask], Answer] | Answer | Exception


def fetched(value: Any, **validators: Any) -> Fetched:
    return Fetched(dump_json(value), **validators)


@dataclass
class FakeSource:
    """A source that says what it is told to, and remembers what it was asked. `during`: happens while it is asked."""

    says: Says = field(default_factory=lambda: fetched("new"))
    asked: list[Ask] = field(default_factory=list)
    during: Callable[[], object] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, ask: Ask, deadline: Deadline) -> Answer:
        with self.lock:
            self.asked.append(ask)
        self.during()
        said = self.says(ask) if callable(self.says) else self.says
        if isinstance(said, Exception):
            raise said
        return said


class FakeHandlers:
    """Handlers by host: the authority of a source's uri. Of `nobody` there is no handler."""

    def __init__(self) -> None:
        self.sources: dict[str, FakeSource] = defaultdict(FakeSource)

    def handler(self, source: Source) -> FakeSource:
        if source.refresh.handler == "nobody":
            raise HandlerMissing
        return self.sources[self._name(source)]

    def host(self, source: Source) -> str | None:
        return None if source.kind == "user-input" else self._name(source)

    def _name(self, source: Source) -> str:
        return (source.uri or "https://source.example/").split("/")[2]

    @property
    def asked(self) -> int:
        return sum(len(each.asked) for each in self.sources.values())


class FakeLeases:
    """Leases in a dictionary, by the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.taken: dict[tuple[str, ...], tuple[str, str]] = {}

    def take(self, what: Sequence[str], owner: str, seconds: float) -> bool:
        now = self._clock.now()
        with self._lock:
            held = self.taken.get(tuple(what))
            if held is not None and held[0] != owner and held[1] > now:
                return False
            self.taken[tuple(what)] = owner, times.add(now, seconds=seconds)
            return True

    def give_back(self, what: Sequence[str], owner: str, rest: float = 0.0) -> None:
        with self._lock:
            held = self.taken.get(tuple(what))
            if held is None or held[0] != owner:
                return
            if rest:
                self.taken[tuple(what)] = "", times.add(self._clock.now(), seconds=rest)
            else:
                del self.taken[tuple(what)]


class FakeCircuits:
    """Circuits in a dictionary; `reads` and `writes` count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.kept: dict[tuple[str, str], Circuit] = {}
        self.writes = 0

    def circuit(self, tenant: str, host: str) -> Circuit:
        with self._lock:
            return self.kept.get((tenant, host), CLOSED)

    def keep(self, tenant: str, host: str, before: Circuit, after: Circuit) -> bool:
        with self._lock:
            if self.kept.get((tenant, host), CLOSED) != before:
                return False
            self.writes += 1
            if after == CLOSED:
                self.kept.pop((tenant, host), None)
            else:
                self.kept[tenant, host] = after
            return True


class FakeDue:
    """DueIndex over the heads of FakeFacts; `rows_read` counts."""

    shards = 8

    def __init__(self, facts: FakeFacts) -> None:
        self._facts = facts
        self.rows_read = self.queries = 0

    def due(self, priority: int, shard: int, after: str, until: str, limit: int) -> tuple[list[Due], bool]:
        with self._facts.lock:
            heads = list(self._facts._heads.values())
        rows = []
        for head in heads:
            source = head.fact.source
            if source is None or priority_of(source) != priority:
                continue
            if shard_of(head.fact.id, self.shards) != shard:
                continue
            at = due_at(head.fact, head.refresh)
            order = f"{at}|{head.fact.scope.tenant_id}|{head.fact.id}"
            if at is not None and at <= until and order > after:
                rows.append(Due(order, head.fact.scope.tenant_id, head.fact.id))
        rows.sort(key=lambda row: row.order)
        self.queries += 1
        self.rows_read += len(rows[:limit])
        return rows[:limit], len(rows) >= limit


class SortedDue:
    """DueIndex over any number of rows, (priority, when, tenant, fact id) each; `rows_read` and `queries` count."""

    shards = 8

    def __init__(self, facts: Iterable[tuple[int, str, str, str]]) -> None:
        self._partitions: dict[tuple[int, int], list[Due]] = defaultdict(list)
        for priority, when, tenant, fact_id in facts:
            row = Due(f"{when}|{tenant}|{fact_id}", tenant, fact_id)
            self._partitions[priority, shard_of(fact_id, self.shards)].append(row)
        for rows in self._partitions.values():
            rows.sort(key=lambda row: row.order)
        self.rows_read = self.queries = 0

    def due(self, priority: int, shard: int, after: str, until: str, limit: int) -> tuple[list[Due], bool]:
        rows = self._partitions.get((priority, shard), [])
        first = bisect_right(rows, after, key=lambda row: row.order)
        last = bisect_right(rows, f"{until}|~", key=lambda row: row.order)
        found = rows[first : min(last, first + limit)]
        self.queries += 1
        self.rows_read += len(found)
        return found, first + limit < last

    def remove(self, fact_ids: Container[str]) -> None:
        for partition, rows in self._partitions.items():
            self._partitions[partition] = [row for row in rows if row.fact_id not in fact_ids]


class FakeQueue:
    """RefreshQueue in a list; refuses everything while `broken`, and after `room` messages. What was put off is not had yet."""

    def __init__(self) -> None:
        self.sent: list[Wanted] = []
        self.delays: list[int] = []
        self.taken: dict[str, Wanted] = {}
        self.broken = False
        self.room = 10**9
        self._lock = threading.Lock()

    def send(self, wanted: Sequence[Wanted], delay: int = 0) -> None:
        if self.broken or len(self.sent) + len(wanted) > self.room:
            raise StorageUnavailable
        self.sent += wanted
        self.delays += [delay] * len(wanted)

    def take(self, most: int) -> list[Taken]:
        if self.broken:
            raise StorageUnavailable
        with self._lock:
            first = [wanted for wanted in self.sent if not wanted.deferred][: min(most, 10)]
            self.sent[:] = [wanted for wanted in self.sent if not any(each is wanted for each in first)]
            taken = [Taken(secrets.token_hex(8), each) for each in first]
            self.taken |= {each.handle: each.wanted for each in taken}
            return taken

    def remove(self, taken: Taken) -> None:
        del self.taken[taken.handle]

    def waiting(self) -> int:
        return len([wanted for wanted in self.sent if not wanted.deferred])


class FakeLetters:
    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.broken = False

    def send(self, letter: DeadLetter) -> None:
        if self.broken:
            raise StorageUnavailable
        self.letters.append(letter)

    def receive(self, hidden_seconds: int) -> list[Letter]:
        return [Letter(str(place), "", each.to_json()) for place, each in enumerate(self.letters[:10])]

    def remove(self, letter: Letter) -> None:
        self.letters.pop(0)


class SourceWorld:
    """One deployment: `clock` stands still; what is drawn at random is always `drawn`."""

    def __init__(self, tenant: str = "acme") -> None:
        self.tenant = tenant
        self.clock, self.facts = FakeClock(), FakeFacts()
        vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
        self.log = LogWriter(FakeLog(), vault, StandingClock(), pause=lambda _: None)
        self.handlers, self.circuits, self.letters = FakeHandlers(), FakeCircuits(), FakeLetters()
        self.leases, self.queue, self.due = FakeLeases(self.clock), FakeQueue(), FakeDue(self.facts)
        self.drawn = 0.0
        self.unforeseen: list[tuple[str, Exception]] = []
        self.memory = fake_memory(self.clock, self.facts, self.log)
        self.ports = RefreshPorts(
            self.memory,
            self.handlers,
            self.leases,
            self.circuits,
            self.letters,
            draw=lambda: self.drawn,
            pause=lambda seconds: self.clock.advance(seconds=seconds),
            unforeseen=lambda fact_id, error: self.unforeseen.append((fact_id, error)),
        )
        self._number = 0

    def source(self, host: str = "source.example") -> FakeSource:
        return self.handlers.sources[host]

    def mirror(
        self,
        content: Any = "old",
        *,
        who: Principal = ADMIN,
        host: str = "source.example",
        strategy: str = "background",
        kind: str = "http-api",
        priority: int | None = None,
        handler: str | None = None,
        agent: str | None = None,
        scope: dict[str, str] | None = None,
        **freshness: Any,
    ) -> str:
        """A new fact that mirrors something; its id. Its time to live is a minute unless it is said."""
        from factbook.api.models import ScopeRequest

        self._number += 1
        refresh = {"strategy": strategy, "priority": priority, "handler": handler}
        said = {
            "kind": kind,
            "uri": f"https://{host}/{self._number}",
            "freshness": {"ttlSeconds": 60} | freshness,
            "refresh": {name: value for name, value in refresh.items() if value is not None},
        }
        made = FactChanges(source=Source.model_validate(said))
        place = ScopeRequest.model_validate(scope or {}).resolve(who)
        return changes.write_fact(
            self.memory, who, self.operation(), "note", place, made, Content(content), agent
        ).id

    def operation(self) -> Operation:
        self._number += 1
        return Operation(f"operation {self._number}", "")

    def refresh(self, fact_id: str, how: How = "hand", deadline: Deadline = NEVER) -> Refreshed:
        return refresh_fact(self.ports, self.tenant, fact_id, how, deadline)

    def head(self, fact_id: str) -> Head:
        head = self.facts.head(self.tenant, fact_id)
        assert head is not None
        return head

    def fact(self, fact_id: str) -> Fact:
        """As it is answered now."""
        return self.head(fact_id).marked(self.clock.now()).fact

    def change(self, fact_id: str, **fields: Any) -> None:
        """Past the service."""
        head = self.head(fact_id)
        after = replace(head, edition=head.edition + 1, fact=head.fact.model_copy(update=fields))
        assert self.facts.amend(head, after) is None

    def supersede(self, fact_id: str, content: Any, who: Principal = ADMIN) -> Fact:
        return changes.supersede_fact(
            self.memory, who, self.operation(), fact_id, FactChanges(), Content(content)
        )


__all__ = ["ADMIN", "FakeSource", "SourceUnavailable", "SourceWorld", "Unchanged", "fetched"]
