"""Judge a block of an export apart from what stands before it, and join what was found to that.

Where a block begins in the file nobody knows the run, the hash before or the size of the tree. So a block is judged in
stretches. The first line of each is taken for granted, and those behind it follow from it by the very checks of
`exports`; a line that does not follow begins the next stretch. Whoever joins judges the first lines, knowing all that
stands before, and takes over where their stretches have led. So every line is judged by the same checks as in a file
that is read from its beginning, and a line that does not hold is met in the same state, with the same words.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .chain import ENTRY, Chain
from .exports import Export, Section
from .findings import Finding
from .leaves import Leaf, read_leaf_line
from .lines import read_entry, read_object, read_parts, skip_begun_line, whole_line
from .notes import Checkpoint, VerifierKey, open_checkpoint
from .one_run import RunExport
from .together import Openings
from .tree import Subtrees
from .whole_log import Tally, WholeExport

BLOCK = 4 * 1024 * 1024
"""Bytes of a block. What is found in one takes no more, and of entries a few hundred bytes."""

Span = tuple[int, int]
"""Where a block begins in the file, and where it ends."""
Kind = Literal["line", "note", "run", "tree"]
Found = tuple[Kind, bytes, tuple[Any, ...]]
"""A line as the file has it, and what the ones behind it have led to: values that `marshal` can send."""


@dataclass(frozen=True)
class Ground:
    """What a block has to know of the file: it is the same for all of them."""

    kind: str
    tenant: str
    key: tuple[str, bytes, bytes]
    tally: bytes = b""
    pinned_size: int = -1
    newest: tuple[str, int, bytes] | None = None
    openings: Openings = field(default_factory=Openings)
    """Of actors that were met, so that not every stretch has to learn them."""

    def export(self, chain: Chain | None, tree: Subtrees | None = None) -> Export:
        """One that stands behind the first line of a stretch."""
        key = VerifierKey(*self.key)
        export: Export
        if self.kind == RunExport.kind:
            export = RunExport(key, None)
            export.newest = None if self.newest is None else Checkpoint(*self.newest, "")
        else:
            export = WholeExport(key, None, list)
            export.tally = Tally(self.tally)
            export.tree = tree or Subtrees(0)
        export.openings = self.openings
        export.tenant, export.started, export.pinned_size = self.tenant, True, self.pinned_size
        export.section = None if chain is None else Section(chain)
        return export


class NotJoined(Exception):
    """What was found does not follow from what stands before. The lines have to be judged again, where that is known."""


def joins_from_here(export: Export) -> bool:
    """Whether all is known of the file that blocks of the rest of it are to be told."""
    return export.section is not None if isinstance(export, RunExport) else export.passed > 0


def ground_of(export: Export) -> Ground:
    key, newest = export.key, export.newest
    return Ground(
        export.kind,
        export.tenant,
        (key.name, key.key_id, key.public),
        export.tally.key if isinstance(export, WholeExport) else b"",
        export.pinned_size,
        None if newest is None else (newest.origin, newest.size, newest.root),
        export.openings,
    )


class Block:
    """Takes a block's lines in order; `found` is what is to be joined, once `close` was called."""

    def __init__(self, ground: Ground) -> None:
        self.found: list[Found] = []
        self._ground = ground
        self._first = b""
        self._export: Export | None = None

    def take(self, lines: list[bytes]) -> None:
        at = 0
        while at < len(lines):
            at += self._follow(lines, at)
            if at < len(lines):
                self.close()
                self._begin(lines[at])
                at += 1

    def close(self) -> None:
        """End the stretch."""
        export, self._export = self._export, None
        if export is None:
            return
        if export.passed == 0:
            self.found.append(("line", self._first, ()))
        elif export.section is not None:
            section, chain, verdict = export.section, export.section.chain, export.verdict
            total = export.tally.total if isinstance(export, WholeExport) else 0
            state = (chain.run, chain.middle, chain.sequence, chain.digest, chain.instant, section.anchored)
            counted = (export.passed, verdict.entries, verdict.leaves, verdict.runs, verdict.newer)
            self.found.append(("run", self._first, (*state, *counted, total.to_bytes(32))))
        else:
            assert isinstance(export, WholeExport)
            assert isinstance(export.tree, Subtrees)
            counts = (export.passed, export.verdict.leaves, export.tally.total.to_bytes(32))
            self.found.append(("tree", self._first, (export.tree.nodes, *counts)))

    def _follow(self, lines: list[bytes], start: int) -> int:
        """How many lines from `start` on follow from those of the stretch."""
        at, export = start, self._export
        while export is not None and at < len(lines):
            at += export.follow(lines, at)
            if at == len(lines) or not self._follows(export, lines[at]):
                break
            export.passed += 1
            at += 1
        return at - start

    def _follows(self, export: Export, raw: bytes) -> bool:
        """Whether a line that is an entry or a leaf follows; the export stands behind it then, else where it stood."""
        try:
            line = whole_line(0, raw)
            if line.startswith(ENTRY) and export.section is not None:
                export.section.chain.follow(*read_entry(line))
                export.verdict.entries += 1
                return True
            leaf = read_leaf_line(line)
            if leaf is None or self._meets_pinned(export):
                return False
            export.leaf(leaf)
        except Finding:
            return False
        return True

    def _meets_pinned(self, export: Export) -> bool:
        """Whether the root has to be compared before the tree grows further."""
        in_tree = isinstance(export, WholeExport) and export.section is None
        return in_tree and export.tree.size == export.pinned_size  # type: ignore[attr-defined]

    def _begin(self, raw: bytes) -> None:
        """Begin a stretch with this line, if it can be the first of one."""
        self._first = raw
        try:
            line = whole_line(0, raw)
            if line.startswith(ENTRY):
                self._export = self._behind_entry(line)
            elif (leaf := read_leaf_line(line)) is not None:
                self._export = self._behind_leaf(leaf)
            elif line.startswith(b'{"run":'):
                self._export = self._behind_run(read_object(line))
            elif line.startswith(b'{"checkpoint":'):
                self._note(read_object(line))
                return
        except Finding:
            self._export = None
        if self._export is None:
            self.found.append(("line", raw, ()))

    def _behind_entry(self, line: bytes) -> Export | None:
        text, claimed, cause = read_entry(line)
        chain = Chain.before(text)
        if chain is None:
            return None
        chain.follow(text, claimed, cause)
        export = self._ground.export(chain)
        export.across_runs = False  # how many entries are behind the run's last leaf is known to who joins
        return export

    def _behind_leaf(self, leaf: Leaf) -> Export | None:
        if self._ground.kind == RunExport.kind or leaf.index + 1 == self._ground.pinned_size:
            return None
        return self._ground.export(None, Subtrees(leaf.index + 1))

    def _behind_run(self, line: dict[str, Any]) -> Export | None:
        run = line["run"]
        if len(line) != 1 or not isinstance(run, str):
            return None
        return self._ground.export(Chain(run, self._ground.tenant))

    def _note(self, line: dict[str, Any]) -> None:
        """A checkpoint whose signature holds needs no more than to be put in its place."""
        note = line["checkpoint"]
        if len(line) != 1 or not isinstance(note, str):
            self.found.append(("line", self._first, ()))
            return
        opened = open_checkpoint(note, VerifierKey(*self._ground.key), self._ground.tenant)
        self.found.append(("note", self._first, (opened.origin, opened.size, opened.root, note)))


def judge_span(path: Path, ground: Ground, span: Span) -> list[Found]:
    """What is found in the lines of a file that begin in a span of it."""
    block = Block(ground)
    with path.open("rb") as file:
        skip_begun_line(file, *span)
        for lines in read_parts(file, span[1]):
            block.take(lines)
    block.close()
    return block.found


def join(export: Export, found: Found) -> None:
    """Go on behind what was found. Raises Finding; NotJoined behind its first line."""
    kind, raw, led = found
    if kind == "note" and export.passed and not export.ended:
        export.number = export.passed + 1
        export.verdict.checkpoints += 1
        export.checkpoint(Checkpoint(*led))
        export.passed += 1
        return
    export.take_one(raw)
    if kind == "run":
        _join_run(export, *led)
    elif kind == "tree":
        _join_tree(export, *led)


def _join_run(
    export: Export,
    run: str,
    middle: bytes,
    sequence: int,
    digest: bytes,
    instant: bytes,
    anchored: int,
    passed: int,
    entries: int,
    leaves: int,
    runs: int,
    newer: int,
    total: bytes,
) -> None:
    section = export.section
    if runs:
        export.section = section = Section(Chain(run, export.tenant))
    if section is None or section.chain.run != run or section.chain.middle not in (b"", middle):
        raise NotJoined
    section.chain.go_on(middle, sequence, digest, instant)
    section.anchored = max(section.anchored, anchored)
    export.verdict.entries += entries
    export.verdict.leaves += leaves
    export.verdict.runs += runs
    export.verdict.newer += newer
    export.passed += passed
    if isinstance(export, WholeExport):
        export.tally.add(int.from_bytes(total))


def _join_tree(
    export: Export, nodes: list[tuple[int, bytes]], passed: int, leaves: int, total: bytes
) -> None:
    if export.section is not None or not isinstance(export, WholeExport):
        raise NotJoined
    for height, node in nodes:
        export.tree.add(node, height)  # type: ignore[call-arg]
    export.tally.add(int.from_bytes(total))
    export.verdict.leaves += leaves
    export.number = export.passed + passed
    export.meet_pinned()
    export.passed += passed
