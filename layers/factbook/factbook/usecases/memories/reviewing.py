"""Reviews: what waits for a person, and what an administrator decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from factbook.domain import wire
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import FactNotFound, NotInReview, PermissionDenied, StorageUnavailable
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import may_decide, restored
from factbook.domain.facts.transitions import reopened, require_changeable
from factbook.domain.memories import decisions
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head, review_since
from factbook.ports.memories.store import ReviewRow, ReviewState
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import Advance, Amend, Decision, FactChange, with_room
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.remembering import memory_full, named
from factbook.usecases.memories.standing import living
from factbook.usecases.merging import NEWEST, Source, newest

INSTEAD = "What it would give way to has no room beside them. Confirm what waits, or delete the fact."
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
    """`since`: when the revision began that waits, or was rejected, or when a person was asked. `replaces`: the text that stands if it is rejected."""

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

    Raises FactNotFound, PermissionDenied, ErasureInProgress, LegalHold, FactChanged, NotInReview, MemoryFull,
    IdempotencyMismatch.
    """

    def decide(head: Head | None, now: str) -> Decision:
        head = _open(ports, principal, about, head)
        if head.fact.reach == "account-proposed":
            _require_room(ports, head.fact, now)
        keep = ports.facts.keep(head.fact)
        return Advance(head, *decisions.confirmed(head.fact, principal, now, about.reason, keep))

    return FactChange(ports.facts, principal, operation, about.fact_id).run(decide)


def reject(ports: MemoryPorts, principal: Principal, operation: Operation, about: Decided) -> Fact:
    """A first proposal stays in reviews alone; what replaced a text that did not wait gives way to that; all else is closed.

    Raises as `confirm`, but for MemoryFull; RequestTooLarge when that earlier text would find no room any more.
    """

    def decide(head: Head | None, now: str) -> Decision:
        head = _open(ports, principal, about, head)
        stands = _replaced(ports, head, now, operation.deadline)
        if stands is not None:
            return with_room(Advance(head, *restored(head.fact, stands, principal.name, now)), INSTEAD)
        if head.fact.reach == "account-proposed":
            keep = ports.facts.keep(head.fact)
            return Advance(head, *decisions.rejected(head.fact, principal, now, about.reason, keep))
        return Amend(head, decisions.closed_by(head.fact, principal, now, about.reason))

    return FactChange(ports.facts, principal, operation, about.fact_id).run(decide)


def list_reviews(
    ports: MemoryPorts,
    principal: Principal,
    state: ReviewState,
    limit: int,
    before: str = NEWEST,
    deadline: Deadline = NEVER,
) -> ReviewPage:
    """What waits, or was rejected, newest first; fewer where the deadline passes.

    Raises PermissionDenied unless an administrator asks.
    """
    require_admin(principal)
    tenant = principal.tenant
    sources: list[Source[ReviewRow]] = [
        Source(partial(_rows, ports, tenant, state, shard), before)
        for shard in range(ports.index.review_shards)
    ]
    rows, position = newest(sources, lambda _: True, limit, ROWS, deadline)
    heads = ports.facts.facts.heads(tenant, [row.fact_id for row in rows])
    look = ports.facts.look(tenant, "by-id")
    reviews: list[Review] = []
    room, last = wire.ANSWER_BYTES, ""
    for row in rows:
        try:
            review = _review(ports, principal, state, heads.get(row.fact_id), look, deadline)
        except StorageUnavailable:
            if not (last and deadline.passed):
                raise
            return ReviewPage(reviews, last)
        room -= 0 if review is None else review.wire_bytes
        if reviews and room < 0:
            return ReviewPage(reviews, last)
        reviews += [] if review is None else [review]
        last = row.order
    return ReviewPage(reviews, position)


def _rows(
    ports: MemoryPorts, tenant: str, state: ReviewState, shard: int, before: str, limit: int
) -> tuple[list[ReviewRow], bool]:
    return ports.index.reviews(tenant, state, shard, before, limit)


def _review(
    ports: MemoryPorts,
    principal: Principal,
    state: ReviewState,
    head: Head | None,
    look: gate.Look,
    deadline: Deadline,
) -> Review | None:
    """None for what was decided, or ran out, since the index was written."""
    if head is None or not gate.can_see(principal, head.fact, look):
        return None
    rejected, since = head.fact.reach == "account-rejected", review_since(head)
    if rejected is (state == "open") or since is None:
        return None
    why: list[decisions.Why] = ["proposal"] if rejected else [*decisions.why_waits(head.fact)]
    if head.refresh is not None and head.refresh.asked_at is not None:
        why.append("source")
    return Review(why, since, head.marked(look.now).fact, _replaced(ports, head, look.now, deadline))


def _replaced(ports: MemoryPorts, head: Head, now: str, deadline: Deadline) -> Fact | None:
    """The text that stands if what waits is rejected: the confirmed one, or the last revision before it that did not wait.

    Raises StorageUnavailable when the deadline passes before it is found.
    """
    stands = head.stands(now)
    if stands is not None or head.fact.reach == "account-proposed":
        return stands
    if not decisions.gives_way(head.fact):
        return None
    below, more = head.fact.version, True
    while more:
        deadline.require()
        earlier, more = ports.facts.facts.revisions(head, below, EARLIER_BYTES)
        for revision in earlier:
            if not decisions.gives_way(revision):
                return reopened(revision) if decisions.stood(revision, now) else None
            below = revision.version
    return None


def _open(ports: MemoryPorts, principal: Principal, about: Decided, head: Head | None) -> Head:
    look = ports.facts.look_to_write("by-id")
    if head is None or gate.shown(principal, head.fact, head.confirmed_fact, look) is None:
        raise FactNotFound(about.fact_id)
    if not may_decide(principal):
        raise PermissionDenied(
            "Only an administrator who is no agent may decide what waits. Use such a token.",
            factId=about.fact_id,
        )
    ports.facts.require_spared(head.fact)
    require_changeable(head.fact, about.expected)
    if not decisions.waits(head.fact):
        raise NotInReview(about.fact_id)
    return head


def _require_room(ports: MemoryPorts, fact: Fact, now: str) -> None:
    """Raises MemoryFull when the account has confirmed as much with this agent as it may."""
    tenant, agent = fact.scope.tenant_id, fact.agent_id or ""
    limit = ports.facts.policy(tenant).limits.account_per_agent
    there = named(ports, tenant, living(ports.index.of_account(tenant, agent, now), now))
    if len([each for each in there if each.id != fact.id]) >= limit:
        raise memory_full(
            "The account has confirmed as many memories with this agent as it may. Delete one first.",
            limit,
            there,
        )
