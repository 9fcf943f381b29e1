"""The ticker: runs of a function at a fixed rate, counted from the start of the runner."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from factbook_local.stack import Schedule


def next_run(every: timedelta, after: datetime, started: datetime) -> datetime:
    """The first run later than `after`."""
    return started + every * ((after - started) // every + 1)


def scheduled_event(schedule: Schedule, moment: datetime, account: str, region: str) -> bytes:
    """The event of one run, as EventBridge Scheduler makes it."""
    return json.dumps(
        {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": account,
            "time": moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": region,
            "resources": [f"arn:aws:scheduler:{region}:{account}:schedule/default/{schedule.name}"],
            "detail": "{}",
        }
    ).encode()


async def tick(
    every: timedelta,
    run: Callable[[datetime], Awaitable[None]],
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Run until cancelled. A run that was missed while the machine slept is made up once."""
    started = after = clock()
    while True:
        moment = next_run(every, after, started)
        while (left := (moment - clock()).total_seconds()) > 0:
            await sleep(min(left, 30.0))
        await run(moment)
        after = max(moment, clock() - timedelta(seconds=1))
