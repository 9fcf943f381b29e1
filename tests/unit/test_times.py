"""Instants: what is understood, what is refused, and that text order is time order."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.domain import times
from factbook.domain.errors import BadInput

instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - given one


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-10-09T12:00:00Z", "2026-10-09T12:00:00.000Z"),
        ("2026-10-09 12:00:00+00:00", "2026-10-09T12:00:00.000Z"),
        ("2026-10-09t12:00:00z", "2026-10-09T12:00:00.000Z"),
        ("2026-10-09T12:00:00.1Z", "2026-10-09T12:00:00.100Z"),
        ("2026-10-09T12:00:00.123456789Z", "2026-10-09T12:00:00.123Z"),
        ("2026-10-09T12:00:00.999999999Z", "2026-10-09T12:00:00.999Z"),
        ("2026-10-09T01:30:00.5+05:30", "2026-10-08T20:00:00.500Z"),
        ("2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00.000Z"),
        ("2026-10-09T12:00:00-00:00", "2026-10-09T12:00:00.000Z"),
        ("2024-02-29T00:00:00+14:00", "2024-02-28T10:00:00.000Z"),
    ],
)
def test_any_offset_either_separator_and_nine_digits_are_understood(text: str, instant: str) -> None:
    assert times.parse_instant(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "2026-10-09", "2026-10-09T12:00:00", "2026-10-09T12:00Z", "2026-10-09T12:00:00.Z", "2026-10-09T12:00:00.1234567890Z",
        "2026-10-09T12:00:00+0000", "2026-10-09T12:00:00+00", "2026-10-09T12:00:00 Z", "2026-10-09_12:00:00Z", "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-10-09T24:00:01Z", "2026-10-09T12:60:00Z", "2026-10-09T12:00:60Z", "2026-10-09T12:00:00+24:00",
        "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "20261009T120000Z", "+2026-10-09T12:00:00Z",
        "2026-10-09T12:00:00Z\n", " 2026-10-09T12:00:00Z", "２０２６-10-09T12:00:00Z", "1760000000",
    ],
)  # fmt: skip
def test_a_time_without_a_zone_or_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        times.parse_instant(text)


@given(instants, instants, st.integers(-14 * 60, 14 * 60))
def test_the_order_of_texts_is_the_order_of_instants_in_any_zone(
    one: datetime, other: datetime, minutes: int
) -> None:
    moved = other.astimezone(timezone(timedelta(minutes=minutes)))
    texts = times.format_instant(one), times.format_instant(moved)
    cut = [each.replace(microsecond=each.microsecond // 1000 * 1000) for each in (one, other)]
    assert (texts[0] < texts[1], texts[0] == texts[1]) == (cut[0] < cut[1], cut[0] == cut[1])
    assert times.parse_instant(moved.isoformat()) == texts[1]


@given(instants, instants)
def test_the_later_of_a_clock_and_a_record_is_always_after_the_record(now: datetime, then: datetime) -> None:
    previous = times.format_instant(then)
    later = times.later_than(times.format_instant(now), previous)
    assert later > previous
    assert later in (times.format_instant(now), times.add(previous, milliseconds=1))


def test_adding_saturates_at_the_end_of_time() -> None:
    assert times.add("2026-01-01T00:00:00.000Z", days=3_600_000) == "9999-12-31T23:59:59.999Z"


@given(instants)
def test_epoch_milliseconds_are_exact(moment: datetime) -> None:
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    since = whole - datetime(1970, 1, 1, tzinfo=UTC)
    assert times.epoch_ms(times.format_instant(moment)) == since // timedelta(milliseconds=1)
