"""What the demo's chapters share: the running service, calls to it, and lines on the screen."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kindgi.client import Kindgi

from .testing import Ready

TENANT = "demo"
SEARCHES = 30
"""At most, for a record to be found."""


class Broken(Exception):
    """A step of the story did not come out as told."""


@dataclass
class Story:
    """Where the service runs, and how the story calls it."""

    ready: Ready
    folder: Path

    def __post_init__(self) -> None:
        self.http = urllib3.PoolManager(headers={"Content-Type": "application/json"})
        self.token = self.ready.tokens[TENANT]

    def client(self, token: str | None = None) -> Any:
        return Kindgi(self.ready.url, token=token or self.token)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        """One request as curl would send it; its status and JSON."""
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        answer = self.http.request(method, self.ready.url + path, body=sent, headers=headers, retries=False)
        return answer.status, json.loads(answer.data) if answer.data else None

    def search(self, body: Any) -> tuple[int, Any]:
        """`POST /retrieve`, again while the index is behind: on a busy machine that may be longer than one request waits."""
        for _ in range(SEARCHES):
            status, answer = self.call("POST", "/v1/memory/retrieve", body)
            if status != 200 or answer.get("degraded") != "index-behind":
                break
        return status, answer

    def new_token(self, kind: str, name: str, **grants: Any) -> str:
        status, made = self.call("POST", "/v1/access/tokens", {"actor": {"kind": kind, "id": name}, **grants})
        check(status == 201, f"a token for {kind}:{name}")
        return str(made["token"])


def factbook(story: Story, *arguments: str) -> tuple[int, str]:
    """Run `factbook …` as a person would; its exit code and first line."""
    offline = arguments[1] in ("audit", "verify")
    service = [] if offline else ["--url", story.ready.url, "--token", story.token]
    done = subprocess.run(
        [sys.executable, "-m", "factbook_cli", *arguments, *service],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (done.stdout or done.stderr).strip().splitlines() or [""]
    return done.returncode, lines[0].replace(str(story.folder) + "/", "")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def chapter(title: str) -> None:
    say(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}")


def show(what: str, outcome: object) -> None:
    say(f"  {what:<58} {outcome}")


def check(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion reads best with its condition first
    if not holds:
        raise Broken(what)
