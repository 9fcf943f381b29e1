"""The commands that judge a file: `run` (one run's export) and `audit` (a whole log's). Exit codes are the verdict's."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .findings import Finding, Incomplete, Unsupported
from .judges import Verdict, audit, verify_run
from .lines import Progress
from .notes import open_checkpoint, read_key

Judge = Callable[..., Verdict]
WORDS = {0: "holds", 1: "TAMPERED", 2: "incomplete", 3: "unsupported"}
EXITS = "exit codes: 0 holds, 1 tampered, 2 incomplete, 3 unsupported"


def add_arguments(parser: argparse.ArgumentParser, pin: str) -> None:
    """`pin` names the option that takes a note kept from earlier."""
    parser.add_argument("file", type=Path, help="an export of the log")
    parser.add_argument("--vkey", required=True, help="the verifier key you trust, or a file that holds it")
    parser.add_argument(
        pin,
        dest="pinned",
        type=Path,
        metavar="NOTE",
        help="a checkpoint you kept: what it signs for must still be there",
    )
    parser.add_argument("--json", action="store_true", help="the verdict as JSON on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.epilog = EXITS


def judge_file(judge: Judge, arguments: argparse.Namespace) -> int:
    """Judge, say so, and answer the exit code."""
    try:
        verdict = _judge(judge, arguments)
    except Finding as finding:
        verdict = Verdict(finding.code, finding.why)
    if arguments.json:
        print(json.dumps(verdict.to_json()))
    else:
        print(tell(verdict))
    return verdict.code


def tell(verdict: Verdict) -> str:
    """The verdict in words."""
    where = (
        ""
        if verdict.run is None
        else f" run {verdict.run}" + ("" if verdict.sequence is None else f", entry {verdict.sequence}:")
    )
    lines = [f"{WORDS[verdict.code]}:{where} {verdict.why}".rstrip(": ")]
    if verdict.line is not None:
        lines.append(f"  found at line {verdict.line} of the file")
    if verdict.entries or verdict.leaves:
        lines.append(
            f"  checked {verdict.entries:,} entries of {verdict.runs:,} runs, {verdict.leaves:,} leaves, "
            f"{verdict.checkpoints:,} checkpoints; the newest signs for {verdict.size:,} leaves"
        )
    if verdict.newer:
        lines.append(
            f"  {verdict.newer:,} entries are newer than their run's last checkpoint: chained, not yet signed for"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m factbook.verify", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add_arguments(commands.add_parser("run", help="judge the export of one run"), "--checkpoint")
    add_arguments(commands.add_parser("audit", help="judge the export of a whole log"), "--pinned")
    arguments = parser.parse_args()
    return judge_file(verify_run if arguments.command == "run" else audit, arguments)


def _judge(judge: Judge, arguments: argparse.Namespace) -> Verdict:
    key = read_key(_read(arguments.vkey))
    pinned = None
    if arguments.pinned is not None:
        try:
            pinned = arguments.pinned.read_text("utf-8")
            open_checkpoint(pinned, key)
        except (OSError, ValueError) as error:
            raise Incomplete(f"the note to hold the log to cannot be read: {arguments.pinned}") from error
        except Finding as finding:
            raise Unsupported(f"the note to hold the log to is none of this key: {finding.why}") from finding
    try:
        _check_file(arguments.file)
        return judge(arguments.file, key, pinned, None if arguments.quiet else show_progress())
    except OSError as error:
        raise Incomplete(f"{arguments.file} cannot be read: {error.strerror or error}") from error


def _check_file(file: Path) -> None:
    """A pipe or a device is none to judge: a file that fails is read twice."""
    if not file.exists():
        raise Incomplete(f"there is no file {file}")
    if not file.is_file():
        kind = "a folder" if file.is_dir() else "no regular file"
        raise Unsupported(f"{file} is {kind}: an export is judged as a file")


def _read(vkey: str) -> str:
    """A key as given, or from the file that holds it. A key is no path: it holds two plus signs."""
    if vkey.count("+") >= 2:
        return vkey
    try:
        return Path(vkey).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise Unsupported("the verifier key is neither a key nor a file that holds one") from error


def show_progress() -> Progress:
    """Rewrites one line on a terminal, writes one every few seconds elsewhere."""
    terminal = sys.stderr.isatty()
    began = last = time.monotonic()

    def show(done: int, size: int) -> None:
        nonlocal last
        now = time.monotonic()
        finished = done >= size
        if now - last < (0.2 if terminal else 5) and not (finished and terminal):
            return
        last = now
        speed = done / max(now - began, 1e-9) / 1e6
        text = (
            f"{100 * done // max(size, 1):3d} %  {done / 1e6:,.1f} of {size / 1e6:,.1f} MB  {speed:,.0f} MB/s"
        )
        print(
            f"\r{text}" if terminal else text,
            end="\n" if finished or not terminal else "",
            file=sys.stderr,
            flush=True,
        )

    return show
