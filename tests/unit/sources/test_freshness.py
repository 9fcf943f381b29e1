"""When a mirrored fact is stale and why, and when it is due."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import ValidationFailed
from factbook.domain.facts.fact import Fact, FactChanges, Payload, Source
from factbook.domain.facts.freshness import RefreshState, due_at, priority_of, stale_reason
from factbook.domain.facts.transitions import close, open_fact, supersede, verify
from factbook.domain.scope import Scope

NOON = "2026-01-01T12:00:00.000Z"
ANN = Principal("acme", Actor(kind="user", id="ann"), admin=True)
STRATEGIES = ("on-read", "background", "manual")
seconds = st.integers(0, 10**6)


def payload(text: str = '"x"') -> Payload:
    return Payload(text=text, content_hash=f"sha256:{text}", size=len(text))


def source(kind: str = "http-api", strategy: str = "background", **freshness: Any) -> Source:
    said = {"kind": kind, "freshness": freshness, "refresh": {"strategy": strategy}}
    return Source.model_validate(said)


def mirrored(at: str = NOON, **said: Any) -> Fact:
    changes = FactChanges(source=source(**said))
    return open_fact("f1", "note", Scope(tenant_id="acme"), changes, payload(), ANN, at)


def later(**delta: float) -> str:
    return times.add(NOON, **delta)


@given(ttl=seconds, age=seconds, waited=seconds, strategy=st.sampled_from(STRATEGIES))
def test_a_fact_is_stale_exactly_when_its_time_to_live_has_passed_since_its_source_was_seen_to_agree(
    ttl: int, age: int, waited: int, strategy: str
) -> None:
    stated = mirrored(ttlSeconds=ttl, lastVerifiedAt=later(seconds=-age), strategy=strategy)
    unstated = mirrored(ttlSeconds=ttl, strategy=strategy)

    now = later(seconds=waited)
    assert (stale_reason(stated, None, now) == "ttl-passed") is (age + waited > ttl)
    assert (stale_reason(unstated, None, now) == "ttl-passed") is (waited > ttl), "the revision's time counts"


@given(waited=seconds)
def test_a_fact_that_mirrors_nothing_or_says_no_time_to_live_is_never_stale_by_age(waited: int) -> None:
    plain = mirrored().model_copy(update={"source": None})

    assert stale_reason(plain, None, later(seconds=waited)) is None
    assert stale_reason(mirrored(), None, later(seconds=waited)) is None
    assert stale_reason(mirrored(), RefreshState(failures=3, last_error="source-unavailable"), NOON) is None


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (RefreshState(failures=2, last_error="source-unavailable"), "source-unavailable"),
        (RefreshState(failures=1, last_error="source-refused"), "source-refused"),
        (RefreshState(asked_at=NOON), "person-asked"),
        (RefreshState(source_changed=True, failures=1, last_error="source-unavailable"), "source-changed"),
    ],
)
def test_the_best_reason_known_is_said(state: RefreshState, reason: str) -> None:
    assert stale_reason(mirrored(ttlSeconds=1), state, later(seconds=2)) == reason


def test_a_held_change_and_an_asked_person_make_a_fact_stale_before_its_time() -> None:
    fact = mirrored(ttlSeconds=3600)

    assert stale_reason(fact, RefreshState(source_changed=True), NOON) == "source-changed"
    assert stale_reason(fact, RefreshState(asked_at=NOON), NOON) == "person-asked"
    assert stale_reason(close(fact, "user:ann", NOON, "deleted"), RefreshState(asked_at=NOON), NOON) is None


@given(ttl=seconds, age=seconds)
def test_a_background_fact_is_due_when_it_becomes_stale_and_never_before_its_last_write(
    ttl: int, age: int
) -> None:
    fact = mirrored(ttlSeconds=ttl, lastVerifiedAt=later(seconds=-age))

    assert due_at(fact, None) == max(later(seconds=ttl - age), NOON)


@pytest.mark.parametrize(
    ("max_age", "due"),
    [
        (None, later(days=1)),
        (600, later(seconds=600)),
        (0, later(seconds=60)),
        (10**8, later(days=1)),
    ],
)
def test_without_a_time_to_live_the_source_says_when_it_is_asked_again_within_a_minute_and_a_day(
    max_age: int | None, due: str
) -> None:
    assert due_at(mirrored(), RefreshState(max_age=max_age)) == due


def test_after_a_failure_a_fact_is_due_when_it_is_to_be_tried_again() -> None:
    failed = RefreshState(failures=1, last_error="source-unavailable", retry_at=later(seconds=7))

    assert due_at(mirrored(ttlSeconds=3600), failed) == later(seconds=7)


@pytest.mark.parametrize(
    "update",
    [
        {"source": None},
        {"source": source(strategy="on-read", ttlSeconds=1)},
        {"source": source(strategy="manual", ttlSeconds=1)},
        {"review": "pending"},
        {"reach": "account-rejected"},
        {"invalidated_at": NOON},
        {"expires_at": later(seconds=1)},
    ],
    ids=["mirrors nothing", "on-read", "manual", "in review", "rejected", "closed", "expires before"],
)
def test_only_current_facts_with_a_background_strategy_are_ever_due(update: dict[str, Any]) -> None:
    fact = mirrored(ttlSeconds=1)

    assert due_at(fact, None) is not None
    assert due_at(fact.model_copy(update=update), None) is None
    assert due_at(fact, RefreshState(asked_at=NOON)) is None, "a person is asked once"


@given(priority=st.one_of(st.none(), st.integers(-(2**53) + 1, 2**53 - 1)))
def test_a_priority_is_one_of_ten(priority: int | None) -> None:
    refresh = source().refresh.model_copy(update={"priority": priority})

    found = priority_of(source().model_copy(update={"refresh": refresh}))
    assert found == sorted([0, priority or 0, 9])[1]


def test_a_source_that_was_verified_in_the_future_is_refused() -> None:
    ahead = FactChanges(source=source(lastVerifiedAt=later(milliseconds=1)))
    with pytest.raises(ValidationFailed) as refused:
        open_fact("f1", "note", Scope(tenant_id="acme"), ahead, payload(), ANN, NOON)
    assert refused.value.details["issues"][0]["path"] == "/source/freshness/lastVerifiedAt"
    with pytest.raises(ValidationFailed):
        supersede(mirrored(), ahead, None, ANN, NOON)


def test_validators_go_with_the_content_that_they_were_of() -> None:
    fact = mirrored(ttlSeconds=60, etag='"1"', sourceVersion="1", lastVerifiedAt=NOON)

    _, following = supersede(fact, FactChanges(), payload('"y"'), ANN, later(seconds=1))
    assert following.source == source(ttlSeconds=60, lastVerifiedAt=NOON)
    _, following = supersede(fact, FactChanges(valid_until=later(days=1)), None, ANN, later(seconds=1))
    assert following.source == fact.source, "they are of the same content"
    stated = FactChanges(source=source(etag='"2"'))
    _, following = supersede(fact, stated, payload('"y"'), ANN, later(seconds=1))
    assert following.source == source(etag='"2"'), "a writer may know better"


def test_what_a_person_is_asked_is_answered_by_a_new_content_and_by_a_verification() -> None:
    asked = mirrored(kind="user-input", ttlSeconds=60)
    now = later(hours=1)

    for _, following in (supersede(asked, FactChanges(), payload('"y"'), ANN, now), verify(asked, ANN, now)):
        assert following.source is not None
        assert following.source.freshness.last_verified_at == now
    _, following = verify(mirrored(ttlSeconds=60), ANN, now)
    assert following.source == source(ttlSeconds=60), "a person's word is no word of a server"
