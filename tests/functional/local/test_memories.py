"""A memory on a local cloud, with the schema's own client beside plain requests: what the streams bring into the index."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from support.local_cloud import eventually
from support.official import Client

from factbook_local.testing import Ready

REMEMBER, CONTEXT = "/v1/memory/remember", "/v1/memory/context"


def caller(ready: Ready, token: str) -> Callable[..., tuple[int, Any]]:
    def call(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            ready.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)

    return call


def test_what_was_confirmed_is_found_by_others_while_a_proposal_stands_over_it(local_service: Ready) -> None:
    admin = caller(local_service, local_service.tokens["demo"])

    def token(name: str, **grants: Any) -> str:
        made = admin("POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": name}, **grants})
        return str(made[1]["token"])

    ann_token = token("ann")
    ann, boss = caller(local_service, ann_token), caller(local_service, token("boss", admin=True))
    said = {"agent": {"id": "copilot"}, "type": "acme.memory", "key": "business", "reach": "account"}

    def found(call: Callable[..., tuple[int, Any]]) -> list[str]:
        turn = {"query": "pelicans", "agent": "copilot", "intents": [{"mode": "keyword"}]}
        asked = {"mode": "keyword", "query": "pelicans", "agent": "copilot"}
        results = call("POST", "/v1/memory/retrieve", asked)[1]["results"]
        texts = [result["fact"]["content"]["text"] for result in results]
        block = call("POST", CONTEXT, turn)[1]["message"]
        assert all(text in block for text in texts)
        return texts

    status, fact = ann("POST", REMEMBER, {**said, "text": "We breed pelicans."})
    assert status == 201
    eventually(lambda: found(ann) == ["We breed pelicans."])
    assert found(boss) == []
    path = f"/v1/memory/facts/{fact['id']}"
    assert admin("POST", f"{path}/confirm", {"expectVersion": 1})[0] == 200
    eventually(lambda: found(boss) == ["We breed pelicans."])
    assert ann("POST", REMEMBER, {**said, "text": "We sell pelicans."})[0] == 200
    eventually(lambda: found(ann) == ["We sell pelicans."])
    eventually(lambda: found(boss) == ["We breed pelicans."])

    memory = Client("sync", local_service.url, ann_token, set())
    assert memory.get_fact(fact["id"]).version == 3
    assert [each.version for each in memory.list_fact_revisions(fact["id"]).data] == [3, 2, 1]

    assert admin("POST", f"{path}/reject", {})[0] == 200
    eventually(lambda: found(ann) == ["We breed pelicans."])
    eventually(lambda: found(boss) == ["We breed pelicans."])
    assert memory.get_fact(fact["id"]).version == 4
    memory.supersede_fact(fact["id"], content={"text": "We feed pelicans."}, expect_version=4)
    eventually(lambda: found(ann) == ["We feed pelicans."])
    assert admin("POST", f"{path}/confirm", {})[0] == 200
    eventually(lambda: found(boss) == ["We feed pelicans."])
    assert admin("DELETE", path)[0] == 200
    eventually(lambda: found(boss) == [] and found(ann) == [])
    memory.close()
