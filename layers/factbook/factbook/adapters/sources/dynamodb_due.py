"""The index of facts that are due."""

from typing import Any
from urllib.parse import unquote

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.facts.dynamodb_items import DUE_SHARDS, HEAD, due_partition
from factbook.domain.strict_json import parse_json
from factbook.ports.sources.stores import Due

_LAST = "\U0010ffff"
"""Sorts behind every character of a key."""


class DynamoDue:
    """DueIndex over the facts table; `client` is a boto3 DynamoDB client."""

    shards = DUE_SHARDS

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def due(self, priority: int, shard: int, after: str, until: str, limit: int) -> tuple[list[Due], bool]:
        # BETWEEN holds its ends: no order is followed by this one directly.
        span = {":p": due_partition(priority, shard), ":after": after + "\x00", ":until": f"{until}|{_LAST}"}
        if span[":after"] > span[":until"]:
            return [], False
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName="due",
                KeyConditionExpression="du = :p AND #do BETWEEN :after AND :until",
                ExpressionAttributeNames={"#do": "do"},
                ExpressionAttributeValues=to_item(span),
                Limit=limit,
            )
        rows = [self._row(from_item(item)) for item in page["Items"]]
        return [row for row in rows if row is not None], "LastEvaluatedKey" in page

    def _row(self, item: Item) -> Due | None:
        tenant, _, fact_id = item["pk"].rpartition("|")
        known = self._tenant(item["pk"]) if tenant.startswith("~") else unquote(tenant)
        return None if known is None else Due(item["do"], known, fact_id)

    def _tenant(self, place: str) -> str | None:
        """The tenant of a head whose key has its digest alone, as its name is long; None if it is gone."""
        with store_errors():
            answer = self._client.get_item(TableName=self._table, Key=to_item({"pk": place, "sk": HEAD}))
        if "Item" not in answer:
            return None
        tenant: str = parse_json(from_item(answer["Item"])["s"])["tenantId"]
        return tenant
