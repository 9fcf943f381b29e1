"""Records that cannot be indexed, in a queue: their key and why, never their content."""

import json
from typing import Any

from factbook.adapters.aws_errors import aws_errors


class SqsDeadLetters:
    """DeadLetters over one queue; `client` is a boto3 SQS client."""

    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, key: str, reason: str) -> None:
        with aws_errors("sqs"):
            self._client.send_message(
                QueueUrl=self._queue_url, MessageBody=json.dumps({"key": key, "reason": reason})
            )
