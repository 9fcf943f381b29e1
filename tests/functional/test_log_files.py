"""Exported files, damaged in every way a file gets damaged: none of them holds."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from unittest.mock import Mock

import pytest
from support.emulators import Aws
from support.gateway import ROOT
from support.logs import LogService

from factbook.verify import processes
from factbook.verify.apart import Found, Span, ground_of, judge_span
from factbook.verify.command import tell
from factbook.verify.exports import Export
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


Blocks = Callable[[int], None]


@pytest.fixture
def blocks_of(monkeypatch: pytest.MonkeyPatch) -> Blocks:
    """Has every file be judged in blocks of so many bytes."""

    def small(size: int) -> None:
        monkeypatch.setattr("factbook.verify.judges.WORTH_PROCESSES", 0)
        monkeypatch.setattr("factbook.verify.judges.BLOCK", size)
        monkeypatch.setattr("factbook.verify.lines.PART", 64)

    return small


@pytest.fixture
def judged_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each block be judged apart, and none behind what stands before."""

    def all_apart(
        path: Path, export: Export, spans: list[Span], _: int
    ) -> Iterator[tuple[Span, list[Found]]]:
        ground = ground_of(export)
        return ((span, judge_span(path, ground, span)) for span in spans)

    monkeypatch.setattr(processes, "judged", all_apart)


def damaged_files(raw: bytes) -> Iterator[bytes]:
    """The file itself, every damage of this page, each line left out, repeated and moved, and some bytes changed."""
    yield raw
    yield from (damage(raw) for damage, _ in DAMAGES.values())
    whole = lines_of(raw)
    for at, line in enumerate(whole):
        without = [*whole[:at], *whole[at + 1 :]]
        yield b"".join(without)
        for to in range(at, len(whole), 3):
            yield (
                b"".join([*whole[:at], line, *whole[at:]])
                if to == at
                else b"".join([*without[:to], line, *without[to:]])
            )
    for at in range(0, len(raw), 31):
        yield raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


@pytest.mark.usefixtures("judged_apart")
@pytest.mark.parametrize("size", [60, 700, 3000])
def test_a_file_that_is_judged_in_blocks_gets_the_verdict_of_one_that_is_read_through(
    log_service: LogService, run_file: bytes, whole_file: bytes, blocks_of: Blocks, size: int
) -> None:
    blocks_of(size)
    path = log_service.folder / "in-blocks.jsonl"
    for judge, raw in ((verify_run, run_file), (audit, whole_file)):
        for damaged in damaged_files(raw):
            path.write_bytes(damaged)
            read_through = judge(path, log_service.key, at_once=1)
            assert judge(path, log_service.key, at_once=2) == read_through, damaged


SHARED = """
import json, sys
from pathlib import Path
from factbook.verify import helper, judges, lines, processes
from factbook.verify.notes import read_key
folder, vkey, ends = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "ends"
judges.WORTH_PROCESSES, judges.BLOCK, lines.PART = 0, 200, 64
started, Helper = [], processes.Helper
def work(*_):
    raise SystemExit
class Counted(Helper):
    def __init__(self, *given):
        super().__init__(*given)
        started.append(self.process)
processes.Helper = Counted
if ends:
    helper.judge_span = work
for path in sorted(folder.glob("shared-*.jsonl")):
    judge = judges.audit if "-all-" in path.name else judges.verify_run
    alone, shared = (judge(path, read_key(vkey), at_once=at_once) for at_once in (1, 3))
    assert alone == shared, (path, alone, shared)
print(len(started))
"""


@pytest.mark.parametrize("helpers", ["work", "ends"])
def test_processes_that_share_a_file_out_come_to_the_same_verdict_whether_they_last_or_not(
    log_service: LogService, run_file: bytes, whole_file: bytes, tmp_path: Path, helpers: str
) -> None:
    for kind, raw in (("run", run_file), ("all", whole_file)):
        for number, damaged in enumerate((raw, raw[:-5], swap_entries(raw), swap_proofs(raw))):
            (tmp_path / f"shared-{kind}-{number}.jsonl").write_bytes(damaged)
    done = subprocess.run(
        [sys.executable, "-c", SHARED, str(tmp_path), log_service.vkey, helpers],
        capture_output=True,
        text=True,
        cwd=ROOT / "layers" / "factbook",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2


ANSWERED = """
import sys, time
from pathlib import Path
from factbook.verify.apart import ground_of
from factbook.verify.notes import read_key
from factbook.verify.processes import _Sharing
from factbook.verify.whole_log import WholeExport
path = Path(sys.argv[1])
first, middle, size = path.read_bytes().index(b"{", 1), 400, path.stat().st_size
export = WholeExport(read_key(sys.argv[2]), None, list)
export.take(path.read_bytes().splitlines(keepends=True)[:1])
sharing = _Sharing(path, ground_of(export), [(first, middle), (middle, size)], 2)
sharing._ask_helpers(2)
while sharing._answers.qsize() < 2:
    time.sleep(0.01)
print([bool(sharing.found_in(number)) for number in (0, 1)])
sharing.end()
"""


def test_nobody_waits_for_more_when_all_that_was_asked_is_answered(
    log_service: LogService, whole_file: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "all.jsonl"
    path.write_bytes(whole_file)
    done = subprocess.run(
        [sys.executable, "-c", ANSWERED, str(path), log_service.vkey],
        capture_output=True,
        text=True,
        cwd=ROOT / "layers" / "factbook",
        check=False,
        timeout=120,
    )
    assert done.stdout.strip() == "[True, True]", done.stderr


def test_where_another_thread_runs_a_file_is_judged_by_this_process_alone(
    log_service: LogService, whole_file: bytes, blocks_of: Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks_of(200)
    monkeypatch.setattr(os, "fork", Mock(side_effect=AssertionError))
    path = log_service.folder / "threaded.jsonl"
    path.write_bytes(whole_file)
    over = Event()
    thread = Thread(target=over.wait)
    thread.start()
    try:
        assert audit(path, log_service.key, at_once=3).holds
    finally:
        over.set()
        thread.join()


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
    monkeypatch.setattr("factbook.verify.judges.read_parts", Mock(side_effect=unreadable))
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


KEY_FILES = {
    "as it was printed": (lambda key: key.encode(), 0, "holds"),
    "with the line ends of Windows": (lambda key: f"{key}\r\n".encode(), 0, "holds"),
    "as a shell of Windows redirects it": (lambda key: f"{key}\r\n".encode("utf-16"), 0, "holds"),
    "with a mark before it": (lambda key: b"\xef\xbb\xbf" + key.encode(), 0, "holds"),
    "cut": (lambda key: key[:-9].encode(), 3, "unsupported: the verifier key is not <name>+<id>+"),
    "no text": (lambda key: b"\xff\x00\x80", 3, "unsupported: the verifier key is neither a key nor"),
}


@pytest.mark.parametrize("case", KEY_FILES)
def test_a_key_is_read_from_the_file_that_holds_it(
    log_service: LogService, run_file: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    held, code, told = KEY_FILES[case]
    export, key = tmp_path / "r1.jsonl", tmp_path / "key.txt"
    export.write_bytes(run_file)
    key.write_bytes(held(log_service.vkey))
    assert main(["log", "verify", str(export), "--vkey", str(key)]) == code
    assert capsys.readouterr().out.startswith(told)
    assert main(["log", "verify", str(export), "--vkey", str(tmp_path / "none")]) == 3
    assert "there is no file" in capsys.readouterr().out


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
