"""Secrets that a setting names by their ARN."""

from typing import Any

from factbook.adapters.aws_errors import any_failure_is_unavailable
from factbook.domain.errors import StorageUnavailable


class SecretsManager:
    """`client` is a boto3 Secrets Manager client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def text(self, arn: str) -> str:
        """The secret's text. Raises StorageUnavailable, whatever the reason: who asks can do without."""
        with any_failure_is_unavailable():
            found = self._client.get_secret_value(SecretId=arn)
        if "SecretString" not in found:
            raise StorageUnavailable  # it holds bytes
        return str(found["SecretString"])
