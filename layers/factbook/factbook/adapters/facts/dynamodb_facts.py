"""The fact store on DynamoDB. Each method states its calls; docs/architecture.md has the budgets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.reads import batch_get, query_items
from factbook.adapters.facts.dynamodb_items import (
    ADMIN_SHARDS,
    CONFIRMED,
    HEAD,
    LISTING_SHARDS,
    confirmed_item,
    fact_key,
    head_item,
    listing_partition,
    read_fact,
    read_head,
    read_row,
    revision_item,
    revision_sort,
)
from factbook.domain.facts import type_order
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.type_order import type_place
from factbook.ports.contention import Contended
from factbook.ports.facts.joint import Change
from factbook.ports.facts.store import Head, Row
from factbook.ports.flaws import NotStorable

LOOKS = 4


class DynamoFacts:
    """FactStore over one table; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def head(self, tenant: str, fact_id: str) -> Head | None:
        for _ in range(LOOKS):
            item = self._get(tenant, fact_id, HEAD)
            if item is None or "cf" not in item:
                return read_head(item) if item else None
            confirmed = self._get(tenant, fact_id, CONFIRMED)
            if confirmed is not None:
                return replace(read_head(item), confirmed=read_head(confirmed))
        raise Contended  # the proposal was decided on between the two reads, each time

    def revision(self, head: Head, version: int) -> Fact | None:
        item = self._get(head.fact.scope.tenant_id, head.fact.id, revision_sort(head.life, version))
        return read_fact(item) if item else None

    def heads(self, tenant: str, fact_ids: Sequence[str]) -> dict[str, Head]:
        found: dict[str, Head] = {}
        wanted: Sequence[str] = fact_ids
        for _ in range(LOOKS):
            whole, wanted = self._heads(tenant, wanted)
            found |= whole
            if not wanted:
                return found
        raise Contended

    def _heads(self, tenant: str, fact_ids: Sequence[str]) -> tuple[dict[str, Head], list[str]]:
        """Heads by id, and the ids of proposals that were decided on before the text beside them was read."""
        keys = [(fact_key(tenant, fact_id), HEAD) for fact_id in fact_ids]
        items = batch_get(self._client, self._table, keys)
        heads = {head.fact.id: head for head in map(read_head, items)}
        proposals = {item["pk"]: read_fact(item).id for item in items if "cf" in item}
        beside = [(where, CONFIRMED) for where in proposals]
        kept = [read_head(item) for item in batch_get(self._client, self._table, beside)] if beside else []
        heads |= {each.fact.id: replace(heads[each.fact.id], confirmed=each) for each in kept}
        torn = [fact_id for fact_id in proposals.values() if heads[fact_id].confirmed is None]
        return {fact_id: head for fact_id, head in heads.items() if fact_id not in torn}, torn

    def revisions(self, head: Head, below: int, budget: int) -> tuple[list[Fact], bool]:
        if below <= 1:
            return [], False
        span = {
            ":pk": fact_key(head.fact.scope.tenant_id, head.fact.id),
            ":first": revision_sort(head.life, 1),
            ":last": revision_sort(head.life, below - 1),
        }
        found: list[Fact] = []
        for item in query_items(
            self._client,
            self._table,
            "pk = :pk AND sk BETWEEN :first AND :last",
            span,
            ScanIndexForward=False,
        ):
            fact = read_fact(item)
            budget -= fact.wire_bytes
            if budget < 0 and found:
                return found, True
            found.append(fact)
        return found, False

    def create(self, head: Head) -> Head | None:
        return self._put(head, "attribute_not_exists(pk)", {})

    def amend(self, before: Head, after: Head) -> Head | None:
        change = Change(before, after)
        if after.confirmed == before.confirmed:
            return self._replace(before, after)
        return self._transact(change)

    def _replace(self, before: Head, after: Head) -> Head | None:
        try:
            return self._put(after, *_unchanged(before))
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationException":
                raise NotStorable from error
            raise

    def advance(self, before: Head, closed: Fact, after: Head) -> Head | None:
        return self._transact(Change(before, after, closed))

    def writes(self, change: Change) -> list[Item]:
        """What a transaction writes for a change. When one of its conditions fails, the head is another."""
        before, after = change.before, change.after
        revision = []
        if change.closed is not None:
            put = {
                "TableName": self._table,
                "Item": to_item(
                    revision_item(change.closed, before.life, retyped=change.closed.type != after.fact.type)
                ),
                "ConditionExpression": "attribute_not_exists(pk)",
            }
            revision = [{"Put": put}]
        return [*revision, self._replacement(before, after), *self._beside(before, after)]

    def _replacement(self, before: Head, after: Head) -> Item:
        condition, values = _unchanged(before)
        put = {
            "TableName": self._table,
            "Item": to_item(head_item(after)),
            "ConditionExpression": condition,
            "ExpressionAttributeValues": to_item(values),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return {"Put": put}

    def _beside(self, before: Head, after: Head) -> list[Item]:
        """What becomes of the confirmed text beside the head; the head's condition guards it."""
        if (after.confirmed, after.two_types) == (before.confirmed, before.two_types):
            return []
        if after.confirmed is not None:
            item = to_item(confirmed_item(after, after.confirmed))
            return [{"Put": {"TableName": self._table, "Item": item}}]
        where = _key(before.fact.scope.tenant_id, before.fact.id, CONFIRMED)
        return [{"Delete": {"TableName": self._table, "Key": where}}]

    def _transact(self, change: Change) -> Head | None:
        try:
            with store_errors():
                self._client.transact_write_items(TransactItems=self.writes(change))
        except ConditionFailed as lost:
            return self.winner(change.after, lost)
        return None

    def shards(self, container: str | None) -> int:
        return ADMIN_SHARDS if container is None else LISTING_SHARDS

    def rows(
        self,
        tenant: str,
        container: str | None,
        shard: int,
        before: str,
        limit: int,
        *,
        closed: bool = False,
        of_type: str | None = None,
    ) -> tuple[list[Row], bool]:
        attribute, index = _index(container)
        partition = listing_partition(tenant, container, shard, closed=closed)
        if of_type is None:
            condition, values = "o < :before", {":before": before}
        else:
            index += "-type"
            condition = "y BETWEEN :first AND :last"
            values = {":first": type_place(of_type), ":last": type_order.before(type_place(of_type, before))}
        return self._rows(index, attribute, partition, condition, values, limit, ScanIndexForward=False)

    def rows_by_type(
        self,
        tenant: str,
        container: str | None,
        shard: int,
        first: str,
        last: str,
        limit: int,
        *,
        closed: bool = False,
    ) -> tuple[list[Row], bool]:
        attribute, index = _index(container)
        partition = listing_partition(tenant, container, shard, closed=closed)
        values = {":first": first, ":last": last}
        return self._rows(f"{index}-type", attribute, partition, "y BETWEEN :first AND :last", values, limit)

    def _rows(
        self,
        index: str,
        attribute: str,
        partition: str,
        condition: str,
        values: Item,
        limit: int,
        **options: Any,
    ) -> tuple[list[Row], bool]:
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName=index,
                KeyConditionExpression=f"#p = :p AND {condition}",
                ExpressionAttributeNames={"#p": attribute},
                ExpressionAttributeValues=to_item({":p": partition, **values}),
                Limit=limit,
                **options,
            )
        return [read_row(from_item(item)) for item in page["Items"]], "LastEvaluatedKey" in page

    def _get(self, tenant: str, fact_id: str, sort: str) -> Item | None:
        with store_errors():
            answer = self._client.get_item(
                TableName=self._table, Key=_key(tenant, fact_id, sort), ConsistentRead=True
            )
        return from_item(answer["Item"]) if "Item" in answer else None

    def _put(self, head: Head, condition: str, values: Item) -> Head | None:
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item(head_item(head)),
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **({"ExpressionAttributeValues": to_item(values)} if values else {}),
                )
        except ConditionFailed as lost:
            return self.winner(head, lost)
        return None

    def winner(self, ours: Head, lost: ConditionFailed) -> Head:
        """The head that was in the way of ours. Raises Contended when it is gone again."""
        whole = bool(lost.item) and "cf" not in lost.item
        there = read_head(lost.item) if whole else self.head(ours.fact.scope.tenant_id, ours.fact.id)
        if there is None:  # removed meanwhile: the caller reads again and finds nothing
            raise Contended
        return there


def _unchanged(head: Head) -> tuple[str, Item]:
    """A condition with its values: the head is still the one that was read. A later life may have the same edition."""
    if head.life is None:
        return "e = :e AND attribute_not_exists(lf)", {":e": head.edition}
    return "e = :e AND lf = :lf", {":e": head.edition, ":lf": head.life}


def _index(container: str | None) -> tuple[str, str]:
    """The partition key, and the index newest first; the one by type has `-type` behind its name."""
    return ("a", "admin") if container is None else ("l", "listing")


def _key(tenant: str, fact_id: str, sort: str) -> Item:
    return to_item({"pk": fact_key(tenant, fact_id), "sk": sort})
