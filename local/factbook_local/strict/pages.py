"""Answers cut as DynamoDB cuts them: a page at what was read, a batch at what is sent."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from factbook_local.limits import LIMITS
from factbook_local.strict.schemas import Params, Schemas
from factbook_local.strict.sizes import item_size

Call = Callable[[Params], Params]

_NARROWING = ("FilterExpression", "ProjectionExpression", "Select")


def read_page(call: Call, params: Params, schemas: Schemas, operation: str) -> Params:
    """A Query or a Scan. What a filter or a projection hides was read all the same and counts."""
    narrowed = any(name in params for name in _NARROWING)
    whole = schemas.call(operation, _widened(params)) if narrowed else call(params)
    fitting = _fitting(item_size(item) for item in whole["Items"])
    if fitting == len(whole["Items"]):
        return call(params) if narrowed else whole
    return call(params | {"Limit": fitting})


def _fitting(sizes: Iterable[int]) -> int:
    """How many of the first fit into a page."""
    total = count = 0
    for size in sizes:
        total += size
        if total > LIMITS["page"].most:
            return count
        count += 1
    return count


def _widened(params: Params) -> Params:
    """The same read with nothing hidden; substitutions that only the filter used would be refused."""
    wide = {name: value for name, value in params.items() if name not in _NARROWING}
    used = wide.get("KeyConditionExpression", "")
    for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        kept = {token: value for token, value in (wide.pop(name, None) or {}).items() if token in used}
        if kept:
            wide[name] = kept
    return wide


def read_batch(call: Call, params: Params, schemas: Schemas, _: str) -> Params:
    """A BatchGetItem: what passes 16 MB, or 1 MB of one partition, is left unprocessed."""
    answer = call(params)
    if (
        sum(item_size(item) for items in answer["Responses"].values() for item in items)
        <= LIMITS["page"].most
    ):
        return answer
    room = _Room()
    for table, items in answer["Responses"].items():
        schema = schemas.of(table)
        names = [] if schema is None else [name for name in schema.table if name is not None]
        left = [item for item in items if not room.takes(item, names)]
        answer["Responses"][table] = [item for item in items if item not in left]
        if left:
            keys = [{name: item[name] for name in names} for item in left]
            again = {**params["RequestItems"][table], "Keys": keys}
            unprocessed = answer.setdefault("UnprocessedKeys", {}).setdefault(table, {**again, "Keys": []})
            unprocessed["Keys"] = unprocessed["Keys"] + keys
    return answer


class _Room:
    """What is left of one answer, in all and for each partition."""

    def __init__(self) -> None:
        self._total = 0
        self._of_partition: Counter[Any] = Counter()

    def takes(self, item: Params, names: list[str]) -> bool:
        size, partition = item_size(item), tuple(item[names[0]].items()) if names else item_size(item)
        filled = self._of_partition[partition]
        if self._total + size > LIMITS["batch answer"].most or (
            filled and filled + size > LIMITS["page"].most
        ):
            return False
        self._total += size
        self._of_partition[partition] = filled + size
        return True


READERS = {"Query": read_page, "Scan": read_page, "BatchGetItem": read_batch}
