"""The schema's public client and command line, driven as their users drive them."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kindgi.client import AsyncKindgi, Kindgi

SECONDS = 180


class Client:
    """`client.memory`, called synchronously whichever the client is; remembers which methods it was asked for."""

    def __init__(self, kind: str, url: str, token: str, called: set[str]) -> None:
        self._runner = asyncio.Runner()
        self._kind, self._url, self._token = kind, url, token
        self.called = called
        self._client: Any = (Kindgi if kind == "sync" else AsyncKindgi)(url, token=token)

    def as_(self, token: str) -> "Client":
        return Client(self._kind, self._url, token, self.called)

    def close(self) -> None:
        if self._kind == "async":
            self._runner.run(self._client.aclose())
        else:
            self._client.close()
        self._runner.close()

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.called.add(method)
            answer = getattr(self._client.memory, method)(*arguments, **named)
            return self._runner.run(answer) if asyncio.iscoroutine(answer) else answer

        return call

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Printed:
    """What a command left: its exit code, both streams, and the JSON it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class CommandLine:
    """`kindgi memory …` in an empty home and an empty folder; remembers which commands it was asked for."""

    url: str
    token: str
    folder: Path
    called: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.home, self.cwd = self.folder / "home", self.folder / "cwd"
        self.home.mkdir(exist_ok=True)
        self.cwd.mkdir(exist_ok=True)

    def as_(self, token: str) -> "CommandLine":
        return CommandLine(self.url, token, self.folder, self.called)

    def __call__(self, *arguments: str) -> Printed:
        self.called.add(" ".join(arguments[:2]))
        done = subprocess.run(
            self._command(arguments),
            env=self._environment,
            cwd=self.cwd,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        printed = Printed(done.returncode, done.stdout, done.stderr)
        assert "undefined" not in printed.out
        return printed

    def on_a_terminal(self, *arguments: str) -> str:
        """What a person sees; the CLI prints tables there."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self._command(arguments), env=self._environment, cwd=self.cwd, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        assert process.wait(SECONDS) == 0, seen
        return seen.decode()

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KINDGI_API_URL": self.url,
            "KINDGI_API_TOKEN": self.token,
            "NO_PROXY": "127.0.0.1",
            "NODE_COMPILE_CACHE": str(self.folder / "compiled"),
        }

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "kindgi_cli", "memory", *arguments]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how Linux says that the other side is closed
        return b""
