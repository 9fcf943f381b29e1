"""What an erasure reads and removes of facts: held ones and tombstones by index, and the revisions of one fact."""

import json
from itertools import islice
from typing import Any

from factbook.adapters.dynamodb.batches import MOST_WRITES, batch_delete
from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.reads import query_items
from factbook.adapters.facts.dynamodb_items import (
    HELD_SHARDS,
    erased_partition,
    fact_key,
    held_partition,
)
from factbook.domain.scope import Scope
from factbook.domain.strict_json import parse_json
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import FactStore, Head, readable_heads
from factbook.ports.facts.walks import Held
from factbook.ports.flaws import UNREADABLE
from factbook.ports.walks import Stop, WalkPage

MAX_HEADS = 100
"""What one BatchGetItem takes."""


class DynamoFactErasing:
    """FactErasing over the facts table: the indexes `held` and `admin`, and the items of one fact."""

    def __init__(self, client: Any, table: str, facts: FactStore) -> None:
        self._client = client
        self._table = table
        self._facts = facts

    def held(self, tenant: str, after: str | None, limit: int) -> WalkPage[Held]:
        """One shard after another; the cursor is [which, last order]."""
        at, order = json.loads(after) if after else (0, " ")
        rows, more = self._query("held", "hd", held_partition(tenant, at), order, limit)
        stops = [Stop(held, json.dumps([at, row["o"]])) for row in rows if (held := _held(row)) is not None]
        following = json.dumps([at + 1, " "]) if at + 1 < HELD_SHARDS else None
        if more and rows:
            following = json.dumps([at, rows[-1]["o"]])
        return WalkPage(stops, following, len(rows) - len(stops))

    def tombstones(self, tenant: str, erasure_id: str, after: str | None, limit: int) -> WalkPage[Head]:
        """The cursor is the last order."""
        partition = erased_partition(tenant, erasure_id)
        rows, more = self._query("admin", "a", partition, after or " ", min(limit, MAX_HEADS))
        named = [(row["pk"].rsplit("|", 1)[1], row["o"]) for row in rows]
        heads, unreadable = readable_heads(self._facts, tenant, [fact_id for fact_id, _ in named])
        stops = [Stop(heads[fact_id], order) for fact_id, order in named if fact_id in heads]
        return WalkPage(stops, named[-1][1] if more and named else None, len(unreadable))

    def remove_revisions(self, tenant: str, fact_id: str, deadline: Deadline) -> bool:
        values = {":pk": fact_key(tenant, fact_id), ":v": "v"}
        condition = "pk = :pk AND begins_with(sk, :v)"
        options = {"ProjectionExpression": "pk, sk", "Limit": MOST_WRITES}
        items = query_items(self._client, self._table, condition, values, **options)
        while doomed := list(islice(items, MOST_WRITES)):
            if deadline.passed:
                return False
            batch_delete(self._client, self._table, [(item["pk"], item["sk"]) for item in doomed])
        return True

    def _query(
        self, index: str, attribute: str, partition: str, order: str, limit: int
    ) -> tuple[list[Item], bool]:
        """Rows of one partition behind an order, and whether more may follow."""
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName=index,
                KeyConditionExpression="#p = :partition AND o > :order",
                ExpressionAttributeNames={"#p": attribute},
                ExpressionAttributeValues=to_item({":partition": partition, ":order": order}),
                Limit=limit,
            )
        return [from_item(item) for item in page["Items"]], "LastEvaluatedKey" in page


def _held(row: Item) -> Held | None:
    """None for one that was edited past being read."""
    try:
        subjects = tuple(parse_json(row["sj"])) if "sj" in row else None
        scope = Scope.model_validate(parse_json(row["s"]))
        return Held(row["pk"].rsplit("|", 1)[1], scope, row.get("ow"), subjects)
    except UNREADABLE:
        return None
