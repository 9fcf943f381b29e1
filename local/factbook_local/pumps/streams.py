"""The stream pump: an event source mapping of a DynamoDB stream.

Invariants: records reach the function in order and at least once; a record is behind the pump's position only when
the function took it, or its description went to the on-failure destination. The position is
kept with the data, so that a restart goes on where the last saved one was.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from factbook_local.limits import LIMITS
from factbook_local.pumps.failures import failed_items
from factbook_local.stack import StreamSource
from factbook_local.workers import Outcome, Pool

Record = dict[str, Any]
EVENT_LIMIT = LIMITS["invocation"].most
SHARD = "shardId-00000000000000000000-00000000"
_WAIT_SECONDS = 20.0
_RETRY_SECONDS, _LONGEST_RETRY = 0.1, 10.0
"""Between two tries of a batch: doubled each time, up to the longest."""
_MOST_DOUBLINGS = 10


class Stream(Protocol):
    """One stream as one consumer reads it."""

    arn: str

    async def records(self, done: str, seconds: float) -> list[Record]:
        """The records after the last ones answered, each as Lambda's event holds it; waits for the first of them.

        `done`: the sequence number up to which everything is dealt with, for a restart to go on from.
        """


def _sequence(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def _arrival(record: Record) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])


@dataclass(frozen=True)
class _Batch:
    """Records that are tried together. `tries` counts the invocations that failed on them."""

    records: tuple[Record, ...]
    tries: int = 0


class StreamPump:
    """Feeds one function from one stream. `discard` takes the description of records that are given up."""

    def __init__(
        self,
        source: StreamSource,
        stream: Stream,
        pool: Pool,
        *,
        discard: Callable[[dict[str, Any]], Awaitable[None]],
        clock: Callable[[], float] = time.time,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self._source, self._stream, self._pool = source, stream, pool
        self._discard, self._clock, self._retry_seconds = discard, clock, retry_seconds
        self._ahead: deque[Record] = deque()
        self._done = ""

    async def run(self) -> None:
        """Pump until cancelled."""
        while True:
            if records := await self._next():
                await self.handle(tuple(records))
                self._done = _sequence(records[-1])

    async def _next(self) -> list[Record]:
        """The next records, up to the batch size; none when none came for a while."""
        if not self._ahead:
            self._ahead.extend(await self._stream.records(self._done, _WAIT_SECONDS))
        return [self._ahead.popleft() for _ in range(self._fitting())]

    def _fitting(self) -> int:
        """How many of the records ahead make one event: at least one."""
        size, count = 0, 0
        for record in self._ahead:
            size += len(json.dumps(record))
            if count and (size > EVENT_LIMIT or count == self._source.batch_size):
                break
            count += 1
        return count

    async def handle(self, records: tuple[Record, ...]) -> None:
        """Bring records to the function, by the rules of retries, bisecting and partial failures, in order."""
        left = deque([_Batch(records)])
        while left:
            batch = await self._without_aged(left.popleft())
            if batch.records:
                left.extendleft(reversed(await self._try(batch)))

    async def _without_aged(self, batch: _Batch) -> _Batch:
        if self._source.max_age < 0:
            return batch
        oldest = self._clock() - self._source.max_age
        aged = tuple(record for record in batch.records if _arrival(record) < oldest)
        if aged:
            await self._give_up(replace(batch, records=aged), "RecordAgeExceeded")
        return replace(batch, records=tuple(record for record in batch.records if _arrival(record) >= oldest))

    async def _try(self, batch: _Batch) -> list[_Batch]:
        """One invocation. Answers what is to be tried next, in order."""
        outcome = await self._invoke(batch)
        numbers = [_sequence(record) for record in batch.records]
        failed = failed_items(outcome, numbers, partial=self._source.partial)
        if failed is not None and not failed:
            return []
        failures = batch.tries + 1
        if failed is None and self._source.bisect and len(batch.records) > 1:
            await self._pause(failures)
            middle = len(batch.records) // 2  # bisecting does not count as a retry
            return [
                replace(batch, records=batch.records[:middle]),
                replace(batch, records=batch.records[middle:]),
            ]
        first = min(map(numbers.index, failed)) if failed else 0
        rest = _Batch(batch.records[first:], failures)
        if 0 <= self._source.retries < failures:
            await self._give_up(rest, "RetryAttemptsExhausted", outcome)
            return []
        await self._pause(failures)
        return [rest]

    async def _pause(self, failures: int) -> None:
        doublings = min(
            failures - 1, _MOST_DOUBLINGS
        )  # where nothing bounds the tries, they may be thousands
        await asyncio.sleep(min(self._retry_seconds * 2**doublings, _LONGEST_RETRY))

    async def _invoke(self, batch: _Batch) -> Outcome:
        event = json.dumps({"Records": batch.records}).encode()
        while True:
            outcome = await self._pool.invoke(event, wait=3600.0)
            if outcome.error is None or outcome.error["errorType"] != "TooManyRequestsException":
                return outcome

    async def _give_up(self, batch: _Batch, condition: str, outcome: Outcome | None = None) -> None:
        first, last = batch.records[0], batch.records[-1]
        description: dict[str, Any] = {
            "requestContext": {
                "requestId": outcome.request_id if outcome else "",
                "functionArn": self._pool.arn,
                "condition": condition,
                "approximateInvokeCount": batch.tries,
            },
            "version": "1.0",
            "timestamp": _instant(self._clock()),
            "DDBStreamBatchInfo": {
                "shardId": SHARD,
                "startSequenceNumber": _sequence(first),
                "endSequenceNumber": _sequence(last),
                "approximateArrivalOfFirstRecord": _instant(_arrival(first)),
                "approximateArrivalOfLastRecord": _instant(_arrival(last)),
                "batchSize": len(batch.records),
                "streamArn": self._stream.arn,
            },
        }
        if outcome is not None:
            description["responseContext"] = {
                "statusCode": 200,
                "executedVersion": "$LATEST",
                **({"functionError": "Unhandled"} if outcome.error else {}),
            }
        await self._discard(description)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
