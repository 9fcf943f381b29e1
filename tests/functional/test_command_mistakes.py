"""The commands with what a newcomer gives them: one line on standard error that says what to do, and its exit code."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.emulators import Aws

from factbook_cli.main import main

SECONDS = 60
NOWHERE = "http://127.0.0.1:9"
KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
HERE = {"AWS_REGION": "eu-central-1"}
STACK = ["token", "--stack", "factbook", "--tenant", "acme"]

ACCOUNT = {
    "no region": ({}, "You must specify a region. Set AWS_REGION to the region of the deployment."),
    "an empty region": ({"AWS_REGION": ""}, "You must specify a region. Set AWS_REGION"),
    "no credentials": (HERE, "Unable to locate credentials. Sign in, or set AWS_PROFILE."),
    "half of them": (
        HERE | {"AWS_ACCESS_KEY_ID": "x"},
        "Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY. Set both, or take both out and set AWS_PROFILE.",
    ),
    "no such profile": (
        HERE | {"AWS_PROFILE": "nope"},
        "The config profile (nope) could not be found. Check AWS_PROFILE.",
    ),
    "no such region": (
        KEYS | {"AWS_REGION": "eu central 1"},
        "Provided region_name 'eu central 1' doesn't match a supported format. Check AWS_REGION.",
    ),
    "nothing answers": (
        HERE | KEYS | {"AWS_ENDPOINT_URL": NOWHERE},
        f'Could not connect to the endpoint URL: "{NOWHERE}/". Check AWS_REGION and your network.',
    ),
    "no endpoint": (
        HERE | KEYS | {"AWS_ENDPOINT_URL": "127.0.0.1:9"},
        "Invalid endpoint: 127.0.0.1:9. AWS_ENDPOINT_URL must begin with http:// or https://.",
    ),
}


@pytest.mark.parametrize("case", ACCOUNT)
def test_what_is_wrong_with_the_account_is_said_with_what_to_do(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    given, told = ACCOUNT[case]
    nothing = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
    for name, value in (nothing | {"AWS_SHARED_CREDENTIALS_FILE": os.devnull} | given).items():
        monkeypatch.setenv(name, value)
    assert main(STACK) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(f"factbook token: {told}")


def test_the_region_is_the_one_that_every_tool_of_aws_reads(
    ministack: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(ministack.endpoint))
    assert main(["token", "--table", ministack.settings.access_table, "--tenant", "acme"]) == 0
    assert capsys.readouterr().out.startswith("fb_")


SERVICE = {
    "a token of two lines": (
        ["--url", NOWHERE, "--token", "fb_a\nb"],
        2,
        "The token has characters that no token has.",
    ),
    "a token with its scheme": (
        ["--url", NOWHERE, "--token", "Bearer fb_a"],
        2,
        "Give the token alone, as it was printed, without Bearer and without quotes.",
    ),
    "a token in quotes": (["--url", NOWHERE, "--token", "'fb_a'"], 2, "Give the token alone"),
    "a token of another alphabet": (["--url", NOWHERE, "--token", "fb_ä"], 2, "The token has characters"),
    "an URL with the path of a route": (
        ["--url", f"{NOWHERE}/v1/memory/facts", "--token", "t"],
        2,
        f"Give the URL without its path: {NOWHERE}",
    ),
    "an URL with a version": (["--url", f"{NOWHERE}/v1/", "--token", "t"], 2, f"without its path: {NOWHERE}"),
    "an URL without a scheme": (["--url", "localhost:8000", "--token", "t"], 2, "must begin with http://"),
    "no URL": (["--token", "t"], 2, "Say where the service is: --url and --token"),
    "an empty token": (["--url", NOWHERE, "--token", ""], 2, "Say where the service is"),
    "nobody there": (["--url", NOWHERE, "--token", "t"], 1, f"{NOWHERE} did not answer: Connection refused."),
}


@pytest.mark.parametrize("case", SERVICE)
@pytest.mark.parametrize(
    "words", [["log", "export", "--all", "--out", "out"], ["log", "checkpoint"], ["vkey"]]
)
def test_what_is_wrong_with_the_service_that_is_named_is_said(
    case: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.sleep", lambda _: None)  # between two tries, where nobody is there
    for name in ("FACTBOOK_URL", "FACTBOOK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    given, code, told = SERVICE[case]
    if words == ["vkey"] and told.startswith("Say where"):
        told = "Say whose key"
    assert main([*words, *given]) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(f"factbook {words[0]}: ")
    assert told in printed.err
    assert list(tmp_path.iterdir()) == []


class Slow(http.server.BaseHTTPRequestHandler):
    """A service that begins to answer an export, and never ends."""

    def do_POST(self) -> None:
        self.answer({})

    def do_GET(self) -> None:
        if self.path.startswith("/v1/identity"):
            self.answer({"tenantId": "acme"})
        elif self.path.startswith("/v1/memory/checkpoints/latest"):
            self.answer({"error": {"code": "not-found", "message": "None yet."}}, 404)
        else:
            time.sleep(SECONDS)

    def answer(self, body: object, status: int = 200) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def slow_service() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_service_that_does_not_speak_https_is_told_so(
    slow_service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = slow_service.replace("http:", "https:")
    assert main(["log", "checkpoint", "--url", url, "--token", "t"]) == 1
    told = (
        f"factbook log: {url} did not answer: it speaks http and not https. Check the URL and your network.\n"
    )
    assert capsys.readouterr() == ("", told)


def test_a_proxy_of_the_environment_is_not_asked_about_a_service(
    slow_service: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, NOWHERE)
    assert main(["vkey", "--url", slow_service, "--token", "t"]) == 1
    assert "None yet." in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["log", "audit", "--help"], ["cost"]])
def test_a_terminal_that_knows_ascii_alone_is_written_to(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "factbook_cli", *words],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout


def started(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "factbook_cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "factbook: interrupted.\n"), (signal.SIGTERM, 143, "")],
)
def test_an_export_that_is_interrupted_leaves_no_half_file_and_the_former_one(
    slow_service: str, tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    out, part = tmp_path / "out", tmp_path / "out.part"
    out.write_text("former")
    with started(
        "log", "export", "--run", "r", "--out", str(out), "--url", slow_service, "--token", "t"
    ) as process:
        deadline = time.monotonic() + SECONDS
        while not part.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        printed = process.communicate(timeout=SECONDS)
    assert (process.returncode, printed) == (code, ("", said))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("out", "former")]


@pytest.mark.parametrize("words", [["local", "--port", "0"], ["demo"], ["log", "export"], ["--help"]])
def test_a_command_that_is_interrupted_while_it_is_loaded_says_one_line(words: list[str]) -> None:
    """Ctrl-C at the first module that the command line imports, which is where a quick hand meets it."""
    code = (
        "import builtins, signal, sys\n"
        "of_python = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name.startswith('factbook_cli.main'):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return of_python(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "from factbook_cli.__main__ import start\n"
        "sys.exit(start())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "factbook: interrupted.\n")


def test_whoever_reads_only_the_beginning_hears_of_no_broken_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "factbook_cli", "cost"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_no_command_at_all_is_told_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "which command? There are " in (told := capsys.readouterr().err)
    assert "doctor" in told
