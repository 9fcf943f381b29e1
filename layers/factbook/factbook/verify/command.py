"""The commands that judge a file: `run` (one run's export), `audit` (a whole log's) and `receipt` (an erasure's).

Exit codes are the verdict's.
"""

import argparse
import json
import sys
import time
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .findings import Finding, Incomplete, Unsupported
from .judges import audit, verify_run
from .lines import Progress
from .notes import open_checkpoint, read_key
from .receipt import ReceiptVerdict, judge_receipt
from .statement import claims, disclaims
from .verdict import Verdict

Judge = Callable[..., Verdict]
WORDS = {0: "holds", 1: "TAMPERED", 2: "incomplete", 3: "unsupported"}
HONESTY = "That it was done: the receipt proves what the service said of it, and that it stands in its log."
EXITS = "exit codes: 0 holds, 1 tampered, 2 incomplete, 3 unsupported"


def add_arguments(parser: argparse.ArgumentParser, pin: str) -> None:
    """`pin` names the option that takes a note kept from earlier."""
    _add_file(parser, "an export of the log")
    parser.add_argument(
        pin,
        dest="pinned",
        type=Path,
        metavar="NOTE",
        help="a checkpoint you kept: what it signs for must still be there",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def add_receipt_arguments(parser: argparse.ArgumentParser) -> None:
    _add_file(parser, "a receipt, as GET /v1/memory/erasures/{id}/receipt answers it")


def _add_file(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("file", type=Path, help=what)
    parser.add_argument("--vkey", required=True, help="the verifier key you trust, or a file that holds it")
    parser.add_argument("--json", action="store_true", help="the verdict as JSON on stdout")
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


def judge_receipt_file(arguments: argparse.Namespace) -> int:
    """Judge a receipt, say what is claimed and what is not, and answer the exit code."""
    try:
        key = read_key(_read(arguments.vkey))
        with _readable(arguments.file):
            verdict = judge_receipt(arguments.file, key)
    except Finding as finding:
        verdict = ReceiptVerdict(finding.code, finding.why)
    print(json.dumps(verdict.to_json()) if arguments.json else tell_receipt(verdict))
    return verdict.code


def tell_receipt(verdict: ReceiptVerdict) -> str:
    """The verdict in words; what is stated only when it is signed."""
    if verdict.statement is None:
        return f"{WORDS[verdict.code]}: {verdict.why}"
    said = (
        f"the service of this key stated this of the tenant {shown(verdict.tenant)}, and cannot take it back"
    )
    lines = [f"{WORDS[verdict.code]}: {said}", f"  signed for by a checkpoint of {verdict.size:,} leaves"]
    lines += ["claimed:", *(f"  {shown(line)}" for line in claims(verdict.statement))]
    lines += ["not claimed:", *(f"  {shown(line)}" for line in disclaims(verdict.statement)), f"  {HONESTY}"]
    return "\n".join(lines)


def shown(text: str) -> str:
    """Text of a file for a terminal: without control characters, which could write anywhere on it."""
    return "".join(char if char.isprintable() else "?" for char in text)


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
    add_receipt_arguments(commands.add_parser("receipt", help="judge the receipt of an erasure"))
    arguments = parser.parse_args()
    if arguments.command == "receipt":
        return judge_receipt_file(arguments)
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
    with _readable(arguments.file):
        return judge(arguments.file, key, pinned, None if arguments.quiet else show_progress())


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Raises Incomplete when the file cannot be read. A pipe or a device is none to judge: a file that fails is read twice."""
    if not file.exists():
        raise Incomplete(f"there is no file {file}")
    if not file.is_file():
        kind = "a folder" if file.is_dir() else "no regular file"
        raise Unsupported(f"{file} is {kind}: what is judged is a file")
    try:
        yield
    except OSError as error:
        raise Incomplete(f"{file} cannot be read: {error.strerror or error}") from error


def _read(vkey: str) -> str:
    """A key as given, or from the file that holds it. A key is no path: it holds two plus signs."""
    if vkey.count("+") >= 2:
        return vkey
    try:
        held = Path(vkey).read_bytes()
        # A shell of Windows writes what is redirected to a file in UTF-16, with a mark.
        return held.decode("utf-16" if held.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except FileNotFoundError as error:
        raise Unsupported(f"the verifier key is no key, and there is no file {vkey}") from error
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
