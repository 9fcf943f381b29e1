"""Removals of many items at once."""

import time
from collections.abc import Sequence
from typing import Any

from factbook.adapters.dynamodb.client import store_errors, to_item
from factbook.adapters.dynamodb.reads import BATCH_ATTEMPTS, PAUSE_SECONDS
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import Throttled

MOST_WRITES = 25
"""What BatchWriteItem takes."""


def batch_delete(client: Any, table: str, keys: Sequence[tuple[str, str | int]]) -> None:
    """Remove the items under these keys (`pk`, `sk`), at most MOST_WRITES; one that is gone is no harm.

    Raises Throttled when the store still holds some back after `BATCH_ATTEMPTS`.
    """
    doomed = [{"DeleteRequest": {"Key": to_item({"pk": pk, "sk": sk})}} for pk, sk in keys]
    pending: dict[str, Any] = {table: doomed}
    for attempt in range(BATCH_ATTEMPTS):
        time.sleep(full_jitter(attempt, PAUSE_SECONDS))
        with store_errors():
            pending = client.batch_write_item(RequestItems=pending).get("UnprocessedItems") or {}
        if not pending:
            return
    raise Throttled
