"""The items of the table of vectors: one for each record and generation, and which generations there are.

pk               sk                     holds
g|<gen>|<shard>  <tenant>|<record>      a record: `n` orders its changes, `v` its vector, `f` what filters compare
indexes          generation|<gen>       a generation: `m` the model, `d` the dimensions, `x` when it was dropped
indexes          active                 `g`: the generation that is searched

A record that has a vector and is to be found is in both vector indexes, by `c` (generation, tenant, container) and by `t`
(generation, tenant): a search never leaves its partition, so neither tenants nor generations meet. `s` and `y` (source, type) are compared in
the service.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from factbook.adapters.dynamodb.client import Item, to_item
from factbook.adapters.dynamodb.key_parts import key, shard_of
from factbook.domain.filters import Fields
from factbook.domain.retrieval.documents import Change, Put, Tombstone
from factbook.ports.retrieval.index import Entry

SHARDS = 16
"""Of the records of a generation: none takes all writes, and all can be walked."""

DIGITS = 6
"""Of a number of a vector: a cosine of unit vectors is then right to about a millionth, and an item a third smaller."""

SMALLEST = 1e-38
"""Of a 32-bit number, which is what the service keeps; its tables refuse any below 1e-130."""

SHOWN = "id, n, f"
"""What a search reads of an item."""
KEPT = "tn, id, n, rv, ch, e"
"""What a look-up reads: all but the vector and the fields."""


def place(generation: str, tenant: str, record: str) -> tuple[str, str]:
    """The key of a record's item."""
    return shard_key(generation, shard_of(f"{tenant}\n{record}", SHARDS)), key(tenant, record)


def shard_key(generation: str, shard: int) -> str:
    return key("g", generation, str(shard))


def tenant_partition(generation: str, tenant: str) -> str:
    return key(generation, tenant)


def container_partition(generation: str, tenant: str, container: str) -> str:
    return key(generation, tenant, container)


def order_of(change: Change) -> int:
    """At one version a tombstone comes after a document."""
    return 2 * change.version + isinstance(change, Tombstone)


def item_of(generation: str, change: Change) -> Item:
    """The item as the service takes it."""
    pk, sk = place(generation, change.tenant, change.id)
    item: Item = {"pk": pk, "sk": sk, "tn": change.tenant, "id": change.id, "n": order_of(change)}
    if isinstance(change, Tombstone):
        return to_item(item | {"ch": 1, "e": 0})
    fields = change.fields
    item |= {"ch": len(change.chunks), "e": int(change.embedded), "rv": fields.get("revision")}
    vector = _vector_of(change)
    if vector is None:
        return to_item(item)
    item |= {"t": tenant_partition(generation, change.tenant), "f": json.dumps(fields, ensure_ascii=False)}
    if isinstance(container := fields.get("container"), str):
        item["c"] = container_partition(generation, change.tenant, container)
    item |= {name: fields.get(field) or None for name, field in (("s", "source"), ("y", "type"))}
    return to_item(item) | {"v": numbers(vector)}


def numbers(vector: Sequence[float]) -> dict[str, Any]:
    return {"L": [{"N": f"{value:.{DIGITS}g}" if abs(value) > SMALLEST else "0"} for value in vector]}


def fields_of(item: Item) -> Fields:
    """What filters compare, of an item of a search; a field of several values is a tuple again."""
    stored: dict[str, Any] = json.loads(item["f"])
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}


def entry_of(item: Item) -> Entry:
    order = int(item["n"])
    return Entry(
        item["tn"], item["id"], order // 2, order % 2 == 0, item.get("rv"), int(item["ch"]), bool(item["e"])
    )


def _vector_of(put: Put) -> list[float] | None:
    """One vector a record, as a search gives a hundred neighbours and no more: the mean of its chunks' directions."""
    found = [_unit(chunk.vector) for chunk in put.chunks if chunk.vector is not None]
    if not found:
        return None
    mean = [sum(values) / len(found) for values in zip(*found, strict=True)]
    return mean if math.hypot(*mean) > 1e-3 else found[0]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector]
