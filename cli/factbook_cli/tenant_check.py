"""Judge the file of an exported tenant, whole, before anything of it is imported: its sums, its records, its log.

Every record is read as an import reads it. Of the log, each run must be one chain down to its first entry, and each note
must be signed by the key it names for the root of as many leaves.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from factbook.domain.errors import BadInput
from factbook.domain.policy.policies import Policy
from factbook.domain.portability.lines import KINDS, read_line
from factbook.domain.strict_json import parse_json
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log.entries import previous_hash
from factbook.usecases.portability.importing import read_header
from factbook.usecases.portability.records import Reading, follows, signed_by
from factbook.verify.tree import GrowingRoot, leaf_hash
from factbook_cli.tenant_file import BESIDE, Contents, Damaged, FileLines, Line, chunk_of

Tell = Callable[[int], None]
_ORDER = {kind: place for place, kind in enumerate(KINDS)} | {
    "blob": len(KINDS),
    "fact": len(KINDS),
    "revision": len(KINDS),
}
ZERO_HASH = "sha256:" + "0" * 64


def check_file(path: Path, tell: Tell = lambda _: None) -> Contents:
    """What a whole and sound file holds; `tell` hears how many bytes are read. Raises Damaged, UsageError."""
    return _Check(path, tell).run()


class _Check:
    def __init__(self, path: Path, tell: Tell) -> None:
        self._path = path
        self._tell = tell
        self._lines = FileLines(path)
        self._phase = 0
        self._roots: dict[int, list[bytes]] = {}
        self._tree = GrowingRoot()
        self._later: StoredEntry | None = None
        self._blob: tuple[int, str, Any] | None = None
        """Of the payload whose chunks come: the bytes that are left, its digest, and the one so far."""

    def run(self) -> Contents:
        found: Contents | None = None
        ended = False
        line: Line | None = None
        for line in self._lines:
            if ended:
                raise Damaged(self._path, line.number, "it stands behind the end")
            if found is None:
                found = self._header(line)
                continue
            try:
                ended = self._take(line, found)
            except BadInput as error:
                raise Damaged(self._path, line.number, error.message.rstrip(".")) from error
            self._tell(line.end)
        if found is None or line is None or not ended:
            raise Damaged(self._path, line.number if line else 0, "the file ends before its end: it is cut")
        found.digest, found.records = self._lines.sum, self._lines.records
        return found

    def _header(self, line: Line) -> Contents:
        try:
            if line.kind != "header":
                raise BadInput("The first line is no header of an export.")
            header = read_header(line.value)
        except BadInput as error:
            raise Damaged(self._path, line.number, error.message.rstrip(".")) from error
        self._leaves = header.leaves
        self._reading = Reading(header.tenant, lambda fact_id, name: f"blob://s3/bucket/{fact_id}/{name}")
        return Contents(header, line.raw)

    def _take(self, line: Line, found: Contents) -> bool:
        """Whether the line is the end. Raises BadInput, Damaged."""
        if self._blob is not None and line.kind != "chunk":
            raise BadInput("Bytes of the payload before it are missing.")
        if line.kind not in BESIDE and line.kind not in _ORDER:
            raise BadInput("It is of a kind that this version does not know.")
        place = _ORDER.get(line.kind, self._phase)
        if line.kind == "key" and self._phase == _ORDER["entry"]:
            place = self._phase  # one that was begun or destroyed while the export ran
        if place < self._phase:
            raise BadInput("Its kind does not come so late in a file.")
        if line.kind != "entry":
            self._end_run()
        self._phase = place
        if line.kind == "end":
            self._end(line, found)
            return True
        # Parsed once more, strictly, as the service does: no two readers may take a line for different records.
        value = parse_json(line.raw)[line.kind]
        readers: dict[str, Callable[[Any], None]] = {
            "policy": lambda value: _ignore(read_line(Policy, value)),
            "key": lambda value: _ignore(self._reading.key(value)),
            "note": self._note,
            "leaf": self._leaf,
            "entry": self._entry,
            "blob": self._begin_blob,
            "chunk": lambda _: self._chunk(line, found),
            "fact": lambda value: _ignore(self._reading.head(value)),
            "revision": lambda value: _ignore(self._reading.revision(value)),
        }
        if line.kind not in readers:
            raise BadInput("It has no place here.")
        readers[line.kind](value)
        found.counts[line.kind] += 1
        return False

    def _note(self, value: Any) -> None:
        checkpoint = signed_by(self._reading.note(value))
        if checkpoint.size > self._leaves:
            raise BadInput("The note is of more leaves than there are.")
        self._roots.setdefault(checkpoint.size, []).append(checkpoint.root)

    def _leaf(self, value: Any) -> None:
        leaf = self._reading.leaf(value)
        if leaf.index != self._tree.size:
            raise BadInput("Leaves before it are missing.")
        self._tree.add(leaf_hash(leaf.data))
        if any(root != self._tree.root() for root in self._roots.pop(self._tree.size, ())):
            raise BadInput("The leaves up to this one are not those that a note was signed for.")

    def _entry(self, value: Any) -> None:
        entry = self._reading.entry(value)
        later = self._later
        if later is not None and later.run_id == entry.run_id:
            if not follows(later, entry):
                raise BadInput("The entry is not the one that the entry behind it was chained to.")
        else:
            self._end_run()
        self._later = entry

    def _end_run(self) -> None:
        """Raises BadInput for a run that does not begin with its first entry."""
        first, self._later = self._later, None
        if first is not None and (first.sequence != 0 or previous_hash(first) != ZERO_HASH):
            raise BadInput("The first entries of the run before it are missing.")

    def _begin_blob(self, value: Any) -> None:
        blob = self._reading.blob(value)
        if blob.size is not None and blob.sha256 is not None:
            self._blob = (blob.size, blob.sha256, hashlib.sha256())
            self._end_blob()

    def _chunk(self, line: Line, found: Contents) -> None:
        if self._blob is None:
            raise BadInput("It belongs to no payload.")
        data = chunk_of(self._path, line)
        left, digest, so_far = self._blob
        so_far.update(data)
        found.blob_bytes += len(data)
        self._blob = (left - len(data), digest, so_far)
        self._end_blob()

    def _end_blob(self) -> None:
        assert self._blob is not None, "a payload was begun"
        left, digest, so_far = self._blob
        if left > 0:
            return
        if left < 0 or so_far.hexdigest() != digest:
            raise BadInput("The payload is not the one that its digest is of.")
        self._blob = None

    def _end(self, line: Line, found: Contents) -> None:
        counts = line.value.get("counts") if isinstance(line.value, dict) else None
        if line.value != {"lines": line.number, "counts": counts} or counts != dict(found.counts):
            raise BadInput("The end counts other lines than there are.")
        if self._tree.size != self._leaves or self._roots:
            raise BadInput("There are not as many leaves as the header says.")


def _ignore(_: object) -> None:
    """Reading it was all."""
