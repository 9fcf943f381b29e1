"""The queue pump: an event source mapping of an SQS queue.

What the function took is deleted; what it failed on stays, is seen again after the queue's visibility timeout, and
moves to the dead-letter queue by the queue's own redrive policy.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from factbook_local.limits import LIMITS
from factbook_local.pumps.failures import failed_items
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
    ) -> None:
        self._source, self._client, self._url, self._arn, self._region = source, client, url, arn, region
        self._pool, self._in_thread = pool, in_thread

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            messages = await self._receive()
            for event in _events(messages):
                await self.handle(event)

    async def _receive(self) -> list[Message]:
        """What there is at once, up to the batch size; waits for the first message."""
        messages = await self._poll(_WAIT_SECONDS, self._source.batch_size)
        while messages and (room := self._source.batch_size - len(messages)) > 0:
            more = await self._poll(0, room)
            if not more:
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
        """Bring messages to the function and delete those that it took."""
        records = [self._record(message) for message in messages]
        outcome = await self._pool.invoke(json.dumps({"Records": records}).encode(), wait=3600.0)
        identifiers = [record["messageId"] for record in records]
        failed = failed_items(outcome, identifiers, partial=self._source.partial)
        if failed is not None:
            await self._delete([record for record in records if record["messageId"] not in failed])

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


async def forever(pump: QueuePump, report: Callable[[str], None]) -> None:
    """Keep a pump going over faults of the queue, as the service does."""
    while True:
        try:
            await pump.run()
        except Exception as error:  # noqa: BLE001 - a poller outlives whatever one poll meets
            report(f"{type(error).__name__}: {error}")
            await asyncio.sleep(1)
