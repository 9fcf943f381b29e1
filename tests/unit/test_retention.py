"""When a fact ends: days of 24 hours whatever the calendar says, the later of two limits, and what a hold makes of it."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes import FakeClock, fake_memory
from support.principals import principal

from factbook.domain import times
from factbook.domain.facts.fact import Fact, FactChanges, Payload, Retention
from factbook.domain.facts.holds import held, released
from factbook.domain.facts.transitions import expiry, open_fact
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.usecases.facts.reading import DOWNLOAD_SECONDS, get_content_url

ADMIN = principal("t", "ann", admin=True)
DAY_MS = 24 * 60 * 60 * 1000

instants = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001 - a zone is put on
    lambda moment: times.format_instant(moment.replace(tzinfo=UTC))
)
days = st.integers(1, 3_000)
limits = st.builds(KeepLimits, keep_days=st.none() | days, keep_until=st.none() | instants)
retentions = st.builds(Retention, keep_days=st.none() | days, keep_until=st.none() | instants)


def fact_of(retention: Retention | None, at: str, keep: KeepLimits | None = None) -> Fact:
    payload = Payload(text=None, content_hash="", size=9, content_ref="blob://s3/b/facts/t/f/n")
    said = FactChanges(retention=retention)
    return open_fact("f", "note", Scope(tenantId="t"), said, payload, ADMIN, at, keep=keep)


@given(instants, days)
def test_a_day_has_24_hours_whenever_it_begins(at: str, count: int) -> None:
    end = expiry(at, Retention(keep_days=count), None)
    assert end is not None
    assert times.epoch_ms(end) - times.epoch_ms(at) == count * DAY_MS


@pytest.mark.parametrize(
    ("at", "count", "end"),
    [
        ("2028-02-28T12:00:00.000Z", 1, "2028-02-29T12:00:00.000Z"),
        ("2028-02-28T12:00:00.000Z", 2, "2028-03-01T12:00:00.000Z"),
        ("2027-02-28T12:00:00.000Z", 1, "2027-03-01T12:00:00.000Z"),
        ("2028-02-29T00:00:00.000Z", 366, "2029-03-01T00:00:00.000Z"),
        ("2027-12-31T23:59:59.999Z", 1, "2028-01-01T23:59:59.999Z"),
        ("2100-02-28T00:00:00.000Z", 1, "2100-03-01T00:00:00.000Z"),
        # Clocks in Berlin are put forward in the night to the 29th of March, and back in that to the 25th of October.
        ("2026-03-28T11:00:00.000Z", 1, "2026-03-29T11:00:00.000Z"),
        ("2026-10-24T10:00:00.000Z", 1, "2026-10-25T10:00:00.000Z"),
        ("9999-12-31T00:00:00.000Z", 36_525, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_days_over_leap_days_and_over_the_change_of_clocks(at: str, count: int, end: str) -> None:
    assert expiry(at, Retention(keep_days=count), None) == end


@pytest.mark.parametrize(
    ("said", "end"),
    [
        # The hour from two to three comes twice in Berlin on that day: the offset says which is meant.
        ("2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00.000Z"),
        ("2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00.000Z"),
        # And on this day there is none: an offset names an instant all the same.
        ("2026-03-29T02:30:00+01:00", "2026-03-29T01:30:00.000Z"),
        ("2028-02-29T23:59:59.9999Z", "2028-02-29T23:59:59.999Z"),
    ],
)
def test_an_instant_is_one_whatever_the_clocks_of_its_place_do(said: str, end: str) -> None:
    retention = Retention.model_validate({"keepUntil": said})
    assert fact_of(retention, "2026-01-01T00:00:00.000Z").expires_at == end


@given(instants, retentions, limits)
def test_the_facts_own_limits_count_alone_and_of_two_the_later(
    at: str, retention: Retention, keep: KeepLimits
) -> None:
    counted = retention if retention.limited else keep
    ends = [counted.keep_until] if counted.keep_until else []
    if counted.keep_days is not None:
        moment = times.to_datetime(at) + timedelta(days=counted.keep_days)
        ends.append(times.format_instant(moment))
    assert fact_of(retention, at, keep).expires_at == max(ends, default=None)


@given(instants, retentions, limits, instants)
def test_a_hold_ends_in_what_would_have_been_but_never_in_the_past(
    at: str, retention: Retention, keep: KeepLimits, now: str
) -> None:
    fact = fact_of(retention, at, keep)
    on_hold = held(fact)
    assert (on_hold.held, on_hold.expires_at) == (True, None)
    assert held(on_hold) == on_hold
    after = released(on_hold, keep, now)
    assert not after.held
    assert after.expires_at == (None if fact.expires_at is None else max(fact.expires_at, now))
    assert after.retention == (retention if retention.limited else None)
    others = {"retention", "expires_at"}
    assert after.model_dump(exclude=others) == fact.model_dump(exclude=others)


@pytest.mark.parametrize(
    ("left", "seconds"),
    [(None, DOWNLOAD_SECONDS), (86_400, DOWNLOAD_SECONDS), (90.5, 90), (1, 1), (0.2, 1)],
)
def test_a_download_works_no_longer_than_the_fact_is_kept(left: float | None, seconds: int) -> None:
    clock = FakeClock()
    memory = fake_memory(clock)
    end = None if left is None else times.add(clock.now(), seconds=left)
    retention = None if end is None else Retention(keep_until=end)
    fact = fact_of(retention, clock.now())
    memory.facts.create(Head(fact))
    memory.blobs.put(fact.content_ref, b"123456789")
    assert get_content_url(memory, ADMIN, "f").endswith(f"?seconds={seconds}")
