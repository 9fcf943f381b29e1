"""Ask for erasures, look at them, and have them go on; for administrators.

An erasure is in force from the moment its record is kept, and every process knows of it when TRUST_SECONDS have passed.
Only then are held facts looked for: none can be put under hold any more. One that is found withdraws all of it.
"""

from dataclasses import replace

from factbook.domain import times
from factbook.domain.access.erasing import Selector
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import (
    FactNotFound,
    IdempotencyMismatch,
    LegalHold,
    NotFound,
    StorageUnavailable,
    Throttled,
)
from factbook.domain.facts.ids import erasure_id_for, short_digest
from factbook.ports.erasure.records import Erasure
from factbook.ports.operations import Operation
from factbook.usecases.erasure.ports import TRUST_SECONDS, ErasurePorts
from factbook.usecases.erasure.reaching import Reach, head_of, held_facts

GUARDED_SECONDS = 60.0
"""For so long only the request itself works on its erasure: longer than any request lasts."""

ATTEMPTS = 8

MOST_IN_FORCE = 1_000
"""Of one tenant at a time: every process reads them all."""


UNMATCHABLE = (
    "erasure-unmatchable: this deployment has no ledger keys (ERASURE_LEDGER_KEYS), so a replay after a restore cannot find "
    "again what this erasure reached"
)
"""A warning of such an erasure, under the code that the schema has for it."""


def request_erasure(
    ports: ErasurePorts, principal: Principal, operation: Operation, selector: Selector
) -> Erasure:
    """Put an erasure in force and have it worked on. From the answer on nothing of what it names is shown or written.

    Raises PermissionDenied, FactNotFound, FactUnreadable, LegalHold (nothing happened then), IdempotencyMismatch, Throttled
    when very many are in force.
    """
    require_admin(principal)
    erasure = ports.records.erasure(principal.tenant, erasure_id_for(operation.key))
    if erasure is None:
        new = _new(ports, principal, operation, selector)
        operation.deadline.require()
        guarded_until = times.add(new.created_at, seconds=GUARDED_SECONDS)
        erasure = ports.records.create(new, guarded_until) or new
    if erasure.made_by not in (
        _made_by(operation, body) for body in (operation.body, *operation.former_bodies)
    ):
        raise IdempotencyMismatch
    if erasure.status != "pending":
        return erasure
    ports.sleep(TRUST_SECONDS)
    held = held_facts(ports, Reach.of(erasure), operation.deadline)
    if held and ports.records.withdraw(erasure):
        ports.sleep(TRUST_SECONDS)  # from the refusal on nobody hides anything
        raise LegalHold(fact_ids=held)
    return _begun(ports, erasure)


def _new(ports: ErasurePorts, principal: Principal, operation: Operation, selector: Selector) -> Erasure:
    tenant = principal.tenant
    if len(ports.records.in_force(tenant).ids) >= MOST_IN_FORCE:
        raise Throttled(retry_after=60)
    require_there(ports, tenant, selector)
    keyed_hash = ports.hash_of(tenant, selector)
    return Erasure(
        id=erasure_id_for(operation.key),
        tenant=tenant,
        selector_kind=selector.kind,
        selector=selector,
        requested_by=principal.name,
        created_at=ports.clock.now(),
        selector_hmac=None if keyed_hash is None else keyed_hash.hmac,
        key_id=None if keyed_hash is None else keyed_hash.key_id,
        warnings=(UNMATCHABLE,) if keyed_hash is None else (),
        made_by=_made_by(operation, operation.body),
    )


def _made_by(operation: Operation, body: str) -> str:
    """Of a request's digest: it outlives the selector, so nobody is to match it with a guess of whom that was."""
    return short_digest(f"{operation.key}/{body}")


def require_there(ports: ErasurePorts, tenant: str, selector: Selector) -> None:
    """Of a person nobody can say that there is nothing; a fact is there or not. Raises FactNotFound, FactUnreadable."""
    if selector.kind == "fact":
        head = head_of(ports, tenant, selector.id)
        if head is None or head.fact.invalidation_reason == "erased":
            raise FactNotFound(selector.id)


def _begun(ports: ErasurePorts, erasure: Erasure) -> Erasure:
    """The same, which its worker hears of now."""
    try:
        ports.records.put_off(erasure.tenant, erasure.id, ports.clock.now())
        ports.queue.send(erasure.tenant, erasure.id)
    except (Throttled, StorageUnavailable):
        pass  # it is in force, and the schedule comes by
    return erasure


def get_erasure(ports: ErasurePorts, principal: Principal, erasure_id: str) -> Erasure:
    """Raises PermissionDenied, NotFound."""
    require_admin(principal)
    erasure = ports.records.erasure(principal.tenant, erasure_id)
    if erasure is None:
        raise NotFound("There is no such erasure. List the erasures for those there are.")
    return erasure


def list_erasures(
    ports: ErasurePorts, principal: Principal, position: str | None, limit: int
) -> tuple[list[Erasure], str | None]:
    """Newest first, and where the next page goes on. Raises PermissionDenied."""
    require_admin(principal)
    return ports.records.page(principal.tenant, position, limit)


def resume_erasure(
    ports: ErasurePorts,
    principal: Principal,
    operation: Operation,
    erasure_id: str,
    *,
    force: bool = False,
) -> Erasure:
    """Have an erasure go on now: one that failed begins again, and with `force` one that is under way, too.

    A completed one is as it is. Raises PermissionDenied, NotFound, LegalHold; Throttled when its worker is always faster.
    """
    asked = short_digest(operation.key)
    for _ in range(ATTEMPTS):
        erasure = get_erasure(ports, principal, erasure_id)
        if erasure.status == "completed" or erasure.selector is None:
            return erasure
        if erasure.status != "failed" and (not force or erasure.resumed_by == asked):
            return _begun(ports, erasure)
        if _restart(ports, replace(erasure, resumed_by=asked), guarded_for=GUARDED_SECONDS):
            break
    else:
        raise Throttled
    ports.sleep(TRUST_SECONDS)
    erasure = get_erasure(ports, principal, erasure_id)
    if erasure.ended or erasure.selector is None:
        return erasure
    held = held_facts(ports, Reach.of(erasure), operation.deadline)
    if held:
        failed = replace(erasure, status="failed", last_error="legal-hold")
        if ports.records.replace(failed):
            raise LegalHold(fact_ids=held)
    return _begun(ports, erasure)


def run_again(ports: ErasurePorts, erasure: Erasure) -> None:
    """Put an erasure in force whatever became of it before, and have it worked on from its beginning. Safe to repeat.

    Raises Throttled when it is another by now, and while very many of the tenant are in force.
    """
    if len(ports.records.in_force(erasure.tenant).ids) >= MOST_IN_FORCE or not _restart(ports, erasure):
        raise Throttled
    _begun(ports, erasure)


def _restart(ports: ErasurePorts, erasure: Erasure, guarded_for: float = 0.0) -> bool:
    """False when somebody has kept a later state of it."""
    again = replace(erasure, status="pending", phase="seed", last_error=None, completed_at=None)
    return ports.records.put_in_force(again, times.add(ports.clock.now(), seconds=guarded_for))
