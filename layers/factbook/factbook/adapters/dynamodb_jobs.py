"""Jobs, in the access table: one item a name and tenant, and one that says when somebody asked for a job."""

import json
from dataclasses import asdict
from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.ports.jobs import Job


class DynamoJobs:
    """JobStore; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def job(self, name: str, tenant: str | None = None) -> Job | None:
        item = self._read(_key("job", name, tenant))
        return None if item is None else Job(**json.loads(item["v"]))

    def keep(self, job: Job) -> bool:
        item = {**_key("job", job.name, job.tenant), "v": json.dumps(asdict(job)), "n": job.step}
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if job.step:
            condition = {
                "ConditionExpression": "n = :before",
                "ExpressionAttributeValues": to_item({":before": job.step - 1}),
            }
        try:
            with store_errors():
                self._client.put_item(TableName=self._table, Item=to_item(item), **condition)
        except ConditionFailed:
            return self.job(job.name, job.tenant) == job  # the SDK's own retry of a put whose answer was lost
        return True

    def ask(self, name: str, at: str, tenant: str | None = None) -> None:
        with store_errors():
            self._client.put_item(
                TableName=self._table, Item=to_item({**_key("asked", name, tenant), "at": at})
            )

    def asked(self, name: str, tenant: str | None = None) -> str | None:
        item = self._read(_key("asked", name, tenant))
        return None if item is None else item["at"]

    def _read(self, where: Item) -> Item | None:
        with store_errors():
            answer = self._client.get_item(TableName=self._table, Key=to_item(where), ConsistentRead=True)
        return from_item(answer["Item"]) if "Item" in answer else None


def _key(what: str, name: str, tenant: str | None) -> Item:
    return {"pk": key("job", name), "sk": what if tenant is None else key(what, tenant)}
