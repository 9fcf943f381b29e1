"""Retention and holds on a local cloud: time to live, the stream and the index function take away all that was kept."""

import json
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

from support.local_cloud import eventually

from factbook_local.testing import Ready

FACTS = "/v1/memory/facts"
SECONDS = 15
"""Until the facts end: time enough to write, replace and hold them."""


class Tenant:
    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            self._ready.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._ready.tokens['demo']}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def items(self, fact: str) -> int:
        found = self._ready.client("dynamodb").query(
            TableName=self._ready.aws["tables"]["facts"],
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": f"demo|{fact}"}},
        )
        return int(found["Count"])

    def versions(self, fact: str) -> int:
        """Of its payloads, whichever the bucket has kept."""
        found = self._ready.client("s3").list_object_versions(
            Bucket=self._ready.aws["buckets"]["blobs"], Prefix=f"facts/demo/{fact}/"
        )
        return len(found.get("Versions", ())) + len(found.get("DeleteMarkers", ()))

    def finds(self, word: str) -> list[str]:
        _, answer = self.call("POST", "/v1/memory/retrieve", {"mode": "keyword", "query": word})
        return [each["fact"]["id"] for each in answer["results"]]

    def written(self, word: str, until: str) -> str:
        """A fact of two revisions, each with a payload in the bucket."""
        body = {"type": "note", "content": f"{word} " * 12_000, "retention": {"keepUntil": until}}
        status, fact = self.call("POST", FACTS, body)
        assert status == 201
        status, _ = self.call(
            "POST", f"{FACTS}/{fact['id']}/supersede", {"content": f"{word} again " * 9_000}
        )
        assert status == 200
        return str(fact["id"])

    def is_gone(self, fact: str) -> bool:
        return (self.items(fact), self.versions(fact)) == (0, 0)


def test_an_expired_fact_leaves_nothing_and_a_held_one_stays_whole_until_it_is_released(
    local_service: Ready,
) -> None:
    tenant = Tenant(local_service)
    until = (datetime.now(UTC) + timedelta(seconds=SECONDS)).isoformat()
    plain, held = tenant.written("ptarmigan", until), tenant.written("capercaillie", until)
    assert tenant.call("POST", f"{FACTS}/{held}/hold", {"reason": "Case 7"})[0] == 200
    for fact, word in ((plain, "ptarmigan"), (held, "capercaillie")):
        assert (tenant.items(fact), tenant.versions(fact)) == (2, 2)
        eventually(lambda word=word, fact=fact: tenant.finds(word) == [fact])  # type: ignore[misc]

    eventually(lambda: tenant.is_gone(plain))
    assert tenant.call("GET", f"{FACTS}/{plain}")[0] == 404
    assert tenant.finds("ptarmigan") == []
    assert (tenant.items(held), tenant.versions(held), tenant.finds("capercaillie")) == (2, 2, [held])
    assert tenant.call("DELETE", f"{FACTS}/{held}")[1]["error"]["code"] == "legal-hold"

    assert tenant.call("POST", f"{FACTS}/{held}/release", {"reason": "Case 7"})[0] == 200
    assert tenant.call("GET", f"{FACTS}/{held}")[0] == 404
    eventually(lambda: tenant.is_gone(held))
    assert tenant.finds("capercaillie") == []
    _, run = tenant.call("GET", "/v1/memory/runs/_holds/log")
    told = [entry["payload"] for entry in run["data"] if entry["payload"]["factId"] == held]
    assert [each["action"] for each in told] == ["hold", "release"]
