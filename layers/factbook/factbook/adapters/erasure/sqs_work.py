"""The worker's queue on SQS. A message names a tenant and an id, and nobody."""

import json
import math
from typing import Any

from factbook.adapters.aws_errors import aws_errors

LONGEST_DELAY = 900


class SqsWork:
    """WorkQueue; `client` is a boto3 SQS client."""

    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, tenant: str, erasure_id: str, after_seconds: float = 0.0) -> None:
        self._send({"tenant": tenant, "erasure": erasure_id}, after_seconds)

    def send_replays(self, tenant: str, after_seconds: float = 0.0) -> None:
        self._send({"tenant": tenant, "replays": True}, after_seconds)

    def _send(self, message: dict[str, Any], after_seconds: float) -> None:
        delay = min(LONGEST_DELAY, math.ceil(after_seconds))
        with aws_errors("sqs"):
            self._client.send_message(
                QueueUrl=self._queue_url, MessageBody=json.dumps(message), DelaySeconds=delay
            )
