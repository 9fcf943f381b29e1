"""The index job of a deployment: one item of the access table."""

import json
from dataclasses import asdict
from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.ports.retrieval.upkeep import IndexJob

_KEY: Item = {"pk": "index", "sk": "job"}


class DynamoJobs:
    """JobStore; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def job(self) -> IndexJob | None:
        with store_errors():
            answer = self._client.get_item(TableName=self._table, Key=to_item(_KEY), ConsistentRead=True)
        return IndexJob(**json.loads(from_item(answer["Item"])["v"])) if "Item" in answer else None

    def keep(self, job: IndexJob) -> bool:
        item = {**_KEY, "v": json.dumps(asdict(job)), "n": job.step}
        condition: dict[str, Any] = {}
        if job.step:
            condition = {
                "ConditionExpression": "n = :before",
                "ExpressionAttributeValues": to_item({":before": job.step - 1}),
            }
        try:
            with store_errors():
                self._client.put_item(TableName=self._table, Item=to_item(item), **condition)
        except ConditionFailed:
            return False
        return True
