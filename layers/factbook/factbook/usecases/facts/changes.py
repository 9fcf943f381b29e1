"""Write facts: what each kind of change makes of a head. How it lands is the engine's."""

from factbook.domain.access.owners import owner_of
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_write
from factbook.domain.errors import BadInput, FactNotFound, MemoryFull, PermissionDenied
from factbook.domain.facts import gate, reach
from factbook.domain.facts.fact import Fact, FactChanges
from factbook.domain.facts.ids import fact_id_for
from factbook.domain.facts.transitions import (
    close,
    has_time_left,
    open_fact,
    require_changeable,
    require_time_left,
    supersede,
    verify,
)
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import (
    Advance,
    Amend,
    Create,
    Decision,
    FactChange,
    require_open,
    with_room,
)
from factbook.usecases.facts.payloads import Content, fact_without_key_of
from factbook.usecases.facts.ports import FactPorts


def write_fact(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_type: str,
    scope: Scope,
    changes: FactChanges,
    content: Content,
    agent: str | None = None,
) -> Fact:
    """The first revision of a new fact without a key; with `agent` a memory of the person in the scope.

    Raises PermissionDenied, ErasureInProgress, IdempotencyMismatch, BadInput, FactNotFound for a replay of what was
    erased; for a memory ScopeInvalid, MemoryFull.
    """
    content.check()
    scope.check()
    require_write(principal, scope)
    owner = None if agent is None else _own_memory(principal, agent, scope)
    fact_id = (
        fact_id_for(operation.key)
        if content.ref is None
        else fact_without_key_of(ports, principal.tenant, content.ref)
    )
    ports.require_place_spared(scope, "" if content.ref is None else fact_id, owner, changes.about)
    keep = ports.policy(principal.tenant).retention_of(fact_type)
    change = FactChange(ports, principal, operation, fact_id)

    def decide(head: Head | None, now: str) -> Decision:
        if head is not None and head.fact.invalidation_reason == "erased":
            raise FactNotFound(fact_id)  # an upload for it is left, and its writer may still name that
        if head is not None:  # an id made from the operation can meet nothing but itself
            raise BadInput(
                "This contentRef already belongs to a fact. Upload the content again for another one."
            )
        require_time_left(now, changes.retention, keep, now)
        payload = change.payload(content, scope)
        fact = open_fact(fact_id, fact_type, scope, changes, payload, principal, now, keep=keep)
        if agent is not None:
            fact = fact.model_copy(update={"agent_id": agent, "owner": owner})
            ports.require_room(fact)
        return Create(fact)

    # One that has no time left now may have had some when it was sent first: then its fact is there.
    now = ports.clock.now()
    try:
        return change.run(decide, expect_new=has_time_left(now, changes.retention, keep, now))
    except MemoryFull as full:
        refusal = full

    # A write that landed may itself have taken the last room: what is there answers its replay.
    def refuse(_head: Head | None, _now: str) -> Decision:
        raise refusal

    return change.run(refuse)


def _own_memory(principal: Principal, agent: str, scope: Scope) -> str:
    """The owner of a memory. Raises PermissionDenied for an agent that is not the token's, or another's person."""
    owner = owner_of(scope)
    if agent != principal.agent_id or not reach.acts_for(principal, scope):
        raise PermissionDenied(
            "Your token may not write a memory of this agent and this person as a fact. Use a token of that agent, or "
            "POST /v1/memory/remember."
        )
    return owner


def supersede_fact(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_id: str,
    changes: FactChanges,
    content: Content,
    expected: int | None = None,
) -> Fact:
    """The next revision.

    Raises FactNotFound, PermissionDenied, ErasureInProgress, LegalHold, FactChanged, IdempotencyMismatch.
    """
    content.check()
    change = FactChange(ports, principal, operation, fact_id)
    replaces = content.given or content.ref is not None

    def decide(head: Head | None, now: str) -> Decision:
        head = require_open(ports, principal, fact_id, head, "write" if replaces else "by-id")
        ports.require_spared(head.fact, changes.about)
        require_changeable(head.fact, expected)
        keep = ports.keep(head.fact)
        payload = change.payload(content) if replaces else None
        closed, following = supersede(head.fact, changes, payload, principal, now, keep)
        return with_room(Advance(head, closed, reach.changed(head.fact, following, principal, keep)))

    return change.run(decide)


def verify_fact(
    ports: FactPorts, principal: Principal, operation: Operation, fact_id: str, expected: int | None = None
) -> Fact:
    """A revision a person vouches for. Raises as `supersede_fact`; PermissionDenied unless a user calls."""

    def decide(head: Head | None, now: str) -> Decision:
        head = require_open(ports, principal, fact_id, head, "by-id")
        if principal.actor.kind != "user":
            raise PermissionDenied("Only a person may verify a fact. Use a user's token.", factId=fact_id)
        ports.require_spared(head.fact)
        require_changeable(head.fact, expected)
        keep = ports.keep(head.fact)
        closed, following = verify(head.fact, principal, now, keep)
        following = reach.without_window(following, keep)
        released = {"review": None, "review_why": None} if reach.may_decide(principal) else {}
        return Advance(head, closed, following.model_copy(update=released))

    return FactChange(ports, principal, operation, fact_id).run(decide)


def delete_fact(
    ports: FactPorts, principal: Principal, operation: Operation, fact_id: str, expected: int | None = None
) -> Fact:
    """Close the head, without a new version; the closed revision. Raises as `supersede_fact`.

    Who may delete what waits but not read it gets it without its content.
    """

    def decide(head: Head | None, now: str) -> Decision:
        head = require_open(ports, principal, fact_id, head)
        reach.require_deletable(head.fact, head.stands(now), principal)
        ports.require_spared(head.fact)
        require_changeable(head.fact, expected)
        return Amend(head, close(head.fact, principal.name, now, "deleted"))

    closed = FactChange(ports, principal, operation, fact_id).run(decide)
    if gate.shows_revision(principal, closed, ports.look(principal.tenant, "by-id", past=True)):
        return closed
    return closed.model_copy(update={"content_text": None, "content_ref": None})


def changeable_head(ports: FactPorts, principal: Principal, fact_id: str) -> Head:
    """The current head of a fact the principal sees and may write.

    Raises FactNotFound, PermissionDenied, ErasureInProgress.
    """
    head = ports.facts.head(principal.tenant, fact_id)
    head = None if head is None else head.settled(ports.clock.now())
    head = require_open(ports, principal, fact_id, head)
    ports.require_spared(head.fact)
    return head
