"""Messages of the log as the search index needs them: the table's stream, walks of all of them, reads of several."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.adapters.dynamodb.reads import batch_get
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import parse_json
from factbook.ports.log.entries import StoredEntry
from factbook.ports.log.walks import EntryPage


@dataclass(frozen=True)
class EntryRecord:
    """One appended entry as the stream tells it; `problem`: why it cannot be read."""

    position: str
    key: str
    entry: StoredEntry | None
    problem: str | None = None


def entry_records(records: Sequence[dict[str, Any]]) -> Iterator[EntryRecord]:
    for record in records:
        if record["eventName"] != "INSERT":
            continue
        change = record["dynamodb"]
        keys = from_item(change["Keys"])
        position, name = change["SequenceNumber"], f"{keys['pk']}|{keys['sk']}"
        try:
            entry = _entry(from_item(change["NewImage"]))
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
        return [_entry(item) for item in batch_get(self._client, self._table, keys)]

    def walk(self, after: str | None, limit: int) -> EntryPage:
        resume = {"ExclusiveStartKey": to_item(json.loads(after))} if after else {}
        with store_errors():
            page = self._client.scan(TableName=self._table, Limit=limit, ConsistentRead=True, **resume)
        last = page.get("LastEvaluatedKey")
        found = [_readable(from_item(item)) for item in page["Items"]]
        entries = [entry for entry in found if entry is not None]
        return EntryPage(entries, json.dumps(from_item(last)) if last else None)


def _readable(item: Item) -> StoredEntry | None:
    """The entry, or None when its text was edited past saying whose it is: an audit's matter, not a walk's end."""
    try:
        return _entry(item)
    except (BadInput, KeyError, TypeError):
        return None


def _entry(item: Item) -> StoredEntry:
    """An entry by what its text says; thread and time come from it as well."""
    fields = parse_json(item["j"])
    scope = fields["scope"]
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
