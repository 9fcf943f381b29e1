"""Schedules run at their rate, and their events are EventBridge Scheduler's."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from factbook_local.pumps.schedules import next_run, scheduled_event, tick
from factbook_local.stack import Schedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_rate_counts_from_the_start() -> None:
    every, started = timedelta(minutes=5), at("2026-01-01T00:02")
    moment, found = started, []
    for _ in range(3):
        moment = next_run(every, moment, started)
        found.append(moment.strftime("%H:%M"))
    assert found == ["00:07", "00:12", "00:17"]


def test_the_event_is_the_schedulers() -> None:
    schedule = Schedule(function="F", name="FTick", every=timedelta(minutes=1))
    event = json.loads(scheduled_event(schedule, at("2026-01-01T12:00"), "1", "r"))
    assert (event["source"], event["detail"], event["time"], event["resources"]) == (
        "aws.scheduler",
        "{}",
        "2026-01-01T12:00:00Z",
        ["arn:aws:scheduler:r:1:schedule/default/FTick"],
    )


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
            await tick(timedelta(minutes=1), run, clock=lambda: now[0], sleep=sleep)

    asyncio.run(main())
    assert fired == ["00:01", "00:02", "01:01"]
