"""Messages of the log as the search index needs them: the table's stream, walks of all of them, reads of several."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, part
from factbook.adapters.dynamodb.reads import batch_get
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import parse_json
from factbook.ports.log.entries import StoredEntry
from factbook.ports.log.walks import EntryRecord
from factbook.ports.walks import Stop, WalkPage


def entry_records(records: Sequence[dict[str, Any]]) -> Iterator[EntryRecord]:
    for record in records:
        if record["eventName"] != "INSERT":
            continue
        change = record["dynamodb"]
        keys = from_item(change["Keys"])
        position, name = change["SequenceNumber"], f"{keys['pk']}|{keys['sk']}"
        try:
            entry = _own_entry(from_item(change["NewImage"]) | keys)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one item, the rest of the batch goes on
            yield EntryRecord(position, name, None, f"unreadable ({type(error).__name__})")
        else:
            yield EntryRecord(position, name, entry)


class DynamoMessages:
    """EntrySource over the log table; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def several(self, tenant: str, places: Sequence[tuple[str, int]]) -> list[StoredEntry]:
        keys = [(key(tenant, run), sequence) for run, sequence in places]
        found = map(_readable, batch_get(self._client, self._table, keys))
        return [entry for entry in found if entry is not None]

    def walk(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[StoredEntry]:
        resume = {"ExclusiveStartKey": to_item(_behind(after))} if after else {}
        with store_errors():
            page = self._client.scan(TableName=self._table, Limit=limit, ConsistentRead=True, **resume)
        items = list(map(from_item, page["Items"]))
        own = "" if tenant is None else part(tenant) + "|"
        stops = [
            Stop(entry, _cursor(item))
            for item in items
            if item["pk"].startswith(own) and (entry := _readable(item)) is not None
        ]
        last = page.get("LastEvaluatedKey")
        return WalkPage(stops, _cursor(from_item(last)) if last else None)


def _cursor(item: Item) -> str:
    return json.dumps({"pk": item["pk"], "sk": item["sk"]}, default=str)


def _behind(cursor: str) -> Item:
    """The key in a cursor. An item put past the service may stand at a place that is no whole number."""
    where = json.loads(cursor)
    return {"pk": where["pk"], "sk": Decimal(where["sk"])}


def _readable(item: Item) -> StoredEntry | None:
    """The entry, or None for an item that is not as an append writes one: an audit's matter, not a walk's end."""
    try:
        return _own_entry(item)
    except Exception:  # noqa: BLE001 - whatever is wrong with one item, the others are read
        return None


def _own_entry(item: Item) -> StoredEntry:
    """An entry that stands where its text says. Raises BadInput for one that says another run, or another tenant."""
    entry = _entry(item)
    if key(entry.tenant, entry.run_id) != item["pk"]:
        raise BadInput("The text names another run than its key.")
    return entry


def _entry(item: Item) -> StoredEntry:
    """An entry by what its text says; thread and time come from it as well. Raises whatever a strange item makes it raise."""
    fields = parse_json(item["j"])
    scope = fields["scope"]
    texts = (scope["tenantId"], fields["runId"], item["h"], item["f"], fields["timestamp"])
    if not (all(isinstance(text, str) for text in texts) and isinstance(item["sk"], int)):
        raise TypeError
    if not all(isinstance(text, str | None) for text in (item.get("cause"), scope.get("threadId"))):
        raise TypeError
    return StoredEntry(
        scope["tenantId"],
        fields["runId"],
        item["sk"],
        item["j"],
        item["h"],
        item["f"],
        item.get("cause"),
        scope.get("threadId"),
        fields["timestamp"],
    )
