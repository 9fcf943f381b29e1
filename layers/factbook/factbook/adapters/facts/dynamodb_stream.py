"""Records of the tables' streams as what happened to a fact."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from factbook.adapters.dynamodb.client import from_item
from factbook.adapters.facts.dynamodb_items import HEAD, read_head
from factbook.ports.facts.store import Head


@dataclass(frozen=True)
class FactRecord:
    """One change of a fact's head. Gone: `head` is the last one and the table's time to live (or an erasure) took it."""

    sequence: str
    head: Head | None
    gone: bool
    key: str
    """The item's key, which names the record where its content must not be shown."""
    problem: str | None = None
    """Why the record cannot be read; its head is None then."""

    @property
    def name(self) -> tuple[str, str] | None:
        return None if self.head is None else (self.head.fact.scope.tenant_id, self.head.fact.id)


def fact_records(records: list[dict[str, Any]]) -> Iterator[FactRecord]:
    """The changes of heads among stream records; closed revisions are no news."""
    for record in records:
        change = record["dynamodb"]
        keys = from_item(change["Keys"])
        if keys.get("sk") != HEAD:
            continue
        gone = record["eventName"] == "REMOVE"
        sequence, key = change["SequenceNumber"], str(keys["pk"])
        try:
            head = read_head(from_item(change["OldImage" if gone else "NewImage"]))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one item, the rest of the batch goes on
            yield FactRecord(sequence, None, gone, key, f"unreadable ({type(error).__name__})")
        else:
            yield FactRecord(sequence, head, gone, key)
