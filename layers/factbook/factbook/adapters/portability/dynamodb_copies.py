"""Records of an import as items: read first, and put on condition where their place is free, in transactions of 100.

A record's items are made as the writes of this version make them, so that it stands in every index it belongs to.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from factbook.adapters.dynamodb.client import (
    ConditionFailed,
    Item,
    from_item,
    item_bytes,
    store_errors,
    to_item,
)
from factbook.adapters.dynamodb.key_parts import key
from factbook.adapters.dynamodb.reads import batch_get
from factbook.adapters.facts.dynamodb_items import confirmed_item, head_item, revision_item
from factbook.adapters.log.dynamodb_log import entry_item, read_entry
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import Throttled
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.contention import Contended
from factbook.ports.facts.store import Head
from factbook.ports.flaws import NotStorable
from factbook.ports.log.checkpoints import PublishedNote
from factbook.ports.log.entries import StoredEntry
from factbook.ports.portability.stores import Copy, FormerNote, Outcome, Revision
from factbook.ports.walks import Stop, WalkPage

MOST_ITEMS, MOST_BYTES = 100, 3_900_000
"""Of a transaction, which takes 4 MB."""
ITEM_BYTES = 400 * 1024
ATTEMPTS = 6
PAUSE_SECONDS = 0.05
_FREE = "attribute_not_exists(pk)"

Place = tuple[str, str, str | int]
"""Table, partition key, sort key."""
Items = dict[Place, Item]


class DynamoCopies:
    """Copies; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, facts: str, log: str, access: str) -> None:
        self._client = client
        self._facts = facts
        self._log = log
        self._access = access

    def look(self, copies: Sequence[Copy]) -> list[Outcome]:
        wanted = [self._items(copy) for copy in copies]
        return self._compared(wanted)

    def put(self, copies: Sequence[Copy]) -> list[Outcome]:
        wanted = [self._items(copy) for copy in copies]
        if any(item_bytes(item) > ITEM_BYTES for items in wanted for item in items.values()):
            raise NotStorable
        found: dict[int, Outcome] = {}
        for attempt in range(ATTEMPTS):
            left = [number for number in range(len(wanted)) if number not in found]
            if not left:
                return [found[number] for number in range(len(wanted))]
            time.sleep(full_jitter(attempt, PAUSE_SECONDS))
            free: list[int] = []
            for number, outcome in zip(left, self._compared([wanted[each] for each in left]), strict=True):
                if outcome == "written":
                    free.append(number)
                else:
                    found[number] = outcome
            for together in _transactions(free, wanted):
                if self._landed([wanted[number] for number in together]):
                    found |= dict.fromkeys(together, "written")
        raise Throttled

    def _compared(self, wanted: Sequence[Items]) -> list[Outcome]:
        """What is to be said of each, `written` of those whose place is free; of two with one place of the first alone."""
        there = self._there(dict.fromkeys(place for items in wanted for place in items))
        outcomes: list[Outcome] = []
        for items in wanted:
            stored = {place: there[place] for place in items if place in there}
            if stored:
                outcomes.append("present" if stored == items else "other")
            else:
                outcomes.append("written")
                there |= items
        return outcomes

    def _there(self, places: Iterable[Place]) -> Items:
        keys: dict[str, list[tuple[str, str | int]]] = {}
        for table, pk, sk in places:
            keys.setdefault(table, []).append((pk, sk))
        return {
            (table, item["pk"], item["sk"]): item
            for table, wanted in keys.items()
            for item in batch_get(self._client, table, wanted)
        }

    def _landed(self, records: Sequence[Items]) -> bool:
        """Whether they were all put; not, when the place of one was taken meanwhile, or another transaction was in the way."""
        puts = [
            {"Put": {"TableName": table, "Item": to_item(item), "ConditionExpression": _FREE}}
            for items in records
            for (table, _, _), item in items.items()
        ]
        try:
            with store_errors():
                self._client.transact_write_items(TransactItems=puts)
        except (ConditionFailed, Contended):
            return False
        return True

    def _items(self, copy: Copy) -> Items:
        match copy:
            case Head():
                beside = [] if copy.confirmed is None else [confirmed_item(copy, copy.confirmed)]
                return _placed(self._facts, [head_item(copy), *beside])
            case Revision():
                return _placed(self._facts, [revision_item(copy.fact, copy.life, retyped=copy.retyped)])
            case StoredEntry():
                return _placed(self._log, [entry_item(copy)])
            case FormerNote():
                return _placed(self._access, [_note_item(copy)])


class DynamoOriginals:
    """Originals; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, log: str, access: str) -> None:
        self._client = client
        self._log = log
        self._access = access

    def entries_below(self, tenant: str, run_id: str, below: int | None, limit: int) -> list[StoredEntry]:
        span = {":pk": key(tenant, run_id)} | ({} if below is None else {":below": below})
        with store_errors():
            page = self._client.query(
                TableName=self._log,
                KeyConditionExpression="pk = :pk" + ("" if below is None else " AND sk < :below"),
                ExpressionAttributeValues=to_item(span),
                ScanIndexForward=False,
                ConsistentRead=True,
                Limit=limit,
            )
        return [read_entry(tenant, run_id, from_item(item)) for item in page["Items"]]

    def unlisted(self, tenant: str, run_ids: Sequence[str]) -> list[str]:
        runs = {key(tenant, run): run for run in run_ids}
        found = batch_get(self._client, self._log, [(pk, 0) for pk in runs], ProjectionExpression="pk, ra")
        return [runs[item["pk"]] for item in found if "ra" not in item]

    def former_notes(self, tenant: str, after: str | None, limit: int) -> WalkPage[FormerNote]:
        values = {":pk": _evidence(tenant), ":after": after or " "}
        with store_errors():
            page = self._client.query(
                TableName=self._access,
                KeyConditionExpression="pk = :pk AND sk > :after",
                ExpressionAttributeValues=to_item(values),
                ConsistentRead=True,
                Limit=limit,
            )
        items = list(map(from_item, page["Items"]))
        stops = [
            Stop(FormerNote(tenant, PublishedNote(item["size"], *parse_json(item["d"]))), item["sk"])
            for item in items
        ]
        return WalkPage(stops, items[-1]["sk"] if "LastEvaluatedKey" in page and items else None)


def _placed(table: str, items: Iterable[Item]) -> Items:
    """By place; absent attributes are left out, as the store has none."""
    whole = ({name: value for name, value in item.items() if value is not None} for item in items)
    return {(table, item["pk"], item["sk"]): item for item in whole}


def _transactions(free: Sequence[int], wanted: Sequence[Items]) -> Iterator[list[int]]:
    """Records in groups that one transaction takes; each record is whole in one."""
    group: list[int] = []
    items = weight = 0
    for number in free:
        own = sum(map(item_bytes, wanted[number].values()))
        if group and (items + len(wanted[number]) > MOST_ITEMS or weight + own > MOST_BYTES):
            yield group
            group, items, weight = [], 0, 0
        group.append(number)
        items += len(wanted[number])
        weight += own
    if group:
        yield group


def _evidence(tenant: str) -> str:
    return key("evidence", tenant)


def _note_item(former: FormerNote) -> Item:
    note = former.note
    signer = hashlib.sha256(note.vkey.encode()).hexdigest()[:16]
    return {
        "pk": _evidence(former.tenant),
        "sk": f"{note.size:012d}|{signer}",
        "size": note.size,
        "d": dump_json([note.note, note.vkey, note.created_at]),
    }
