"""Time to live: which items are due, without ever scanning a table.

ministack's own time to live stays off: it writes no stream record, so nothing would follow a removal. Here a removal
leaves the record that DynamoDB leaves, with the service's identity on it.
"""

import heapq
import itertools
from typing import Any

from factbook_local.limits import LIMITS

_OLDEST = LIMITS["expired for"].most


class Expiry:
    """`attributes`: table name → the attribute that holds an item's end, in epoch seconds."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self._attributes = attributes
        self._heap: list[tuple[float, int, dict[str, Any], str, str]] = []
        self._order = itertools.count()

    def stamp(self, table: dict[str, Any], item: dict[str, Any] | None) -> float | None:
        """The second at which the item ends, or None: only a Number counts."""
        attribute = self._attributes.get(table["TableName"])
        number = (item or {}).get(attribute or "", {}).get("N")
        return None if number is None else float(number)

    def watch(self, table: dict[str, Any], pk: str, sk: str, item: dict[str, Any]) -> None:
        if (stamp := self.stamp(table, item)) is not None:
            heapq.heappush(self._heap, (stamp, next(self._order), table, pk, sk))

    def due(self, now: float) -> list[tuple[dict[str, Any], str, str, dict[str, Any]]]:
        """The items whose time is over, as (table, partition key, sort key, item); each is answered once."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            stamp, _, table, pk, sk = heapq.heappop(self._heap)
            item = table["items"].get(pk, {}).get(sk)
            if item is not None and self.stamp(table, item) == stamp and stamp > now - _OLDEST:
                found.append((table, pk, sk, item))
        return found
