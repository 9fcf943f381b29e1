"""Instants as canonical UTC text, `YYYY-MM-DDTHH:MM:SS.mmmZ`: fixed width, so text order is time order."""

import re
from datetime import UTC, datetime, timedelta

from factbook.domain.errors import BadInput

_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


def format_instant(moment: datetime) -> str:
    """Canonical text of an aware `datetime`, cut to whole milliseconds."""
    utc = moment.astimezone(UTC)
    return f"{utc.year:04d}-{utc:%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def parse_instant(text: str) -> str:
    """Canonical text of an RFC 3339 time with any offset, `T` or a space, up to 9 fraction digits.

    Raises BadInput when there is no zone, or no such time.
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise BadInput(
            "A time must look like 2026-10-09T12:00:00Z, with a zone and up to 9 digits of a fraction."
        )
    day, clock, fraction, zone = match.groups()
    try:
        zoned = "+00:00" if zone in "Zz" else zone
        moment = datetime.fromisoformat(f"{day}T{clock}{zoned}")
        moment += timedelta(milliseconds=int(((fraction or "") + "000")[:3]))
        return format_instant(moment)
    except (ValueError, OverflowError) as error:
        raise BadInput("There is no such time. Check the day, hour and offset.") from error


def to_datetime(instant: str) -> datetime:
    return datetime.fromisoformat(instant)


def epoch_ms(instant: str) -> int:
    return round(to_datetime(instant).timestamp() * 1000)


def add(instant: str, **delta: float) -> str:
    """`instant` moved by a timedelta; saturates at the end of year 9999."""
    try:
        return format_instant(to_datetime(instant) + timedelta(**delta))
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"


def seconds_until(now: str, instant: str) -> int:
    """Whole seconds from now to an instant, rounded up; 0 when it has passed."""
    return max(0, -((epoch_ms(now) - epoch_ms(instant)) // 1000))


def later_than(now: str, previous: str) -> str:
    """`now`, or one millisecond after `previous` when the clock has not passed it."""
    return now if now > previous else add(previous, milliseconds=1)
