"""The pages that show what to send, sent: shapes as requests, guides as the scripts that a reader pastes, on a fresh service."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
from support.gateway import ROOT

from factbook_local.testing import Ready, running

DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS, TRIES = 120, 30
PATIENT = urllib3.Retry(10, status_forcelist=[429, 503], allowed_methods=None, backoff_factor=0.5)


@dataclass
class Blocks:
    """A page's fenced blocks in order, each with the block that follows it."""

    page: str

    def of(self, language: str, answer: str) -> Iterator[tuple[str, str]]:
        found = FENCE.findall((DOCS / self.page).read_text())
        for (kind, text), (following, answered) in zip(found, [*found[1:], ("", "")], strict=True):
            if kind == language:
                yield text, answered if following == answer else ""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    """It has indexed something: the first record also loads the embedding model, for longer than a search waits for the index."""
    tenants = ("shapes", "people", "team", "first")
    with running(tmp_path_factory.mktemp("pages"), tenants, {"MEMORY_EMBEDDINGS": "built-in"}) as ready:
        headers = {"Authorization": f"Bearer {ready.tokens['first']}"}
        with urllib3.PoolManager(headers=headers, retries=PATIENT) as http:
            written = http.request(
                "POST", f"{ready.url}/v1/memory/facts", body='{"type": "n", "content": "tea"}'
            )
            fact = {"id": written.json()["id"], "version": 1}
            body = json.dumps({"mode": "semantic", "query": "tea", "after": [fact]})
            assert up_to_date(http, "POST", f"{ready.url}/v1/memory/retrieve", body).json()["results"]
        yield ready


def up_to_date(http: urllib3.PoolManager, method: str, url: str, body: str | None) -> Any:
    """An answer of an index that is not behind: on a busy machine it may be, for longer than a request waits."""
    for _ in range(TRIES):
        answer = http.request(method, url, body=body, timeout=60)
        if answer.json().get("degraded") != "index-behind":
            break
    return answer


def has(answer: Any, shown: Any) -> bool:
    """Whether an answer has what the page shows of it: some fields of an object, the first items of a list."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(
            name in answer and has(answer[name], value) for name, value in shown.items()
        )
    if isinstance(shown, list) and shown:
        return (
            isinstance(answer, list)
            and len(answer) >= len(shown)
            and all(map(has, answer[: len(shown)], shown))
        )
    return bool(answer == shown)


def test_every_shape_is_one_that_the_service_takes_and_answers_as_shown(service: Ready) -> None:
    http = urllib3.PoolManager(
        headers={"Authorization": f"Bearer {service.tokens['shapes']}"}, retries=PATIENT
    )
    known, sent = "", 0
    for request, shown in Blocks("shapes.md").of("http", "json"):
        line, _, body = request.replace("{id}", known).partition("\n\n")
        method, target = line.split()
        answer = up_to_date(http, method, service.url + target, body or None)
        assert answer.status in (200, 201), (line, answer.data)
        assert has(answer.json(), json.loads(shown.replace("{id}", known))), (line, answer.json())
        known = answer.json().get("id") or answer.json().get("entries", [{"id": known}])[0]["id"]
        sent += 1
    assert sent > 15
    http.clear()


@pytest.fixture
def folder(service: Ready, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder as `make local` leaves it, where the ready file is of the guide's own tenant."""
    ready = {
        "url": service.url,
        "vkey": service.vkey,
        "tenants": {"demo": {"token": service.tokens[request.param]}},
    }
    (tmp_path / "memory.json").write_text(json.dumps(ready))
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("page", "folder"),
    [("guide-end-users.md", "people"), ("guide-copilots.md", "team")],
    indirect=["folder"],
)
def test_a_guide_prints_what_it_says(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    blocks = list(Blocks(page).of("python", "text"))
    assert len(blocks) > 4
    for block, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), names)
        assert printed.getvalue() == shown, block


def test_what_the_auditors_guide_shows_is_printed_by_its_commands(tmp_path: Path) -> None:
    blocks = list(Blocks("guide-auditors.md").of("bash", "text"))
    assert len(blocks) > 4
    with running(tmp_path, ("demo",)) as ready:
        (tmp_path / "memory.json").write_text(
            json.dumps(
                {
                    "url": ready.url,
                    "vkey": ready.vkey,
                    "tenants": {name: {"token": token} for name, token in ready.tokens.items()},
                }
            )
        )
        (tmp_path / ".venv").symlink_to(sys.prefix)
        script = "".join(f"{{\n{block}\n}} 2>&1; printf '\\036'\n" for block, _ in blocks)
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        for (_, shown), printed in zip(blocks, done.stdout.split("\x1e"), strict=False):
            pattern = ".*".join(map(re.escape, shown.split("…")))
            assert re.fullmatch(pattern, printed, re.DOTALL), (printed, shown)
