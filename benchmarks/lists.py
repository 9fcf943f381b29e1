"""What a page of a list reads, counted: `python benchmarks/lists.py [--facts 1000 10000 100000]`.

Facts of one project stand in a store in memory that keeps the rows of each partition in order, as the indexes do. One in
10,000 is of the type `rare`, one in 1,000 of a type that begins with `some.`. For an administrator and a member of the
project it prints, for each list: rows read, queries, pages (requests), facts or types found.
"""

import argparse
import bisect
import uuid
from collections.abc import Callable
from typing import Any

from factbook.adapters.dynamodb.key_parts import shard_of
from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import Fact, FactChanges, Payload
from factbook.domain.facts.transitions import open_fact
from factbook.domain.facts.type_order import LOWEST, type_place
from factbook.domain.policy.policies import Policy
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head, Row
from factbook.usecases.facts.listing import Query, list_facts
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.facts.types import list_types
from factbook.usecases.merging import NEWEST
from factbook.wiring.services import SystemClock

START = "2026-01-01T00:00:00.000Z"
ADMIN = Principal("t", Actor(kind="user", id="root"), admin=True)
MEMBER = Principal("t", Actor(kind="user", id="ann"), writes_projects=frozenset({"p"}))
Keyed = list[tuple[str, Row]]


class CountingStore:
    """The rows of a FactStore, sorted once, with what is read of them."""

    def __init__(self, facts: list[Fact]) -> None:
        self.rows_read = self.queries = 0
        self._heads = {fact.id: Head(fact) for fact in facts}
        self._newest: dict[tuple[str | None, int], Keyed] = {}
        self._typed: dict[tuple[str | None, int], Keyed] = {}
        for fact in facts:
            row = Row(f"{fact.created_at}|{fact.id}", fact.id, fact.type, fact.scope.to_json(), None, False)  # noqa: FBT003 - a row as the index has it
            for container in (fact.scope.container, None):
                where = (container, shard_of(fact.id, self.shards(container)))
                self._newest.setdefault(where, []).append((row.order, row))
                self._typed.setdefault(where, []).append((type_place(row.type, row.order), row))
        for rows in (*self._newest.values(), *self._typed.values()):
            rows.sort(key=lambda keyed: keyed[0])

    def shards(self, container: str | None) -> int:
        return 8 if container is None else 4

    def heads(self, _: str, ids: list[str]) -> dict[str, Head]:
        return {each: self._heads[each] for each in ids}

    def rows(
        self,
        _: str,
        container: str | None,
        shard: int,
        before: str,
        limit: int,
        *,
        closed: bool = False,
        of_type: str | None = None,
    ) -> tuple[list[Row], bool]:
        if closed or of_type is None:
            rows, first, last = self._newest.get((container, shard), []), "", before
        else:
            rows = self._typed.get((container, shard), [])
            first, last = type_place(of_type), type_place(of_type, before)
        start = bisect.bisect_left(rows, first, key=lambda keyed: keyed[0])
        end = bisect.bisect_left(rows, last, key=lambda keyed: keyed[0])
        return self._read(rows[max(start, end - limit) : end][::-1], limit)

    def rows_by_type(
        self, _: str, container: str | None, shard: int, first: str, last: str, limit: int, **__: Any
    ) -> tuple[list[Row], bool]:
        rows = self._typed.get((container, shard), [])
        start = bisect.bisect_left(rows, first, key=lambda keyed: keyed[0])
        end = bisect.bisect_right(rows, last, key=lambda keyed: keyed[0])
        return self._read(rows[start : min(end, start + limit)], limit)

    def _read(self, rows: Keyed, limit: int) -> tuple[list[Row], bool]:
        self.queries += 1
        self.rows_read += len(rows)
        return [row for _, row in rows], len(rows) >= limit


def facts_of(count: int) -> list[Fact]:
    scope, payload = Scope(tenantId="t", projectId="p"), Payload(text="1", content_hash="", size=1)
    model = open_fact("f", "noise", scope, FactChanges(), payload, ADMIN, START)
    return [
        model.model_copy(
            update={
                "id": str(uuid.UUID(int=number)),
                "created_at": times.add(START, milliseconds=number),
                "type": "rare"
                if number % 10_000 == 0
                else f"some.{number % 7}"
                if number % 1_000 == 1
                else "noise",
            }
        )
        for number in range(count)
    ]


def pages_of(ports: FactPorts, who: Principal, query: Query) -> tuple[int, int]:
    """Pages until there are 25 facts or the end, and the facts."""
    found, pages, position = 0, 0, NEWEST
    while position is not None and found < 25:
        page = list_facts(ports, who, query, 25 - found, position)
        found, pages, position = found + len(page.facts), pages + 1, page.position
    return pages, found


def types_of(ports: FactPorts, who: Principal) -> tuple[int, int]:
    found, pages, position = 0, 0, LOWEST
    while position is not None:
        page = list_types(ports, who, {}, 25, position)
        found, pages, position = found + len(page.types), pages + 1, page.position
    return pages, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--facts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    lists: dict[str, Callable[[FactPorts, Principal], tuple[int, int]]] = {
        "newest first": lambda ports, who: pages_of(ports, who, Query()),
        "type, 1 in 10,000": lambda ports, who: pages_of(ports, who, Query(("rare",))),
        "type, nearly all": lambda ports, who: pages_of(ports, who, Query(("noise",))),
        "prefix, 1 in 1,000": lambda ports, who: pages_of(ports, who, Query(type_prefix="some.")),
        "types": types_of,
    }
    print(f"{'facts':>8}  {'who':14} {'list':20} {'rows':>6} {'queries':>8} {'pages':>6} {'found':>6}")
    for count in parser.parse_args().facts:
        store: Any = CountingStore(facts_of(count))
        ports = FactPorts(store, None, SystemClock(), lambda: b"", lambda _: Policy(), lambda: True)  # type: ignore[arg-type]
        for name, who in (("administrator", ADMIN), ("member", MEMBER)):
            for title, read in lists.items():
                store.rows_read = store.queries = 0
                pages, found = read(ports, who)
                print(
                    f"{count:8,}  {name:14} {title:20} {store.rows_read:6} {store.queries:8} {pages:6} {found:6}"
                )


if __name__ == "__main__":
    main()
