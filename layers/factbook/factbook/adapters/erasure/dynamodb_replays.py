"""Ledgers that are replayed, in the access table; each goes after a week.

| Item | `pk` | `sk` |
|---|---|---|
| ledger | `replay|tenant` | its id |
| part of its entries | `replay|tenant` | id, part |
| one that waits | `replays-waiting|shard` | tenant, when it was asked for, id |
"""

import json
from dataclasses import astuple
from typing import Any

from factbook.adapters.dynamodb.client import Item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, part, shard_of
from factbook.adapters.dynamodb.reads import query_items
from factbook.domain import times
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.erasure.replays import LedgerEntry, Replay

SHARDS = 8
KEPT_DAYS = 7.0
LOOKED_AT = 100
PART_BYTES = 300_000
"""Of one item, which has room for 400 KB."""


class DynamoReplays:
    """ReplayStore; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def keep(self, replay: Replay) -> None:
        """The parts first: a ledger that can be read, and waits, is whole."""
        parts = _parts(replay)
        for number, text in enumerate(parts):
            with store_errors():
                self._client.put_item(**self._put({**_key(replay, f"{number:04d}"), "v": text}, replay))
        ledger = _ledger(replay, len(parts))
        puts = [self._put(ledger, replay), self._put(_waiting(replay), replay)]
        with store_errors():
            self._client.transact_write_items(TransactItems=[{"Put": put} for put in puts])

    def replay(self, tenant: str, replay_id: str) -> Replay | None:
        values = {":pk": key("replay", tenant), ":sk": key(replay_id)}
        found = query_items(self._client, self._table, "pk = :pk AND begins_with(sk, :sk)", values)
        items = {item["sk"]: item for item in found}
        ledger = items.get(key(replay_id))
        if ledger is None:
            return None
        parts = (items[key(replay_id, f"{number:04d}")] for number in range(ledger["n"]))
        entries = tuple(LedgerEntry(*fields) for item in parts for fields in parse_json(item["v"]))
        ended, unreadable = "ended" in ledger, ledger.get("ur", 0)
        return Replay(tenant, replay_id, ledger["at"], entries, ended, ledger.get("by"), unreadable)

    def waiting(self, tenant: str) -> list[str]:
        values = {":pk": _shard(tenant), ":sk": key(tenant, "")}
        found = query_items(self._client, self._table, "pk = :pk AND begins_with(sk, :sk)", values)
        return [item["id"] for item in found]

    def end(self, replay: Replay) -> None:
        ledger = {**_ledger(replay, len(_parts(replay))), "ended": 1, "ur": replay.unreadable}
        waiting = _waiting(replay)
        with store_errors():
            self._client.put_item(**self._put(ledger, replay))
            where = to_item({name: waiting[name] for name in ("pk", "sk")})
            self._client.delete_item(TableName=self._table, Key=where)

    def tenants(self, after: str | None, limit: int) -> tuple[list[str], str | None]:
        """The cursor is [shard, tenant]: its own come one after another, so the next ones stand behind all of them."""
        first, last = json.loads(after) if after else (0, None)
        met: list[str] = []
        for shard in range(first, SHARDS):
            start = _behind(last) if shard == first and last is not None else " "
            values = {":pk": key("replays-waiting", str(shard)), ":start": start}
            for item in query_items(
                self._client, self._table, "pk = :pk AND sk > :start", values, Limit=LOOKED_AT
            ):
                if item["t"] in met[-1:]:
                    continue
                if len(met) == limit:
                    return met, json.dumps([shard_of(met[-1], SHARDS), met[-1]])
                met.append(item["t"])
        return met, None

    def _put(self, item: Item, replay: Replay) -> dict[str, Any]:
        until = times.epoch_ms(times.add(replay.asked_at, days=KEPT_DAYS)) // 1000
        return {"TableName": self._table, "Item": to_item({**item, "ttl": until})}


def _key(replay: Replay, *more: str) -> Item:
    return {"pk": key("replay", replay.tenant), "sk": key(replay.id, *more)}


def _ledger(replay: Replay, parts: int) -> Item:
    item: Item = {**_key(replay), "at": replay.asked_at, "n": parts}
    return item if replay.asked_by is None else item | {"by": replay.asked_by}


def _waiting(replay: Replay) -> Item:
    sort = key(replay.tenant, replay.asked_at, replay.id)
    return {"pk": _shard(replay.tenant), "sk": sort, "t": replay.tenant, "id": replay.id}


def _behind(tenant: str) -> str:
    """Behind all sort keys of a tenant's, which go on with when it was asked for."""
    return f"{part(tenant)}|~"


def _shard(tenant: str) -> str:
    return key("replays-waiting", str(shard_of(tenant, SHARDS)))


def _parts(replay: Replay) -> list[str]:
    """The entries as JSON lists, some hundred together."""
    parts: list[list[str]] = []
    size = PART_BYTES
    for entry in replay.entries:
        text = dump_json(astuple(entry))
        size += len(text.encode()) + 1
        if size > PART_BYTES:
            parts.append([])
            size = len(text.encode())
        parts[-1].append(text)
    return [f"[{','.join(texts)}]" for texts in parts]
