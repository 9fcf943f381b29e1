"""Tenant policies, in the access table."""

from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.domain.policy.policies import Policy
from factbook.domain.strict_json import dump_json, parse_json


class DynamoPolicies:
    """PolicyStore over the access table."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def policy(self, tenant: str) -> Policy:
        with store_errors():
            answer = self._client.get_item(
                TableName=self._table, Key=to_item(_policy_key(tenant)), ConsistentRead=True
            )
        if "Item" not in answer:
            return Policy()
        return Policy.model_validate(parse_json(from_item(answer["Item"])["v"]))

    def put_policy(self, tenant: str, policy: Policy) -> None:
        item = {**_policy_key(tenant), "v": dump_json(policy.to_json())}
        with store_errors():
            self._client.put_item(TableName=self._table, Item=to_item(item))


def _policy_key(tenant: str) -> Item:
    return {"pk": key("policy", tenant), "sk": "policy"}
