"""The tree of a tenant's run heads, the marks of runs that wait for a leaf, and the notes published (access table).

| Item | `pk` | `sk` |
|---|---|---|
| edge | `tree|tenant` | `edge` |
| leaf, in pages of 256 | `leaf|tenant|page` | index, 12 digits |
| complete node at level 8·height, in pages of 256 | `node|tenant|height|page` | index, 12 digits |
| leaf by its run | `head|tenant|run` | sequence, 16 digits |
| run that waits | `dirty|shard` | tenant, run |
| published note | `note|tenant` | size, 12 digits |
"""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, part, shard_of
from factbook.adapters.dynamodb.reads import query_items
from factbook.domain.log.merkle import Edge
from factbook.domain.log.runs import Leaf
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.contention import Contended
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.checkpoints import DirtyRun, Growth, PublishedNote

PAGE = 256
DIRTY_SHARDS = 8
MARKS_READ = 100
"""In one look for tenants with marks; those of one tenant are read ten times as many at once."""

_HASH = 32


class DynamoTree:
    """TreeStore over the access table; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def edge(self, tenant: str) -> Edge:
        with store_errors():
            answer = self._client.get_item(
                TableName=self._table, Key=to_item(_edge_key(tenant)), ConsistentRead=True
            )
        if "Item" not in answer:
            return Edge()
        item = from_item(answer["Item"])
        peaks = bytes(item["peaks"])
        return Edge(item["size"], tuple(peaks[at : at + _HASH] for at in range(0, len(peaks), _HASH)))

    def grow(self, tenant: str, growth: Growth) -> bool:
        edge: Item = {**_edge_key(tenant), "size": growth.after.size, "peaks": b"".join(growth.after.peaks)}
        puts: list[dict[str, Any]] = []
        for leaf, hashed in growth.leaves:
            item = _leaf_item(tenant, leaf, hashed)
            puts += [self._put(item), self._put(_head_item(tenant, item, leaf))]
        puts += [self._put(_node_item(tenant, *node)) for node in growth.nodes if node[0] % 8 == 0]
        if growth.before.size:
            condition = {
                "ConditionExpression": "#size = :size AND peaks = :peaks",
                "ExpressionAttributeNames": {"#size": "size"},
                "ExpressionAttributeValues": to_item(
                    {":size": growth.before.size, ":peaks": b"".join(growth.before.peaks)}
                ),
            }
        else:
            condition = {"ConditionExpression": "attribute_not_exists(pk)"}
        puts.append(self._put(edge, ReturnValuesOnConditionCheckFailure="ALL_OLD", **condition))
        try:
            with store_errors():
                self._client.transact_write_items(TransactItems=puts)
        except ConditionFailed as lost:
            # Our own first try, its reply lost: these very peaks stand at this size.
            return lost.item.get("size") == growth.after.size and bytes(lost.item["peaks"]) == edge["peaks"]
        except Contended:
            return False
        return True

    def hashes(self, tenant: str, height: int, page: int) -> list[bytes]:
        partition = (
            key("leaf", tenant, str(page)) if height == 0 else key("node", tenant, str(height), str(page))
        )
        return [bytes(item["lh"]) for item in self._query(partition)]

    def leaves(self, tenant: str, start: int, limit: int) -> list[Leaf]:
        found: list[Leaf] = []
        page = start // PAGE
        while len(found) < limit:
            items = list(self._query(key("leaf", tenant, str(page)), at_least=_index(start)))
            found += map(_leaf, items)
            if not items or items[-1]["index"] % PAGE < PAGE - 1:
                break
            page += 1
        return found[:limit]

    def run_leaves(self, tenant: str, run_id: str, since: int, limit: int) -> list[Leaf]:
        partition = key("head", tenant, run_id)
        found = []
        for item in self._query(partition, at_least=f"{since:016d}", Limit=limit):
            found.append(_leaf(item))
            if len(found) == limit:
                break
        return found

    def last_leaf(self, tenant: str, run_id: str) -> Leaf | None:
        item = next(self._query(key("head", tenant, run_id), ScanIndexForward=False, Limit=1), None)
        return _leaf(item) if item else None

    def mark_dirty(self, run: DirtyRun) -> None:
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item(
                        {**_dirty_key(run), "run": run.run_id, "tenant": run.tenant, "n": run.sequence}
                    ),
                    ConditionExpression="attribute_not_exists(pk) OR n < :n",
                    ExpressionAttributeValues=to_item({":n": run.sequence}),
                )
        except ConditionFailed:
            return  # marked further already

    def dirty_tenants(self, deadline: Deadline = NEVER) -> Iterator[str]:
        seen: set[str] = set()
        first = random.randrange(DIRTY_SHARDS)  # noqa: S311 - spreads the passes, guards nothing
        for shard in (*range(first, DIRTY_SHARDS), *range(first)):
            after: str | None = None
            while not deadline.passed and (
                page := list(
                    islice(
                        self._query(key("dirty", str(shard)), at_least=after, Limit=MARKS_READ), MARKS_READ
                    )
                )
            ):
                yield from dict.fromkeys(item["tenant"] for item in page if item["tenant"] not in seen)
                seen |= {item["tenant"] for item in page}
                if len(page) < MARKS_READ:
                    break
                after = part(page[-1]["tenant"]) + "}"  # behind all of this tenant's: `}` follows `|`

    def dirty_of(self, tenant: str, deadline: Deadline = NEVER) -> Iterator[DirtyRun]:
        for shard in range(DIRTY_SHARDS):
            if deadline.passed:
                return
            for item in self._query(
                key("dirty", str(shard)), begins_with=f"{part(tenant)}|", Limit=10 * MARKS_READ
            ):
                yield DirtyRun(item["tenant"], item["run"], item["n"])

    def clear(self, run: DirtyRun) -> None:
        try:
            with store_errors():
                self._client.delete_item(
                    TableName=self._table,
                    Key=to_item(_dirty_key(run)),
                    ConditionExpression="n <= :n",
                    ExpressionAttributeValues=to_item({":n": run.sequence}),
                )
        except ConditionFailed:
            return  # it has grown since, or is gone

    def keep_note(self, tenant: str, note: PublishedNote) -> None:
        item = {
            "pk": key("note", tenant),
            "sk": _index(note.size),
            "size": note.size,
            "d": dump_json([note.note, note.vkey, note.created_at]),
        }
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table, Item=to_item(item), ConditionExpression="attribute_not_exists(pk)"
                )
        except ConditionFailed:
            return

    def notes(self, tenant: str, below: int, limit: int) -> list[PublishedNote]:
        found = []
        for item in self._query(
            key("note", tenant), below=_index(below), ScanIndexForward=False, Limit=limit
        ):
            found.append(PublishedNote(item["size"], *parse_json(item["d"])))
            if len(found) == limit:
                break
        return found

    def _put(self, item: Item, **condition: Any) -> dict[str, Any]:
        return {"Put": {"TableName": self._table, "Item": to_item(item), **condition}}

    def _query(
        self,
        partition: str,
        at_least: str | None = None,
        below: str | None = None,
        begins_with: str | None = None,
        **options: Any,
    ) -> Iterator[Item]:
        condition, values = "pk = :pk", {":pk": partition}
        for text, value in (
            (" AND sk >= :sk", at_least),
            (" AND sk < :sk", below),
            (" AND begins_with(sk, :sk)", begins_with),
        ):
            if value is not None:
                condition, values[":sk"] = condition + text, value
        return query_items(self._client, self._table, condition, values, **options)


def _edge_key(tenant: str) -> Item:
    return {"pk": key("tree", tenant), "sk": "edge"}


def _dirty_key(run: DirtyRun) -> Item:
    mark = key(run.tenant, run.run_id)
    return {"pk": key("dirty", str(shard_of(mark, DIRTY_SHARDS))), "sk": mark}


def _index(index: int) -> str:
    return f"{index:012d}"


def _leaf_item(tenant: str, leaf: Leaf, hashed: bytes) -> Item:
    return {
        "pk": key("leaf", tenant, str(leaf.index // PAGE)),
        "sk": _index(leaf.index),
        "lh": hashed,
        "index": leaf.index,
        "run": leaf.run_id,
        "seq": leaf.sequence,
        "head": leaf.head,
        "salt": leaf.salt,
    }


def _head_item(tenant: str, item: Item, leaf: Leaf) -> Item:
    return {**item, "pk": key("head", tenant, leaf.run_id), "sk": f"{leaf.sequence:016d}", "lh": None}


def _node_item(tenant: str, level: int, index: int, hashed: bytes) -> Item:
    height = level // 8
    return {"pk": key("node", tenant, str(height), str(index // PAGE)), "sk": _index(index), "lh": hashed}


def _leaf(item: Item) -> Leaf:
    return Leaf(item["index"], item["run"], item["seq"], item["head"], item["salt"])
