"""List facts newest first by first write, merged from the listing partitions a principal reads.

Every partition is ordered by the same key, so one position resumes them all. A page reads at most `ROWS` index rows,
whatever the tenant holds; when those run out first, the page is short and says so with `more`. A list by type reads
the rows of that type only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head, Row
from factbook.usecases.facts.partitions import Partition, partitions
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.facts.reading import revision_at
from factbook.usecases.facts.types import types_with_prefix
from factbook.usecases.merging import NEWEST, Source, at_once, newest

ROWS = 1000
PAST_READS = 300
"""Revisions that a page as of an instant may read; each fact takes about log2 of its version."""
PREFIX_ROWS = 200
"""Rows that may be read to tell which types a prefix has; a hundred containers as of an instant need all the others."""
TYPES_SHARE, ROWS_SHARE = 0.5, 0.8
"""Of a list's time, to tell which types a prefix has: what is not known by then is read over. And of what is left then, for
rows: the facts that they name are to be read, too.
"""
MOST_SOURCES = 200
"""Partitions times types that are merged. What asks for more is filtered from a list of all types."""


@dataclass(frozen=True)
class Query:
    """What a list keeps: types (one of them, or a prefix; none: all), a partial scope, a container kind without narrower
    ones, an instant of record time.
    """

    types: tuple[str, ...] = ()
    scope: dict[str, str] = field(default_factory=dict)
    nothing_narrower_than: str | None = None
    as_of: str | None = None
    type_prefix: str | None = None

    def wants(self, fact_type: str) -> bool:
        if self.type_prefix is not None:
            return fact_type.startswith(self.type_prefix)
        return not self.types or fact_type in self.types


@dataclass(frozen=True)
class Page:
    facts: list[Fact]
    position: str | None
    """Where the next page goes on, None at the end."""


_NARROWER = {
    "tenant": ("orgId", "projectId", "userId", "participantId", "threadId"),
    "org": ("projectId", "userId", "participantId", "threadId"),
    "project": ("userId", "participantId", "threadId"),
}


def list_facts(
    ports: FactPorts,
    principal: Principal,
    query: Query,
    limit: int,
    before: str = NEWEST,
    look: gate.Look | None = None,
    deadline: Deadline = NEVER,
) -> Page:
    """At most `limit` facts visible to the principal, from position `before` on; `look`: found in a list, else. Fewer where
    the deadline passes.
    """
    look = look or ports.look(principal.tenant, past=query.as_of is not None)
    if query.as_of is not None:
        before = min(before, query.as_of + NEWEST)
    sources, rows_read = _sources(ports, principal, query, before, deadline.share(TYPES_SHARE))
    rows, position = newest(
        sources,
        lambda row: _keeps(principal, query, row, look),
        limit,
        ROWS - rows_read,
        deadline,
        ROWS_SHARE,
    )
    heads = ports.facts.heads(principal.tenant, [row.fact_id for row in rows])
    found = [_of_row(row, heads.get(row.fact_id)) for row in rows]
    show = partial(_shown, ports, principal, query, look)
    if query.as_of is not None and (most := _most_of_the_past(found)) < len(rows):
        rows, found, position = rows[:most], found[:most], rows[most - 1].order
    facts: list[Fact] = []
    room = wire.ANSWER_BYTES
    shown = iter(map(show, found) if query.as_of is None else at_once(show, found, deadline))
    for place in range(len(found)):
        try:
            fact = next(shown)
        except StorageUnavailable:
            if place == 0 or not deadline.passed:
                raise
            position = rows[place - 1].order
            break
        if fact is None:
            continue
        room -= fact.wire_bytes
        if facts and room < 0:
            position = rows[place - 1].order
            break
        facts.append(fact)
    ports.met_stale([fact for fact in facts if fact.stale])
    return Page(facts, position)


def _most_of_the_past(heads: Sequence[Head | None]) -> int:
    """How many of these, from the first on, take at most PAST_READS to find their revisions; at least one."""
    reads = accumulate(0 if head is None else head.fact.version.bit_length() for head in heads)
    return max(1, sum(1 for each in reads if each <= PAST_READS))


def _of_row(row: Row, head: Head | None) -> Head | None:
    """The head of the life that a row is of; rows of a former life of the id may still be there."""
    return head if head is not None and row.order == f"{head.fact.created_at}|{head.fact.id}" else None


def _shown(
    ports: FactPorts, principal: Principal, query: Query, look: gate.Look, head: Head | None
) -> Fact | None:
    if head is None:
        return None
    head = head.settled(look.now)
    if query.as_of is None:
        head = head.marked(look.now)
    fact = gate.shown(principal, head.fact, head.confirmed_fact, look)
    if fact is not None and query.as_of is not None:
        fact = revision_at(ports, head, query.as_of)
    if fact is None or not gate.shows_revision(principal, fact, look):
        return None
    # A row has the type of one of the fact's texts, and another one may be shown.
    return fact if query.wants(fact.type) else None


def _keeps(principal: Principal, query: Query, row: Row, look: gate.Look) -> bool:
    # Of a memory each revision may have a type of its own.
    other_texts = row.two_types or (query.as_of is not None and row.agent_id is not None)
    if not (query.wants(row.type) or other_texts):
        return False
    if not gate.may_pass(principal, row, look):
        return False
    if any(row.scope.get(key) != value for key, value in query.scope.items()):
        return False
    narrower = _NARROWER[query.nothing_narrower_than] if query.nothing_narrower_than else ()
    return not any(key in row.scope for key in narrower)


def _sources(
    ports: FactPorts, principal: Principal, query: Query, before: str, deadline: Deadline
) -> tuple[list[Source[Row]], int]:
    """The rows to merge, and how many were read to tell.

    While facts of the former format are not in the indexes by type, where these would be too many sources, and where
    telling which takes too long, it is the rows of all types: the same list, which costs more.
    """
    where = partitions(ports, principal, query.scope, past=query.as_of is not None)
    typed: list[tuple[Partition, str]] | None = None
    rows_read = 0
    if query.type_prefix is not None and ports.by_type():
        # When the types turn out to be too many, what was read to tell is spent all the same.
        rows_read = PREFIX_ROWS
        found = types_with_prefix(ports, principal.tenant, where, query.type_prefix, PREFIX_ROWS, deadline)
        if found is not None:
            typed, rows_read = found
    elif query.types and ports.by_type():
        typed = [(each, fact_type) for each in where for fact_type in query.types]
    one_each = len(query.types) == 1
    chosen: list[tuple[Partition, str | None]] = [(each, None) for each in where]
    if typed is not None and (one_each or len(typed) <= MOST_SOURCES):
        chosen = [*typed]
    return [
        Source(partial(_read, ports, principal.tenant, each, fact_type), before) for each, fact_type in chosen
    ], rows_read


def _read(
    ports: FactPorts, tenant: str, where: Partition, fact_type: str | None, before: str, limit: int
) -> tuple[list[Row], bool]:
    return ports.facts.rows(
        tenant, where.container, where.shard, before, limit, closed=where.closed, of_type=fact_type
    )
