"""The log table: one item per entry, put once under (tenant|run, sequence), never updated and never deleted."""

from collections.abc import Sequence
from typing import Any

from factbook.adapters.dynamodb.client import (
    ConditionFailed,
    Item,
    from_item,
    item_bytes,
    store_errors,
    to_item,
)
from factbook.adapters.dynamodb.key_parts import key, part, shard_of
from factbook.adapters.dynamodb.reads import query_items
from factbook.domain.scope import Scope
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.contention import Contended
from factbook.ports.log.entries import RunRow, StoredEntry, ThreadPage

READ_BYTES = 4_000_000
"""Of entries' texts, for one answer: what that takes on the wire is decided by who answers."""

RUN_SHARDS = 4
ADMIN_SHARDS = 8
_CONDITION: dict[str, Any] = {
    "ConditionExpression": "attribute_not_exists(pk)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


class DynamoLog:
    """LogStore over one table; `client` is a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        writes = self.writes(entries)
        try:
            with store_errors():
                if len(writes) == 1:
                    self._client.put_item(**writes[0]["Put"])
                else:
                    self._client.transact_write_items(TransactItems=writes)
        except ConditionFailed as lost:
            return self.winner(entries[0], lost)
        return None

    def writes(self, entries: Sequence[StoredEntry]) -> list[Item]:
        """What a transaction writes for these entries."""
        return [
            {"Put": {"TableName": self._table, "Item": to_item(entry_item(entry)), **_CONDITION}}
            for entry in entries
        ]

    def winner(self, ours: StoredEntry, lost: ConditionFailed) -> StoredEntry:
        """The entry of our run that was in the way. Raises Contended when the store does not say which."""
        if not lost.item:
            raise Contended from lost
        return read_entry(ours.tenant, ours.run_id, lost.item)

    def stored_bytes(self, entry: StoredEntry) -> int:
        return item_bytes(entry_item(entry))

    def entry(self, tenant: str, run_id: str, sequence: int) -> StoredEntry | None:
        where = to_item({"pk": key(tenant, run_id), "sk": sequence})
        with store_errors():
            answer = self._client.get_item(TableName=self._table, Key=where, ConsistentRead=True)
        return read_entry(tenant, run_id, from_item(answer["Item"])) if "Item" in answer else None

    def newest(self, tenant: str, run_id: str, count: int) -> list[StoredEntry]:
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues=to_item({":pk": key(tenant, run_id)}),
                ScanIndexForward=False,
                ConsistentRead=True,
                Limit=count,
            )
        return [read_entry(tenant, run_id, from_item(item)) for item in page["Items"]]

    def entries(
        self, tenant: str, run_id: str, since: int, limit: int, budget: int = READ_BYTES
    ) -> tuple[list[StoredEntry], bool]:
        found: list[StoredEntry] = []
        span = {":pk": key(tenant, run_id), ":since": since}
        for item in query_items(
            self._client, self._table, "pk = :pk AND sk >= :since", span, Limit=limit + 1
        ):
            entry = read_entry(tenant, run_id, item)
            budget -= len(entry.text.encode())
            if len(found) == limit or (budget < 0 and found):
                return found, True
            found.append(entry)
        return found, False

    def thread(
        self,
        tenant: str,
        thread: str,
        containers: Sequence[str] | None,
        position: str,
        rows: int | None,
        *,
        newest_first: bool,
    ) -> ThreadPage:
        if containers is not None and not containers:
            return ThreadPage([], None)
        values = {":th": key(tenant, thread)}
        asked: dict[str, Any] = {"KeyConditionExpression": "th = :th"}
        if position:
            asked["KeyConditionExpression"] += f" AND #to {'<' if newest_first else '>'} :at"
            asked["ExpressionAttributeNames"] = {"#to": "to"}
            values[":at"] = position
        if containers is not None:
            named = {f":c{number}": part(each) for number, each in enumerate(containers)}
            asked["FilterExpression"] = f"attribute_not_exists(tc) OR tc IN ({', '.join(named)})"
            values |= named
        if rows is not None:
            asked["Limit"] = rows
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName="thread",
                ExpressionAttributeValues=to_item(values),
                ScanIndexForward=not newest_first,
                **asked,
            )
        found = [
            (item["to"], read_entry(tenant, item["to"].partition("|")[2], item))
            for item in map(from_item, page["Items"])
        ]
        last = page.get("LastEvaluatedKey")
        return ThreadPage(found, from_item(last)["to"] if last else None)

    def runs(
        self, tenant: str, container: str | None, shard: int, before: str, limit: int
    ) -> tuple[list[RunRow], bool]:
        attribute, index = ("ra", "runs-admin") if container is None else ("rl", "runs")
        with store_errors():
            page = self._client.query(
                TableName=self._table,
                IndexName=index,
                KeyConditionExpression="#p = :p AND ro < :before",
                ExpressionAttributeNames={"#p": attribute},
                ExpressionAttributeValues=to_item(
                    {":p": _runs_partition(tenant, container, shard), ":before": before}
                ),
                ScanIndexForward=False,
                Limit=limit,
            )
        rows = [
            RunRow(item["ro"], Scope.model_validate(parse_json(item["sc"])))
            for item in map(from_item, page["Items"])
        ]
        return rows, "LastEvaluatedKey" in page

    def run_shards(self, container: str | None) -> int:
        return ADMIN_SHARDS if container is None else RUN_SHARDS


def entry_item(entry: StoredEntry) -> Item:
    item: Item = {
        "pk": key(entry.tenant, entry.run_id),
        "sk": entry.sequence,
        "j": entry.text,
        "h": entry.entry_hash,
        "f": entry.format,
        "cause": entry.cause,
    }
    if entry.thread is not None:
        # A run's timestamps strictly increase, so the pair orders and names an entry.
        item |= {"th": key(entry.tenant, entry.thread), "to": f"{entry.timestamp}|{entry.run_id}"}
        item["tc"] = None if entry.container is None else part(entry.container)
    if entry.opens is not None:
        container = entry.opens.container
        item |= {
            "rl": _runs_partition(entry.tenant, container, shard_of(entry.run_id, RUN_SHARDS)),
            "ra": _runs_partition(entry.tenant, None, shard_of(entry.run_id, ADMIN_SHARDS)),
            "ro": f"{entry.timestamp}|{entry.run_id}",
            "sc": dump_json(entry.opens.to_json()),
        }
    return item


def _runs_partition(tenant: str, container: str | None, shard: int) -> str:
    return key(tenant, str(shard)) if container is None else key(tenant, container, str(shard))


def read_entry(tenant: str, run_id: str, item: Item) -> StoredEntry:
    return StoredEntry(tenant, run_id, item["sk"], item["j"], item["h"], item["f"], item.get("cause"))
