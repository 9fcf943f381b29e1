"""Write facts: each change reads the head, decides in the domain, and lands in one conditional write.

A write that finds another record in its place looks for its own mark there first: a lost reply, a retry or a parallel
twin is answered as the first time. Checks run in the order not found, permission, hold, version.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_write
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import (
    BadInput,
    Conflict,
    FactNotFound,
    IdempotencyMismatch,
    PermissionDenied,
    StorageUnavailable,
    Throttled,
    ValidationFailed,
)
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact, FactChanges, Payload
from factbook.domain.facts.ids import fact_id_for, short_digest
from factbook.domain.facts.transitions import (
    close,
    open_fact,
    reopened,
    require_changeable,
    supersede,
    verify,
)
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.facts.store import Head, Mark
from factbook.ports.operations import Operation
from factbook.usecases.facts.payloads import Content, fact_of, store_payload
from factbook.usecases.facts.ports import FactPorts

ATTEMPTS = 8
PAUSE_SECONDS = 0.01

Transition = Callable[[Fact, str], tuple[Fact, Fact]]


def write_fact(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_type: str,
    scope: Scope,
    changes: FactChanges,
    content: Content,
    key: str | None = None,
) -> Fact:
    """The first revision of a new fact. Raises PermissionDenied, IdempotencyMismatch, BadInput."""
    content.check()
    scope.check()
    require_write(principal, scope)
    fact_id = (
        fact_id_for(operation.key) if content.ref is None else fact_of(ports, principal.tenant, content.ref)
    )
    keep = ports.policy(principal.tenant).retention_of(fact_type)
    payload = store_payload(ports, principal.tenant, fact_id, content)
    fact = open_fact(fact_id, fact_type, scope, changes, payload, principal, ports.clock.now(), key, keep)
    head = Head(fact, 1, (_mark(operation, 1),))
    for attempt in range(ATTEMPTS):
        _pause(attempt)
        try:
            there = ports.facts.create(head)
        except Contended:
            continue
        if there is None:
            return fact
        if content.ref is not None and there.mark_of(short_digest(operation.key)) is None:
            raise BadInput(
                "This contentRef already belongs to a fact. Upload the content again for another one."
            )
        try:
            answer = _first_answer(ports, there, operation)
        except IdempotencyMismatch:
            _discard_unused(ports, content, payload, None)
            raise
        _discard_unused(ports, content, payload, answer)
        return answer
    raise Throttled


def supersede_fact(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_id: str,
    changes: FactChanges,
    content: Content,
    expected: int | None = None,
) -> Fact:
    """The next revision. Raises FactNotFound, PermissionDenied, LegalHold, FactChanged, IdempotencyMismatch."""
    content.check()
    payload: list[Payload] = []

    def transition(head: Fact, now: str) -> tuple[Fact, Fact]:
        keep = _keep(ports, head)
        # Stored once the write is known to be allowed, kept over retries.
        if (content.given or content.ref) and not payload:
            payload.append(store_payload(ports, principal.tenant, fact_id, content))
        return supersede(head, changes, payload[0] if payload else None, principal, now, keep)

    try:
        answer = _change(ports, principal, operation, fact_id, expected, transition)
    except (Conflict, ValidationFailed):
        for stored in payload:
            _discard_unused(ports, content, stored, None)
        raise
    for stored in payload:
        _discard_unused(ports, content, stored, answer)
    return answer


def verify_fact(
    ports: FactPorts, principal: Principal, operation: Operation, fact_id: str, expected: int | None = None
) -> Fact:
    """A revision a person vouches for. Raises as `supersede_fact`; PermissionDenied unless a user calls."""

    def transition(head: Fact, now: str) -> tuple[Fact, Fact]:
        return verify(head, principal, now, _keep(ports, head))

    return _change(ports, principal, operation, fact_id, expected, transition, only_users=True)


def delete_fact(
    ports: FactPorts, principal: Principal, operation: Operation, fact_id: str, expected: int | None = None
) -> Fact:
    """Close the head, without a new version; the closed revision. Raises as `supersede_fact`."""
    for attempt in range(ATTEMPTS):
        _pause(attempt)
        head = _seen_head(ports, principal, fact_id)
        if head.mark_of(short_digest(operation.key)) is not None and not head.fact.current:
            require_write(principal, head.fact.scope, fact_id)
            return head.fact  # an earlier try of this request landed and its reply was lost
        _require_changeable_by(principal, head)
        require_changeable(head.fact, expected)
        closed = close(head.fact, principal.name, ports.clock.now(), "deleted")
        try:
            there = ports.facts.amend(head, head.followed_by(closed, _mark(operation, closed.version)))
        except Contended:
            continue
        if there is None:
            return closed
    raise Throttled


def changeable_head(ports: FactPorts, principal: Principal, fact_id: str) -> Head:
    """The current head of a fact the principal sees and may write. Raises FactNotFound, PermissionDenied."""
    head = _seen_head(ports, principal, fact_id)
    _require_changeable_by(principal, head)
    return head


def _seen_head(ports: FactPorts, principal: Principal, fact_id: str) -> Head:
    """The head of a fact the principal sees, closed ones included. Raises FactNotFound."""
    head = ports.facts.head(principal.tenant, fact_id)
    if head is None or not gate.can_see(principal, head.fact, ports.look("write", past=True)):
        raise FactNotFound(fact_id)
    return head


def _require_changeable_by(principal: Principal, head: Head) -> None:
    """Raises FactNotFound for a closed fact, then PermissionDenied."""
    if not head.fact.current:
        raise FactNotFound(head.fact.id)
    require_write(principal, head.fact.scope, head.fact.id)


def _change(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_id: str,
    expected: int | None,
    transition: Transition,
    *,
    only_users: bool = False,
) -> Fact:
    for attempt in range(ATTEMPTS):
        _pause(attempt)
        head = _seen_head(ports, principal, fact_id)
        if head.mark_of(short_digest(operation.key)) is not None:
            require_write(principal, head.fact.scope, fact_id)
            return _first_answer(ports, head, operation)
        _require_changeable_by(principal, head)
        if only_users and principal.actor.kind != "user":
            raise PermissionDenied("Only a person may verify a fact. Use a user's token.", factId=fact_id)
        require_changeable(head.fact, expected)
        closed, following = transition(head.fact, ports.clock.now())
        try:
            there = ports.facts.advance(
                head, closed, head.followed_by(following, _mark(operation, following.version))
            )
        except Contended:
            continue
        if there is None:
            return following
    raise Throttled


def _first_answer(ports: FactPorts, head: Head, operation: Operation) -> Fact:
    """What the operation answered when it landed. Raises IdempotencyMismatch when its body was another."""
    mark = head.mark_of(short_digest(operation.key))
    if mark is None or mark.body != short_digest(operation.body):
        raise IdempotencyMismatch
    if head.fact.expired(ports.clock.now()):
        raise FactNotFound(head.fact.id)
    if mark.version == head.fact.version:
        return reopened(head.fact)
    revision = ports.facts.revision(head.fact.scope.tenant_id, head.fact.id, mark.version)
    if revision is None:
        raise FactNotFound(head.fact.id)
    return reopened(revision)


def _discard_unused(ports: FactPorts, content: Content, stored: Payload, answer: Fact | None) -> None:
    """Remove the object this try stored, unless the answer names it: then the try landed and its reply was lost."""
    if stored.content_ref is None or content.ref is not None:
        return
    if answer is None or answer.content_ref != stored.content_ref:
        # What stays costs a few cents and nobody can reach it: the answer must not fail for it.
        with suppress(StorageUnavailable):
            ports.blobs.discard(stored.content_ref)


def _keep(ports: FactPorts, head: Fact) -> KeepLimits | None:
    return ports.policy(head.scope.tenant_id).retention_of(head.type)


def _mark(operation: Operation, version: int) -> Mark:
    return Mark(short_digest(operation.key), short_digest(operation.body), version)


def _pause(attempt: int) -> None:
    time.sleep(full_jitter(attempt, PAUSE_SECONDS))
