"""Walks of the facts table that the search index needs: every head, and what a removed head leaves behind."""

import json
from collections.abc import Callable
from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.reads import query_items
from factbook.adapters.facts.dynamodb_items import ADMIN_SHARDS, fact_key, listing_partition, read_fact
from factbook.domain.facts.fact import Fact
from factbook.ports.facts.store import FactStore, Head
from factbook.ports.facts.walks import HeadPage

Discard = Callable[[str], None]


class DynamoFactWalk:
    """FactWalk over the `admin` index, whose rows name the heads to fetch; closed facts are part of it."""

    def __init__(self, client: Any, table: str, facts: FactStore) -> None:
        self._client = client
        self._table = table
        self._facts = facts

    def heads(self, tenant: str | None, after: str | None, limit: int) -> HeadPage:
        rows, following = (
            self._everyone(after, limit) if tenant is None else self._tenant(tenant, after, limit)
        )
        by_tenant: dict[str, list[str]] = {}
        for row in rows:
            owner = json.loads(row["s"])["tenantId"]
            by_tenant.setdefault(owner, []).append(row["pk"].rsplit("|", 1)[1])
        heads: list[Head] = []
        for owner, ids in by_tenant.items():
            heads += self._facts.heads(owner, ids).values()
        return HeadPage(heads, following)

    def _everyone(self, after: str | None, limit: int) -> tuple[list[Item], str | None]:
        resume = {"ExclusiveStartKey": to_item(json.loads(after))} if after else {}
        with store_errors():
            page = self._client.scan(
                TableName=self._table, IndexName="admin", Limit=min(limit, 100), **resume
            )
        last = page.get("LastEvaluatedKey")
        return [from_item(item) for item in page["Items"]], json.dumps(from_item(last)) if last else None

    def _tenant(self, tenant: str, after: str | None, limit: int) -> tuple[list[Item], str | None]:
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
                Limit=min(limit, 100),
            )
        rows = [from_item(item) for item in page["Items"]]
        if "LastEvaluatedKey" in page:
            return rows, json.dumps([at, rows[-1]["o"]])
        return rows, json.dumps([at + 1, " "]) if at + 1 < len(partitions) else None


class DynamoRemains:
    """Remains over the facts table; `discard` removes a payload by its reference."""

    def __init__(self, client: Any, table: str, discard: Discard) -> None:
        self._client = client
        self._table = table
        self._discard = discard

    def remove(self, last: Fact) -> None:
        for item in self._revisions(last):  # all of them read before the first is removed
            revision = read_fact(item)
            if revision.created_at != last.created_at:
                continue
            if revision.content_ref is not None:
                self._discard(revision.content_ref)
            with store_errors():
                where = to_item({"pk": item["pk"], "sk": item["sk"]})
                self._client.delete_item(TableName=self._table, Key=where)
        if last.content_ref is not None:
            self._discard(last.content_ref)

    def _revisions(self, last: Fact) -> list[Item]:
        values = {":pk": fact_key(last.scope.tenant_id, last.id), ":v": "v"}
        return list(query_items(self._client, self._table, "pk = :pk AND begins_with(sk, :v)", values))
