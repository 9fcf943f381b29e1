"""The schema's own CLI finds facts by words, through the shell, against a local service."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from factbook_local.testing import running

CLI = Path(sys.executable).with_name("kindgi")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("cli")) as ready:
        yield ready


@pytest.fixture
def kindgi(service, tmp_path):
    """Runs a command in an empty home and folder; its exit code, output and errors."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "NO_PROXY": "127.0.0.1",
        "KINDGI_API_URL": service.url,
        "KINDGI_API_TOKEN": service.tokens["demo"],
    }

    def run(*arguments):
        done = subprocess.run(
            [CLI, "memory", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_command_finds_what_it_wrote_in_every_mode_there_is(kindgi, tmp_path):
    fact = {
        "type": "acme.note",
        "scope": {"projectId": "cli"},
        "content": {"text": "spare parts for a washing machine"},
    }
    (tmp_path / "fact.json").write_text(json.dumps(fact))
    assert kindgi("facts", "write", "--input", "@fact.json")[0] == 0

    def found(mode):
        code, out, err = kindgi(
            "facts", "retrieve", "--query", json.dumps({"mode": mode, "query": "appliance parts"})
        )
        assert code == 0, err
        return [result["fact"]["content"]["text"] for result in json.loads(out)]

    deadline = time.monotonic() + 60
    while found("keyword") != [fact["content"]["text"]]:
        assert time.monotonic() < deadline
    assert found("both") == [fact["content"]["text"]]
    assert found("list") == [fact["content"]["text"]]
    code, table, _ = kindgi(
        "facts", "retrieve", "--table", "--query", '{"mode": "keyword", "query": "parts"}'
    )
    assert code == 0
    assert "acme.note" in table


def test_the_command_names_the_reason_when_search_by_meaning_is_off(kindgi):
    code, out, err = kindgi("facts", "retrieve", "--query", '{"mode": "semantic", "query": "x"}')

    assert code == 1
    assert "semantic-unavailable" in out + err
