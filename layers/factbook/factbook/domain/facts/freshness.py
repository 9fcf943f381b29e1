"""How fresh a mirrored fact is: whether it is stale and why, when it is due, and what its source has told so far."""

from dataclasses import dataclass, replace
from typing import Literal

from factbook.domain import times
from factbook.domain.errors import ValidationFailed
from factbook.domain.facts.fact import Fact, Freshness, Source, StaleReason

DAY_SECONDS = 24 * 3600
LEAST_SECONDS, MOST_SECONDS = 60, DAY_SECONDS
"""Between two refreshes of a fact without `ttlSeconds`, whatever its source says of it."""
MOST_PRIORITY = 9

Failure = Literal["source-unavailable", "source-refused", "refresh-handler-missing"]
"""Why a source gave nothing, as a caller is told; also what a fact is stale for."""


@dataclass(frozen=True)
class RefreshState:
    """What is known of a fact's source beside its revision.

    `failures`: how often in a row it gave no usable answer; `last_error`: why not, the last time. `retry_at`: before that
    it is not asked again by itself. `source_changed`: it has another value than the content, which a hold keeps.
    `asked_at`: when a person was asked. `max_age`: for how many seconds its last answer is good, as it says. `by_agent`:
    an agent set the mirror up, so what comes from there is judged as the agent's own words.
    """

    failures: int = 0
    last_error: Failure | None = None
    retry_at: str | None = None
    source_changed: bool = False
    asked_at: str | None = None
    max_age: int | None = None
    by_agent: bool = False


UNTRIED = RefreshState()


def verified_at(fact: Fact) -> str:
    """When the source was last seen to agree."""
    stated = None if fact.source is None else fact.source.freshness.last_verified_at
    return stated or fact.updated_at


def fresh_until(fact: Fact) -> str | None:
    """The last instant at which the fact is fresh; None when no time makes it stale."""
    ttl = None if fact.source is None else fact.source.freshness.ttl_seconds
    return None if ttl is None else times.add(verified_at(fact), seconds=ttl)


def stale_reason(fact: Fact, state: RefreshState | None, now: str) -> StaleReason | None:
    """Why a current fact is stale; None when it is fresh, or mirrors nothing."""
    if fact.source is None or not fact.current:
        return None
    state = state or UNTRIED
    if state.source_changed:
        return "source-changed"
    if state.asked_at is not None:
        return "person-asked"
    until = fresh_until(fact)
    return None if until is None or now <= until else state.last_error or "ttl-passed"


def is_mirrored(fact: Fact) -> bool:
    """Whether the fact is one that may be refreshed: what was rejected is in reviews alone."""
    return fact.source is not None and fact.current and fact.reach != "account-rejected"


def due_at(fact: Fact, state: RefreshState | None) -> str | None:
    """When the schedule is to refresh the fact; None: never by itself.

    Not before its last write, so that a sweep never has anything put behind it.
    """
    state = state or UNTRIED
    if fact.source is None or fact.source.refresh.strategy != "background" or not is_mirrored(fact):
        return None
    if fact.review is not None or state.asked_at is not None:
        return None
    due = max(state.retry_at or next_check(fact, state), fact.updated_at)
    return None if fact.expires_at is not None and fact.expires_at <= due else due


def next_check(fact: Fact, state: RefreshState) -> str:
    """When the source is to be asked whether it still agrees: where the fact has no time to live, as its answer says,
    within a minute and a day.
    """
    until = fresh_until(fact)
    if until is not None:
        return until
    age = DAY_SECONDS if state.max_age is None else min(max(state.max_age, LEAST_SECONDS), MOST_SECONDS)
    return times.add(verified_at(fact), seconds=age)


def is_at_agents_place(fact: Fact, state: RefreshState | None) -> bool:
    """Whether an agent said where to look, or has written what the fact says now."""
    by_agent = fact.attributed_to.kind == "agent" or (state is not None and state.by_agent)
    return fact.source is not None and by_agent


def known_of_next(
    fact: Fact, state: RefreshState | None, following: Fact, *, by_agent: bool
) -> RefreshState | None:
    """What is known of the source of the next revision, which does not come from it: what was, while content and source stay.

    That an agent said where to look is known for as long as one looks there, whoever writes what the fact says meanwhile.
    """
    if following.source is None or not following.current:
        return None
    known = state if (following.source, following.content_hash) == (fact.source, fact.content_hash) else None
    stays = fact.source is not None and fact.source.place == following.source.place
    agents = is_at_agents_place(fact, state) if stays else by_agent
    untold = known or UNTRIED
    return known if untold.by_agent == agents else replace(untold, by_agent=agents)


def priority_of(source: Source) -> int:
    """0 to 9, 9 first."""
    return min(max(source.refresh.priority or 0, 0), MOST_PRIORITY)


def require_not_ahead(source: Source | None, now: str) -> None:
    """Raises ValidationFailed for a source that is said to have been verified later than now."""
    verified = None if source is None else source.freshness.last_verified_at
    if verified is not None and verified > now:
        raise ValidationFailed(
            "source.freshness.lastVerifiedAt is in the future. Send when the source was last seen to agree, or leave it out.",
            issues=[{"path": "/source/freshness/lastVerifiedAt", "message": "is in the future"}],
        )


def with_new_content(source: Source | None, at: str) -> Source | None:
    """The source of a revision with content of its writer's own: validators were of the former content. Of what a person
    is asked, the writer's word is the answer.
    """
    if source is None:
        return None
    verified = at if source.kind == "user-input" else source.freshness.last_verified_at
    freshness = Freshness(ttl_seconds=source.freshness.ttl_seconds, last_verified_at=verified)
    return source.model_copy(update={"freshness": freshness})


def of_its_own_place(source: Source, former: Source | None) -> Source:
    """The source as a writer says it. Who points a fact elsewhere and sends back the validators of the former place has
    them dropped: the other one would be asked with them whether it agrees, and might.
    """
    if former is None or former.place == source.place:
        return source
    known, before = source.freshness, former.freshness
    dropped = {
        name: None for name in ("etag", "source_version") if getattr(known, name) == getattr(before, name)
    }
    return source.model_copy(update={"freshness": known.model_copy(update=dropped)})


def vouched_for(source: Source | None, at: str) -> Source | None:
    """The source of a fact that a person verified: of what a person is asked, that is the answer."""
    if source is None or source.kind != "user-input":
        return source
    freshness = source.freshness.model_copy(update={"last_verified_at": at})
    return source.model_copy(update={"freshness": freshness})
