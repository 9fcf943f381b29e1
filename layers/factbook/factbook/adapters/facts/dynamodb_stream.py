"""Records of the tables' streams as what happened to a fact."""

from collections.abc import Iterator, Sequence
from typing import Any

from factbook.adapters.dynamodb.client import from_item
from factbook.adapters.facts.dynamodb_items import CONFIRMED, HEAD, read_head
from factbook.ports.facts.store import Head
from factbook.ports.facts.walks import FactRecord


def fact_records(records: Sequence[dict[str, Any]]) -> Iterator[FactRecord]:
    """The changes of heads, and of confirmed texts beside them; closed revisions are no news."""
    for record in records:
        change = record["dynamodb"]
        keys = from_item(change["Keys"])
        if keys.get("sk") not in (HEAD, CONFIRMED):
            continue
        gone = record["eventName"] == "REMOVE"
        position, key = change["SequenceNumber"], str(keys["pk"])
        try:
            head = read_head(from_item(change["OldImage" if gone else "NewImage"]))
            former = None if gone or head.beside else _former(change, head)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one item, the rest of the batch goes on
            yield FactRecord(position, key, None, gone, f"unreadable ({type(error).__name__})")
        else:
            named = None if gone else _newly_named(head, change)
            same = not gone and _same_to_search(change)
            yield FactRecord(position, key, head, gone, named=named, former=former, same_to_search=same)


def _same_to_search(change: dict[str, Any]) -> bool:
    """Whether the index has the new image already: it is in it as the edition that it has had the old one in."""
    old, new = change.get("OldImage"), change.get("NewImage", {})
    return (
        old is not None
        and "ie" in new
        and new["ie"] == old.get("ie", old.get("e"))
        and old.get("lf") == new.get("lf")
    )


def _newly_named(head: Head, change: dict[str, Any]) -> str | None:
    ref = head.fact.content_ref
    if ref is None or "OldImage" not in change:
        return ref
    try:
        before = read_head(from_item(change["OldImage"])).fact.content_ref
    except Exception:  # noqa: BLE001 - naming it once too often is no harm
        return ref
    return None if before == ref else ref


def _former(change: dict[str, Any], head: Head) -> Head | None:
    """The old image's head, when it is of another life. Few records are, so most old images are not read whole."""
    old, new = change.get("OldImage"), change.get("NewImage", {})
    if old is None or old.get("lf") == new.get("lf"):
        return None
    former = read_head(from_item(old))
    return former if former.fact.created_at != head.fact.created_at else None
