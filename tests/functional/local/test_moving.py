"""A tenant moves between two services that run as processes, by the commands as an operator runs them."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.local_cloud import eventually

from factbook.verify.judges import audit
from factbook.verify.notes import read_key
from factbook_cli.api import Api
from factbook_cli.main import main
from factbook_local.testing import Ready, running


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folders = [tmp_path_factory.mktemp(name) for name in ("source", "target")]
    with running(folders[0], ["demo"]) as source, running(folders[1], ["demo"]) as target:
        yield source, target


def at(service: Ready) -> list[str]:
    return ["--url", service.url, "--token", service.tokens["demo"], "--quiet"]


def test_a_tenant_is_exported_and_imported_by_command_and_is_found_where_it_came(
    services: tuple[Ready, Ready], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = services
    here, there = (Api(each.url, each.tokens["demo"]) for each in services)
    fact = here.post(
        {"type": "acme.note", "scope": {}, "content": "the zebra sleeps"}, "v1", "memory", "facts"
    )
    here.post({"content": "the zebra wakes " * 9_000}, "v1", "memory", "facts", fact["id"], "supersede")
    entries = [
        {"kind": "user-message", "payload": {"text": str(n)}, "scope": {"threadId": "t"}} for n in range(9)
    ]
    here.post({"entries": entries}, "v1", "memory", "runs", "run-1", "log")
    path = tmp_path / "demo.ndjson"

    assert main(["export", *at(source), "--out", str(path)]) == 0
    assert main(["import", *at(target), "--dry-run", str(path)]) == 0
    assert "would be written" in capsys.readouterr().out
    assert main(["import", *at(target), "--json", str(path)]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["counts"]["entry"] == {"written": 9}
    assert done["uploaded"] == 1
    assert main(["import", *at(target), str(path)]) == 0
    assert "written" not in capsys.readouterr().out

    moved = there.get("v1", "memory", "facts", fact["id"])
    assert {**moved, "contentRef": 0} == {**here.get("v1", "memory", "facts", fact["id"]), "contentRef": 0}
    asked = {"mode": "keyword", "query": "zebra"}
    found = eventually(lambda: there.post(asked, "v1", "memory", "retrieve")["results"])
    assert found[0]["fact"]["id"] == fact["id"]
    log = tmp_path / "log.ndjson"
    assert main(["log", "export", *at(target), "--all", "--out", str(log)]) == 0
    verdict = audit(log, read_key(target.vkey))
    assert (verdict.holds, verdict.entries, verdict.newer) == (True, 9, 0)


def test_a_damaged_file_is_refused_by_the_command_in_one_line(
    services: tuple[Ready, Ready], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = services
    path = tmp_path / "demo.ndjson"
    assert main(["export", *at(source), "--out", str(path)]) == 0
    path.write_bytes(path.read_bytes().replace(b"user-message", b"user-massage", 1))
    capsys.readouterr()
    assert main(["import", *at(target), str(path)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "line " in said
    assert "its sum is wrong" in said
