"""`factbook check` against a running service, and against one that does wrong."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import urllib3

from factbook.verify.notes import ED25519, key_id
from factbook_cli.main import main
from factbook_local.testing import Ready

Answer = tuple[int, bytes]
Wrong = Callable[[str, str, Answer], Answer]
"""What a service that does wrong answers instead, by method, path and the right answer."""


def checked(ready: Ready, url: str | None = None, *words: str) -> list[str]:
    return ["check", "--url", url or ready.url, "--token", ready.tokens["demo"], *words]


def test_every_step_holds_on_a_running_service_and_the_fact_is_gone(
    local_service: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(checked(local_service, None, "--json", "--vkey", local_service.vkey)) == 0
    steps = json.loads(capsys.readouterr().out)

    assert [step["held"] for step in steps] == [True] * 7
    assert {"find it", "verify the log offline", "delete it, and it is gone"} <= {
        step["name"] for step in steps
    }
    fact = next(step["said"] for step in steps if step["name"] == "write a fact")
    headers = {"Authorization": f"Bearer {local_service.tokens['demo']}"}
    gone = urllib3.request("GET", f"{local_service.url}/v1/memory/facts/{fact}", headers=headers)
    assert gone.status == 404


def test_a_line_a_step_is_printed(local_service: Ready, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(checked(local_service)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 7


def test_another_deployments_key_fails_the_log(
    local_service: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    name, public = local_service.vkey.partition("+")[0], bytes(32)
    foreign = f"{name}+{key_id(name, public).hex()}+{base64.b64encode(ED25519 + public).decode()}"
    assert main(checked(local_service, None, "--vkey", foreign)) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("FAILED      verify the log offline")


def test_a_key_that_was_copied_badly_is_refused_before_anything_is_written(
    local_service: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(checked(local_service, None, "--vkey", local_service.vkey[:-4])) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("factbook check: --vkey: ")


@contextmanager
def doing_wrong(ready: Ready, wrong: Wrong) -> Iterator[str]:
    """The address of a service that passes everything on and changes some answers."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {
                name: self.headers[name] for name in ("authorization", "content-type") if name in self.headers
            }
            right = urllib3.request(self.command, ready.url + self.path, body=body or None, headers=headers)
            status, data = wrong(self.command, self.path, (right.status, right.data))
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - names that http.server looks for

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def refusal(status: int, code: str) -> Answer:
    return status, json.dumps({"error": {"code": code, "message": "No.", "requestId": "r"}}).encode()


def other_content(method: str, path: str, right: Answer) -> Answer:
    if method == "GET" and "/facts/" in path and right[0] == 200:
        return 200, right[1].replace(b"The service was checked", b"Something else")
    return right


def no_administrator(method: str, path: str, right: Answer) -> Answer:
    return (
        (200, right[1].replace(b'"tenantAdmin":true', b'"tenantAdmin":false')) if "whoami" in path else right
    )


def not_deleted(method: str, path: str, right: Answer) -> Answer:
    deleted = right if method != "DELETE" else (200, b"{}")
    return (200, b'{"content": 1, "version": 1}') if method == "GET" and right[0] == 404 else deleted


def no_write(method: str, path: str, right: Answer) -> Answer:
    return refusal(500, "internal-error") if method == "POST" and path.endswith("/facts") else right


@pytest.mark.parametrize(
    ("wrong", "step", "why"),
    [
        (no_administrator, "who the token is", "no administrator"),
        (no_write, "write a fact", "internal-error"),
        (other_content, "read it back", "not what was written"),
        (not_deleted, "delete it, and it is gone", "still answered"),
    ],
)
def test_the_first_step_that_does_not_hold_ends_the_check_and_says_why(
    local_service: Ready, capsys: pytest.CaptureFixture[str], wrong: Wrong, step: str, why: str
) -> None:
    with doing_wrong(local_service, wrong) as url:
        assert main(checked(local_service, url)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(f"FAILED      {step}")
    assert why in lines[-1]
    assert [line.split()[0] for line in lines[:-1]] == ["ok"] * (len(lines) - 1)


def test_a_service_without_a_search_says_that_finding_was_not_checked(
    local_service: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(method: str, path: str, right: Answer) -> Answer:
        if path.endswith("/retrieve"):
            return refusal(503, "search-unavailable")
        if path.endswith("/status"):
            return 200, json.dumps({"search": "no search"}).encode()
        return right

    with doing_wrong(local_service, wrong) as url:
        assert main(checked(local_service, url)) == 0
    assert "not checked find it" in capsys.readouterr().out
