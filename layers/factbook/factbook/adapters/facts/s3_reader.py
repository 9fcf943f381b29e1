"""Payloads in S3, read back for the search index."""

from typing import Any

from botocore.exceptions import ClientError

from factbook.adapters.dynamodb.client import store_errors


class S3BlobReader:
    """BlobReader; `client` is a boto3 S3 client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def read(self, ref: str) -> bytes | None:
        bucket, _, name = ref.removeprefix("blob://s3/").partition("/")
        try:
            with store_errors():
                body: bytes = self._client.get_object(Bucket=bucket, Key=name)["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "NoSuchKey":
                return None
            raise
        return body
