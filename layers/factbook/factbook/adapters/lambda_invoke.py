"""Call another function of the service and wait for its answer."""

import json
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.domain.strict_json import Json


class LambdaFunction:
    """One function; `client` is a boto3 Lambda client."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def call(self, event: Json) -> Json:
        """The function's answer. Raises Throttled, StorageUnavailable."""
        try:
            answer = self._client.invoke(FunctionName=self._name, Payload=json.dumps(event).encode())
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code == "TooManyRequestsException":
                raise Throttled from error
            if code in {"ServiceException", "ResourceNotReadyException"}:
                raise StorageUnavailable from error
            raise
        except (BotoConnectionError, HTTPClientError) as error:
            raise StorageUnavailable from error
        if "FunctionError" in answer:
            raise StorageUnavailable
        result: Json = json.loads(answer["Payload"].read())
        return result
