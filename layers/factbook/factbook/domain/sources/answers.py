"""What an answer of a source, or none, makes of the fact that mirrors it."""

from dataclasses import dataclass, replace

from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import Fact, FactChanges, Freshness, Payload, Source
from factbook.domain.facts.freshness import LEAST_SECONDS, UNTRIED, Failure, RefreshState, is_at_agents_place
from factbook.domain.facts.reach import proposed, undecided
from factbook.domain.facts.transitions import supersede
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.sources.waits import doubled, retry_at

GIVEN_UP_AFTER = 8
"""Failures in a row after which an operator is told."""
REFUSED_FIRST_SECONDS, REFUSED_MOST_SECONDS = 3600.0, 24 * 3600.0
"""What was refused, or has no handler, needs a person: it is tried again, but not often."""


@dataclass(frozen=True)
class Validators:
    """What a source said of its answer: to be asked with, and for how many seconds the answer is good."""

    etag: str | None = None
    source_version: str | None = None
    max_age: int | None = None


def refresher(tenant: str) -> Principal:
    """In whose name a mirrored fact is changed: the service's own."""
    return Principal(tenant, Actor(kind="service", id="refresh"), admin=True)


def is_judged(fact: Fact, state: RefreshState | None) -> bool:
    """Whether what comes from the source is judged as an agent's words: an agent said where to look."""
    return fact.agent_id is not None or is_at_agents_place(fact, state)


def agreed(fact: Fact, state: RefreshState | None, told: Validators, now: str) -> tuple[Fact, RefreshState]:
    """The fact whose content its source has just confirmed, in place."""
    source = None if fact.source is None else _seen(fact.source, told, now)
    return fact.model_copy(update={"source": source}), _known(fact, state, told)


def replaced(
    head: Fact,
    state: RefreshState | None,
    payload: Payload,
    told: Validators,
    now: str,
    keep: KeepLimits | None,
) -> tuple[Fact, Fact, RefreshState]:
    """The revision as it is closed, the one with the source's new content, and what is known.

    It is asserted, or unverified where the former one was verified or unverified, or an agent said where to look: a change of
    the source makes nothing more trusted than its words were. Over what an administrator confirmed it proposes again. Raises RequestTooLarge, ValidationFailed.
    """
    by = refresher(head.scope.tenant_id)
    closed, following = supersede(head, FactChanges(), payload, by, now, keep)
    start = following.updated_at
    asserted = head.trust == "asserted" and not is_at_agents_place(head, state)
    update = {
        "source": None if head.source is None else _seen(head.source, told, start),
        "trust": "asserted" if asserted else "unverified",
        "generated_by": None,
        "observed_at": None if head.observed_at is None else start,
    }
    following = undecided(following).model_copy(update=update)
    if head.reach in ("account", "account-proposed"):
        following = proposed(following, following.retention, keep)
    return closed, following, _known(head, state, told)


def held_back(fact: Fact, state: RefreshState | None, told: Validators, now: str) -> RefreshState:
    """What is known of a source that changed while the content may not: it is asked again as if it had been fresh."""
    ttl = None if fact.source is None else fact.source.freshness.ttl_seconds
    wait = max(ttl if ttl is not None else told.max_age or LEAST_SECONDS, LEAST_SECONDS)
    known = _known(fact, state, told)
    return replace(known, source_changed=True, retry_at=times.add(now, seconds=wait))


def asked(fact: Fact, state: RefreshState | None, now: str) -> RefreshState:
    """What is known once a person was asked; whoever was asked before has been since."""
    since = now if state is None or state.asked_at is None else state.asked_at
    return replace(_known(fact, state, Validators()), asked_at=since)


def failed(
    state: RefreshState | None, why: Failure, now: str, draw: float, wait: float | None
) -> RefreshState:
    """What is known after no usable answer. `wait`: seconds that the source asked for."""
    state = state or UNTRIED
    failures = state.failures + 1
    if why == "source-unavailable":
        again = retry_at(now, failures, draw, wait)
    else:
        again = times.add(now, seconds=doubled(REFUSED_FIRST_SECONDS, REFUSED_MOST_SECONDS, failures, draw))
    return replace(state, failures=failures, last_error=why, retry_at=again)


def is_told_of(state: RefreshState) -> bool:
    """Whether an operator hears of this failure: the first that only a person can end, or so many in a row. Once a streak."""
    return state.failures == (GIVEN_UP_AFTER if state.last_error == "source-unavailable" else 1)


def _known(fact: Fact, state: RefreshState | None, told: Validators) -> RefreshState:
    return RefreshState(max_age=told.max_age, by_agent=is_at_agents_place(fact, state))


def _seen(source: Source, told: Validators, at: str) -> Source:
    freshness = Freshness(
        ttl_seconds=source.freshness.ttl_seconds,
        last_verified_at=at,
        etag=told.etag,
        source_version=told.source_version,
    )
    return source.model_copy(update={"freshness": freshness})
