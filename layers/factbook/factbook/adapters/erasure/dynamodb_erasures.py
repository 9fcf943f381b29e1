"""Records of erasures in the access table, and beside each what says that it is in force and is to be worked on.

| Item | `pk` | `sk` |
|---|---|---|
| record | `erasures|tenant` | id |
| its place in the list | `erasures-by-time|tenant` | createdAt, id |
| in force | `erasing|tenant` | id |
| to be worked on | `erasing-work|shard` | tenant, id |
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from factbook.adapters.access.dynamodb_in_force import InForce, in_force_item, in_force_partition
from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, part, shard_of
from factbook.adapters.dynamodb.reads import batch_get, query_items
from factbook.domain.access.erasing import Erasing, Selector
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import Throttled
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.contention import Contended
from factbook.ports.erasure.records import Erasure

WORK_SHARDS = 8
CONFLICTS = 6
PAUSE_SECONDS = 0.02
"""Of the wait after the first of so many tries that met another transaction."""


class DynamoErasures:
    """ErasureStore; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def create(self, erasure: Erasure, work_from: str) -> Erasure | None:
        new = {
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            self._transact([*self._marks(erasure, work_from), self._put(_record(erasure), **new)])
        except ConditionFailed as taken:
            there = self.erasure(erasure.tenant, erasure.id)
            if there is None and not taken.item:
                raise
            return _read(taken.item) if there is None else there
        return None

    def erasure(self, tenant: str, erasure_id: str) -> Erasure | None:
        with store_errors():
            answer = self._client.get_item(
                TableName=self._table, Key=to_item(_record_key(tenant, erasure_id)), ConsistentRead=True
            )
        return _read(from_item(answer["Item"])) if "Item" in answer else None

    def several(self, tenant: str, ids: Sequence[str]) -> dict[str, Erasure]:
        keys = [(each["pk"], each["sk"]) for each in (_record_key(tenant, each) for each in ids)]
        return {each.id: each for each in map(_read, batch_get(self._client, self._table, keys))}

    def put_back(self, erasures: Sequence[Erasure]) -> None:
        """One transaction for those that are not there; each by itself when one of them has come meanwhile."""
        there = self.several(erasures[0].tenant, [each.id for each in erasures]) if erasures else {}
        lost = [each for each in erasures if each.id not in there]
        try:
            self._transact([put for each in lost for put in self._put_new(each)])
        except ConditionFailed:
            for each in lost:
                with suppress(ConditionFailed):  # there is one of that id: it stays as it is
                    self._transact(self._put_new(each))

    def _put_new(self, erasure: Erasure) -> list[dict[str, Any]]:
        new = {"ConditionExpression": "attribute_not_exists(pk)"}
        return [self._put(_place(erasure)), self._put(_record(erasure), **new)]

    def page(
        self, tenant: str, position: str | None, limit: int, *, oldest_first: bool = False
    ) -> tuple[list[Erasure], str | None]:
        beyond, start = (">", " ") if oldest_first else ("<", "~")
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression=f"pk = :pk AND sk {beyond} :at",
                ExpressionAttributeValues=to_item({":pk": _list(tenant), ":at": position or start}),
                ScanIndexForward=oldest_first,
                ConsistentRead=True,
                Limit=limit,
            )
        places = [from_item(item)["sk"] for item in page["Items"]]
        found = self.several(tenant, [place.rpartition("|")[2] for place in places])
        records = [found[name] for place in places if (name := place.rpartition("|")[2]) in found]
        return records, places[-1] if "LastEvaluatedKey" in page and places else None

    def in_force(self, tenant: str) -> Erasing:
        return InForce(self._client, self._table).of(tenant)

    def replace(self, erasure: Erasure) -> bool:
        later = replace(erasure, edition=erasure.edition + 1)
        same = {
            "ConditionExpression": "n = :before",
            "ExpressionAttributeValues": to_item({":before": erasure.edition}),
        }
        writes = [self._put(_record(later), **same)]
        if later.ended:
            writes = [self._delete(where) for where in _mark_keys(later)] + writes
        try:
            self._transact(writes)
        except ConditionFailed:
            return self.erasure(erasure.tenant, erasure.id) == later  # the SDK's own retry of what landed
        return True

    def put_in_force(self, erasure: Erasure, work_from: str) -> bool:
        later = replace(erasure, edition=erasure.edition + 1)
        same = {
            "ConditionExpression": "attribute_not_exists(pk) OR n = :before",
            "ExpressionAttributeValues": to_item({":before": erasure.edition}),
        }
        try:
            self._transact([*self._marks(later, work_from), self._put(_record(later), **same)])
        except ConditionFailed:
            return self.erasure(erasure.tenant, erasure.id) == later  # the SDK's own retry of what landed
        return True

    def withdraw(self, erasure: Erasure) -> bool:
        condition = {
            "ConditionExpression": "n = :before",
            "ExpressionAttributeValues": to_item({":before": erasure.edition}),
        }
        where = _record_key(erasure.tenant, erasure.id)
        doomed = [*_mark_keys(erasure), _key_of(_place(erasure))]
        try:
            self._transact([*map(self._delete, doomed), self._delete(where, **condition)])
        except ConditionFailed:
            return self.erasure(erasure.tenant, erasure.id) is None
        return True

    def work(self, now: str, after: str | None, limit: int) -> tuple[list[tuple[str, str]], str | None]:
        """The cursor is [shard, last sort key]."""
        first, last = json.loads(after) if after else (0, " ")
        found: list[Item] = []
        for shard in range(first, WORK_SHARDS):
            values = {":pk": _work_partition(shard), ":last": last if shard == first else " "}
            some = query_items(
                self._client, self._table, "pk = :pk AND sk > :last", values, Limit=limit - len(found)
            )
            found += islice(some, limit - len(found))
            if len(found) == limit:
                break
        following = json.dumps([shard, found[-1]["sk"]]) if len(found) == limit else None
        return [(item["tn"], item["id"]) for item in found if item["due"] <= now], following

    def take(self, tenant: str, erasure_id: str, now: str, until: str) -> bool:
        return self._put_work(tenant, erasure_id, until, "due <= :now", {":now": now})

    def put_off(self, tenant: str, erasure_id: str, until: str) -> None:
        self._put_work(tenant, erasure_id, until, "attribute_exists(pk)", {})

    def _put_work(self, tenant: str, erasure_id: str, until: str, condition: str, values: Item) -> bool:
        put = self._put(_work(tenant, erasure_id, until), ConditionExpression=condition)["Put"]
        if values:
            put["ExpressionAttributeValues"] = to_item(values)
        try:
            with store_errors():
                self._client.put_item(**put)
        except ConditionFailed:
            return False
        return True

    def _marks(self, erasure: Erasure, work_from: str) -> list[Item]:
        """What is put beside the record of an erasure that is in force."""
        assert erasure.selector is not None, "what is in force has a selector"
        in_force = in_force_item(erasure.tenant, erasure.id, erasure.selector, erasure.created_at)
        work = _work(erasure.tenant, erasure.id, work_from)
        return [self._put(each) for each in (_place(erasure), in_force, work)]

    def _put(self, item: Item, **condition: Any) -> dict[str, Any]:
        return {"Put": {"TableName": self._table, "Item": to_item(item), **condition}}

    def _delete(self, where: Item, **condition: Any) -> dict[str, Any]:
        return {"Delete": {"TableName": self._table, "Key": to_item(where), **condition}}

    def _transact(self, writes: list[Item]) -> None:
        """Another write of the same items may be in the way for a moment. Raises Throttled when one still is."""
        for attempt in range(CONFLICTS if writes else 0):
            time.sleep(full_jitter(attempt, PAUSE_SECONDS))
            with suppress(Contended), store_errors():
                self._client.transact_write_items(TransactItems=writes)
                return
        if writes:
            raise Throttled


def _record(erasure: Erasure) -> Item:
    fields = {name: value for name, value in asdict(erasure).items() if value not in (None, (), "")}
    fields["counts"] = dict(erasure.counts)
    return {**_record_key(erasure.tenant, erasure.id), "v": dump_json(fields), "n": erasure.edition}


def _read(item: Mapping[str, Any]) -> Erasure:
    fields = parse_json(item["v"])
    selector = fields.pop("selector", None)
    warnings = tuple(fields.pop("warnings", ()))
    return Erasure(**fields, selector=None if selector is None else Selector(**selector), warnings=warnings)


def _record_key(tenant: str, erasure_id: str) -> Item:
    return {"pk": key("erasures", tenant), "sk": erasure_id}


def _list(tenant: str) -> str:
    return key("erasures-by-time", tenant)


def _place(erasure: Erasure) -> Item:
    return {"pk": _list(erasure.tenant), "sk": f"{erasure.created_at}|{erasure.id}"}


def _work_partition(shard: int) -> str:
    return key("erasing-work", str(shard))


def _work(tenant: str, erasure_id: str, due: str) -> Item:
    where = {"pk": _work_partition(shard_of(tenant, WORK_SHARDS)), "sk": f"{part(tenant)}|{erasure_id}"}
    return {**where, "tn": tenant, "id": erasure_id, "due": due}


def _mark_keys(erasure: Erasure) -> list[Item]:
    in_force = {"pk": in_force_partition(erasure.tenant), "sk": erasure.id}
    return [in_force, _key_of(_work(erasure.tenant, erasure.id, ""))]


def _key_of(item: Item) -> Item:
    return {name: item[name] for name in ("pk", "sk")}
