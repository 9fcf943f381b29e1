"""All that the whole service prints, every function and stream included, holds nothing that is a caller's own."""

import json
import time
import uuid
from pathlib import Path
from typing import Any

import urllib3

from factbook_local.testing import running

SECONDS = 30.0


def test_nothing_planted_in_requests_reaches_the_services_output(tmp_path: Path) -> None:
    planted: list[str] = []

    def plant(place: str) -> str:
        planted.append(f"zyxw{place}{uuid.uuid4().hex}")
        return planted[-1]

    with running(tmp_path) as ready:
        token = ready.tokens["demo"]
        http = urllib3.PoolManager(headers={"Authorization": f"Bearer {token}"})

        def send(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
            sent = None if body is None else json.dumps(body)
            answer = http.request(method, ready.url + path, body=sent, headers={**http.headers, **headers})
            return answer.status, answer.json()

        _, fact = send(
            "POST",
            "/v1/memory/facts",
            {"type": "note", "content": {plant("key"): plant("content")}},
            **{"Idempotency-Key": plant("idempotency")},
        )
        after = [{"id": fact["id"], "version": 1}]
        message = {"kind": "user-message", "scope": {"userId": "admin"}, "payload": plant("payload")}
        statuses = [
            send("POST", f"/v1/memory/facts/{fact['id']}/supersede", {"content": plant("large") * 2000})[0],
            send("POST", "/v1/memory/runs/r/log", {"entries": [message]})[0],
            send("POST", "/v1/memory/runs/r/log", {"entries": [{"kind": plant("kind")}]})[0],
            send("POST", "/v1/memory/retrieve", {"mode": "keyword", "query": plant("query"), "after": after})[
                0
            ],
            send("POST", "/v1/memory/retrieve", {"mode": plant("mode")})[0],
            send("POST", "/v1/memory/checkpoints", {})[0],
            send(
                "GET", f"/v1/memory/facts/{plant('path')}?version={plant('version')}", Cookie=plant("cookie")
            )[0],
            send("GET", f"/{plant('nowhere')}")[0],
            send("GET", "/health", Authorization=f"Bearer {plant('bearer')}")[0],
            send("GET", "/v1/memory/facts", Authorization=f"Bearer fb_{plant('id')}_{'s' * 43}")[0],
        ]
        http.clear()
        assert statuses == [200, 201, 400, 200, 400, 201, 400, 404, 200, 401]
        output = _until(
            ready.output, ['"function":"index"', '"function":"checkpoint"', '"function":"retrieve"']
        )

    assert [text for text in planted if text in output] == []
    secret = token.rpartition("_")[2]
    banner = [line for line in output.splitlines() if secret in line]
    assert all("{" not in line for line in banner), "a function logged the token that the banner shows"


def _until(path: Path, texts: list[str]) -> str:
    """The output once it holds these texts. Raises AssertionError when it never does."""
    ended = time.monotonic() + SECONDS
    while True:
        output = path.read_text(errors="replace")
        missing = [text for text in texts if text not in output]
        if not missing:
            return output
        assert time.monotonic() < ended, missing
        time.sleep(0.2)
