"""Put facts under legal hold and release them: each a change in place, with its entry in the tenant's run of holds."""

from typing import Literal

from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactChanged, PermissionDenied
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.holds import held, released
from factbook.domain.facts.reach import may_decide
from factbook.domain.own_runs import HOLDS_RUN
from factbook.domain.scope import Scope
from factbook.ports.facts.joint import OwnEntry
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import Amend, Decision, FactChange, Leave, require_open
from factbook.usecases.facts.ports import FactPorts


def hold_fact(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_id: str,
    reason: str,
    expected: int | None = None,
) -> Fact:
    """The same revision under legal hold; one that is held already stays as it is, and nothing is recorded.

    Raises FactNotFound, PermissionDenied (administrators alone, and no agents), ErasureInProgress, FactChanged,
    IdempotencyMismatch.
    """

    def decide(head: Head | None, _now: str) -> Decision:
        head = _open(ports, principal, fact_id, head, expected)
        if head.fact.held:
            return Leave(head.fact)
        return Amend(head, held(head.fact), entry=_entry("hold", head.fact, principal, reason))

    return FactChange(ports, principal, operation, fact_id, made=held).run(decide)


def release_fact(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_id: str,
    reason: str,
    expected: int | None = None,
) -> Fact:
    """The same revision without a hold, judged anew: it ends now if its retention has run out.

    One that is not held stays as it is. Raises as `hold_fact`.
    """

    def release(fact: Fact, now: str) -> Fact:
        return released(fact, ports.keep(fact), now)

    def decide(head: Head | None, now: str) -> Decision:
        head = _open(ports, principal, fact_id, head, expected)
        if not head.fact.held:
            return Leave(head.fact)
        beside = None if head.confirmed is None else release(head.confirmed.fact, now)
        entry = _entry("release", head.fact, principal, reason)
        return Amend(head, release(head.fact, now), beside, entry)

    def made(fact: Fact) -> Fact:
        return release(fact, ports.clock.now())

    return FactChange(ports, principal, operation, fact_id, made=made).run(decide)


def _open(
    ports: FactPorts, principal: Principal, fact_id: str, head: Head | None, expected: int | None
) -> Head:
    head = require_open(ports, principal, fact_id, head, "by-id")
    if not may_decide(principal):
        raise PermissionDenied(
            "Only an administrator who is no agent may hold or release a fact. Use such a token.",
            factId=fact_id,
        )
    ports.require_spared(head.fact)
    if expected is not None and expected != head.fact.version:
        raise FactChanged(fact_id, head.fact.version)
    return head


def _entry(action: Literal["hold", "release"], fact: Fact, principal: Principal, reason: str) -> OwnEntry:
    payload = {
        "factId": fact.id,
        "version": fact.version,
        "action": action,
        "by": principal.name,
        "reason": reason,
    }
    scope = Scope(tenant_id=fact.scope.tenant_id)
    return OwnEntry(HOLDS_RUN, scope, "event-emitted", payload, principal.name)
