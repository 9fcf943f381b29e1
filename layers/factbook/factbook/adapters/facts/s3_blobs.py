"""Large payloads in S3: one object per write, under its fact's own prefix, never shared between facts."""

import base64
import hashlib
from contextlib import suppress
from typing import Any

from factbook.adapters.aws_errors import NothingThere, any_failure_is_unavailable, aws_errors
from factbook.adapters.dynamodb.key_parts import part

DOWNLOAD_SECONDS = 300
PENDING = "pending=true"
"""The tag of a payload that no fact names yet: the bucket removes it after two days."""


class S3Blobs:
    """BlobStore over one bucket; `client` is a boto3 S3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def new_ref(self, tenant: str, fact_id: str, name: str) -> str:
        return f"blob://s3/{self._bucket}/facts/{_segment(tenant)}/{fact_id}/{name}"

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
        return found["ContentLength"], base64.b64decode(found["ChecksumSHA256"]).hex()

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

    def download_url(self, ref: str) -> str:
        bucket, name = _located(ref)
        url: str = self._client.generate_presigned_url(
            "get_object", Params={"Bucket": bucket, "Key": name}, ExpiresIn=DOWNLOAD_SECONDS
        )
        return url


def _base64(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


def _located(ref: str) -> tuple[str, str]:
    bucket, _, name = ref.removeprefix("blob://s3/").partition("/")
    return bucket, name


def _segment(tenant: str) -> str:
    return part(tenant).replace("/", "%2F")
