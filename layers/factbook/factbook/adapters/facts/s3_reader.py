"""Payloads in S3, read back for the search index."""

from typing import Any

from factbook.adapters.aws_errors import NothingThere, aws_errors


class S3BlobReader:
    """BlobReader; `client` is a boto3 S3 client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def read(self, ref: str) -> bytes | None:
        bucket, _, name = ref.removeprefix("blob://s3/").partition("/")
        try:
            with aws_errors("s3"):
                body: bytes = self._client.get_object(Bucket=bucket, Key=name)["Body"].read()
        except NothingThere:
            return None
        return body
