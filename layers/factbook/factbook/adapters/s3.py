"""Large payloads in S3: one object per write, under its fact's own prefix, never shared between facts."""

import base64
import hashlib
import secrets
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .dynamodb.client import store_errors
from .dynamodb.keys import part

DOWNLOAD_SECONDS = 300


class S3Blobs:
    """BlobStore over one bucket; `client` is a boto3 S3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, fact_id: str, body: bytes) -> str:
        name = f"facts/{_segment(tenant)}/{fact_id}/{secrets.token_hex(16)}"
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        with store_errors():
            self._client.put_object(
                Bucket=self._bucket,
                Key=name,
                Body=body,
                ContentType="application/json",
                ChecksumSHA256=checksum,
            )
        return f"blob://s3/{self._bucket}/{name}"

    def discard(self, ref: str) -> None:
        bucket, name = _located(ref)
        # An object that stays costs a few cents and is reachable by nobody; the answer must not fail for it.
        with suppress(ClientError, BotoCoreError):
            self._client.delete_object(Bucket=bucket, Key=name)

    def download_url(self, ref: str) -> str:
        bucket, name = _located(ref)
        url: str = self._client.generate_presigned_url(
            "get_object", Params={"Bucket": bucket, "Key": name}, ExpiresIn=DOWNLOAD_SECONDS
        )
        return url


def _located(ref: str) -> tuple[str, str]:
    bucket, _, name = ref.removeprefix("blob://s3/").partition("/")
    return bucket, name


def _segment(tenant: str) -> str:
    return part(tenant).replace("/", "%2F")
