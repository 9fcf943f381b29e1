"""What facts left behind in the table and in the bucket, found by walking both from end to end.

Revisions stand in no index, so the table itself is scanned, a page at a time; what a head says of its own life in the same
page spares most look-ups. Of the bucket, a payload can only be forgotten when its fact is gone, or when it is older than
the fact's present life: only then is the fact's partition read.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from factbook.adapters.aws_errors import aws_errors
from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.reads import batch_get, query_items
from factbook.adapters.facts.dynamodb_items import CONFIRMED, HEAD, read_fact
from factbook.domain import times
from factbook.domain.strict_json import parse_json
from factbook.ports.facts.walks import Life
from factbook.ports.flaws import UNREADABLE
from factbook.ports.walks import Stop, WalkPage

PREFIX = "facts/"
"""Of all payloads of facts; then come the tenant as a key part, the fact, and a name."""

_Life = int | None
"""When a life began; None in the former format, which has one life alone."""


class DynamoOrphans:
    """Orphans; `dynamodb` and `s3` are boto3 clients."""

    def __init__(self, dynamodb: Any, table: str, s3: Any, bucket: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._s3 = s3
        self._bucket = bucket

    def lives(self, after: str | None, limit: int) -> WalkPage[Life]:
        resume = {"ExclusiveStartKey": to_item(json.loads(after))} if after else {}
        with store_errors():
            page = self._dynamodb.scan(
                TableName=self._table, Limit=limit, ProjectionExpression="pk, sk, lf", **resume
            )
        suspects = self._without_head(list(map(from_item, page["Items"])))
        stops = [Stop(life, _cursor(item)) for item in suspects if (life := self._life(item)) is not None]
        last = page.get("LastEvaluatedKey")
        return WalkPage(stops, _cursor(from_item(last)) if last else None)

    def payloads(self, before: str, after: str | None, limit: int) -> WalkPage[str]:
        with aws_errors("s3"):
            page = self._s3.list_objects_v2(
                Bucket=self._bucket, Prefix=PREFIX, MaxKeys=limit, StartAfter=after or PREFIX
            )
        found = page.get("Contents", [])
        old = {
            each["Key"]: each["LastModified"]
            for each in found
            if each["Key"].count("/") == 3 and times.format_instant(each["LastModified"]) < before
        }
        doubtful = self._doubtful(old)
        named = {where: self._names(where, keys) for where, keys in doubtful.items()}
        stops = [
            Stop(self._ref(key), key)
            for key in old
            if key in doubtful.get(_fact_of(key), ()) and self._ref(key) not in named[_fact_of(key)]
        ]
        return WalkPage(stops, found[-1]["Key"] if page.get("IsTruncated") else None)

    def named(self, ref: str) -> bool:
        name = ref.removeprefix(self._ref(""))
        return ref in self._names(_fact_of(name), [name])

    def _without_head(self, items: Sequence[Item]) -> list[Item]:
        """One item of each life that has others, but no head: neither here nor, read consistently, in the table."""
        heads = {item["pk"]: item.get("lf") for item in items if item["sk"] == HEAD}
        others: dict[tuple[str, _Life], Item] = {}
        for item in items:
            if item["sk"] == CONFIRMED or item["sk"].startswith("v"):
                others.setdefault((item["pk"], _life_of(item)), item)
        suspects = {
            where: item
            for where, item in others.items()
            if where[0] not in heads or heads[where[0]] != where[1]
        }
        there = self._heads(pk for pk, _ in suspects)
        return [
            item for (pk, life), item in suspects.items() if pk not in there or there[pk].get("lf") != life
        ]

    def _heads(self, places: Iterable[str]) -> dict[str, Item]:
        """What heads say of their life, by partition."""
        keys = [(pk, HEAD) for pk in dict.fromkeys(places)]
        items = batch_get(self._dynamodb, self._table, keys, ProjectionExpression="pk, lf, o")
        return {item["pk"]: item for item in items}

    def _life(self, item: Item) -> Life | None:
        """None for an item that is gone meanwhile, or is as no write leaves it."""
        with store_errors():
            answer = self._dynamodb.get_item(
                TableName=self._table, Key=to_item({"pk": item["pk"], "sk": item["sk"]}), ConsistentRead=True
            )
        with suppress(*UNREADABLE):
            fact = read_fact(from_item(answer["Item"]))
            return Life(fact.scope.tenant_id, fact.id, fact.created_at, None)
        return None

    def _doubtful(self, old: dict[str, datetime]) -> dict[str, list[str]]:
        """By partition, the objects whose fact has no head, or whose fact's present life began after they were stored."""
        heads = self._heads(map(_fact_of, old))
        doubtful: dict[str, list[str]] = {}
        for key, stored in old.items():
            head = heads.get(_fact_of(key))
            if head is None or stored.timestamp() * 1000 < _began(head):
                doubtful.setdefault(_fact_of(key), []).append(key)
        return doubtful

    def _names(self, where: str, keys: Sequence[str]) -> set[str]:
        """Which of these objects a fact's items name; all of them, when one cannot be read."""
        wanted = {self._ref(key) for key in keys}
        found: set[str] = set()
        for ref in self._references(where):
            if ref is None:
                return wanted
            found |= {ref} & wanted
            if found == wanted:
                break
        return found

    def _references(self, where: str) -> Iterator[str | None]:
        for item in query_items(
            self._dynamodb, self._table, "pk = :pk", {":pk": where}, ProjectionExpression="pk, sk, d"
        ):
            try:
                yield parse_json(item.get("d", "{}")).get("contentRef", "")
            except UNREADABLE:
                yield None

    def _ref(self, key: str) -> str:
        return f"blob://s3/{self._bucket}/{key}"


def _cursor(item: Item) -> str:
    return json.dumps({"pk": item["pk"], "sk": item["sk"]})


def _life_of(item: Item) -> _Life:
    """Of a closed revision, whose sort key says it, or of the confirmed text beside a head."""
    if item["sk"] == CONFIRMED:
        life: _Life = item.get("lf")
        return life
    text = item["sk"][1:-10]
    return int(text) if text.isdecimal() else None


def _fact_of(key: str) -> str:
    """The partition of the fact whose payload an object is: S3 separates with a slash, so that one of a tenant is escaped."""
    tenant, fact_id = key.split("/")[1:3]
    return f"{tenant.replace('%2F', '/')}|{fact_id}"


def _began(head: Item) -> int:
    """When a head's life began, in epoch milliseconds."""
    began: int = head["lf"] if "lf" in head else times.epoch_ms(head["o"].partition("|")[0])
    return began
