"""The stream pump's rules where the clock matters: a function that fails as told, a clock that is set."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from factbook_local.pumps.streams import SHARD, StreamPump
from factbook_local.stack import StreamSource
from factbook_local.workers import Outcome

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/items/stream/2026"


def record(number: int, at: float = 1_000.0) -> dict[str, Any]:
    return {"dynamodb": {"SequenceNumber": f"{number:021}", "ApproximateCreationDateTime": at}}


class Function:
    """Stands in for a pool: `decide` answers the failed positions of a batch of numbers, or None to raise."""

    arn = "arn:aws:lambda:us-east-1:000000000000:function:f"

    def __init__(self, decide: Callable[[list[int]], list[int] | None]) -> None:
        self.decide = decide
        self.batches: list[list[int]] = []

    async def invoke(self, event: bytes, *, wait: float) -> Outcome:
        numbers = [int(each["dynamodb"]["SequenceNumber"]) for each in json.loads(event)["Records"]]
        self.batches.append(numbers)
        failed = self.decide(numbers)
        if failed is None:
            return Outcome("r", error={"errorType": "RuntimeError", "errorMessage": "as told"})
        return Outcome(
            "r", json.dumps({"batchItemFailures": [{"itemIdentifier": f"{n:021}"} for n in failed]}).encode()
        )


class Stream:
    """A stream of given records, handed over in given portions; dry, it ends whoever reads on."""

    arn = ARN

    def __init__(self, *portions: list[dict[str, Any]]) -> None:
        self.portions = list(portions)
        self.done: list[int] = []

    async def records(self, done: str, seconds: float) -> list[dict[str, Any]]:
        self.done += [int(done)] if done else []
        if not self.portions:
            raise asyncio.CancelledError
        return self.portions.pop(0)


class Bench:
    """A pump whose clock stands still, and what it discards."""

    def __init__(
        self, function: Function, source: StreamSource, stream: Stream | None = None, now: float = 1_000.0
    ) -> None:
        self.discarded: list[dict[str, Any]] = []
        self.pump = StreamPump(
            source,
            stream or Stream(),
            function,
            discard=self.discard,  # type: ignore[arg-type]
            clock=lambda: now,
            retry_seconds=0.0,
        )

    async def discard(self, description: dict[str, Any]) -> None:
        self.discarded.append(description)

    def handle(self, *records: dict[str, Any]) -> None:
        asyncio.run(self.pump.handle(records))

    def run(self) -> None:
        async def until_dry() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await self.pump.run()

        asyncio.run(until_dry())


def source(**rules: Any) -> StreamSource:
    return StreamSource(function="F", table="T", name="FItems", **rules)


def test_a_record_past_its_age_is_given_up_without_being_tried() -> None:
    function = Function(lambda numbers: [])
    bench = Bench(function, source(max_age=60.0), now=1_000.0)
    bench.handle(record(1, at=939.0), record(2, at=940.0))
    assert function.batches == [[2]]
    assert [each["requestContext"]["condition"] for each in bench.discarded] == ["RecordAgeExceeded"]
    assert bench.discarded[0]["requestContext"]["approximateInvokeCount"] == 0
    assert bench.discarded[0]["DDBStreamBatchInfo"]["batchSize"] == 1
    assert "responseContext" not in bench.discarded[0]


def test_retries_are_counted_and_what_they_exhaust_is_described() -> None:
    function = Function(lambda numbers: None)
    bench = Bench(function, source(retries=2))
    bench.handle(record(1), record(2))
    assert function.batches == [[1, 2]] * 3
    assert bench.discarded[0] == {
        "requestContext": {
            "requestId": "r",
            "functionArn": Function.arn,
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": 3,
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "version": "1.0",
        "timestamp": "1970-01-01T00:16:40.000Z",
        "DDBStreamBatchInfo": {
            "shardId": SHARD,
            "startSequenceNumber": f"{1:021}",
            "endSequenceNumber": f"{2:021}",
            "approximateArrivalOfFirstRecord": "1970-01-01T00:16:40.000Z",
            "approximateArrivalOfLastRecord": "1970-01-01T00:16:40.000Z",
            "batchSize": 2,
            "streamArn": ARN,
        },
    }


def test_without_a_bound_a_batch_is_tried_until_it_succeeds() -> None:
    tries = iter([None] * 12 + [[]])
    function = Function(lambda numbers: next(tries))
    bench = Bench(function, source())
    bench.handle(record(1))
    assert len(function.batches) == 13
    assert bench.discarded == []


def test_a_batch_may_be_tried_thousands_of_times() -> None:
    tries = iter([*[None] * 2_000, []])
    function = Function(lambda numbers: next(tries))
    bench = Bench(function, source())
    bench.handle(record(1))
    assert len(function.batches) == 2_001


def test_where_age_alone_bounds_the_tries_a_record_is_given_up_for_its_age() -> None:
    now = iter(range(1_000, 2_000))
    function = Function(lambda numbers: None)
    bench = Bench(function, source(retries=-1, max_age=30.0, bisect=True))
    bench.pump._clock = lambda: next(now)
    bench.handle(record(1), record(2))
    assert len(function.batches) > 10
    assert {each["requestContext"]["condition"] for each in bench.discarded} == {"RecordAgeExceeded"}
    assert sum(each["DDBStreamBatchInfo"]["batchSize"] for each in bench.discarded) == 2


def test_bisecting_does_not_use_up_retries() -> None:
    function = Function(lambda numbers: None if 3 in numbers else [])
    bench = Bench(function, source(retries=0, bisect=True))
    bench.handle(*map(record, range(8)))
    assert function.batches == [list(range(8)), [0, 1, 2, 3], [0, 1], [2, 3], [2], [3], [4, 5, 6, 7]]
    assert [each["DDBStreamBatchInfo"]["startSequenceNumber"] for each in bench.discarded] == [f"{3:021}"]


def test_an_item_failure_is_ignored_where_it_is_not_asked_for() -> None:
    function = Function(lambda numbers: numbers)
    bench = Bench(function, source(partial=False))
    bench.handle(record(1))
    assert function.batches == [[1]]


def test_an_identifier_of_another_batch_fails_the_whole_batch() -> None:
    tries = iter([[99], []])
    function = Function(lambda numbers: next(tries))
    bench = Bench(function, source(partial=True))
    bench.handle(record(1), record(2))
    assert function.batches == [[1, 2], [1, 2]]


def test_what_is_there_makes_a_batch_at_once() -> None:
    function = Function(lambda numbers: [])
    stream = Stream([record(1)], [], list(map(record, range(2, 9))))
    Bench(function, source(batch_size=3), stream).run()
    assert function.batches == [[1], [2, 3, 4], [5, 6, 7], [8]]
    assert stream.done == [1, 1, 8]


@given(
    st.integers(1, 25),
    st.sets(st.integers(0, 24), max_size=4),
    st.sets(st.integers(0, 24), max_size=4),
    st.booleans(),
    st.integers(0, 3),
)
def test_every_record_is_taken_or_given_up_in_order(
    count: int, poisoned: set[int], failing: set[int], bisect: bool, retries: int
) -> None:
    taken: list[int] = []

    def decide(numbers: list[int]) -> list[int] | None:
        if poisoned & set(numbers):
            return None
        failed = [number for number in numbers if number in failing]
        taken.extend(numbers[: numbers.index(failed[0])] if failed else numbers)
        return failed

    bench = Bench(Function(decide), source(partial=True, bisect=bisect, retries=retries))
    bench.handle(*map(record, range(count)))
    given_up = [
        number
        for each in bench.discarded
        for number in range(
            int(each["DDBStreamBatchInfo"]["startSequenceNumber"]),
            int(each["DDBStreamBatchInfo"]["endSequenceNumber"]) + 1,
        )
    ]
    assert sorted(taken + given_up) == list(range(count))
    assert taken == sorted(taken)
    if bisect and not failing:
        assert given_up == sorted(number for number in poisoned if number < count)
