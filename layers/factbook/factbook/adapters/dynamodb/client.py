"""One way to talk to DynamoDB: plain attribute values, and the service's errors as ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.contention import Contended

Item = dict[str, Any]

_THROTTLES = {
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
    "LimitExceededException",
    "SlowDown",  # S3's word for it, with status 503
}
_OUTAGES = {"InternalServerError", "InternalFailure", "ServiceUnavailable", "RequestTimeout"}
_CONTENTION = {"TransactionConflictException", "TransactionConflict", "TransactionInProgressException"}


class ConditionFailed(Exception):
    """A condition did not hold; `item` is what the store has there, empty when nothing is."""

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn botocore's errors into Throttled, StorageUnavailable, Contended or ConditionFailed; others pass."""
    try:
        yield
    except ClientError as error:
        raise _translated(error) from error
    except (BotoConnectionError, HTTPClientError) as error:
        raise StorageUnavailable from error


def _translated(error: ClientError) -> Exception:
    code = error.response.get("Error", {}).get("Code", "")
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(from_item(error.response.get("Item", {})))
    if code == "TransactionCanceledException":
        return _cancelled(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    broken = StorageUnavailable() if status >= HTTPStatus.INTERNAL_SERVER_ERROR else error
    return _by_code(code) or broken


def _cancelled(error: ClientError) -> Exception:
    reasons = error.response.get("CancellationReasons", [])
    failed = [reason for reason in reasons if reason.get("Code") == "ConditionalCheckFailed"]
    if failed:
        # The head is the last put of every transaction here, so its reason is the one that decides.
        return ConditionFailed(from_item(failed[-1].get("Item", {})))
    for reason in reasons:
        known = _by_code(str(reason.get("Code")))
        if known is not None:
            return known
    unknown: Exception = error
    return unknown


def _by_code(code: str) -> Exception | None:
    if code in _CONTENTION:
        return Contended()
    if code in _THROTTLES:
        return Throttled()
    return StorageUnavailable() if code in _OUTAGES else None


def to_item(plain: Item) -> Item:
    """Attribute values of a flat record; None attributes are left out."""
    return {name: _value(value) for name, value in plain.items() if value is not None}


def from_item(item: Item) -> Item:
    """The flat record of attribute values; numbers are ints."""
    plain: Item = {}
    for name, typed in item.items():
        ((kind, value),) = typed.items()
        plain[name] = int(value) if kind == "N" else value
    return plain


def _value(value: str | int | bytes) -> Item:
    if isinstance(value, int):
        return {"N": str(value)}
    return {"S": value} if isinstance(value, str) else {"B": value}
