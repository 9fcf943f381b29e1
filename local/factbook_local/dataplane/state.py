"""What of ministack is kept, and how a change of it is noticed.

ministack saves its whole state when it ends, which a SIGKILL forestalls. Here its own stores are watched instead:
item writes through its two item functions, everything else by the requests that pass. `cut` runs between two
requests on the event loop (ministack serves DynamoDB, S3 and KMS requests without yielding), so it sees no half of
a transaction. This module and `emulator.py` know ministack's insides; its version is pinned exactly for that reason.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from ministack.core import persistence
from ministack.core.arn import parse_arn
from ministack.services import dynamodb, kms, s3, sqs

from factbook_local.dataplane.store import Cut, ItemKey, ObjectKey, Store

LARGEST_KEPT = 900_000_000
"""Bytes of one object with all its versions; SQLite holds no larger value."""
_DROPPED = {"items", dynamodb._INDEX_MEMBERS}


def _dump(value: Any) -> str:
    return json.dumps(value, default=persistence._json_default)


def _load(text: str) -> Any:
    return json.loads(text, object_hook=persistence._json_object_hook)


class Journal:
    """The changes since the last cut. Everything here runs on the event loop of the data plane."""

    def __init__(self) -> None:
        self.items: set[ItemKey] = set()
        self.objects: set[ObjectKey] = set()
        self.buckets: set[tuple[str, str]] = set()
        self.documents: set[str] = {"dynamodb", "kms", "sqs", "s3"}
        self.records: list[dict[str, Any]] = []
        self.positions: dict[str, str] = {}
        self.trimmed: dict[str, str] = {}
        self.dropped: set[str] = set()
        self._tables = _tables()
        self._saved: dict[str, str] = {}
        self._versions = {key: _versions(key) for key in _all_object_keys()}
        """Of every object that is saved: a request to a bucket may change any of them, and does not say which."""

    def cut(self) -> Cut:
        """Take what changed, and start anew."""
        cut = Cut(records=[(_sequence(r), r["eventSourceARN"], _dump(r)) for r in self.records])
        cut.positions, cut.trimmed = self.positions, self.trimmed
        for name in self.documents:
            if (body := _DOCUMENTS[name]()) != self._saved.get(name):
                cut.documents[name] = self._saved[name] = body
        there = _tables()
        cut.dropped = self.dropped | {arn for arn, made in self._tables.items() if there.get(arn) != made}
        cut.records = [each for each in cut.records if each[1].partition("/stream/")[0] in there]
        self._tables = there
        tables = {table["TableArn"]: table for table in dynamodb._tables.all_values()}
        for key in self.items:
            item = tables.get(key[0], {}).get("items", {}).get(key[1], {}).get(key[2])
            cut.items[key] = None if item is None else _dump(item)
        for account, bucket in self.buckets:
            known = {key for key in self._versions if key[:2] == (account, bucket)}
            keys = known | _object_keys(account, bucket)
            self.objects.update(key for key in keys if self._versions.get(key) != _versions(key))
        for object_key in self.objects:
            stored = _stored_object(object_key)
            self._versions[object_key] = _versions(object_key)
            if stored is None:
                del self._versions[object_key]
            if stored is None or len(stored[1]) <= LARGEST_KEPT:
                cut.objects[object_key] = stored
            else:
                print(f"factbook: {object_key[1]}/{object_key[2]} is too large to be kept", file=sys.stderr)
        self.clear()
        return cut

    def clear(self) -> None:
        self.items, self.objects, self.buckets, self.documents = set(), set(), set(), set()
        self.records, self.positions, self.trimmed, self.dropped = [], {}, {}, set()

    def put_back(self, cut: Cut) -> None:
        """A cut that could not be saved is part of the next one."""
        self.dropped.update(cut.dropped)
        self.items.update(cut.items)
        self.objects.update(cut.objects)
        for key in cut.objects:
            self._versions.pop(key, None)
        self.documents.update(cut.documents)
        for name in cut.documents:
            self._saved.pop(name, None)
        self.records = [json.loads(body) for _, _, body in cut.records] + self.records
        self.positions = {**cut.positions, **self.positions}
        self.trimmed = {**cut.trimmed, **self.trimmed}


def _tables() -> dict[str, str]:
    """ARN → id: of two tables that had one name after another the ids differ."""
    return {table["TableArn"]: table.get("TableId", "") for table in dynamodb._tables.all_values()}


def _sequence(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def _dynamodb_document() -> str:
    tables = dynamodb.AccountRegionScopedDict()
    for (account, region, name), table in dynamodb._tables.all_items():
        tables.set_scoped(account, region, name, {k: v for k, v in table.items() if k not in _DROPPED})
    return _dump(
        {
            "tables": tables,
            "tags": dynamodb._tags,
            "ttl_settings": dynamodb._ttl_settings,
            "pitr_settings": dynamodb._pitr_settings,
        }
    )


_DOCUMENTS: dict[str, Callable[[], str]] = {
    "dynamodb": _dynamodb_document,
    "kms": lambda: _dump(kms.get_state()),
    "sqs": lambda: _dump(sqs.get_state()),
    "s3": lambda: _dump(s3.get_state()),
}


def _object_keys(account: str, bucket: str) -> set[ObjectKey]:
    record = s3._buckets._data.get((account, bucket), {"objects": {}})
    keys = set(record["objects"])
    keys.update(key for owner, (name, key) in s3._object_versions._data if (owner, name) == (account, bucket))
    return {(account, bucket, key) for key in keys}


def _all_object_keys() -> set[ObjectKey]:
    return {each for account, bucket in s3._buckets._data for each in _object_keys(account, bucket)}


def _versions(object_key: ObjectKey) -> tuple[str | None, ...]:
    """The current version of an object and the others, by their ids; empty when there is none."""
    account, bucket, key = object_key
    current = s3._buckets._data.get((account, bucket), {"objects": {}})["objects"].get(key)
    others = s3._object_versions._data.get((account, (bucket, key))) or []
    own = () if current is None else ("current", current.get("version_id"))
    return (*own, *(version["version_id"] for version in others))


def _side_stores() -> dict[str, Any]:
    return {
        "tags": s3._object_tags,
        "acl": s3._object_acl,
        "annotations": s3._object_annotations,
        "retention": s3._object_retention,
        "hold": s3._object_legal_hold,
    }


def _stored_object(object_key: ObjectKey) -> tuple[str, bytes] | None:
    """An object with all its versions, its bytes kept once each: `{"$bytes": [start, end]}` stands where they were."""
    account, bucket, key = object_key
    current = s3._buckets._data.get((account, bucket), {"objects": {}})["objects"].get(key)
    versions = s3._object_versions._data.get((account, (bucket, key)))
    if current is None and not versions:
        return None
    ids = [
        None,
        current and current.get("version_id"),
        *(version["version_id"] for version in versions or []),
    ]
    sides = {
        name: [
            [version, store._data[account, (bucket, key, version)]]
            for version in dict.fromkeys(ids)
            if (account, (bucket, key, version)) in store._data
        ]
        for name, store in _side_stores().items()
    }
    data, seen = bytearray(), {}

    def spans(value: Any) -> Any:
        if isinstance(value, bytes | bytearray):
            if id(value) not in seen:
                seen[id(value)] = [len(data), len(data) + len(value)]
                data.extend(value)
            return {"$bytes": seen[id(value)]}
        return persistence._json_default(value)

    return json.dumps({"current": current, "versions": versions, **sides}, default=spans), bytes(data)


def restore(store: Store) -> dict[str, str]:
    """Fill ministack's stores from the file. Answers the consumers' stream positions."""
    documents = store.documents()
    for name, service in (("dynamodb", dynamodb), ("kms", kms), ("sqs", sqs), ("s3", s3)):
        if name in documents:
            service.load_persisted_state(_load(documents[name]))
    tables = {table["TableArn"]: table for table in dynamodb._tables.all_values()}
    for table in tables.values():
        table["items"] = dynamodb.defaultdict(dict)
    store.apply(Cut(dropped=store.tables() - set(tables)))  # a former version kept items of deleted tables
    for (arn, pk, sk), item in store.items():
        tables[arn]["items"][pk][sk] = item
    for table in tables.values():
        dynamodb._items_replaced(table)
    for object_key, body, data in store.objects():
        _restore_object(object_key, body, data)
    for _, arn, record in store.records():
        spec = parse_arn(arn)
        place = (spec.account_id, spec.region, spec.resource.split("/")[1])
        if not dynamodb._stream_records.contains_scoped(*place):
            dynamodb._stream_records.set_scoped(*place, [])
        dynamodb._stream_records.get_scoped(*place).append(record)
    return store.positions()


def _restore_object(object_key: ObjectKey, body: str, data: bytes) -> None:
    account, bucket, key = object_key
    spans: dict[tuple[int, int], bytes] = {}

    def whole(value: dict[str, Any]) -> Any:
        if set(value) == {"$bytes"}:
            start, end = value["$bytes"]
            return spans.setdefault((start, end), data[start:end])
        return persistence._json_object_hook(value)

    stored = json.loads(body, object_hook=whole)
    if stored["current"] is not None:
        s3._buckets._data.setdefault((account, bucket), {"objects": {}}).setdefault("objects", {})[key] = (
            stored["current"]
        )
    if stored["versions"]:
        s3._object_versions._data[account, (bucket, key)] = stored["versions"]
    for name, side in _side_stores().items():
        for version, value in stored[name]:
            side._data[account, (bucket, key, version)] = value
