"""Leases and circuits, in the access table: ids and times and nothing else; time to live removes what is over."""

from collections.abc import Sequence
from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.domain import times
from factbook.domain.sources.circuits import CLOSED, Circuit
from factbook.ports.clock import Clock

KEPT_SECONDS = 24 * 3600
"""How long a circuit is remembered after it may have closed by itself."""


class DynamoLeases:
    """Leases; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    def take(self, what: Sequence[str], owner: str, seconds: float) -> bool:
        # The owner's own counts as free: the SDK's retry of a put whose reply was lost meets it.
        free = "attribute_not_exists(pk) OR u <= :now OR o = :owner"
        return self._put(what, owner, seconds, free, {":now": self._now(), ":owner": owner})

    def give_back(self, what: Sequence[str], owner: str, rest: float = 0.0) -> None:
        own = {":owner": owner}
        if rest:
            self._put(what, "", rest, "o = :owner", own)
            return
        try:
            with store_errors():
                self._client.delete_item(
                    TableName=self._table,
                    Key=to_item(_key(what)),
                    ConditionExpression="o = :owner",
                    ExpressionAttributeValues=to_item(own),
                )
        except ConditionFailed:
            return  # it ran out, and is another's by now

    def _put(self, what: Sequence[str], owner: str, seconds: float, condition: str, values: Item) -> bool:
        until = self._now() + round(seconds * 1000)
        item = {**_key(what), "o": owner, "u": until, "ttl": until // 1000 + 1}
        try:
            with store_errors():
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item(item),
                    ConditionExpression=condition,
                    ExpressionAttributeValues=to_item(values),
                )
        except ConditionFailed:
            return False
        return True

    def _now(self) -> int:
        return times.epoch_ms(self._clock.now())


class DynamoCircuits:
    """Circuits; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    def circuit(self, tenant: str, host: str) -> Circuit:
        with store_errors():
            answer = self._client.get_item(
                TableName=self._table, Key=to_item(_circuit(tenant, host)), ConsistentRead=True
            )
        if "Item" not in answer:
            return CLOSED
        item = from_item(answer["Item"])
        return Circuit(item["f"], item["n"], item.get("u"))

    def keep(self, tenant: str, host: str, before: Circuit, after: Circuit) -> bool:
        where = _circuit(tenant, host)
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if before != CLOSED:
            values = {":f": before.failures, ":n": before.opened, ":u": before.until}
            until = "attribute_not_exists(u)" if before.until is None else "u = :u"
            condition = {
                "ConditionExpression": f"f = :f AND n = :n AND {until}",
                "ExpressionAttributeValues": to_item(values),
            }
        try:
            with store_errors():
                if after == CLOSED:
                    self._client.delete_item(TableName=self._table, Key=to_item(where), **condition)
                else:
                    item = {**where, "f": after.failures, "n": after.opened, "u": after.until}
                    latest = max(after.until or "", self._clock.now())
                    item["ttl"] = times.epoch_ms(latest) // 1000 + KEPT_SECONDS
                    self._client.put_item(TableName=self._table, Item=to_item(item), **condition)
        except ConditionFailed:
            return self.circuit(tenant, host) == after  # the SDK's own retry of a write whose reply was lost
        return True


def _key(what: Sequence[str]) -> Item:
    return {"pk": key(*what), "sk": what[0]}


def _circuit(tenant: str, host: str) -> Item:
    return {"pk": key("circuit", tenant), "sk": key(host)}
