"""Reviews: what waits for a person, and what an administrator decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import FactNotFound, NotInReview, PermissionDenied
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import may_decide, restored
from factbook.domain.facts.transitions import reopened, require_changeable
from factbook.domain.memories import decisions
from factbook.domain.policy.retention import KeepLimits
from factbook.ports.facts.store import Head
from factbook.ports.memories.store import ReviewRow, ReviewState
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import Advance, Amend, Decision, FactChange
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.remembering import memory_full
from factbook.usecases.memories.standing import living
from factbook.usecases.merging import NEWEST, Source, newest

ROWS = 1_000
EARLIER_BYTES = 100_000
"""Of earlier revisions that are read at once: most often the last one is the one that is looked for."""


@dataclass(frozen=True)
class Decided:
    """How an administrator decides about a fact: `reason` is kept with it, `expected` is the version that was looked at."""

    fact_id: str
    expected: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Review:
    """`since`: when the revision began that waits, or was rejected. `replaces`: the text that stands if it is rejected."""

    why: Sequence[decisions.Why]
    since: str
    fact: Fact
    replaces: Fact | None = None

    @property
    def wire_bytes(self) -> int:
        """What it takes in an answer, about."""
        replaced = 0 if self.replaces is None else self.replaces.wire_bytes
        return self.fact.wire_bytes + replaced + 300


@dataclass(frozen=True)
class ReviewPage:
    reviews: list[Review]
    position: str | None
    """Where the next page goes on, None at the end."""


def confirm(ports: MemoryPorts, principal: Principal, operation: Operation, about: Decided) -> Fact:
    """A proposal becomes the account's, what waited is released; the next revision.

    Raises FactNotFound, PermissionDenied, LegalHold, FactChanged, NotInReview, MemoryFull, IdempotencyMismatch.
    """

    def decide(head: Head | None, now: str) -> Decision:
        head = _open(ports, principal, about, head)
        if head.fact.reach == "account-proposed":
            _require_room(ports, head.fact, now)
        keep = _keep(ports, head)
        return Advance(head, *decisions.confirmed(head.fact, principal, now, about.reason, keep))

    return FactChange(ports.facts, principal, operation, about.fact_id).run(decide)


def reject(ports: MemoryPorts, principal: Principal, operation: Operation, about: Decided) -> Fact:
    """A first proposal stays in reviews alone; what replaced a text that did not wait gives way to that; all else is closed.

    Raises as `confirm`, but for MemoryFull.
    """

    def decide(head: Head | None, now: str) -> Decision:
        head = _open(ports, principal, about, head)
        stands = _replaced(ports, head, now)
        if stands is not None:
            return Advance(head, *restored(head.fact, stands, principal.name, now))
        if head.fact.reach == "account-proposed":
            keep = _keep(ports, head)
            return Advance(head, *decisions.rejected(head.fact, principal, now, about.reason, keep))
        return Amend(head, decisions.closed_by(head.fact, principal, now, about.reason))

    return FactChange(ports.facts, principal, operation, about.fact_id).run(decide)


def list_reviews(
    ports: MemoryPorts, principal: Principal, state: ReviewState, limit: int, before: str = NEWEST
) -> ReviewPage:
    """What waits, or was rejected, newest first. Raises PermissionDenied unless an administrator asks."""
    require_admin(principal)
    tenant = principal.tenant
    sources: list[Source[ReviewRow]] = [
        Source(partial(_rows, ports, tenant, state, shard), before)
        for shard in range(ports.index.review_shards)
    ]
    rows, position = newest(sources, lambda _: True, limit, ROWS)
    heads = ports.facts.facts.heads(tenant, [row.fact_id for row in rows])
    look = ports.facts.look("by-id")
    found = [(row, _review(ports, principal, state, heads.get(row.fact_id), look)) for row in rows]
    waiting = [(row, review) for row, review in found if review is not None]
    kept = wire.fitting(waiting, lambda each: each[1].wire_bytes)
    if len(kept) < len(waiting):
        position = kept[-1][0].order
    return ReviewPage([review for _, review in kept], position)


def _rows(
    ports: MemoryPorts, tenant: str, state: ReviewState, shard: int, before: str, limit: int
) -> tuple[list[ReviewRow], bool]:
    return ports.index.reviews(tenant, state, shard, before, limit)


def _review(
    ports: MemoryPorts, principal: Principal, state: ReviewState, head: Head | None, look: gate.Look
) -> Review | None:
    """None for what was decided, or ran out, since the index was written."""
    if head is None or not gate.can_see(principal, head.fact, look):
        return None
    rejected = head.fact.reach == "account-rejected"
    if rejected is (state == "open") or not (rejected or decisions.waits(head.fact)):
        return None
    why: Sequence[decisions.Why] = ["proposal"] if rejected else decisions.why_waits(head.fact)
    return Review(why, head.fact.updated_at, head.fact, _replaced(ports, head, look.now))


def _replaced(ports: MemoryPorts, head: Head, now: str) -> Fact | None:
    """The text that stands if what waits is rejected: the confirmed one, or the last revision before it that did not wait."""
    if head.confirmed is not None:
        return head.confirmed.fact
    if head.fact.reach == "account-proposed" or not decisions.gives_way(head.fact):
        return None
    below, more = head.fact.version, True
    while more:
        earlier, more = ports.facts.facts.revisions(head, below, EARLIER_BYTES)
        for revision in earlier:
            if not decisions.gives_way(revision):
                return reopened(revision) if decisions.stood(revision, now) else None
            below = revision.version
    return None


def _open(ports: MemoryPorts, principal: Principal, about: Decided, head: Head | None) -> Head:
    look = ports.facts.look("by-id")
    if head is None or gate.shown(principal, head.fact, head.confirmed_fact, look) is None:
        raise FactNotFound(about.fact_id)
    if not may_decide(principal):
        raise PermissionDenied(
            "Only an administrator who is no agent may decide what waits.", factId=about.fact_id
        )
    require_changeable(head.fact, about.expected)
    if not decisions.waits(head.fact):
        raise NotInReview(about.fact_id)
    return head


def _require_room(ports: MemoryPorts, fact: Fact, now: str) -> None:
    """Raises MemoryFull when the account has confirmed as much with this agent as it may."""
    tenant, agent = fact.scope.tenant_id, fact.agent_id or ""
    limit = ports.facts.policy(tenant).limits.account_per_agent
    there = living(ports.index.of_account(tenant, agent), now)
    if len([each for each in there if each.id != fact.id]) >= limit:
        raise memory_full(
            "The account has confirmed as many memories with this agent as it may. Delete one first.",
            limit,
            there,
        )


def _keep(ports: MemoryPorts, head: Head) -> KeepLimits | None:
    return ports.facts.policy(head.fact.scope.tenant_id).retention_of(head.fact.type)
