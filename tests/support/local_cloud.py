"""A local cloud of the probe template, and what the probe saw of it."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from factbook_local.testing import NotReady, Ready, running

TEMPLATE = Path(__file__).parents[1] / "functional" / "local" / "probe" / "template.yaml"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Cloud:
    """A running probe: `ready` as the runner says, `seen` the file of its invocations."""

    ready: Ready
    seen: Path

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        request = urllib.request.Request(
            self.ready.url + path, data=body, method=method, headers=headers or {}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Reply(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Reply(refusal.code, dict(refusal.headers), refusal.read())

    def do(self, what: str, path: str = "/do", **arguments: Any) -> Reply:
        body = json.dumps({"do": what, **arguments}).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json"})

    def invocations(self) -> list[dict[str, Any]]:
        """Every invocation of any function so far, oldest first; not one that is still being written down."""
        whole, _, _ = self.seen.read_text().rpartition("\n") if self.seen.exists() else ("", "", "")
        return [json.loads(line) for line in whole.splitlines()]

    def records(self, mark: str) -> list[list[Any]]:
        """The batches of records that hold a mark, oldest first."""
        return [
            found["event"]["Records"]
            for found in self.invocations()
            if "Records" in found["event"] and mark in json.dumps(found["event"])
        ]


def eventually(what: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The first true value of `what`; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)
    return value


@contextmanager
def probe_cloud(
    folder: Path, data: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Cloud]:
    """The probe's template, running; the file of its invocations goes on over restarts in one folder."""
    seen = folder / "seen.jsonl"
    with running(
        folder, template=TEMPLATE, data=data, env=env, arguments=["--parameter", f"SeenFile={seen}"]
    ) as ready:
        yield Cloud(ready, seen)


def refused(folder: Path, *arguments: str, **options: Any) -> str:
    """What the runner says when it does not start; its exit code is 2 and it says one line, besides what it is about."""
    with (
        pytest.raises(NotReady) as refusal,
        running(
            folder,
            template=TEMPLATE,
            arguments=["--parameter", f"SeenFile={folder / 'seen'}", *arguments],
            **options,
        ),
    ):
        pass
    text = str(refusal.value)
    assert text.startswith("exit code 2\n")
    told = (line for line in text.splitlines()[1:] if not line.startswith("[runner]"))
    lines = [line for line in told if not line.endswith("…")]  # on a busy machine
    assert len(lines) == 1, lines
    assert lines[0].startswith("factbook: ")
    return lines[0]
