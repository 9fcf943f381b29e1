"""Published notes in a bucket under Object Lock: an object per size, written once.

Keys count down, `<tenant>/<10^12 - size>-<size>`, so the first object listed under a tenant is its newest note.
"""

import time
from typing import Any
from urllib.parse import quote

from factbook.adapters.aws_errors import AlreadyThere, aws_errors
from factbook.adapters.dynamodb.key_parts import part
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import Throttled
from factbook.ports.contention import Contended
from factbook.ports.log.checkpoints import NoteConflict

_TOP = 10**12
ATTEMPTS = 5
PAUSE_SECONDS = 0.05


class S3Checkpoints:
    """CheckpointStore; `client` is a boto3 S3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def newest(self, tenant: str) -> str | None:
        with aws_errors("s3"):
            page = self._client.list_objects_v2(Bucket=self._bucket, Prefix=_folder(tenant), MaxKeys=1)
        found = page.get("Contents", [])
        return self._read(found[0]["Key"]) if found else None

    def publish(self, tenant: str, size: int, note: str) -> None:
        key = f"{_folder(tenant)}{_TOP - size:012d}-{size}"
        for attempt in range(ATTEMPTS):
            time.sleep(full_jitter(attempt, PAUSE_SECONDS))
            try:
                self._put(key, note)
            except Contended:  # another write of this very key is under way
                continue
            except AlreadyThere:
                if self._read(key) != note:
                    raise NoteConflict from None
            return
        raise Throttled

    def _put(self, key: str, note: str) -> None:
        with aws_errors("s3"):
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=note.encode(),
                ContentType="text/plain; charset=utf-8",
                IfNoneMatch="*",
                ChecksumAlgorithm="SHA256",
            )

    def _read(self, key: str) -> str:
        with aws_errors("s3"):
            body: bytes = self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        return body.decode()


def _folder(tenant: str) -> str:
    return quote(part(tenant), safe="") + "/"
