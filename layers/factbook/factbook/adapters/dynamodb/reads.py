"""Reads that take several calls: all pages of a query, and a batch by keys."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import Throttled

KEYS_AT_ONCE = 100
"""What BatchGetItem takes."""

BATCH_ATTEMPTS = 6
PAUSE_SECONDS = 0.02


def query_items(client: Any, table: str, condition: str, values: Item, **options: Any) -> Iterator[Item]:
    """The items under a key condition, strongly consistent; a page is asked for when its first item is.

    `values` are plain. `Limit` among the options is the size of a page: who needs no more than that stops there.
    """
    with store_errors():
        for page in client.get_paginator("query").paginate(
            TableName=table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=to_item(values),
            ConsistentRead=True,
            **options,
        ):
            yield from map(from_item, page["Items"])


def batch_get(client: Any, table: str, keys: Sequence[tuple[str, str | int]], **options: Any) -> list[Item]:
    """The items under these keys (`pk`, `sk`) that are there, each once, strongly consistent, in no order.

    `options` go with the table (a ProjectionExpression). Raises Throttled when the store still holds some back after `BATCH_ATTEMPTS`.
    """
    found: list[Item] = []
    once = list(dict.fromkeys(keys))  # the service refuses a key that is named twice
    for start in range(0, len(once), KEYS_AT_ONCE):
        wanted = [to_item({"pk": pk, "sk": sk}) for pk, sk in once[start : start + KEYS_AT_ONCE]]
        found += _batch_get(client, table, {"Keys": wanted, "ConsistentRead": True, **options})
    return found


def _batch_get(client: Any, table: str, request: Item) -> list[Item]:
    found: list[Item] = []
    pending: dict[str, Any] = {table: request}
    for attempt in range(BATCH_ATTEMPTS):
        time.sleep(full_jitter(attempt, PAUSE_SECONDS))
        with store_errors():
            answer = client.batch_get_item(RequestItems=pending)
        found += map(from_item, answer["Responses"].get(table, []))
        pending = answer.get("UnprocessedKeys") or {}
        if not pending:
            return found
    raise Throttled
