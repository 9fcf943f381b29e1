"""Erase one fact, in an order that a kill at any place repeats; and send to review what was derived from what is erased.

    payloads (every version)  closed revisions (of every life)  the head, which becomes the tombstone; with it the text beside

As long as the head says more than a tombstone, the fact is found again. The gates hide it all the while.
"""

from collections.abc import Callable
from dataclasses import replace

from factbook.domain.access.erasing import NOTHING_ERASED
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import Throttled
from factbook.domain.facts.fact import Fact
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.erasure.records import Erasure
from factbook.ports.facts.blobs import StoredObject
from factbook.ports.facts.store import Erased, Head
from factbook.ports.operations import Operation
from factbook.usecases.erasure.ports import ErasurePorts
from factbook.usecases.erasure.reaching import Reach
from factbook.usecases.facts.setting_aside import set_aside_derived

ATTEMPTS = 8
OBJECTS_AT_ONCE = 1_000


class OutOfTime(Exception):
    """The deadline passed in the middle of a fact; what is done is done."""


class _Gone(Exception):
    """The table's time to live was faster."""


class MeanwhileHeld(Exception):
    """A fact that is to be erased is under a legal hold, which no index had shown in time."""


def erase_fact(ports: ErasurePorts, erasure: Erasure, head: Head, deadline: Deadline) -> bool:
    """Whether the fact is a tombstone of this erasure now.

    Raises OutOfTime, MeanwhileHeld, Throttled when it keeps changing, and what the stores raise.
    """
    reach = Reach.of(erasure)
    for _ in range(ATTEMPTS):
        if not reach.names(head):
            return head.erasure is not None and head.erasure.by == erasure.id
        if head.fact.held:
            raise MeanwhileHeld
        try:
            there = _try_to_erase(ports, erasure, head, deadline)
        except _Gone:
            return False
        if there is None:
            return True
        head = there
    raise Throttled


def _try_to_erase(ports: ErasurePorts, erasure: Erasure, head: Head, deadline: Deadline) -> Head | None:
    """None when done; the head as it is now when something was in the way."""
    tenant, fact_id = erasure.tenant, head.fact.id
    objects = list(ports.blobs.of_fact(tenant, fact_id))
    if objects and (head.erasure is None or head.erasure.by != erasure.id):
        # Counted before they go: whoever repeats this after a kill finds fewer.
        marked = replace(head, edition=head.edition + 1, erasure=Erased(erasure.id, len(objects)))
        there = _amended(ports, head, marked)
        if there is not None:
            return there
        head = marked
    _remove(ports, tenant, objects, deadline)
    if not ports.erasing.remove_revisions(tenant, fact_id, deadline):
        raise OutOfTime
    counted = 0 if head.erasure is None or head.erasure.by != erasure.id else head.erasure.blobs
    return _amended(ports, head, head.erased_by(Erased(erasure.id, counted), erasure.created_at))


def _amended(ports: ErasurePorts, before: Head, after: Head) -> Head | None:
    try:
        return ports.facts.facts.amend(before, after)
    except Contended:
        there = ports.facts.facts.head(before.fact.scope.tenant_id, before.fact.id)
        if there is None:
            raise _Gone from None
        return there


def _remove(ports: ErasurePorts, tenant: str, objects: list[StoredObject], deadline: Deadline) -> None:
    for start in range(0, len(objects), OBJECTS_AT_ONCE):
        if deadline.passed:
            raise OutOfTime
        ports.blobs.remove(tenant, objects[start : start + OBJECTS_AT_ONCE])


def send_to_review(
    ports: ErasurePorts, erasure: Erasure, head: Head, is_derived: Callable[[Fact], bool]
) -> bool:
    """Have a fact that was derived from what is erased wait for an administrator; whether this erasure had it wait, or met it
    waiting. `is_derived`: whether a text was caused by an entry of whom the erasure is about.
    """
    texts = [head.fact] if head.confirmed is None else [head.fact, head.confirmed.fact]
    if not any(map(is_derived, texts)):
        return False
    worker = Principal(erasure.tenant, Actor(kind="service", id="factbook"), admin=True)
    operation = Operation(f"erasure/{erasure.id}/{head.fact.id}", "derived")
    # One that is being erased by itself waits as well: that erasure may fail yet.
    facts = replace(ports.facts, erasing=lambda _: NOTHING_ERASED)
    return set_aside_derived(facts, worker, operation, head.fact.id, is_derived)
