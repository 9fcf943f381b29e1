"""Secrets that a setting names by their ARN."""

from typing import Any

from factbook.adapters.aws_errors import aws_errors


class SecretsManager:
    """`client` is a boto3 Secrets Manager client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def text(self, arn: str) -> str:
        """The secret's text. Raises Throttled, StorageUnavailable."""
        with aws_errors("secretsmanager"):
            return str(self._client.get_secret_value(SecretId=arn)["SecretString"])
