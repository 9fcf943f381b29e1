"""Walks of the facts table, and what a removed head leaves behind."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.reads import query_items
from factbook.adapters.facts.dynamodb_items import (
    ADMIN_SHARDS,
    CONFIRMED,
    HEAD,
    fact_key,
    life_prefix,
    listing_partition,
    read_fact,
    read_head,
)
from factbook.domain.facts.fact import Fact
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import FactStore, Head, readable_heads
from factbook.ports.facts.walks import Life
from factbook.ports.flaws import UNREADABLE
from factbook.ports.walks import Stop, WalkPage

MAX_HEADS = 100
"""What one BatchGetItem takes."""

Discard = Callable[[str], None]


_Rows = list[tuple[Item, str]]
"""Rows of the index, each with the cursor behind it."""


class DynamoFactWalk:
    """FactWalk over the `admin` index, whose rows name the heads to fetch; closed facts are part of it."""

    def __init__(self, client: Any, table: str, facts: FactStore) -> None:
        self._client = client
        self._table = table
        self._facts = facts

    def heads(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[Head]:
        read = self._everyone if tenant is None else partial(self._tenant, tenant)
        rows, following = read(after, min(limit, MAX_HEADS))
        named = [(name, cursor) for row, cursor in rows if (name := _named(row)) is not None]
        by_tenant: dict[str, list[str]] = {}
        for (owner, fact_id), _ in named:
            by_tenant.setdefault(owner, []).append(fact_id)
        unreadable = len(rows) - len(named)
        found: dict[str, dict[str, Head]] = {}
        for owner, ids in by_tenant.items():
            found[owner], flawed = readable_heads(self._facts, owner, ids)
            unreadable += len(flawed)
        stops = [
            Stop(head, cursor)
            for (owner, fact_id), cursor in named
            if (head := found[owner].get(fact_id)) is not None
        ]
        return WalkPage(stops, following, unreadable)

    def _everyone(self, after: str | None, limit: int) -> tuple[_Rows, str | None]:
        """The cursor is a row's key."""
        resume = {"ExclusiveStartKey": to_item(json.loads(after))} if after else {}
        with store_errors():
            page = self._client.scan(TableName=self._table, IndexName="admin", Limit=limit, **resume)
        rows = [(row, _row_key(row)) for row in map(from_item, page["Items"])]
        last = page.get("LastEvaluatedKey")
        return rows, _row_key(from_item(last)) if last else None

    def _tenant(self, tenant: str, after: str | None, limit: int) -> tuple[_Rows, str | None]:
        """One partition after another; the cursor is [which, last order]."""
        partitions = [
            listing_partition(tenant, None, shard, closed=closed)
            for shard in range(ADMIN_SHARDS)
            for closed in (False, True)
        ]
        at, order = json.loads(after) if after else (0, " ")
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName="admin",
                KeyConditionExpression="a = :partition AND o > :order",
                ExpressionAttributeValues=to_item({":partition": partitions[at], ":order": order}),
                Limit=limit,
            )
        rows = [(row, json.dumps([at, row["o"]])) for row in map(from_item, page["Items"])]
        if "LastEvaluatedKey" in page:
            return rows, rows[-1][1]
        return rows, json.dumps([at + 1, " "]) if at + 1 < len(partitions) else None


def _named(row: Item) -> tuple[str, str] | None:
    """The tenant and the fact that a row names; None for one that was put or edited past the service."""
    try:
        owner, fact_id = json.loads(row["s"])["tenantId"], row["pk"].rsplit("|", 1)[1]
        return (owner, fact_id) if row["pk"] == fact_key(owner, fact_id) else None
    except UNREADABLE:
        return None


def _row_key(row: Item) -> str:
    return json.dumps({name: row[name] for name in ("a", "o", "pk", "sk")})


class DynamoRemains:
    """Remains over the facts table; `discard` removes a payload by its reference."""

    def __init__(self, client: Any, table: str, discard: Discard) -> None:
        self._client = client
        self._table = table
        self._discard = discard

    def remove(self, last: Fact, deadline: Deadline = NEVER) -> None:
        self.remove_life(Life(last.scope.tenant_id, last.id, last.created_at, last.content_ref), deadline)

    def remove_life(self, life: Life, deadline: Deadline = NEVER) -> None:
        named = self._named_by_the_present_life(life)
        # A confirmed text beside the removed head is of its life too; the stream then tells the index that it is gone.
        for item in chain(self._revisions(life), self._revisions(life, CONFIRMED)):
            try:
                revision = read_fact(item)
            except UNREADABLE:
                continue  # whose it is cannot be said: it must not keep the others
            if revision.created_at != life.created_at:
                continue
            deadline.require()
            self._discard_payload(revision.content_ref, named)
            with store_errors():
                where = to_item({"pk": item["pk"], "sk": item["sk"]})
                self._client.delete_item(TableName=self._table, Key=where)
        self._discard_payload(life.content_ref, named)

    def _discard_payload(self, ref: str | None, named: set[str | None]) -> None:
        if ref is not None and ref not in named:
            self._discard(ref)

    def _revisions(self, life: Life, prefix: str = "v") -> Iterator[Item]:
        """A page at a time: there may be any number, and what was removed before an end is not read again."""
        values = {":pk": fact_key(life.tenant, life.id), ":v": prefix}
        return query_items(self._client, self._table, "pk = :pk AND begins_with(sk, :v)", values)

    def _named_by_the_present_life(self, last: Life) -> set[str | None]:
        """References of payloads that a later life of the id names: its writer may have named an upload again."""
        named: set[str | None] = set()
        for item in self._revisions(last, HEAD):
            head = read_head(item)
            if head.fact.created_at != last.created_at:
                kept = self._revisions(last, life_prefix(head.life))
                named |= {head.fact.content_ref, *(read_fact(revision).content_ref for revision in kept)}
        return named
