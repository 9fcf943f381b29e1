"""Rates and cron expressions as EventBridge reads them."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from factbook_local.pumps.schedules import Cron, next_run, scheduled_event, tick
from factbook_local.stack import Schedule


def schedule(expression: str, **fields: object) -> Schedule:
    return Schedule(function="F", name="FTick", expression=expression, **fields)  # type: ignore[arg-type]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def runs(expression: str, after: str, count: int, **fields: object) -> list[str]:
    moment, found = at(after), []
    for _ in range(count):
        following = next_run(schedule(expression, **fields), moment, at(after))
        assert following is not None
        moment = following
        found.append(moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("cron(0 10 * * ? *)", "2026-03-01T10:00", ["2026-03-02 10:00", "2026-03-03 10:00"]),
        ("cron(15 12 * * ? *)", "2026-03-01T10:00", ["2026-03-01 12:15"]),
        (
            "cron(0/15 * * * ? *)",
            "2026-03-01T10:01",
            ["2026-03-01 10:15", "2026-03-01 10:30", "2026-03-01 10:45", "2026-03-01 11:00"],
        ),
        ("cron(0 18 ? * MON-FRI *)", "2026-11-27T18:00", ["2026-11-30 18:00", "2026-12-01 18:00"]),
        ("cron(0 8 1 * ? *)", "2026-01-31T09:00", ["2026-02-01 08:00", "2026-03-01 08:00"]),
        ("cron(0 0 L * ? *)", "2026-02-01T00:00", ["2026-02-28 00:00", "2026-03-31 00:00"]),
        ("cron(0 9 ? * 6L *)", "2026-11-01T00:00", ["2026-11-27 09:00", "2026-12-25 09:00"]),
        ("cron(0 9 ? * TUE#1 *)", "2026-11-30T00:00", ["2026-12-01 09:00", "2027-01-05 09:00"]),
        ("cron(0 9 15W * ? *)", "2026-08-01T00:00", ["2026-08-14 09:00", "2026-09-15 09:00"]),
        ("cron(0 9 1W * ? *)", "2026-07-31T00:00", ["2026-08-03 09:00"]),
        ("cron(5,35 14 * FEB ? 2027)", "2026-11-30T00:00", ["2027-02-01 14:05", "2027-02-01 14:35"]),
        (
            "cron(*/20 1-2 * * ? *)",
            "2026-01-01T00:00",
            ["2026-01-01 01:00", "2026-01-01 01:20", "2026-01-01 01:40", "2026-01-01 02:00"],
        ),
    ],
)
def test_a_cron_expression_runs_when_it_says(expression: str, after: str, expected: list[str]) -> None:
    assert runs(expression, after, len(expected)) == expected


def test_a_zone_moves_a_cron_expression_with_its_summer_time() -> None:
    found = runs("cron(30 9 * * ? *)", "2026-10-24T00:00", 2, timezone="Europe/Berlin")
    assert found == ["2026-10-24 07:30", "2026-10-25 08:30"]


def test_a_rate_counts_from_the_start() -> None:
    assert runs("rate(5 minutes)", "2026-01-01T00:02", 3) == [
        "2026-01-01 00:07",
        "2026-01-01 00:12",
        "2026-01-01 00:17",
    ]
    assert runs("rate(1 hour)", "2026-01-01T00:00", 1) == ["2026-01-01 01:00"]
    assert runs("rate(1 day)", "2026-01-01T00:00", 1) == ["2026-01-02 00:00"]


def test_a_moment_runs_once() -> None:
    once = schedule("at(2026-01-01T12:00:00)")
    assert next_run(once, at("2026-01-01T11:00"), at("2026-01-01T11:00")) == at("2026-01-01T12:00")
    assert next_run(once, at("2026-01-01T12:00"), at("2026-01-01T11:00")) is None


@pytest.mark.parametrize(
    "expression",
    ["cron(* * * * * *)", "cron(* * ? * ? *)", "cron(* * * * ?)", "rate(minutes)", "every minute"],
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"cron expression|day-of-week"):
        next_run(schedule(expression), at("2026-01-01T00:00"), at("2026-01-01T00:00"))


def test_the_event_is_the_services_or_the_schedules_own() -> None:
    moment = at("2026-01-01T12:00")
    scheduler = json.loads(scheduled_event(schedule("rate(1 minute)"), moment, "1", "r"))
    assert (scheduler["source"], scheduler["detail"], scheduler["time"]) == (
        "aws.scheduler",
        "{}",
        "2026-01-01T12:00:00Z",
    )
    rule = json.loads(scheduled_event(schedule("rate(1 minute)", scheduler=False), moment, "1", "r"))
    assert (rule["source"], rule["detail"], rule["resources"]) == (
        "aws.events",
        {},
        ["arn:aws:events:r:1:rule/FTick"],
    )
    own = scheduled_event(
        schedule("rate(1 minute)", payload='{"at": "<aws.scheduler.scheduled-time>"}'), moment, "1", "r"
    )
    assert json.loads(own) == {"at": "2026-01-01T12:00:00Z"}


def test_a_ticker_makes_up_a_long_sleep_once() -> None:
    now = [at("2026-01-01T00:00")]
    fired: list[str] = []

    async def run(moment: datetime) -> None:
        fired.append(moment.strftime("%H:%M"))
        if len(fired) == 3:
            raise asyncio.CancelledError

    async def sleep(seconds: float) -> None:
        long = len(fired) == 1  # the machine was suspended for an hour
        now[0] += timedelta(hours=1) if long else timedelta(seconds=seconds)

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await tick(schedule("rate(1 minute)"), run, clock=lambda: now[0], sleep=sleep)

    asyncio.run(main())
    assert fired == ["00:01", "00:02", "01:01"]


def test_a_list_of_days_of_the_week_matches_each() -> None:
    cron = Cron("cron(0 0 ? * SUN,WED *)")
    days = [day for day in range(1, 8) if cron.matches(datetime(2026, 11, day, tzinfo=UTC))]
    assert days == [1, 4]
