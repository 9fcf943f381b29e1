"""A walk of all runs, over the index of runs. It is read in segments that take turns: a tenant's runs are in few of them."""

import json
from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item, store_errors, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.domain.strict_json import parse_json
from factbook.ports.flaws import UNREADABLE
from factbook.ports.log.walks import RunName
from factbook.ports.walks import Stop, WalkPage

SEGMENTS = 16
_INDEX = "runs-admin"
_KEYS = ("ra", "ro", "pk", "sk")
_Places = list[Item | bool]
"""Of each segment: the key behind which it goes on, True before its start and False behind its end."""


class DynamoRunWalk:
    """RunWalk over the log table; `client` is a boto3 DynamoDB client. A cursor says whose turn it is, and all places."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def walk(self, after: str | None, limit: int) -> WalkPage[RunName]:
        turn: int = 0
        places: _Places = [True] * SEGMENTS
        if after:
            turn, places = json.loads(after)
        place = places[turn]
        resume = {"ExclusiveStartKey": to_item(place)} if isinstance(place, dict) else {}
        with store_errors():
            page = self._client.scan(
                TableName=self._table,
                IndexName=_INDEX,
                Segment=turn,
                TotalSegments=SEGMENTS,
                Limit=limit,
                **resume,
            )
        rows = list(map(from_item, page["Items"]))
        stops = [
            Stop(name, _cursor(turn, _moved(places, turn, _place(row))))
            for row in rows
            if (name := _name(row)) is not None
        ]
        last = page.get("LastEvaluatedKey")
        return WalkPage(stops, _next(turn, _moved(places, turn, _place(from_item(last)) if last else False)))


def _moved(places: _Places, turn: int, place: Item | bool) -> _Places:  # noqa: FBT001 - one of three kinds of places
    return [*places[:turn], place, *places[turn + 1 :]]


def _next(turn: int, places: _Places) -> str | None:
    """The cursor of the next segment that has something left; None when none has."""
    for step in range(1, SEGMENTS + 1):
        following = (turn + step) % SEGMENTS
        if places[following] is not False:
            return _cursor(following, places)
    return None


def _cursor(turn: int, places: _Places) -> str:
    return json.dumps([turn, places], default=int)


def _place(row: Item) -> Item:
    return {name: row[name] for name in _KEYS}


def _name(row: Item) -> RunName | None:
    """None for a row that was put past the service: it does not name the run in whose partition it stands."""
    try:
        tenant, run_id = parse_json(row["sc"])["tenantId"], row["ro"].partition("|")[2]
        return RunName(tenant, run_id) if key(tenant, run_id) == row["pk"] else None
    except UNREADABLE:
        return None
