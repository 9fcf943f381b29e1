"""An export as a file: one JSON object a line, compact, LF after each, read in constant memory.

An entry's line is `{"h":"sha256:<hex>","f":"<format>",["cause":"<id>",]"entry":<stored canonical text>}`: the stored text
stands in it byte for byte, so it is hashed where it lies. docs/log.md describes every line.
"""

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import IO, Any

from .chain import ENTRY, FORMAT, HASH_END, PLAIN, PLAIN_AT, READER, check_format
from .findings import Incomplete, Tampered, Unsupported

EXPORT_FORMAT = "factbook-log-export-1"
MAX_LINE = 2 * 1024 * 1024
PART = 512 * 1024
"""Bytes that are read at once: their lines are looked at several times, and are to stay in a processor's cache."""
_WITH_CAUSE = re.compile(
    rb'","f":"%b","cause":("[^"\\]*(?:\\.[^"\\]*)*"),"entry":' % re.escape(FORMAT.encode())
)
_BOM = b"\xef\xbb\xbf"
_BEGIN = b'{"format":"factbook-log-export'
_MARK = b"factbook-log-export"

Progress = Callable[[int, int], None]
"""Told now and then how many of how many bytes are read."""


def read_parts(file: IO[bytes], end: int) -> Iterator[list[bytes]]:
    """The lines from where the file stands, some at a time and with their LF, up to the first that begins at `end` or later.

    A line that is too long comes without its end, and what follows of it as further ones.
    """
    while (at := file.tell()) < end:
        part = file.read(min(PART, end - at))
        if not part:
            return
        lines = BytesIO(part).readlines()
        if not part.endswith(b"\n"):
            lines[-1] += file.readline(MAX_LINE)
        if len(lines[-1]) > MAX_LINE:
            lines[-1:] = _pieces(lines[-1])
        yield lines


def _pieces(line: bytes) -> list[bytes]:
    return [line[at : at + MAX_LINE] for at in range(0, len(line), MAX_LINE)]


def skip_begun_line(file: IO[bytes], start: int, end: int) -> None:
    """Stand at the first line that begins at `start` or later, or at `end` or later when no line begins between."""
    if start == 0:
        return
    file.seek(start - 1)
    while file.tell() < end and not file.readline(MAX_LINE).endswith(b"\n"):
        pass


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
    match = _WITH_CAUSE.match(line, HASH_END)
    if match is not None:
        try:
            return line[match.end() : -1], line[len(ENTRY) : HASH_END], READER.decode(match[1].decode())
        except ValueError:
            pass
    parsed = read_object(line)
    check_format(str(parsed.get("f")))
    raise Tampered("an entry's line is not laid out as an export's")


def read_object(line: bytes) -> dict[str, Any]:
    """Any other line. Raises Tampered."""
    try:
        parsed = READER.decode(line.decode("utf-8"))
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
