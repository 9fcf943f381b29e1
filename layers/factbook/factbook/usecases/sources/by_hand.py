"""Refresh a fact because somebody asks for it now."""

from dataclasses import dataclass
from typing import Literal

from factbook.domain.access.principals import Principal
from factbook.domain.errors import (
    FactNotFound,
    RefreshHandlerMissing,
    SourceRefused,
    SourceUnavailable,
)
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact, Source
from factbook.domain.sources.handler_ids import handler_id
from factbook.domain.times import seconds_until
from factbook.ports.deadline import Deadline
from factbook.usecases.facts.engine import require_open
from factbook.usecases.sources.ports import RefreshPorts
from factbook.usecases.sources.refreshing import Refreshed, refresh_fact

PATIENCE_SECONDS = 5.0
"""For another refresh of the same fact to end, and for a place at its host."""
_FIRST_LOOK, _LONGEST_LOOK = 0.25, 1.0
AGAIN_SECONDS = 2
_WAITS_FOR = {
    "busy": "The fact is being refreshed.",
    "no-place": "As many ask the source's host as may at once.",
}
MOST_SAID = 100
"""Characters of a handler's name that a message repeats."""
HandOutcome = Literal["unchanged", "changed", "held", "asked"]


@dataclass(frozen=True)
class ByHand:
    outcome: HandOutcome
    fact: Fact


def refresh_by_hand(ports: RefreshPorts, principal: Principal, fact_id: str, deadline: Deadline) -> ByHand:
    """What happened. Raises FactNotFound, PermissionDenied, ErasureInProgress; RefreshHandlerMissing, SourceRefused, SourceUnavailable."""
    facts = ports.facts
    head = facts.facts.head(principal.tenant, fact_id)
    head = None if head is None else head.settled(facts.clock.now())
    head = require_open(facts, principal, fact_id, head, "by-id")
    facts.require_spared(head.fact)
    if head.fact.source is None:
        raise RefreshHandlerMissing(
            "The fact mirrors nothing: it has no source to ask. Write it a source first.", factId=fact_id
        )
    done = _refreshed(ports, principal.tenant, fact_id, deadline)
    match done:
        case Refreshed("unchanged" | "changed" | "held" | "asked" as outcome, Fact() as fact):
            return ByHand(outcome, _as_shown(ports, principal, fact))
        case Refreshed("gone"):
            raise FactNotFound(fact_id)
        case Refreshed("busy" | "no-place" as waits):
            raise SourceUnavailable(
                f"{_WAITS_FOR[waits]} Retry after the seconds in Retry-After.", AGAIN_SECONDS, factId=fact_id
            )
    raise _refusal(ports, fact_id, head.fact.source, done)


def _refreshed(ports: RefreshPorts, tenant: str, fact_id: str, deadline: Deadline) -> Refreshed:
    patience, look = deadline.within(min(PATIENCE_SECONDS, deadline.left / 2)), _FIRST_LOOK
    while True:
        done = refresh_fact(ports, tenant, fact_id, "hand", deadline)
        if done.outcome not in _WAITS_FOR or patience.passed:
            return done
        ports.pause(look)
        look = min(2 * look, _LONGEST_LOOK)


def _as_shown(ports: RefreshPorts, principal: Principal, fact: Fact) -> Fact:
    """What the source says may wait for a person now: who may not read that gets the fact without it."""
    if gate.can_see(principal, fact, ports.facts.look(principal.tenant, "by-id")):
        return fact
    return fact.model_copy(update={"content_text": None, "content_ref": None})


def _refusal(
    ports: RefreshPorts, fact_id: str, source: Source, done: Refreshed
) -> RefreshHandlerMissing | SourceRefused | SourceUnavailable:
    detail = {"factId": fact_id, "reason": done.detail or None}
    match done.why:
        case "refresh-handler-missing":
            return RefreshHandlerMissing(_no_handler(source), **detail)
        case "source-refused" if not done.answered:
            return SourceRefused(
                f"This address is not asked: {done.detail}. Correct the fact's source, or ask an operator whether "
                "REFRESH_ALLOW may open its host.",
                **detail,
            )
    seconds = 1 if done.retry_at is None else seconds_until(ports.facts.clock.now(), done.retry_at)
    why = f": {done.detail}" if done.detail else ""
    return SourceUnavailable(
        f"The source gave no usable answer{why}. Retry after the seconds in Retry-After.",
        max(1, seconds),
        **detail,
    )


def _no_handler(source: Source) -> str:
    name = handler_id(source)
    if name is None:
        return (
            f"Nobody asks sources of kind {source.kind} unless they say who: name a function in source.refresh.handler, "
            "lambda:<name>."
        )
    return (
        f"There is no refresh handler {name[:MOST_SAID]!r} here. An operator sets up s3 by REFRESH_BUCKETS and lambda:<name> by "
        "REFRESH_FUNCTIONS; or name another in source.refresh.handler."
    )
