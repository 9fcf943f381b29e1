"""The keys table: generations of the data keys that seal payloads, and the tombstones of destroyed ones.

A tenant's keys lie in a few partitions by what they are of, so one key is one query and an erasure can walk them all.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, part, shard_of
from factbook.adapters.dynamodb.reads import query_items
from factbook.domain.log.sealing import KeyName
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.log.sealing import SealedKey

SHARDS = 8
LOWEST = "\x00"
"""Every sort key is above it: an id may begin with any character, and something follows it."""


class DynamoKeys:
    """KeyStore over one table; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def newest(self, tenant: str, name: KeyName) -> SealedKey | None:
        partition, prefix = _partition(tenant, name), _sort(name, "")
        items = self._query(
            "pk = :pk AND begins_with(sk, :sk)",
            {":pk": partition, ":sk": prefix},
            ScanIndexForward=False,
            Limit=1,
        )
        item = next(items, None)
        return _key(tenant, item) if item else None

    def generation(self, tenant: str, name: KeyName, generation: int) -> SealedKey | None:
        with store_errors():
            answer = self._client.get_item(
                TableName=self._table, Key=to_item(_where(tenant, name, generation)), ConsistentRead=True
            )
        return _key(tenant, from_item(answer["Item"])) if "Item" in answer else None

    def create(self, key: SealedKey) -> SealedKey | None:
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item(_item(key)),
                    ConditionExpression="attribute_not_exists(pk)",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as lost:
            found = _key(key.tenant, lost.item)
            return None if found == key else found  # ours: the reply of the first try was lost
        return None

    def supply(self, key: SealedKey) -> SealedKey | None:
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item(_item(key)),
                    ConditionExpression="attribute_exists(pk) AND attribute_not_exists(w) AND attribute_not_exists(destroyedAt)",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as lost:
            if not lost.item:
                return self.create(key)
            found = _key(key.tenant, lost.item)
            return None if found == key else found
        return None

    def walk(self, tenant: str, after: SealedKey | None = None) -> Iterator[SealedKey]:
        begun = {} if after is None else _where(tenant, after.name, after.generation)
        for shard in range(SHARDS):
            partition = _shard(tenant, shard)
            if partition < begun.get("pk", ""):
                continue
            last = begun["sk"] if partition == begun.get("pk") else LOWEST
            for item in self._query("pk = :pk AND sk > :last", {":pk": partition, ":last": last}):
                yield _key(tenant, item)

    def destroy(self, key: SealedKey, at: str) -> None:
        tombstone = _item(replace(key, wrapped=None, destroyed_at=at))
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item(tombstone),
                    ConditionExpression="attribute_exists(pk) AND attribute_not_exists(destroyedAt)",
                )
        except ConditionFailed:
            return  # destroyed before, or never there

    def _query(self, condition: str, values: Item, **options: Any) -> Iterator[Item]:
        return query_items(self._client, self._table, condition, values, **options)


def _shard(tenant: str, shard: int) -> str:
    return f"{part(tenant)}|{shard}"


def _partition(tenant: str, name: KeyName) -> str:
    return _shard(tenant, shard_of(_sort(name, ""), SHARDS))


def _sort(name: KeyName, generation: str) -> str:
    return key(name.project, name.user, name.participant, name.thread, generation)


def _where(tenant: str, name: KeyName, generation: int) -> Item:
    return {"pk": _partition(tenant, name), "sk": _sort(name, f"{generation:010d}")}


def _item(key: SealedKey) -> Item:
    names = [key.name.project, key.name.user, key.name.participant, key.name.thread]
    return {
        **_where(key.tenant, key.name, key.generation),
        "n": dump_json(names),
        "g": key.generation,
        "w": key.wrapped,
        "b": key.begun_at,
        "destroyedAt": key.destroyed_at,
    }


def _key(tenant: str, item: Item) -> SealedKey:
    wrapped = item.get("w")
    return SealedKey(
        tenant,
        KeyName(*parse_json(item["n"])),
        item["g"],
        None if wrapped is None else bytes(wrapped),
        item.get("destroyedAt"),
        item.get("b"),
    )
