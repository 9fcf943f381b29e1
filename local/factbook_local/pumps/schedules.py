"""The ticker: `rate(…)`, `cron(…)` and `at(…)` in UTC or a schedule's own zone."""

import asyncio
import calendar
import json
import re
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from factbook_local.stack import Schedule

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
_CRON = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
_MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {
    name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), start=1)
}


class Cron:
    """A cron expression of EventBridge: minutes hours day-of-month month day-of-week year; `?` in one of the days."""

    def __init__(self, expression: str) -> None:
        match = _CRON.fullmatch(expression)
        if match is None:
            raise ValueError(f"{expression!r} is no cron expression of six fields")
        minute, hour, day, month, weekday, year = match.groups()
        if (day == "?") == (weekday == "?"):
            raise ValueError(f"{expression!r}: exactly one of day-of-month and day-of-week is '?'")
        self._minutes, self._hours = _field(minute, 0, 59), _field(hour, 0, 23)
        self._months, self._years = _field(month, 1, 12, _MONTHS), _field(year, 1970, 2199)
        self._day, self._weekday = day, weekday

    def matches(self, moment: datetime) -> bool:
        """Whether it runs in this minute."""
        return (
            moment.minute in self._minutes
            and moment.hour in self._hours
            and moment.month in self._months
            and moment.year in self._years
            and self._day_matches(moment)
        )

    def _day_matches(self, moment: datetime) -> bool:
        last = calendar.monthrange(moment.year, moment.month)[1]
        if self._weekday == "?":
            return any(_is_day(part, moment, last) for part in self._day.upper().split(","))
        return any(_is_weekday(part, moment, last) for part in self._weekday.upper().split(","))


def _is_day(part: str, moment: datetime, last: int) -> bool:
    if part == "L":
        return moment.day == last
    if part.endswith("W"):  # the weekday nearest to that day, within its month
        wanted = last if part == "LW" else int(part[:-1])
        day = datetime(moment.year, moment.month, min(wanted, last), tzinfo=UTC)
        shift = {5: -1, 6: 1}.get(day.weekday(), 0)
        if not 1 <= day.day + shift <= last:
            shift = 2 if shift < 0 else -2
        return moment.day == day.day + shift
    return moment.day in _field(part, 1, 31)


def _is_weekday(part: str, moment: datetime, last: int) -> bool:
    today = moment.isoweekday() % 7 + 1
    if "#" in part:
        day, place = part.split("#")
        return today == _number(day, _DAYS) and (moment.day - 1) // 7 + 1 == int(place)
    if part.endswith("L"):
        return today == _number(part[:-1] or "7", _DAYS) and moment.day + 7 > last
    return today in _field(part, 1, 7, _DAYS)


def _number(text: str, names: dict[str, int]) -> int:
    return names[text] if text in names else int(text)


def _field(text: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int]:
    """The values of `*`, `5`, `1-5`, `0/15`, `*/2`, `MON-FRI` and lists of them."""
    values: set[int] = set()
    for part in text.upper().split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start = low if first == "*" else _number(first, names or {})
        end = _number(last, names or {}) if last else high if first == "*" or step else start
        values.update(range(start, end + 1, int(step or 1)))
    return frozenset(value for value in values if low <= value <= high)


def next_run(schedule: Schedule, after: datetime, started: datetime) -> datetime | None:
    """The first run later than `after`. A rate counts from `started`. None: it never runs again."""
    if match := _RATE.fullmatch(schedule.expression):
        step = timedelta(**{f"{match[2]}s": int(match[1])})
        return started + step * ((after - started) // step + 1)
    zone = ZoneInfo(schedule.timezone)
    if match := _AT.fullmatch(schedule.expression):
        moment = datetime.fromisoformat(match[1]).replace(tzinfo=zone)
        return moment if moment > after else None
    cron = Cron(schedule.expression)
    moment = after.astimezone(zone).replace(second=0, microsecond=0)
    for _ in range(366 * 24 * 60):
        moment = (moment.astimezone(UTC) + timedelta(minutes=1)).astimezone(zone)
        if cron.matches(moment):
            return moment
    return None


def scheduled_event(schedule: Schedule, moment: datetime, account: str, region: str) -> bytes:
    """The event of one run: the schedule's own input, or the service's."""
    time, execution = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), str(uuid.uuid4())
    kind = "scheduler" if schedule.scheduler else "events"
    arn = (
        f"arn:aws:scheduler:{region}:{account}:schedule/default/{schedule.name}"
        if schedule.scheduler
        else f"arn:aws:events:{region}:{account}:rule/{schedule.name}"
    )
    if schedule.payload is not None:
        text = schedule.payload if isinstance(schedule.payload, str) else json.dumps(schedule.payload)
        for name, value in (
            ("schedule-arn", arn),
            ("scheduled-time", time),
            ("execution-id", execution),
            ("attempt-number", "1"),
        ):
            text = text.replace(f"<aws.scheduler.{name}>", value)
        return text.encode()
    detail: Any = "{}" if schedule.scheduler else {}
    return json.dumps(
        {
            "version": "0",
            "id": execution,
            "detail-type": "Scheduled Event",
            "source": f"aws.{kind}",
            "account": account,
            "time": time,
            "region": region,
            "resources": [arn],
            "detail": detail,
        }
    ).encode()


async def tick(
    schedule: Schedule,
    run: Callable[[datetime], Awaitable[None]],
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Run a schedule until it is over or cancelled. A run that was missed while the machine slept is made up once."""
    started = after = clock()
    while (moment := next_run(schedule, after, started)) is not None:
        while (left := (moment - clock()).total_seconds()) > 0:
            await sleep(min(left, 30.0))
        await run(moment)
        after = max(moment, clock() - timedelta(seconds=1))
