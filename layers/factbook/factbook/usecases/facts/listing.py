"""List facts newest first by first write, merged from the listing partitions a principal reads.

Every partition is ordered by the same key, so one position resumes them all. A page reads at most `ROWS` index rows,
whatever the tenant holds; when those run out first, the page is short and says so with `more`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

from factbook.domain import wire
from factbook.domain.access.listing import listing_plan
from factbook.domain.access.principals import Principal
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.ports.facts.store import Head, Row
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.facts.reading import revision_at

ROWS = 1000
NEWEST = "~"
_THREADS = 16


@dataclass(frozen=True)
class Query:
    """What a list keeps: a type, a partial scope, a container kind without narrower ones, an instant of record time."""

    type: str | None = None
    scope: dict[str, str] = field(default_factory=dict)
    nothing_narrower_than: str | None = None
    as_of: str | None = None


@dataclass(frozen=True)
class Page:
    facts: list[Fact]
    position: str | None
    """Where the next page goes on, None at the end."""


@dataclass
class _Source:
    """One partition being merged; rows not yet taken, and how far down it has been read."""

    container: str | None
    shard: int
    closed: bool
    frontier: str
    more: bool = True


_NARROWER = {
    "tenant": ("orgId", "projectId", "userId", "participantId", "threadId"),
    "org": ("projectId", "userId", "participantId", "threadId"),
    "project": ("userId", "participantId", "threadId"),
}


def list_facts(
    ports: FactPorts, principal: Principal, query: Query, limit: int, before: str = NEWEST
) -> Page:
    """At most `limit` facts visible to the principal, from position `before` on."""
    look = ports.look(past=query.as_of is not None)
    if query.as_of is not None:
        before = min(before, query.as_of + NEWEST)
    rows, position = _candidates(ports, principal, query, limit, before, look)
    heads = ports.facts.heads(principal.tenant, [row.fact_id for row in rows])
    facts: list[Fact] = []
    room = wire.ANSWER_BYTES
    for place, row in enumerate(rows):
        fact = _shown(ports, principal, query, heads.get(row.fact_id), look)
        if fact is None:
            continue
        room -= fact.wire_bytes
        if facts and room < 0:
            return Page(facts, rows[place - 1].order)
        facts.append(fact)
    return Page(facts, position)


def _shown(
    ports: FactPorts, principal: Principal, query: Query, head: Head | None, look: gate.Look
) -> Fact | None:
    if head is None or not gate.can_see(principal, head.fact, look):
        return None
    return head.fact if query.as_of is None else revision_at(ports, head, query.as_of)


def _keeps(query: Query, row: Row, look: gate.Look) -> bool:
    if query.type is not None and row.type != query.type:
        return False
    if not gate.may_pass(row.expires_at, look, in_review=row.pending_review):
        return False
    if any(row.scope.get(key) != value for key, value in query.scope.items()):
        return False
    narrower = _NARROWER[query.nothing_narrower_than] if query.nothing_narrower_than else ()
    return not any(key in row.scope for key in narrower)


def _candidates(
    ports: FactPorts, principal: Principal, query: Query, limit: int, before: str, look: gate.Look
) -> tuple[list[Row], str | None]:
    """The next rows worth fetching, newest first, and the position after them (None when nothing is left)."""
    sources = _sources(ports, principal, query, before)
    found: dict[str, Row] = {}
    budget = ROWS
    batch, each = sources, min(limit, 2 * limit // max(1, len(sources))) + 1
    while batch and budget >= len(batch):
        each = min(each, budget // len(batch))
        budget -= each * len(batch)
        for rows in _pool().map(_reader(ports, principal.tenant, each), batch):
            # By order: a fact closed between two reads is in an open and in a closed partition.
            found |= {row.order: row for row in rows if _keeps(query, row, look)}
        batch, each = _behind(sources, found, limit), 2 * each
    safe = max((source.frontier for source in sources if source.more), default="")
    whole = [found[order] for order in sorted(found, reverse=True) if order >= safe]
    if len(whole) > limit:
        return whole[:limit], whole[limit - 1].order
    return whole, safe or None


@cache
def _pool() -> ThreadPoolExecutor:
    """Kept for the life of the process: starting threads would cost a page more than its queries do."""
    return ThreadPoolExecutor(max_workers=_THREADS)


def _behind(sources: list[_Source], found: dict[str, Row], limit: int) -> list[_Source]:
    """The partitions to read next: of those that may hold a row of this page, the ones the merge waits for longest."""
    needed = sorted(found, reverse=True)[limit] if len(found) > limit else ""
    behind = [source for source in sources if source.more and source.frontier > needed]
    return sorted(behind, key=lambda source: source.frontier, reverse=True)[:_THREADS]


def _reader(ports: FactPorts, tenant: str, limit: int) -> Callable[[_Source], list[Row]]:
    def read(source: _Source) -> list[Row]:
        rows, source.more = ports.facts.rows(
            tenant, source.container, source.shard, source.frontier, limit, closed=source.closed
        )
        if rows:
            source.frontier = rows[-1].order
        return rows

    return read


def _sources(ports: FactPorts, principal: Principal, query: Query, before: str) -> list[_Source]:
    containers = listing_plan(principal, query.scope).containers
    return [
        _Source(container, shard, closed, before)
        for container in ((None,) if containers is None else containers)
        for closed in ((False, True) if query.as_of is not None else (False,))
        for shard in range(ports.facts.shards(container))
    ]
