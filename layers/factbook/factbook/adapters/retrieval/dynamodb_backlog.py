"""The index's backlog, in the access table."""

from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, shard_of
from factbook.ports.retrieval.upkeep import Troubled

BACKLOG_SHARDS = 8


class DynamoBacklog:
    """Backlog over the access table: one item per troubled record, spread over a few partitions."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def note(self, troubled: Troubled) -> None:
        item = {
            **_backlog_key(troubled.tenant, troubled.id),
            "why": troubled.trouble,
            "tn": troubled.tenant,
            "id": troubled.id,
            "of": troubled.source,
            "v": troubled.version,
        }
        with store_errors():
            self._client.put_item(TableName=self._table, Item=to_item(item))

    def settle(self, tenant: str, record: str) -> None:
        with store_errors():
            self._client.delete_item(TableName=self._table, Key=to_item(_backlog_key(tenant, record)))

    def of(self, tenant: str, record: str) -> Troubled | None:
        with store_errors():
            answer = self._client.get_item(TableName=self._table, Key=to_item(_backlog_key(tenant, record)))
        return _troubled(answer["Item"]) if "Item" in answer else None

    def waiting(self, limit: int) -> list[Troubled]:
        found: list[Troubled] = []
        for shard in range(BACKLOG_SHARDS):
            found += self._waiting(shard, limit - len(found))
            if len(found) == limit:
                break
        return found

    def _waiting(self, shard: int, limit: int) -> list[Troubled]:
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                FilterExpression="why = :why",
                ExpressionAttributeValues=to_item({":pk": key("backlog", str(shard)), ":why": "embedding"}),
            )
        return [_troubled(item) for item in page["Items"][:limit]]


def _backlog_key(tenant: str, record: str) -> Item:
    name = key(tenant, record)
    return {"pk": key("backlog", str(shard_of(name, BACKLOG_SHARDS))), "sk": name}


def _troubled(raw: Item) -> Troubled:
    item = from_item(raw)
    return Troubled(item["tn"], item["id"], item["of"], item["v"], item["why"])
