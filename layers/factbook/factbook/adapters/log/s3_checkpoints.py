"""Published notes in a bucket under Object Lock: an object per size, written once.

Keys count down, `<tenant>/<10^12 - size>-<size>`, so the first object listed under a tenant is its newest note.
"""

from typing import Any
from urllib.parse import quote

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from factbook.adapters.dynamodb.key_parts import part
from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.log.checkpoints import NoteConflict

_TOP = 10**12
_TAKEN = {"PreconditionFailed", "412"}
_BUSY = {"ConditionalRequestConflict", "409"}
_THROTTLES = {"SlowDown", "503"}
ATTEMPTS = 5


class S3Checkpoints:
    """CheckpointStore; `client` is a boto3 S3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def newest(self, tenant: str) -> str | None:
        page = self._call("list_objects_v2", Bucket=self._bucket, Prefix=_folder(tenant), MaxKeys=1)
        found = page.get("Contents", [])
        return self._read(found[0]["Key"]) if found else None

    def publish(self, tenant: str, size: int, note: str) -> None:
        key = f"{_folder(tenant)}{_TOP - size:012d}-{size}"
        for _ in range(ATTEMPTS):
            try:
                self._call(
                    "put_object",
                    Bucket=self._bucket,
                    Key=key,
                    Body=note.encode(),
                    ContentType="text/plain; charset=utf-8",
                    IfNoneMatch="*",
                    ChecksumAlgorithm="SHA256",
                )
                return
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "")
                if code in _BUSY:  # another write of this very key is under way
                    continue
                if code not in _TAKEN:
                    raise
            if self._read(key) != note:
                raise NoteConflict
            return
        raise Throttled

    def _read(self, key: str) -> str:
        body: bytes = self._call("get_object", Bucket=self._bucket, Key=key)["Body"].read()
        return body.decode()

    def _call(self, operation: str, **arguments: Any) -> Any:
        try:
            return getattr(self._client, operation)(**arguments)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in _THROTTLES:
                raise Throttled from error
            if code in {"InternalError", "500"}:
                raise StorageUnavailable from error
            raise
        except (BotoConnectionError, HTTPClientError) as error:
            raise StorageUnavailable from error


def _folder(tenant: str) -> str:
    return quote(part(tenant), safe="") + "/"
