"""Large payloads in S3: one object per write, under its fact's own prefix, never shared between facts."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from factbook.adapters.aws_errors import NothingThere, any_failure_is_unavailable, aws_errors
from factbook.adapters.dynamodb.key_parts import part
from factbook.domain.errors import StorageUnavailable
from factbook.domain.times import format_instant
from factbook.ports.facts.blobs import StoredObject

MOST_OBJECTS = 1_000
"""Of one answer of the service, and of one removal."""
_MARKERS = ("KeyMarker", "VersionIdMarker")
PENDING = "pending=true"
"""The tag of a payload that no fact names yet: the bucket removes it after two days."""


class S3Blobs:
    """BlobStore and BlobWalk over one bucket; `client` is a boto3 S3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def new_ref(self, tenant: str, fact_id: str, name: str) -> str:
        return f"blob://s3/{self._bucket}/{_folder(tenant)}{fact_id}/{name}"

    def put(self, ref: str, body: bytes) -> None:
        bucket, name = _located(ref)
        with aws_errors("s3"):
            self._client.put_object(
                Bucket=bucket,
                Key=name,
                Body=body,
                ContentType="application/json",
                Tagging=PENDING,
                ChecksumAlgorithm="SHA256",
                ChecksumSHA256=base64.b64encode(hashlib.sha256(body).digest()).decode(),
            )

    def upload_url(self, ref: str, size: int, sha256: str, seconds: int) -> str:
        bucket, name = _located(ref)
        url: str = self._client.generate_presigned_url(
            "put_object",
            Params={
                "Bucket": bucket,
                "Key": name,
                "ContentLength": size,
                "ChecksumSHA256": _base64(sha256),
                "Tagging": PENDING,
                "IfNoneMatch": "*",
            },
            ExpiresIn=seconds,
        )
        return url

    def claim(self, ref: str) -> None:
        bucket, name = _located(ref)
        with suppress(NothingThere), aws_errors("s3"):
            self._client.delete_object_tagging(Bucket=bucket, Key=name)

    def unclaim(self, ref: str) -> None:
        bucket, name = _located(ref)
        tags = [dict(zip(("Key", "Value"), PENDING.split("="), strict=True))]
        with suppress(NothingThere), aws_errors("s3"):
            self._client.put_object_tagging(Bucket=bucket, Key=name, Tagging={"TagSet": tags})

    def upload_headers(self, size: int, sha256: str) -> dict[str, str]:
        return {
            "Content-Length": str(size),
            "x-amz-checksum-sha256": _base64(sha256),
            "x-amz-tagging": PENDING,
            "If-None-Match": "*",
        }

    def stat(self, ref: str) -> tuple[int, str] | None:
        bucket, name = _located(ref)
        try:
            with aws_errors("s3"):
                found = self._client.head_object(Bucket=bucket, Key=name, ChecksumMode="ENABLED")
        except NothingThere:
            return None
        return found["ContentLength"], base64.b64decode(found.get("ChecksumSHA256", "")).hex()

    def discard(self, ref: str) -> None:
        bucket, name = _located(ref)
        with any_failure_is_unavailable():
            pages = self._client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=name)
            # All of them read before the first is removed; longer names begin with this one too.
            there = [
                version["VersionId"]
                for page in pages
                for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
                if version["Key"] == name
            ]
            for version in there:
                self._client.delete_object(Bucket=bucket, Key=name, VersionId=version)

    def of_fact(self, tenant: str, fact_id: str) -> Iterator[StoredObject]:
        objects, after = self._versions(f"{_folder(tenant)}{fact_id}/", None, MOST_OBJECTS)
        yield from objects
        while after is not None:
            objects, after = self._versions(f"{_folder(tenant)}{fact_id}/", after, MOST_OBJECTS)
            yield from objects

    def of_tenant(self, tenant: str, after: str | None, limit: int) -> tuple[list[StoredObject], str | None]:
        return self._versions(_folder(tenant), after, limit)

    def _versions(self, prefix: str, after: str | None, limit: int) -> tuple[list[StoredObject], str | None]:
        """The position is the name and the version that came last."""
        markers = {} if after is None else dict(zip(_MARKERS, json.loads(after), strict=True))
        with any_failure_is_unavailable():
            page = self._client.list_object_versions(
                Bucket=self._bucket, Prefix=prefix, MaxKeys=min(limit, MOST_OBJECTS), **markers
            )
        found = (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
        objects = [_stored(version) for version in found]
        if not page["IsTruncated"]:
            return objects, None
        return objects, json.dumps([page[f"Next{name}"] for name in _MARKERS])

    def remove(self, tenant: str, objects: Sequence[StoredObject]) -> None:
        if not objects:
            return
        doomed = [
            {"Key": f"{_folder(tenant)}{each.fact_id}/{each.name}", "VersionId": each.version}
            for each in objects
        ]
        with any_failure_is_unavailable():
            answer = self._client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": doomed, "Quiet": True}
            )
        if answer.get("Errors"):
            raise StorageUnavailable

    def download_url(self, ref: str, seconds: int) -> str:
        bucket, name = _located(ref)
        url: str = self._client.generate_presigned_url(
            "get_object", Params={"Bucket": bucket, "Key": name}, ExpiresIn=seconds
        )
        return url


def _base64(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


def _located(ref: str) -> tuple[str, str]:
    bucket, _, name = ref.removeprefix("blob://s3/").partition("/")
    return bucket, name


def _folder(tenant: str) -> str:
    return f"facts/{_segment(tenant)}/"


def _stored(version: dict[str, Any]) -> StoredObject:
    *_, fact_id, last = version["Key"].split("/")
    return StoredObject(fact_id, last, version["VersionId"], format_instant(version["LastModified"]))


def _segment(tenant: str) -> str:
    return part(tenant).replace("/", "%2F")
