"""Set aside what derives from something erased: it waits in review, as what an erased person said may live on in it."""

from collections.abc import Callable

from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactNotFound
from factbook.domain.facts.fact import Fact
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import Amend, Decision, FactChange, Leave
from factbook.usecases.facts.ports import FactPorts


def set_aside_derived(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    fact_id: str,
    derives: Callable[[Fact], bool],
) -> bool:
    """Let a fact wait in review as its text `derives`; whether it was set aside, by this call or an earlier one.

    `operation` names the erasure and the fact, so that what an administrator decided since is not undone when it comes
    again. The revision is marked in place: its version stays, and nothing of it is lost, so a hold does not stand against
    it; whoever is to decide needs its release first. A deleted fact is hidden too, and cannot be decided on any more; the
    confirmed text beside a proposal waits for itself. False for what is not there, is over, or does not derive any more.
    Raises Throttled, StorageUnavailable.
    """
    derived = True  # where this operation is found to be done, its rule is not asked again

    def decide(head: Head | None, now: str) -> Decision:
        nonlocal derived
        if head is None or head.fact.over(now):
            raise FactNotFound(fact_id)
        own, beside = head.fact, head.confirmed_fact
        fact = _waiting(own) if derives(own) else own
        text = _waiting(beside) if beside is not None and derives(beside) else beside
        derived = derives(own) or (beside is not None and derives(beside))
        return Leave(fact) if (fact, text) == (own, beside) else Amend(head, fact, text)

    try:
        FactChange(ports, principal, operation, fact_id).run(decide)
    except FactNotFound:
        return False
    return derived


def _waiting(fact: Fact) -> Fact:
    reasons = fact.review_why or ()
    if "derived-from-erased" in reasons:
        return fact
    update = {"review": "pending", "review_why": (*reasons, "derived-from-erased")}
    return fact.model_copy(update=update)
