"""Memories on DynamoDB: the indexes `memory`, `account` and `reviews` of the facts table."""

from collections.abc import Sequence
from typing import Any

from factbook.adapters.dynamodb.client import from_item, store_errors, to_item
from factbook.adapters.facts.dynamodb_items import (
    REVIEW_SHARDS,
    account_partition,
    owner_partition,
    read_head,
    review_partition,
)
from factbook.ports.facts.store import Head
from factbook.ports.memories.store import ReviewRow, ReviewState

MOST = 2_000
"""Of one partition are read, and the rest of the page that reaches it: twice as many as any ceiling allows."""


class DynamoMemories:
    """MemoryIndex; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def of_owner(self, tenant: str, owner: str, agent: str, now: str) -> Sequence[Head]:
        return self._all("memory", "m", owner_partition(tenant, owner, agent), now)

    def of_account(self, tenant: str, agent: str, now: str) -> Sequence[Head]:
        return self._all("account", "am", account_partition(tenant, agent), now)

    def reviews(
        self, tenant: str, state: ReviewState, shard: int, before: str, limit: int
    ) -> tuple[list[ReviewRow], bool]:
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName="reviews",
                KeyConditionExpression="rw = :p AND rs < :before",
                ExpressionAttributeValues=to_item(
                    {":p": review_partition(tenant, state, shard), ":before": before}
                ),
                ScanIndexForward=False,
                Limit=limit,
            )
        rows = [from_item(item) for item in page["Items"]]
        found = [ReviewRow(row["rs"], row["pk"].rsplit("|", 1)[1]) for row in rows]
        return found, "LastEvaluatedKey" in page

    @property
    def review_shards(self) -> int:
        return REVIEW_SHARDS

    def _all(self, index: str, attribute: str, partition: str, now: str) -> Sequence[Head]:
        found: list[Head] = []
        with store_errors():
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                IndexName=index,
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": attribute},
                FilterExpression="attribute_not_exists(x) OR x > :now",
                ExpressionAttributeValues=to_item({":p": partition, ":now": now}),
            )
            for page in pages:
                found += [read_head(from_item(item)) for item in page["Items"]]
                if len(found) >= MOST:
                    break
        return found
