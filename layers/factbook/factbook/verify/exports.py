"""What both kinds of export share: a header first, run sections, an end that counts."""

from typing import Any

from .chain import ENTRY, Chain
from .findings import Incomplete, Tampered
from .leaves import Leaf, read_leaf, read_leaf_line
from .lines import check_begin, read_entry, read_header, read_object, whole_line
from .notes import Checkpoint, VerifierKey, open_checkpoint
from .together import Openings, Place, follow_together
from .verdict import Verdict


class Section:
    """One run's part of a file: its entries in order, each checkpointed head followed by its leaf."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.anchored = -1
        """The sequence of the last entry that a leaf commits to."""

    def leaf(self, leaf: Leaf) -> None:
        """Raises Tampered unless the leaf commits to the entry just read."""
        last = self.chain.sequence
        if leaf.run != self.chain.run or leaf.sequence <= self.anchored:
            raise self._tampered("a leaf is repeated, or stands with another run", leaf.sequence)
        if leaf.sequence > last:
            raise self._tampered(
                f"it is missing: leaf {leaf.index} was made when the run reached {leaf.sequence}", last + 1
            )
        if leaf.sequence < last:
            raise self._tampered("the leaf that commits to it stands elsewhere", leaf.sequence)
        if leaf.head != "sha256:" + self.chain.digest.decode():
            raise self._tampered(f"it was rewritten: leaf {leaf.index} commits to another entry", last)
        self.anchored = leaf.sequence

    def _tampered(self, why: str, sequence: int) -> Tampered:
        return Tampered(why, run=self.chain.run, sequence=sequence)


class Export:
    """A file while it is judged, line after line; what it has found so far is its verdict."""

    kind: str
    across_runs = False
    """Whether lines that are judged together may be of several runs."""

    def __init__(self, key: VerifierKey, pinned: str | None) -> None:
        self.key = key
        self.verdict = Verdict()
        self.number = 0
        """Of the line that was looked at last, where lines of a run that hold are passed over together."""
        self.passed = 0
        """Lines that are judged."""
        self.started = False
        """The header is judged."""
        self.tenant = ""
        self.section: Section | None = None
        self.newest: Checkpoint | None = None
        self.ended = False
        self.openings = Openings()
        self._pinned_note = pinned
        self.pinned: Checkpoint | None = None
        self.pinned_size = -1
        """The size at which the tree has to have the pinned root, -1 for none."""

    def take(self, lines: list[bytes]) -> None:
        """Judge the next lines, as the file has them. Raises Finding."""
        at = 0
        while at < len(lines):
            at += self.follow(lines, at)
            if at < len(lines):
                self.take_one(lines[at])
                at += 1

    def take_one(self, line: bytes) -> None:
        """Judge the next line, as the file has it. Raises Finding."""
        self.number = self.passed + 1
        if self.number == 1:
            check_begin(line)
        self._line(whole_line(self.number, line))
        self.passed += 1

    def follow(self, lines: list[bytes], start: int) -> int:
        """How many lines hold from `start` on that can be judged together."""
        if self.section is None:
            return 0
        place = Place(self.section.chain, self.section.anchored)
        taken = follow_together(place, self.openings, lines, start, runs=self.across_runs)
        if place.runs:
            self.section = Section(place.chain)
        self.section.anchored = place.anchored
        self.verdict.entries += place.entries
        self.verdict.runs += place.runs
        self.verdict.newer += place.newer
        self.passed += taken
        self.leaves_met(place.leaves)
        return taken

    def leaves_met(self, names: list[bytes]) -> None:
        """Leaves behind entries of runs that were judged together."""

    def _line(self, line: bytes) -> None:
        if self.number == 1:
            self.start(read_header(line, self.kind))
            if self._pinned_note is not None:
                self.pinned = open_checkpoint(self._pinned_note, self.key, self.tenant)
                self.pinned_size = self.pinned.size
        elif self.ended:
            raise Tampered("there is more behind the last line")
        elif line.startswith(ENTRY) and self.section is not None:
            self.section.chain.follow(*read_entry(line))
            self.verdict.entries += 1
        elif (leaf := read_leaf_line(line)) is not None:
            self.leaf(leaf)
        else:
            self.other(read_object(line))

    def start(self, header: dict[str, Any]) -> None:
        self.tenant = header["tenant"]
        self.started = True

    def other(self, line: dict[str, Any]) -> None:
        """Any line but an entry's."""
        if "leaf" in line:
            self.leaf(read_leaf(line))
        elif "checkpoint" in line:
            self.checkpoint(self.open(line["checkpoint"]))
        elif "run" in line:
            self.begin(line["run"])
        elif "end" in line:
            self.end(line["end"])
        else:
            raise Tampered("a line belongs to no export")

    def leaf(self, leaf: Leaf) -> None:
        raise NotImplementedError

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """The file is over. Raises Finding."""
        self.number = self.passed
        if self.passed == 0:
            raise Incomplete("the file is empty")
        if not self.ended:
            raise Incomplete("the file has no last line: it was cut")
        self.number = 0
        self.finish()

    def finish(self) -> None:
        if self.verdict.entries == 0:
            raise Incomplete("there is not one entry to check")

    def begin(self, run: Any) -> None:
        self._close_section()
        if not isinstance(run, str):
            raise Tampered("a run has no name")
        self.section = Section(Chain(run, self.tenant))
        self.verdict.runs += 1

    def _close_section(self) -> None:
        """The section is over: what is behind its last leaf is chained, not signed for."""
        if self.section is None:
            return
        if self.section.chain.sequence < 0 and self.section.anchored < 0:
            raise Tampered(
                "it is missing, and every other entry of its run", run=self.section.chain.run, sequence=0
            )
        self.verdict.newer += self.section.chain.sequence - self.section.anchored

    def end(self, counts: Any) -> None:
        self._close_section()
        self.section = None
        self.ended = True
        found = {"entries": self.verdict.entries, "leaves": self.verdict.leaves, "lines": self.number}
        if counts != found:
            raise Tampered("lines were added or removed: the last line counts others")

    def open(self, note: Any) -> Checkpoint:
        if not isinstance(note, str):
            raise Tampered("a checkpoint is no signed note")
        self.verdict.checkpoints += 1
        return open_checkpoint(note, self.key, self.tenant)
