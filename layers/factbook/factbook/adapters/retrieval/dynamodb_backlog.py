"""The index's backlog, in the access table.

What waits and what failed are in partitions apart, so that thousands of final notes are in nobody's way. The partitions
are few, a tenant's notes are in one of each, next to each other: the tenants that have something waiting are found by
going from one tenant's notes to behind its last one. Where the turns are stands in an item of its own, and for each
tenant that has more waiting than one turn takes.
"""

from typing import Any

from factbook.adapters.dynamodb.client import ConditionFailed, Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key, shard_of
from factbook.ports.retrieval.upkeep import Troubled

BACKLOG_SHARDS = 8
AT_ONCE = 100
_LAST = "\U0010ffff"
"""Sorts behind every character of a key."""


class DynamoBacklog:
    """Backlog; `client` is a boto3 DynamoDB client. `of`: which of several backlogs, each has notes and turns of its own."""

    def __init__(self, client: Any, table: str, of: str = "") -> None:
        self._client = client
        self._table = table
        self._of = of
        self._turns = key("backlog", f"{of}turns")

    def note(self, troubled: Troubled) -> None:
        item = {
            **self._note_key(troubled.tenant, troubled.id, waits=troubled.waits),
            "why": troubled.trouble,
            "tn": troubled.tenant,
            "id": troubled.id,
            "of": troubled.source,
            "v": troubled.version,
        }
        try:
            self._put(item, **_not_later_than(troubled.version))
        except ConditionFailed:
            return  # what is noted is of a later version
        # A record may have two notes: the later one counts, and at one version the one that waits. So what failed may lie
        # behind a note that waits, but no note may wait behind one that failed: it would be tried again.
        if not troubled.waits:
            self._remove(troubled.tenant, troubled.id, troubled.version, waits=True)

    def settle(self, tenant: str, record: str, version: int) -> None:
        for waits in (True, False):
            self._remove(tenant, record, version, waits=waits)

    def of(self, tenant: str, record: str) -> Troubled | None:
        found = [
            _troubled(item)
            for waits in (False, True)
            if (item := self._get(self._note_key(tenant, record, waits=waits))) is not None
        ]
        return max(found, key=lambda note: (note.version, note.waits), default=None)

    def turn(self, limit: int) -> list[Troubled]:
        limit = min(limit, AT_ONCE)
        begun = (self._get({"pk": self._turns, "sk": "now"}) or {"shard": 0, "at": " "}).copy()
        first = begun["shard"]
        for shard in range(first, first + BACKLOG_SHARDS + 1):  # the first one's beginning comes last
            behind = begun["at"] if shard == first else " "
            found = self._query(shard % BACKLOG_SHARDS, behind, 1)
            if found:
                tenant = found[0].tenant
                turned = {"shard": shard % BACKLOG_SHARDS, "at": key(tenant) + "|" + _LAST}
                self._put({"pk": self._turns, "sk": "now", **turned})
                return self._turn_of(tenant, limit)
        return []

    def waiting(self, tenant: str | None, most: int) -> int:
        if tenant is not None:
            return self._count(shard_of(tenant, BACKLOG_SHARDS), key(tenant) + "|", most)
        total = 0
        for shard in range(BACKLOG_SHARDS):
            total += self._count(shard, None, most - total)
            if total >= most:
                break
        return total

    def _turn_of(self, tenant: str, limit: int) -> list[Troubled]:
        shard, own = shard_of(tenant, BACKLOG_SHARDS), key(tenant) + "|"
        place: Item = {"pk": self._turns, "sk": key("of", tenant)}
        begun = self._get(place)
        behind = own if begun is None else begun["at"]
        found = self._query(shard, behind, limit, own + _LAST)
        if begun is not None and len(found) < limit:
            # No further than where this turn began, so that none is given twice.
            found += self._query(shard, own, limit - len(found), behind)
        if len(found) == limit:
            self._put({**place, "at": _name(tenant, found[-1].id)})
        elif begun is not None:
            self._delete(place)
        return found

    def _query(self, shard: int, behind: str, limit: int, until: str = _LAST) -> list[Troubled]:
        """Notes with names above `behind` and not above `until`."""
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :behind AND :until",
                # BETWEEN holds its ends: a name is never followed by this one directly.
                ExpressionAttributeValues=to_item(
                    {":pk": self._partition(shard, waits=True), ":behind": behind + "\x00", ":until": until}
                ),
                Limit=limit,
            )
        return [_troubled(from_item(item)) for item in page["Items"]]

    def _count(self, shard: int, own: str | None, most: int) -> int:
        values = {":pk": self._partition(shard, waits=True)} | ({":own": own} if own else {})
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                Select="COUNT",
                KeyConditionExpression="pk = :pk" + (" AND begins_with(sk, :own)" if own else ""),
                ExpressionAttributeValues=to_item(values),
                Limit=most,
            )
        return int(page["Count"])

    def _get(self, where: Item) -> Item | None:
        with store_errors():
            answer = self._client.get_item(TableName=self._table, Key=to_item(where))
        return from_item(answer["Item"]) if "Item" in answer else None

    def _put(self, item: Item, **condition: Any) -> None:
        with store_errors():
            self._client.put_item(TableName=self._table, Item=to_item(item), **condition)

    def _delete(self, where: Item) -> None:
        with store_errors():
            self._client.delete_item(TableName=self._table, Key=to_item(where))

    def _remove(self, tenant: str, record: str, version: int, *, waits: bool) -> None:
        try:
            with store_errors():
                self._client.delete_item(
                    TableName=self._table,
                    Key=to_item(self._note_key(tenant, record, waits=waits)),
                    **_not_later_than(version),
                )
        except ConditionFailed:
            return  # a note about a later version stays

    def _note_key(self, tenant: str, record: str, *, waits: bool) -> Item:
        shard = shard_of(tenant, BACKLOG_SHARDS)
        return {"pk": self._partition(shard, waits=waits), "sk": _name(tenant, record)}

    def _partition(self, shard: int, *, waits: bool) -> str:
        return key("backlog", self._of + ("waiting" if waits else "failed"), str(shard))


def _not_later_than(version: int) -> dict[str, Any]:
    """The condition that no note of a later version is there."""
    return {
        "ConditionExpression": "attribute_not_exists(pk) OR v <= :version",
        "ExpressionAttributeValues": to_item({":version": version}),
    }


def _name(tenant: str, record: str) -> str:
    return key(tenant, record)


def _troubled(item: Item) -> Troubled:
    return Troubled(item["tn"], item["id"], item["of"], item["v"], item["why"])
