"""One way to talk to DynamoDB: plain attribute values, and the service's errors as ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

from factbook.adapters.aws_errors import aws_errors, meaning_of_code

Item = dict[str, Any]

SERVICE = "dynamodb"


class ConditionFailed(Exception):
    """A condition did not hold; `item` is what the store has there, empty when nothing is.

    `place`: of the write in its transaction.
    """

    def __init__(self, item: Item, place: int = 0) -> None:
        super().__init__()
        self.item = item
        self.place = place


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn botocore's errors into Throttled, StorageUnavailable, Contended or ConditionFailed; others pass."""
    with aws_errors(SERVICE):
        try:
            yield
        except ClientError as error:
            decided = _decided(error)
            if decided is None:
                raise
            raise decided from error


def _decided(error: ClientError) -> Exception | None:
    """What became of a conditional write; None when the error says something else."""
    code = error.response.get("Error", {}).get("Code", "")
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(from_item(error.response.get("Item", {})))
    return _cancelled(error) if code == "TransactionCanceledException" else None


def _cancelled(error: ClientError) -> Exception | None:
    reasons = error.response.get("CancellationReasons", [])
    failed = [place for place, reason in enumerate(reasons) if reason.get("Code") == "ConditionalCheckFailed"]
    if failed:
        # A head comes last of what has a condition in every transaction here, so its reason is the one that decides.
        return ConditionFailed(from_item(reasons[failed[-1]].get("Item", {})), failed[-1])
    known = (meaning_of_code(SERVICE, str(reason.get("Code"))) for reason in reasons)
    return next((each for each in known if each is not None), None)


def to_item(plain: Item) -> Item:
    """Attribute values of a flat record; None attributes are left out."""
    return {name: _value(value) for name, value in plain.items() if value is not None}


def from_item(item: Item) -> Item:
    """The flat record of attribute values; whole numbers are ints, others (nothing here writes any) Decimals."""
    plain: Item = {}
    for name, typed in item.items():
        ((kind, value),) = typed.items()
        plain[name] = _number(value) if kind == "N" else value
    return plain


def item_bytes(plain: Item) -> int:
    """What the service counts for a flat record: names and values. A number has a byte for two digits and one more."""
    return sum(
        len(name.encode()) + len(_counted(value)) for name, value in plain.items() if value is not None
    )


def _counted(value: str | int | Decimal | bytes) -> bytes:
    if isinstance(value, int | Decimal):
        return bytes((len(str(abs(value))) + 1) // 2 + 1 + (value < 0))
    return value.encode() if isinstance(value, str) else value


def _number(text: str) -> int | Decimal:
    return int(text) if text.removeprefix("-").isdecimal() else Decimal(text)


def _value(value: str | int | Decimal | bytes) -> Item:
    if isinstance(value, int | Decimal):
        return {"N": str(value)}
    return {"S": value} if isinstance(value, str) else {"B": value}
