"""The runner's own clients of the data plane."""

from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config

from factbook_local.dataplane.process import CREDENTIALS, REGION


class Clients:
    """Made at first use; thread-safe, as boto3's clients are."""

    def __init__(self, url: str) -> None:
        self.url = url

    def _make(self, service: str) -> Any:
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=CREDENTIALS[0],
            aws_secret_access_key=CREDENTIALS[1],
            config=Config(
                max_pool_connections=64, retries={"mode": "standard", "max_attempts": 3}, read_timeout=60
            ),
        )

    @cached_property
    def dynamodb(self) -> Any:
        return self._make("dynamodb")

    @cached_property
    def s3(self) -> Any:
        return self._make("s3")

    @cached_property
    def sqs(self) -> Any:
        return self._make("sqs")

    @cached_property
    def kms(self) -> Any:
        return self._make("kms")
