"""The file of an exported tenant: a record a line, each line with a sum over all before it, so that damage has a place.

    {"sum":"<32 hex digits>","<kind>":{…}}        sum = SHA-256(the sum before ‖ the line without its sum), cut

The first line is the header, the last one counts the others; behind a payload's line come its bytes, in chunks. The sums
are no signature: whoever edits a file can make them anew. The log's own chain and notes are what nobody can.
"""

import base64
import binascii
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from factbook_cli.errors import CommandError, UsageError

CHUNK_BYTES = 1_000_000
LONGEST_LINE = 16 * 1024 * 1024
SUM_DIGITS = 32
_BEGIN = b'{"sum":"'
_AT = len(_BEGIN) + SUM_DIGITS
BESIDE = ("header", "chunk", "end")
"""Kinds of lines that are no records: an import does not send them, and does not count them."""


class Damaged(CommandError):
    """A file that is not as it was written; the message says in which line and why."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        super().__init__(f"{path}, line {line:,}: {why}. Nothing of the file was imported by this command.")
        self.line = line


class Summed:
    """Writes lines with their sums."""

    def __init__(self, file: IO[bytes], before: str = "", lines: int = 0) -> None:
        self._file = file
        self.sum = before
        self.lines = lines

    def write(self, line: bytes) -> None:
        """A JSON object of one field."""
        self.sum = next_sum(self.sum, line)
        self._file.write(_BEGIN + self.sum.encode() + b'",' + line[1:] + b"\n")
        self.lines += 1


def next_sum(before: str, line: bytes) -> str:
    return hashlib.sha256(before.encode() + line).hexdigest()[:SUM_DIGITS]


@dataclass(frozen=True)
class Line:
    """One line without its sum, which is `sum`. `at`: its place among the records; of one that is none, of the record that follows."""

    number: int
    kind: str
    value: Any
    raw: bytes
    at: int
    end: int
    """Where in the file the next line begins."""
    sum: str


@dataclass
class FileLines:
    """The lines of a file in order, each held against its sum. Raises Damaged, UsageError."""

    path: Path
    sum: str = ""
    records: int = 0
    before: int = 0
    """Lines before the first one."""

    def __iter__(self) -> Iterator[Line]:
        return self.from_place(0)

    def from_place(self, place: int) -> Iterator[Line]:
        """The lines from a byte on, which is where one begins."""
        try:
            with self.path.open("rb") as file:
                file.seek(place)
                yield from self._lines(file, place)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}.") from error

    def _lines(self, file: IO[bytes], end: int) -> Iterator[Line]:
        number = self.before
        while raw := file.readline(LONGEST_LINE):
            number, end = number + 1, end + len(raw)
            if not raw.endswith(b"\n"):
                raise self._damaged(number, "it is cut, or longer than any line")
            if not raw.startswith(_BEGIN) or raw[_AT : _AT + 2] != b'",':
                if number == 1:
                    raise UsageError(
                        f"{self.path} is no export of a tenant: give the file that `factbook export` wrote."
                    )
                raise self._damaged(number, "it does not begin with a sum")
            line = b"{" + raw[_AT + 2 : -1]
            self.sum = next_sum(self.sum, line)
            if raw[len(_BEGIN) : _AT] != self.sum.encode():
                raise self._damaged(
                    number,
                    "its sum is wrong: this line was changed, or lines before it were changed, moved or left out",
                )
            yield self._line(number, line, end)

    def _line(self, number: int, line: bytes, end: int) -> Line:
        try:
            value = json.loads(line)
            ((kind, record),) = value.items()
        except (ValueError, AttributeError, RecursionError) as error:
            raise self._damaged(number, "it is no JSON object of one field") from error
        at = self.records
        if kind not in BESIDE:
            self.records += 1
        return Line(number, str(kind), record, line, at, end, self.sum)

    def _damaged(self, number: int, why: str) -> Damaged:
        return Damaged(self.path, number, why)


@dataclass
class Contents:
    """What a file holds, once it is known to be whole."""

    header: Any
    header_line: bytes
    digest: str = ""
    records: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    blob_bytes: int = 0


def chunk_of(path: Path, line: Line) -> bytes:
    """The bytes of a payload that a chunk holds. Raises Damaged."""
    try:
        return base64.b64decode(line.value, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise Damaged(path, line.number, "it is no chunk of a payload") from error
