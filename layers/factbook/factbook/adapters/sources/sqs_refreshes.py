"""Facts to refresh, and what became hopeless, in queues: ids and reasons, never contents."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from factbook.adapters.aws_errors import aws_errors
from factbook.domain.errors import StorageUnavailable
from factbook.ports.sources.stores import DeadLetter, Letter, Taken, Wanted

AT_ONCE = 10
"""What SendMessageBatch takes."""
LONG_POLL = 1
"""Seconds. Without any, SQS asks some of its servers, and few messages are often on others: none would seem to be there."""
_COUNTED = tuple(f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible"))


class SqsRefreshQueue:
    """RefreshQueue over one queue; `client` is a boto3 SQS client."""

    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, wanted: Sequence[Wanted], delay: int = 0) -> None:
        entries = [
            {
                "Id": str(place % AT_ONCE),
                "MessageBody": json.dumps(each.to_json()),
                "MessageGroupId": _group(each.tenant),
                "DelaySeconds": delay,
            }
            for place, each in enumerate(wanted)
        ]
        for batch in (entries[at : at + AT_ONCE] for at in range(0, len(entries), AT_ONCE)):
            self._send(batch)

    def _send(self, batch: list[dict[str, Any]]) -> None:
        """Once more for what the service did not take of a batch. Raises StorageUnavailable."""
        for _ in range(2):
            with aws_errors("sqs"):
                answer = self._client.send_message_batch(QueueUrl=self._queue_url, Entries=batch)
            refused = {each["Id"] for each in answer.get("Failed", ())}
            batch = [entry for entry in batch if entry["Id"] in refused]
            if not batch:
                return
        raise StorageUnavailable

    def take(self, most: int) -> list[Taken]:
        with aws_errors("sqs"):
            answer = self._client.receive_message(
                QueueUrl=self._queue_url, MaxNumberOfMessages=min(most, AT_ONCE), WaitTimeSeconds=LONG_POLL
            )
        taken = []
        for message in answer.get("Messages", ()):
            with suppress(KeyError, TypeError):
                wanted = Wanted.from_json(_read(message["Body"]))
                taken.append(Taken(message["ReceiptHandle"], wanted))
        return taken

    def remove(self, taken: Taken) -> None:
        with aws_errors("sqs"):
            self._client.delete_message(QueueUrl=self._queue_url, ReceiptHandle=taken.handle)

    def waiting(self) -> int:
        with aws_errors("sqs"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._queue_url, AttributeNames=list(_COUNTED)
            )
        return sum(int(answer["Attributes"].get(name, 0)) for name in _COUNTED)


class SqsRefreshLetters:
    """DeadLetters over one queue."""

    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, letter: DeadLetter) -> None:
        with aws_errors("sqs"):
            body = json.dumps({name: value for name, value in letter.to_json().items() if value is not None})
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=body)

    def receive(self, hidden_seconds: int) -> list[Letter]:
        with aws_errors("sqs"):
            answer = self._client.receive_message(
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=AT_ONCE,
                VisibilityTimeout=hidden_seconds,
                WaitTimeSeconds=LONG_POLL,
            )
        return [
            Letter(message["MessageId"], message["ReceiptHandle"], _read(message["Body"]))
            for message in answer.get("Messages", ())
        ]

    def remove(self, letter: Letter) -> None:
        with aws_errors("sqs"):
            self._client.delete_message(QueueUrl=self._queue_url, ReceiptHandle=letter.handle)


def _read(body: str) -> dict[str, Any]:
    """What a letter says; nothing where it is none of ours."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _group(tenant: str) -> str:
    """The queue takes the groups in turn. A tenant's name may have characters and a length that a group's may not."""
    return hashlib.sha256(tenant.encode()).hexdigest()[:32]
