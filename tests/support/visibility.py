"""What a principal can get to see of facts, by every road the API has."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.access_model import Grants, Json

Ask = Callable[[str, dict[str, Any]], tuple[int, Any]]
"""GET a path with a query as one principal: the status and the JSON of the answer (None without one)."""

FACTS = "/v1/memory/facts"


@dataclass(frozen=True)
class Kept:
    """A fact that was written: its scope as sent, how long it exists, and whether it was deleted since.

    `waits`: it is in review. `erased`: nothing of it answers any more.
    """

    id: str
    place: Json
    large: bool
    deleted: bool
    before_deletion: str
    waits: bool = False
    erased: bool = False

    def seen_among_others(self, *, readable: bool) -> bool:
        """Whether it stands in lists as of a time before it was deleted."""
        return readable and not self.waits and not self.erased


def token_request(who: Grants) -> Json:
    """The body that makes a token of these grants."""
    actor = {"kind": "service", "id": "svc"} if who.user is None else {"kind": "user", "id": who.user}
    return {
        "actor": actor,
        "admin": who.admin,
        "projects": {"read": sorted(who.reads), "write": sorted(who.writes)},
        "orgs": {"read": sorted(who.reads_orgs), "admin": sorted(who.administers_orgs)},
    }


EVERY_ROAD = frozenset(["get", "version", "asOf", "revisions", "content"])


def seen_by_id(ask: Ask, fact: Kept, by: frozenset[str] = EVERY_ROAD) -> dict[str, bool]:
    """Road → whether the fact answers on it; a refusal must be the one for what does not exist."""
    path = f"{FACTS}/{fact.id}"
    roads: dict[str, tuple[str, Json]] = {
        "get": (path, {}),
        "version": (path, {"version": 1}),
        "asOf": (path, {"asOf": fact.before_deletion}),
        "revisions": (f"{path}/revisions", {}),
        "content": (f"{path}/content", {"version": 1}),
    }
    found = {}
    for road in sorted(by):
        where, query = roads[road]
        status, answer = ask(where, query)
        found[road] = status in (200, 307)
        if not found[road]:
            assert status == 404
            assert set(answer["error"]["details"]) == {"factId"}
            inline = road == "content" and not fact.large
            assert answer["error"]["code"] == "fact-not-found" or inline
            found[road] = answer["error"]["code"] == "not-found"  # seen, and has nothing to download
    return found


def expected_by_id(fact: Kept, *, readable: bool, admin: bool) -> dict[str, bool]:
    shown = readable and not fact.erased and (admin or not fact.waits)
    return {
        "get": shown and not fact.deleted,
        "version": shown,
        "asOf": shown,
        "revisions": shown,
        "content": shown,
    }


def walk(ask: Ask, query: Json) -> list[str]:
    """The ids of every page of a list; the order and the absence of repeats are checked."""
    found: list[tuple[str, str]] = []
    cursor = ""
    while True:
        status, page = ask(FACTS, query | {"cursor": cursor})
        assert status == 200
        found += [(fact["createdAt"], fact["id"]) for fact in page["data"]]
        if not page["hasMore"]:
            break
        cursor = page["nextCursor"]
    assert found == sorted(set(found), reverse=True)
    return [fact_id for _, fact_id in found]


def filter_query(wanted: Json) -> Json:
    return {"scope": json.dumps(wanted, ensure_ascii=False)} if wanted else {}
