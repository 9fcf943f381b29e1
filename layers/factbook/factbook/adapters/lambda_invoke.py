"""Call another function of the service and wait for its answer."""

import json
from typing import Any

from factbook.adapters.aws_errors import aws_errors
from factbook.domain.errors import StorageUnavailable
from factbook.domain.strict_json import Json


class LambdaFunction:
    """One function; `client` is a boto3 Lambda client that does not send an invocation twice by itself."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def call(self, event: Json) -> Json:
        """The function's answer. Raises Throttled; StorageUnavailable when it failed or has not answered in time."""
        result: Json = json.loads(self.answer(event))
        return result

    def answer(self, event: Json) -> bytes:
        """The function's answer as it came; raises as `call`."""
        with aws_errors("lambda"):
            answer = self._client.invoke(FunctionName=self._name, Payload=json.dumps(event).encode())
            payload: bytes = answer["Payload"].read()
        if "FunctionError" in answer:
            raise StorageUnavailable
        return payload
