"""What is being erased of a tenant: one partition of the access table, which every process reads before it answers."""

from typing import Any

from factbook.adapters.dynamodb.client import Item
from factbook.adapters.dynamodb.key_parts import key
from factbook.adapters.dynamodb.reads import query_items
from factbook.domain.access.erasing import Erasing, Selector
from factbook.domain.strict_json import dump_json, parse_json


class InForce:
    """Reads of that partition; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def of(self, tenant: str) -> Erasing:
        """Strongly consistent; one query, of which a page holds some thousand erasures."""
        values = {":pk": in_force_partition(tenant)}
        items = list(query_items(self._client, self._table, "pk = :pk", values))
        return Erasing.of(map(_read, items), (item["sk"] for item in items))


def in_force_partition(tenant: str) -> str:
    return key("erasing", tenant)


def in_force_item(tenant: str, erasure_id: str, selector: Selector, since: str) -> Item:
    said = dump_json([selector.kind, selector.id, selector.project])
    return {"pk": in_force_partition(tenant), "sk": erasure_id, "v": said, "at": since}


def _read(item: Item) -> tuple[Selector, str]:
    kind, name, project = parse_json(item["v"])
    return Selector(kind, name, project), item["at"]
