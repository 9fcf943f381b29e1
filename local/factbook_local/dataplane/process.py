"""Starting and ending the data plane, and speaking to it."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from factbook_local.dataplane.store import DAMAGED, FULL, UNUSABLE
from factbook_local.sockets import listen

REGION = "us-east-1"
ACCOUNT = "000000000000"
ENDING_SECONDS = 5.0
CREDENTIALS = ("local", "local")
"""Not secret: the data plane listens on the loopback interface and checks no signature."""


class DataPlaneProcess:
    """A data plane on a random port of 127.0.0.1. Its state lives in `file`, or nowhere."""

    def __init__(
        self,
        *,
        file: Path | None,
        expiring: dict[str, str],
        expiry_seconds: float = 2.0,
        keep_open: tuple[int, ...] = (),
        log: Any = None,
    ) -> None:
        listener = listen(0)
        self._file = file
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = {
            "socket_fd": listener.fileno(),
            "file": str(file) if file else None,
            "expiring": expiring,
            "expiry_seconds": expiry_seconds,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "factbook_local.dataplane.emulator", json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=_environment(),
            pass_fds=(listener.fileno(), *keep_open),
            start_new_session=True,
        )
        listener.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def returncode(self) -> int | None:
        return self._process.poll()

    def wait_until_serving(self, seconds: float = 60.0) -> None:
        """The socket accepts from the start; the first answer says that the state is restored."""
        try:
            control(self.url, "saves", seconds=seconds)
            _first_request(self.url)
        except HTTPError as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING_SECONDS)  # the connection ends a moment before the process does
            raise DataPlaneEnded(self._process.poll(), self._file) from error

    def stop(self, seconds: float = 15.0) -> int:
        """Save and end. Answers the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class DataPlaneEnded(Exception):
    """The data plane ended before it served; the message says why and what to do."""

    def __init__(self, code: int | None, file: Path | None) -> None:
        said = {
            DAMAGED: f"{file} is damaged. Put it back from a copy, or start with --reset, which empties the folder.",
            UNUSABLE: f"{file} cannot be opened and written. Make it yours to write, or give another --data folder.",
            FULL: f"{file} cannot be written: the disk is full. Make room, or give another --data folder.",
        }
        super().__init__(said.get(code or 0, f"the data plane ended early (exit code {code})"))


def control(url: str, path: str, body: Any = None, *, seconds: float = 30.0) -> Any:
    """One call of the runner's own interface on the data plane."""
    method = "GET" if body is None else "PUT"
    return urllib3.request(
        method, f"{url}/_factbook/{path}", json=body, timeout=seconds, retries=False
    ).json()


def _first_request(url: str) -> None:
    """The first request of all makes ministack import half a second's worth: better now than in a caller's time."""
    headers = {
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={CREDENTIALS[0]}/20260101/{REGION}/dynamodb/aws4_request",
    }
    urllib3.request("POST", url, body=b"{}", headers=headers, timeout=60, retries=False)


def _environment() -> dict[str, str]:
    """ministack's settings. Its own port stays the default, whatever we listen on: names of queues hold it."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "LANG", "HOME", "TMPDIR", "VIRTUAL_ENV")
        if name in os.environ
    }
    return kept | {
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        # Presigned URLs are checked against these, whatever else is not.
        "AWS_ACCESS_KEY_ID": CREDENTIALS[0],
        "AWS_SECRET_ACCESS_KEY": CREDENTIALS[1],
        "PERSIST_STATE": "0",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "ERROR",
        "AWS_EC2_METADATA_DISABLED": "true",
        "DOCKER_HOST": "unix:///nonexistent",
        "PYTHONUNBUFFERED": "1",
    }
