"""What the SDK is asked to do: every call, its bytes, and the capacity it costs by DynamoDB's published rules.

No emulator's capacity figures are real, so units are computed from the sizes of the items themselves.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.tables import index_fields, index_keys

Item = dict[str, Any]
KILOBYTE = 1024


@dataclass
class Call:
    operation: str
    params: Item
    answer: Item = field(default_factory=dict)
    sent_bytes: int = 0


@dataclass
class Calls:
    """The calls of one client in order; retries of the SDK are counted in `attempts`."""

    made: list[Call] = field(default_factory=list)
    attempts: int = 0

    @property
    def operations(self) -> list[str]:
        return [call.operation for call in self.made]

    def of(self, operation: str) -> list[Call]:
        return [call for call in self.made if call.operation == operation]

    @property
    def rows_read(self) -> int:
        """Index rows that queries went over."""
        return sum(call.answer["ScannedCount"] for call in self.of("Query"))

    @property
    def items_fetched(self) -> int:
        batches = [call.answer["Responses"] for call in self.of("BatchGetItem")]
        return sum(len(items) for tables in batches for items in tables.values())

    @property
    def write_units(self) -> int:
        """Of new items; a transaction counts twice."""
        units = 0
        for call in self.made:
            if call.operation == "PutItem":
                units += put_units(call.params["TableName"], call.params["Item"])
            elif call.operation == "TransactWriteItems":
                puts = [each["Put"] for each in call.params["TransactItems"]]
                units += 2 * sum(put_units(put["TableName"], put["Item"]) for put in puts)
        return units


def item_size(item: Item) -> int:
    """Bytes of an item as DynamoDB counts them: names and values in UTF-8, numbers by digits."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def index_entries(table: str, item: Item) -> dict[str, Item]:
    """Index name → what it holds of an item."""
    table_key = {"pk", "sk"}
    entries = {}
    for name, keys in index_keys(table).items():
        if keys <= item.keys():
            fields = index_fields(table)[name]
            entries[name] = {
                key: value for key, value in item.items() if fields is None or key in fields | table_key
            }
    return entries


def put_units(table: str, item: Item) -> int:
    """Write units of an item that was not there: itself and one entry in each index it belongs to."""
    sizes = [item_size(item), *(item_size(entry) for entry in index_entries(table, item).values())]
    return sum(math.ceil(size / KILOBYTE) for size in sizes)


def _value_size(value: Item) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return math.ceil(len(content.strip("-0.")) / 2) + 1 + content.startswith("-")
    if kind == "L":
        return 3 + sum(1 + _value_size(each) for each in content)
    assert kind == "B", kind
    return len(content)


@contextmanager
def recorded(client: Any) -> Iterator[Calls]:
    """Every call of a client while the block runs."""
    calls = Calls()
    service = client.meta.service_model.service_name

    def asked(params: Item, model: Any, context: Any, **_: Any) -> None:
        context["recorded"] = call = Call(model.name, params)
        calls.made.append(call)

    def sending(params: Item, context: Any, **_: Any) -> None:
        context["recorded"].sent_bytes = len(params["body"])

    def tried(**_: Any) -> None:
        calls.attempts += 1

    def answered(parsed: Item, context: Any, **_: Any) -> None:
        context["recorded"].answer = parsed

    handlers = {
        f"provide-client-params.{service}": asked,
        f"before-call.{service}": sending,
        f"before-send.{service}": tried,
        f"after-call.{service}": answered,
    }
    for event, handler in handlers.items():
        client.meta.events.register(event, handler)
    try:
        yield calls
    finally:
        for event, handler in handlers.items():
            client.meta.events.unregister(event, handler)
