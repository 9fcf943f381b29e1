"""The types of facts there are, by name, found by skipping: one row of a type tells that it is there.

The indexes by type hold a partition's facts in the order of their types, so the next type is the first row behind the
last one. What that costs grows with the number of types and of partitions, never with the number of facts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from factbook.domain.access.principals import Principal
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.type_order import (
    HIGHEST,
    LOWEST,
    behind,
    behind_type,
    type_place,
    with_prefix,
)
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head, Row
from factbook.usecases.facts.partitions import Partition, partitions
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.merging import THREADS, at_once

ROWS = 1000
ROWS_SHARE = 0.8
"""Of the time, in which the last rows and their facts are begun to be read."""
MOST_STEP = 32
"""Rows of one type that one read looks at, when the last ones were not to be shown."""


@dataclass(frozen=True)
class TypePage:
    types: list[str]
    position: str | None
    """Where the next page goes on, None at the end."""


@dataclass
class _Walker:
    """How far one partition has been read: from `place` on it has not. `within`: the type that was read last."""

    partition: Partition
    place: str
    within: str | None = None
    more: bool = True
    step: int = 1


def list_types(
    ports: FactPorts,
    principal: Principal,
    wanted: dict[str, str],
    limit: int,
    position: str = LOWEST,
    deadline: Deadline = NEVER,
) -> TypePage:
    """At most `limit` types of facts that the principal may list and whose scope has every key of `wanted`; fewer where the
    deadline passes.

    Raises StorageUnavailable while facts of the former format are not in the indexes yet, and when the deadline passes
    before anything can be told.
    """
    if not ports.by_type():
        raise StorageUnavailable(
            "Facts of an earlier version are still being put in order. Try again in a minute."
        )
    return _TypeWalk(ports, principal, wanted, limit, position).page(deadline)


class _TypeWalk:
    def __init__(
        self, ports: FactPorts, principal: Principal, wanted: dict[str, str], limit: int, position: str
    ) -> None:
        self._ports = ports
        self._principal = principal
        self._wanted = wanted
        self._limit = limit
        self._first = position
        self._look = ports.look(principal.tenant)
        self._walkers = [_Walker(each, position) for each in partitions(ports, principal, wanted)]
        self._found: set[str] = set()

    def page(self, deadline: Deadline) -> TypePage:
        """Reads at most ROWS rows. A type is answered once no partition can hold one before it."""
        rows, last = ROWS, deadline.share(ROWS_SHARE)
        while (batch := self._next_batch()) and rows >= len(batch) and not last.passed:
            for walker in batch:
                walker.step = min(walker.step, rows // len(batch))
            rows -= sum(walker.step for walker in batch)
            try:
                self._take(batch, list(at_once(self._read, batch, deadline)), deadline)
            except StorageUnavailable:  # what was told before is told
                if not deadline.passed:
                    raise
                break
        safe = min((walker.place for walker in self._walkers if walker.more), default=None)
        if safe == self._first and last.passed:
            raise StorageUnavailable  # a page that goes on where it began would go on for ever
        whole = sorted(
            (each for each in self._found if safe is None or behind_type(each) <= safe), key=type_place
        )
        if len(whole) > self._limit:
            return TypePage(whole[: self._limit], behind_type(whole[self._limit - 1]))
        return TypePage(whole, safe)

    def _next_batch(self) -> list[_Walker]:
        """The partitions that may hold a type of this page, those the page waits for longest first."""
        places = sorted(map(behind_type, self._found))
        needed = places[self._limit] if len(places) > self._limit else HIGHEST
        waiting = [walker for walker in self._walkers if walker.more and walker.place < needed]
        return sorted(waiting, key=lambda walker: walker.place)[:THREADS]

    def _read(self, walker: _Walker) -> tuple[list[Row], bool]:
        where = walker.partition
        return self._ports.facts.rows_by_type(
            self._principal.tenant, where.container, where.shard, walker.place, HIGHEST, walker.step
        )

    def _take(
        self, batch: Sequence[_Walker], answers: Sequence[tuple[list[Row], bool]], deadline: Deadline
    ) -> None:
        """Note which types are shown, and take every partition behind what it was read for."""
        self._found |= self._shown([row for rows, _ in answers for row in rows], deadline)
        for walker, (rows, more) in zip(batch, answers, strict=True):
            walker.more = more
            if rows:
                walker.within = rows[-1].type
                walker.place = behind(type_place(rows[-1].type, rows[-1].order))
            walker.step = 1 if walker.within in self._found else min(2 * walker.step, MOST_STEP)
        for walker in self._walkers:
            if walker.within in self._found:
                walker.place = max(walker.place, behind_type(str(walker.within)))

    def _shown(self, rows: list[Row], deadline: Deadline) -> set[str]:
        """The types among these that are new and of a fact the caller is shown: the gate is asked of the fact itself."""
        asked = [row for row in rows if row.type not in self._found and self._may_pass(row)]
        parts = [asked[start : start + 100] for start in range(0, len(asked), 100)]
        shown: set[str] = set()
        for heads in at_once(self._heads, parts, deadline):
            shown |= {fact.type for head in heads.values() if (fact := self._fact(head)) is not None}
        # A confirmed text of another type than its proposal was shown at its own place, which an earlier page may have passed.
        return {each for each in shown if behind_type(each) > self._first}

    def _heads(self, rows: list[Row]) -> dict[str, Head]:
        return self._ports.facts.heads(self._principal.tenant, [row.fact_id for row in rows])

    def _fact(self, head: Head) -> Fact | None:
        head = head.settled(self._look.now)
        return gate.shown(self._principal, head.fact, head.confirmed_fact, self._look)

    def _may_pass(self, row: Row) -> bool:
        wanted = all(row.scope.get(key) == value for key, value in self._wanted.items())
        return wanted and gate.may_pass(self._principal, row, self._look)


def types_with_prefix(
    ports: FactPorts,
    tenant: str,
    where: Sequence[Partition],
    prefix: str,
    most_rows: int,
    deadline: Deadline = NEVER,
) -> tuple[list[tuple[Partition, str]], int] | None:
    """The types with a prefix that each partition holds, and how many rows were read to tell; None when that takes more
    than `most_rows`, or than there is time for.
    """
    span = with_prefix(prefix)
    if span is None:
        return None
    found: list[tuple[Partition, str]] = []
    places = dict.fromkeys(where, span[0])
    rows_read = 0

    def read(each: Partition) -> list[Row]:
        rows, _ = ports.facts.rows_by_type(
            tenant, each.container, each.shard, places[each], span[1], 1, closed=each.closed
        )
        return rows

    while places:
        rows_read += len(places)
        if rows_read > most_rows or deadline.passed:
            return None
        try:
            answers = dict(zip(list(places), at_once(read, list(places), deadline), strict=True))
        except StorageUnavailable:
            if not deadline.passed:
                raise
            return None
        places = {each: behind_type(rows[0].type) for each, rows in answers.items() if rows}
        found += [(each, rows[0].type) for each, rows in answers.items() if rows]
    return found, rows_read
