"""The queue pump: an event source mapping of an SQS queue.

What the function took is deleted; what it failed on stays, is seen again after the queue's visibility timeout, and
moves to the dead-letter queue by the queue's own redrive policy.
"""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from factbook_local.limits import LIMITS
from factbook_local.pumps.failures import failed_items
from factbook_local.pumps.filters import passes
from factbook_local.stack import QueueSource
from factbook_local.workers import Pool

_WAIT_SECONDS = 20
_MOST_AT_ONCE = 10
"""SQS hands over ten messages at most."""

Message = dict[str, Any]


class QueuePump:
    """Feeds one function from one queue. `in_thread` runs a blocking call apart from the event loop."""

    def __init__(
        self,
        source: QueueSource,
        client: Any,
        url: str,
        arn: str,
        region: str,
        pool: Pool,
        *,
        in_thread: Callable[..., Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._client, self._url, self._arn, self._region = source, client, url, arn, region
        self._pool, self._in_thread, self._clock = pool, in_thread, clock

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            messages = await self._receive()
            for event in _events(messages):
                await self.handle(event)

    async def _receive(self) -> list[Message]:
        """A batch: what there is at once, or what the batching window brings up to the batch size."""
        messages = await self._poll(_WAIT_SECONDS, self._source.batch_size)
        until = self._clock() + self._source.window
        while messages and (room := self._source.batch_size - len(messages)) > 0:
            left = max(0.0, until - self._clock())
            more = await self._poll(min(_WAIT_SECONDS, int(left)), room)
            if not more and left < 1:
                break
            messages += more
        return messages

    async def _poll(self, seconds: int, room: int) -> list[Message]:
        answer = await self._in_thread(
            self._client.receive_message,
            QueueUrl=self._url,
            MaxNumberOfMessages=min(_MOST_AT_ONCE, room),
            WaitTimeSeconds=seconds,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return list(answer.get("Messages", []))

    async def handle(self, messages: list[Message]) -> None:
        """Bring messages to the function and delete those that it took, or that no filter passes."""
        records = [self._record(message) for message in messages]
        wanted = [record for record in records if passes(_parsed(record), self._source.filters)]
        failed: set[str] | None = set()
        if wanted:
            outcome = await self._pool.invoke(json.dumps({"Records": wanted}).encode(), wait=3600.0)
            failed = failed_items(
                outcome, [record["messageId"] for record in wanted], partial=self._source.partial
            )
        kept = {record["messageId"] for record in wanted} if failed is None else failed
        await self._delete([record for record in records if record["messageId"] not in kept])

    async def _delete(self, records: list[Message]) -> None:
        for start in range(0, len(records), _MOST_AT_ONCE):
            entries = [
                {"Id": str(place), "ReceiptHandle": record["receiptHandle"]}
                for place, record in enumerate(records[start : start + _MOST_AT_ONCE])
            ]
            await self._in_thread(self._client.delete_message_batch, QueueUrl=self._url, Entries=entries)

    def _record(self, message: Message) -> Message:
        """A message as the event of a function holds it."""
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message.get("Attributes", {}),
            "messageAttributes": {
                name: {
                    "stringListValues": [],
                    "binaryListValues": [],
                    "dataType": value["DataType"],
                    **({"stringValue": value["StringValue"]} if "StringValue" in value else {}),
                }
                for name, value in message.get("MessageAttributes", {}).items()
            },
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": self._arn,
            "awsRegion": self._region,
        }


def _events(messages: list[Message]) -> list[list[Message]]:
    """The messages in order, as many together as one event of a function holds."""
    events: list[list[Message]] = []
    room = 0
    for message in messages:
        size = len(json.dumps(message).encode())
        if not events or size > room:
            events.append([])
            room = LIMITS["invocation"].most
        events[-1].append(message)
        room -= size
    return events


def _parsed(record: Message) -> Message:
    """What a filter sees: the body as JSON where it is JSON."""
    try:
        return {**record, "body": json.loads(record["body"])}
    except ValueError:
        return record


async def forever(pump: QueuePump, report: Callable[[str], None]) -> None:
    """Keep a pump going over faults of the queue, as the service does."""
    while True:
        try:
            await pump.run()
        except Exception as error:  # noqa: BLE001 - a poller outlives whatever one poll meets
            report(f"{type(error).__name__}: {error}")
            await asyncio.sleep(1)
