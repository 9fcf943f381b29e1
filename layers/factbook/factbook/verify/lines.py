"""An export as a file: one JSON object a line, compact, LF after each, read in constant memory.

An entry's line is `{"h":"sha256:<hex>","f":"<format>",["cause":"<id>",]"entry":<stored canonical text>}`: the stored text
stands in it byte for byte, so it is hashed where it lies. docs/log.md describes every line.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from .chain import ENTRY, FORMAT, HASH_END, PLAIN, PLAIN_AT, check_format
from .findings import Incomplete, Tampered, Unsupported

EXPORT_FORMAT = "factbook-log-export-1"
MAX_LINE = 2 * 1024 * 1024
BLOCK = 64
_WITH_CAUSE = b'","f":"' + FORMAT.encode() + b'","cause":'
_BOM = b"\xef\xbb\xbf"
_BEGIN = b'{"format":"factbook-log-export'
_MARK = b"factbook-log-export"

Progress = Callable[[int, int], None]
"""Told now and then how many of how many bytes are read."""


def read_blocks(path: Path, progress: Progress | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """Some lines at a time, with their LF, and how many came before. Raises Incomplete for an empty file."""
    size = path.stat().st_size
    done = number = 0
    with path.open("rb", buffering=1 << 16) as file:
        lines = iter(partial(file.readline, MAX_LINE), b"")
        while block := list(islice(lines, BLOCK)):
            yield number, block
            number += len(block)
            done += sum(map(len, block))
            if progress is not None:
                progress(done, size)
    if number == 0:
        raise Incomplete("the file is empty")


def check_begin(line: bytes) -> None:
    """Raises Unsupported when a file with this first line never was an export: it bears no name of its format.

    A header that was cut, indented or written in another encoding still bears it, and is judged as what it is.
    """
    if _MARK not in line.replace(b"\x00", b"") and not _BEGIN.startswith(line):
        raise Unsupported("the file is another kind of file: it does not begin as a log export does")


def whole_line(number: int, line: bytes) -> bytes:
    """A line without its LF. Raises Incomplete for a cut one, Tampered for one that is not as it was written."""
    if line[-1:] != b"\n":
        raise Incomplete(
            f"line {number} is cut: the file ends in the middle of it"
            if len(line) < MAX_LINE
            else f"line {number} is longer than any line of an export"
        )
    if line[-2:] != b"}\n" or line[:1] != b"{":
        raise Tampered(f"line {number} does not stand as it was written" + _how(line))
    return line[:-1]


def read_entry(line: bytes) -> tuple[bytes, bytes, str | None]:
    """The stored text, the hex of its claimed hash and the cause of an entry's line. Raises Tampered, Unsupported."""
    if line[HASH_END:PLAIN_AT] == PLAIN:
        return line[PLAIN_AT:-1], line[len(ENTRY) : HASH_END], None
    if line[HASH_END : HASH_END + len(_WITH_CAUSE)] == _WITH_CAUSE:
        rest = line[HASH_END + len(_WITH_CAUSE) :].decode("utf-8", "replace")
        try:
            cause, at = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            cause, at = None, 0
        if isinstance(cause, str) and rest.startswith(',"entry":', at):
            begun = len(line) - len(rest[at + len(',"entry":') :].encode())
            return line[begun:-1], line[len(ENTRY) : HASH_END], cause
    parsed = read_object(line)
    check_format(str(parsed.get("f")))
    raise Tampered("an entry's line is not laid out as an export's")


def read_object(line: bytes) -> dict[str, Any]:
    """Any other line. Raises Tampered."""
    try:
        parsed = json.loads(line.decode("utf-8"), object_pairs_hook=_single)
    except (ValueError, RecursionError) as error:
        raise Tampered("a line is no JSON object") from error
    if not isinstance(parsed, dict):
        raise Tampered("a line is no JSON object")
    return parsed


def read_header(line: bytes, kind: str) -> dict[str, Any]:
    """The first line. Raises Unsupported for another format, or an export of another kind."""
    header = read_object(line)
    if header.get("format") != EXPORT_FORMAT:
        raise Unsupported(f"the file is no log export of format {EXPORT_FORMAT}")
    if header.get("kind") != kind:
        other = "use `factbook log audit`" if kind == "run" else "use `factbook log verify`"
        raise Unsupported(f"the file is an export of kind {header.get('kind')!r}: {other}")
    if not isinstance(header.get("tenant"), str) or (
        kind == "run" and not isinstance(header.get("run"), str)
    ):
        raise Tampered("the header does not say whose log this is")
    return header


def _how(line: bytes) -> str:
    if line.startswith(_BOM):
        return " (it begins with a byte-order mark)"
    return " (it ends in CRLF)" if line.endswith(b"\r\n") else ""


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("a key is there twice")
    return built
