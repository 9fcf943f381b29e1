"""Exported files, damaged in every way a file gets damaged: none of them holds."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.emulators import Aws
from support.gateway import ROOT
from support.logs import LogService

from factbook.verify.command import tell
from factbook.verify.judges import Verdict, audit, verify_run
from factbook_cli.main import main

Damage = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def log_service(ministack: Aws, tmp_path_factory: pytest.TempPathFactory) -> LogService:
    """A run whose file holds two leaves with proofs, and another run in the same tree."""
    log_service = LogService(ministack, tmp_path_factory.mktemp("log"))
    first = log_service.append("r1", {"n": 0}, {"n": 1}, scope={"projectId": "p", "threadId": "t"})
    log_service.append("r2", {"n": 0})
    log_service.checkpoint()
    log_service.append("r1", {"n": 2}, causedByLogId=first[0]["id"])
    log_service.append("r2", {"n": 1})
    log_service.checkpoint()
    return log_service


@pytest.fixture(scope="module")
def run_file(log_service: LogService) -> bytes:
    return log_service.export_run("r1", log_service.folder / "r1.jsonl").read_bytes()


@pytest.fixture(scope="module")
def whole_file(log_service: LogService) -> bytes:
    return log_service.export_all(log_service.folder / "all.jsonl").read_bytes()


def lines_of(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


def swap_proofs(raw: bytes) -> bytes:
    lines = lines_of(raw)
    leaves = [at for at, line in enumerate(lines) if line.startswith(b'{"leaf"')]
    one, other = (json.loads(lines[at]) for at in leaves[:2])
    if "proof" in one:
        one["proof"], other["proof"] = other["proof"], one["proof"]
    else:
        one["salt"], other["salt"] = other["salt"], one["salt"]
    for at, leaf in zip(leaves, (one, other), strict=False):
        lines[at] = json.dumps(leaf, separators=(",", ":")).encode() + b"\n"
    return b"".join(lines)


def swap_entries(raw: bytes) -> bytes:
    lines = lines_of(raw)
    one, other = [at for at, line in enumerate(lines) if line.startswith(b'{"h"')][:2]
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


DAMAGES: dict[str, tuple[Damage, int]] = {
    "an empty file": (lambda raw: b"", 2),
    "a trailing newline": (lambda raw: raw + b"\n", 1),
    "trailing bytes": (lambda raw: raw + b"x", 2),
    "a trailing object": (lambda raw: raw + b"{}\n", 1),
    "a zero byte behind": (lambda raw: raw + b"\x00", 2),
    "a cut last line": (lambda raw: raw[:-5], 2),
    "a last line without its newline": (lambda raw: raw[:-1], 2),
    "no last line": (lambda raw: b"".join(lines_of(raw)[:-1]), 2),
    "CRLF": (lambda raw: raw.replace(b"\n", b"\r\n"), 1),
    "one CRLF": (lambda raw: raw.replace(b"\n", b"\r\n", 1), 1),
    "a byte-order mark": (lambda raw: b"\xef\xbb\xbf" + raw, 1),
    "UTF-16": (lambda raw: raw.decode().encode("utf-16"), 1),
    "an indented header": (lambda raw: b" " + raw, 1),
    "no header": (lambda raw: b"".join(lines_of(raw)[1:]), 3),
    "the header twice": (lambda raw: lines_of(raw)[0] + raw, 1),
    "another format": (lambda raw: raw.replace(b"log-export-1", b"log-export-2", 1), 3),
    "another format of entries": (lambda raw: raw.replace(b'"jcs-sha256-v1"', b'"jcs-sha256-v2"'), 3),
    "swapped proofs": (swap_proofs, 1),
    "swapped entries": (swap_entries, 1),
    "a leaf without its entry": (lambda raw: raw.replace(lines_of(raw)[-3], b""), 1),
}


def judged(judge: Callable[..., Verdict], log_service: LogService, raw: bytes) -> Verdict:
    path = log_service.folder / "damaged.jsonl"
    path.write_bytes(raw)
    return judge(path, log_service.key)


def test_the_whole_files_hold(log_service: LogService, run_file: bytes, whole_file: bytes) -> None:
    assert (judged(verify_run, log_service, run_file).code, judged(audit, log_service, whole_file).code) == (
        0,
        0,
    )


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_never_holds(
    log_service: LogService, run_file: bytes, whole_file: bytes, name: str
) -> None:
    damage, code = DAMAGES[name]
    for judge, raw in ((verify_run, run_file), (audit, whole_file)):
        damaged = damage(raw)
        assert damaged != raw
        verdict = judged(judge, log_service, damaged)
        assert verdict.code == code, (judge.__name__, verdict)
        assert verdict.why


OTHER_FILES = {
    "a page": b"# Factbook\n\nAgent memory.\n",
    "random bytes": bytes(range(255, -1, -1)) * 20,
    "a line without its end": b"x",
    "JSON": b'{"data":[]}\n',
    "JSON over lines": b'{\n "data": []\n}\n',
    "a compressed page": gzip.compress(b"# Factbook\n" * 100),
}


@pytest.mark.parametrize("name", [*OTHER_FILES, "a compressed export"])
def test_another_kind_of_file_is_unsupported_and_nobody_is_accused(
    log_service: LogService, run_file: bytes, name: str
) -> None:
    raw = OTHER_FILES.get(name) or gzip.compress(run_file)
    for judge in (verify_run, audit):
        verdict = judged(judge, log_service, raw)
        assert (verdict.code, verdict.entries) == (3, 0)
        assert "checked" not in tell(verdict)


def test_what_is_no_file_is_called_what_it_is(
    log_service: LogService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, code, told in (
        (tmp_path, 3, "is a folder"),
        (tmp_path / "pipe", 3, "is no regular file"),
        (tmp_path / "none", 2, "there is no file"),
    ):
        assert main(["log", "audit", str(path), "--vkey", log_service.vkey]) == code
        printed = capsys.readouterr().out
        assert told in printed
        assert printed.count("\n") == 1


def test_a_file_that_cannot_be_read_is_not_said_to_be_tampered_with(
    log_service: LogService, run_file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r1.jsonl"
    path.write_bytes(run_file)
    unreadable = PermissionError(13, "Permission denied", str(path))
    monkeypatch.setattr("factbook.verify.judges.read_blocks", Mock(side_effect=unreadable))
    assert main(["log", "verify", str(path), "--vkey", log_service.vkey]) == 2


def test_what_was_checked_is_told_when_something_was(
    log_service: LogService, run_file: bytes, whole_file: bytes
) -> None:
    assert "checked 3 entries of 1 runs" in tell(judged(verify_run, log_service, run_file))
    cut = whole_file[: whole_file.index(b'{"run":"')]
    assert "0 entries of 0 runs, 4 leaves" in tell(judged(audit, log_service, cut))


@pytest.mark.parametrize("kind", ["run", "all"])
def test_no_line_can_be_repeated_or_left_out(
    log_service: LogService, run_file: bytes, whole_file: bytes, kind: str
) -> None:
    judge, raw = (verify_run, run_file) if kind == "run" else (audit, whole_file)
    lines = lines_of(raw)
    for at, line in enumerate(lines):
        for changed in ([*lines[:at], line, *lines[at:]], lines[:at] + lines[at + 1 :]):
            verdict = judged(judge, log_service, b"".join(changed))
            assert not verdict.holds, (at, line[:60], verdict)


@pytest.mark.parametrize("kind", ["run", "all"])
def test_no_line_can_be_cut(log_service: LogService, run_file: bytes, whole_file: bytes, kind: str) -> None:
    judge, raw = (verify_run, run_file) if kind == "run" else (audit, whole_file)
    for size in range(0, len(raw), 37):
        assert judged(judge, log_service, raw[:size]).code in (1, 2)


def test_a_file_is_judged_by_the_key_one_trusts(
    log_service: LogService, run_file: bytes, tmp_path: Path
) -> None:
    other = LogService(log_service.aws, tmp_path)
    path = tmp_path / "r1.jsonl"
    path.write_bytes(run_file)
    verdict = verify_run(path, other.key)
    assert verdict.code == 1
    assert "signature" in verdict.why


def test_the_command_says_so_with_its_exit_code_and_needs_no_network(
    log_service: LogService, run_file: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "r1.jsonl"
    command = [
        sys.executable,
        "-m",
        "factbook.verify",
        "run",
        str(path),
        "--vkey",
        log_service.vkey,
        "--json",
    ]
    for raw, code in (
        (run_file, 0),
        (run_file[:-9], 2),
        (run_file.replace(b'"n":', b'"m":'), 1),
        (b"{}\n", 3),
    ):
        path.write_bytes(raw.replace(b'"kind":"tool-call"', b'"kind":"tool-calx"') if code == 1 else raw)
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT / "layers" / "factbook", check=False
        )
        assert done.returncode == code, done.stderr
        assert json.loads(done.stdout)["code"] == code
