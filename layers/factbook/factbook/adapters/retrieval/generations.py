"""The generations in the table of vectors: an index for each model that was chosen, one of them active."""

import time
from dataclasses import dataclass
from typing import Any

from factbook.adapters.dynamodb.client import Item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.adapters.dynamodb.reads import query_items
from factbook.adapters.retrieval.vector_items import SHARDS, shard_key
from factbook.domain.errors import Throttled
from factbook.ports.retrieval.index import EmbeddingSpace, IndexInfo

_INDEXES, _ACTIVE = "indexes", "active"
_AT_ONCE = 25
"""What BatchWriteItem takes."""
LATE_SECONDS = 900
"""A writer may know a generation for so long after it was dropped: no invocation of a function lasts longer."""


@dataclass(frozen=True)
class Generation:
    """`dropped`: since when, in epoch seconds, nobody sees it any more, and what it held is being removed."""

    name: str
    space: EmbeddingSpace
    active: bool = False
    dropped: int = 0

    @property
    def info(self) -> IndexInfo:
        return IndexInfo(self.name, self.space, self.active)


class Generations:
    """`client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def all(self) -> list[Generation]:
        """One query: there are two while a model changes, and one otherwise."""
        rows = list(query_items(self._client, self._table, "pk = :pk", {":pk": _INDEXES}))
        active = next((row["g"] for row in rows if row["sk"] == _ACTIVE), None)
        return [
            Generation(row["g"], EmbeddingSpace(row["m"], row["d"]), row["g"] == active, row.get("x", 0))
            for row in rows
            if row["sk"] != _ACTIVE
        ]

    def put(self, made: Generation) -> None:
        self._put({"sk": _sort_key(made.name), **_said(made)})

    def activate(self, name: str) -> None:
        self._put({"sk": _ACTIVE, "g": name})

    def drop(self, name: str) -> None:
        found = next((each for each in self.all() if each.name == name), None)
        if found is not None and not found.dropped:
            self._put({"sk": _sort_key(name), **_said(found), "x": int(time.time())})

    def purge(self, dropped: Generation, end: float) -> bool:
        """Removes what a dropped generation held, until `end` of `time.monotonic`; whether all of it is gone.

        It stays known for a while, so that the next purge finds what a writer brought that had begun before.
        """
        for shard in range(SHARDS):
            batch: list[Item] = []
            keys = query_items(
                self._client,
                self._table,
                "pk = :pk",
                {":pk": shard_key(dropped.name, shard)},
                ProjectionExpression="pk, sk",
            )
            for row in keys:
                batch.append({"DeleteRequest": {"Key": to_item(row)}})
                if len(batch) == _AT_ONCE:
                    self._remove(batch)
                    batch = []
                    if time.monotonic() > end:
                        return False
            self._remove(batch)
        if time.time() < dropped.dropped + LATE_SECONDS:
            return True
        with store_errors():
            self._client.delete_item(
                TableName=self._table, Key=to_item({"pk": _INDEXES, "sk": _sort_key(dropped.name)})
            )
        return True

    def _remove(self, batch: list[Item]) -> None:
        """Raises Throttled when the store holds some back: what is left is found again by the next purge."""
        if not batch:
            return
        with store_errors():
            answer = self._client.batch_write_item(RequestItems={self._table: batch})
        if answer.get("UnprocessedItems"):
            raise Throttled

    def _put(self, item: Item) -> None:
        with store_errors():
            self._client.put_item(TableName=self._table, Item=to_item({"pk": _INDEXES, **item}))


def _sort_key(name: str) -> str:
    return key("generation", name)


def _said(generation: Generation) -> Item:
    return {"g": generation.name, "m": generation.space.model, "d": generation.space.dimensions}
