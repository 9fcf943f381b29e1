"""The product itself on a local cloud: what `factbook local` promises to whoever starts it."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support.local_cloud import eventually

from factbook_local.testing import Ready, running


def call(ready: Ready, method: str, path: str, body: Any = None, tenant: str = "demo") -> tuple[int, Any]:
    request = urllib.request.Request(
        ready.url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {ready.tokens[tenant]}"} if tenant else {},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


NOTE = {"type": "note", "scope": {}, "content": "the falcon flies at noon"}


def test_a_start_gives_what_the_contract_says(tmp_path: Path) -> None:
    with running(tmp_path, tenants=["demo", "other"]) as ready:
        (file,) = tmp_path.glob("ready-*.json")
        written = json.loads(file.read_text())
        assert written.keys() == {"url", "tenants", "vkey", "aws"}
        assert written["tenants"].keys() == {"demo", "other"}
        assert written["aws"].keys() >= {
            "endpoint",
            "region",
            "accessKeyId",
            "secretAccessKey",
            "tables",
            "buckets",
        }
        assert written["aws"]["tables"].keys() == {"facts", "log", "keys", "access"}
        assert written["aws"]["buckets"].keys() == {"blobs", "checkpoints"}
        for name in written["aws"]["tables"].values():
            assert ready.client("dynamodb").describe_table(TableName=name)["Table"]["TableStatus"] == "ACTIVE"
        assert len(written["vkey"].split("+")) >= 3

        assert call(ready, "GET", "/health", tenant="") == (200, {"ok": True})
        status, who = call(ready, "GET", "/v1/identity/whoami")
        assert (status, who["tenantId"], who["actor"], who["tenantAdmin"]) == (
            200,
            "demo",
            "user:admin",
            True,
        )
        status, fact = call(ready, "POST", "/v1/memory/facts", NOTE)
        assert status == 201
        assert call(ready, "GET", f"/v1/memory/facts/{fact['id']}")[1]["content"] == NOTE["content"]
        assert call(ready, "GET", f"/v1/memory/facts/{fact['id']}", tenant="other")[0] == 404
        assert call(ready, "GET", "/nowhere")[1]["error"]["code"] == "not-found"

        search = {"mode": "keyword", "query": "falcon"}
        found = eventually(lambda: call(ready, "POST", "/v1/memory/retrieve", search)[1]["results"])
        assert [result["fact"]["id"] for result in found] == [fact["id"]]

        output = ready.output.read_text()
        assert f"Factbook is ready at {ready.url}" in output
        assert all(token in output for token in ready.tokens.values())
        assert "search  Memory search: keyword" in output
        assert f"curl -s {ready.url}/v1/memory/facts" in output
        assert "cannot run" not in output


def test_two_starts_on_one_folder_are_the_same_service(tmp_path: Path) -> None:
    with running(tmp_path, data=tmp_path / "data") as ready:
        first = ready
        status, fact = call(ready, "POST", "/v1/memory/facts", NOTE)
        assert status == 201
        assert (
            call(
                ready,
                "POST",
                "/v1/memory/runs/r1/log",
                {"entries": [{"kind": "user-message", "scope": {}, "payload": {"a": 1}}]},
            )[0]
            == 201
        )
    with running(tmp_path, tenants=["demo", "new"], data=tmp_path / "data") as ready:
        assert (ready.tokens["demo"], ready.vkey) == (first.tokens["demo"], first.vkey)
        assert call(ready, "GET", f"/v1/memory/facts/{fact['id']}") == (200, fact)
        found = call(ready, "POST", "/v1/memory/retrieve", {"mode": "keyword", "query": "falcon"})[1][
            "results"
        ]
        assert [result["fact"]["id"] for result in found] == [fact["id"]]
        assert len(call(ready, "GET", "/v1/memory/runs/r1/log")[1]["data"]) == 1
        assert call(ready, "GET", "/v1/identity/whoami", tenant="new")[1]["tenantId"] == "new"


@pytest.mark.exhaustive
def test_the_search_index_is_made_again_when_it_is_lost(tmp_path: Path) -> None:
    with running(tmp_path, data=tmp_path / "data") as ready:
        _, fact = call(ready, "POST", "/v1/memory/facts", NOTE)
        assert call(ready, "GET", f"/v1/memory/facts/{fact['id']}")[0] == 200
    for file in (tmp_path / "data" / "search").iterdir():
        file.unlink()
    with running(tmp_path, data=tmp_path / "data") as ready:
        found = call(ready, "POST", "/v1/memory/retrieve", {"mode": "keyword", "query": "falcon"})[1]
        assert [result["fact"]["id"] for result in found["results"]] == [fact["id"]]
