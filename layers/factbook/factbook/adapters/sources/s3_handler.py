"""`s3`: an object of a bucket that an operator listed, `s3://bucket/key`, asked for by its entity tag."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from botocore.exceptions import BotoCoreError, ClientError

from factbook.adapters.aws_errors import NothingThere, aws_errors
from factbook.adapters.sources.bodies import unpacked
from factbook.adapters.sources.connecting import remaining
from factbook.adapters.sources.contents import Validators, answer, media_type, read_value, sendable_etag
from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.domain.facts.fact import Source
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import (
    AnswerRefused,
    Ask,
    Fetched,
    SourceRefused,
    SourceUnavailable,
    Unchanged,
)
from factbook.ports.sources.large import in_turn

_PIECE = 1 << 16
_SAYS_NOTHING = frozenset({"", "binary/octet-stream", "application/octet-stream"})
_BY_NAME = {"json": "application/json"} | dict.fromkeys(
    ("txt", "md", "csv", "xml", "yaml", "yml"), "text/plain"
)
"""By the end of an object's name, where whoever put it there gave it no type."""


@dataclass(frozen=True)
class Buckets:
    """What may be read: each `bucket` or `bucket/prefix`, in which `{tenant}` stands for the tenant that asks."""

    entries: frozenset[str] = frozenset()

    def have(self, tenant: str, bucket: str, key: str) -> bool:
        named = quote(tenant, safe="")  # a slash in it would lead into another tenant's prefix
        places = (entry.replace("{tenant}", named).partition("/") for entry in self.entries)
        return any(bucket == name and key.startswith(prefix) for name, _, prefix in places)


class S3Handler:
    """Handler; `client` is a boto3 S3 client. The operator's setting says what may be asked, the role what can be."""

    def __init__(self, client: Any, buckets: Buckets) -> None:
        self._client = client
        self._buckets = buckets

    def ask(self, ask: Ask, deadline: Deadline) -> Fetched | Unchanged:
        bucket, key, fragment = read_object_uri(ask.source)
        if not self._buckets.have(ask.tenant, bucket, key):
            raise SourceRefused("the bucket is not one that this deployment reads")
        known = ask.source.freshness
        etag = sendable_etag(known) if ask.known_hash else None
        condition = {"IfNoneMatch": etag} if etag else {}
        remaining(deadline, None)
        try:
            with aws_errors("s3"):
                found = self._client.get_object(Bucket=bucket, Key=key, **condition)
                with closing(found["Body"]) as stream:
                    media_type(_content_type(found, key))
                    body = b"".join(unpacked(_pieces(stream, deadline), _headers(found)))
        except NothingThere:
            raise AnswerRefused("the object is not there") from None
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == HTTPStatus.NOT_MODIFIED:
                return Unchanged(known.etag, known.source_version)
            raise AnswerRefused("the object may not be read") from None
        except (Throttled, StorageUnavailable, BotoCoreError):
            raise SourceUnavailable("the bucket does not answer") from None
        with in_turn(len(body), deadline):
            value = read_value(body, _content_type(found, key))
            return answer(ask, value, fragment, Validators(found.get("ETag"), found.get("VersionId")))


def read_object_uri(source: Source) -> tuple[str, str, str]:
    """Bucket, key and fragment."""
    address, _, fragment = (source.uri or "").partition("#")
    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not address.startswith("s3://") or not bucket or not key:
        raise SourceRefused("the address is not s3://bucket/key")
    key = unquote(key)
    if not {".", ".."}.isdisjoint(key.split("/")):  # what sends the request could take it for a step up
        raise SourceRefused("the key has a dot segment")
    return bucket, key, fragment


def _headers(found: Any) -> dict[str, str]:
    return {
        "content-length": str(found["ContentLength"]),
        "content-encoding": found.get("ContentEncoding", ""),
    }


def _content_type(found: Any, key: str) -> str:
    said = str(found.get("ContentType", ""))
    return said if said not in _SAYS_NOTHING else _BY_NAME.get(key.rpartition(".")[2].lower(), "")


def _pieces(body: Any, deadline: Deadline) -> Iterator[bytes]:
    for piece in body.iter_chunks(_PIECE):
        remaining(deadline, None)
        yield piece
