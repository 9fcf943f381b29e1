"""A local cloud for tests: started as the command, in a process of its own, and ended again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import factbook_local

START_SECONDS = 90.0


@dataclass(frozen=True)
class Ready:
    """A running local cloud: what its ready file says, its process, and the file its output goes to."""

    url: str
    tokens: dict[str, str]
    vkey: str
    aws: dict[str, Any]
    process: "subprocess.Popen[bytes]"
    output: Path

    def client(self, service: str) -> Any:
        """A boto3 client of its data plane."""
        import boto3

        make: Any = boto3.client
        return make(
            service,
            endpoint_url=self.aws["endpoint"],
            region_name=self.aws["region"],
            aws_access_key_id=self.aws["accessKeyId"],
            aws_secret_access_key=self.aws["secretAccessKey"],
        )

    def kill(self) -> None:
        """SIGKILL to the runner, its data plane and every function: what a power cut leaves behind."""
        for pid in (self.process.pid, *descendants(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


class NotReady(Exception):
    """The runner ended, or was not ready in time; the message holds what it printed."""


@contextmanager
def running(
    folder: Path,
    tenants: Sequence[str] = ("demo",),
    env: Mapping[str, str] | None = None,
    *,
    data: Path | None = None,
    template: Path | None = None,
    arguments: Sequence[str] = (),
) -> Iterator[Ready]:
    """`folder` takes the ready file and the output. Raises NotReady with the output when it does not start."""
    ready_file, output = (
        folder / f"ready-{time.monotonic_ns()}.json",
        folder / f"output-{time.monotonic_ns()}.txt",
    )
    command = [
        sys.executable,
        "-m",
        "factbook_cli",
        "local",
        "--port",
        "0",
        "--ready-file",
        str(ready_file),
        "--verbose",
    ]
    for tenant in tenants:
        command += ["--tenant", tenant]
    if data is not None:
        command += ["--data", str(data)]
    if template is not None:
        command += ["--template", str(template)]
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [*command, *arguments],
            stdout=stream,
            stderr=stream,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": _python_path(), **(env or {})},
            start_new_session=True,
        )
    try:
        ready = _wait(process, ready_file, output)
        yield Ready(
            ready["url"],
            {name: tenant["token"] for name, tenant in ready["tenants"].items()},
            ready["vkey"],
            ready["aws"],
            process,
            output,
        )
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _python_path() -> str:
    """The roots this very code was imported from, whatever the tests' working folder is."""
    root = Path(factbook_local.__file__).resolve().parents[2]
    ours = [str(root / folder) for folder in ("cli", "local", "layers/factbook", "layers/search")]
    return os.pathsep.join([*ours, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


def _wait(process: "subprocess.Popen[bytes]", ready_file: Path, output: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_SECONDS
    while not ready_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise NotReady(f"exit code {process.poll()}\n{output.read_text(errors='replace')}")
        time.sleep(0.02)
    return json.loads(ready_file.read_text())  # type: ignore[no-any-return]


def descendants(pid: int) -> list[int]:
    """All processes below one, from the kernel's tables; empty where there are none to read."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found, left = [], [pid]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found
