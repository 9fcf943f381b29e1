"""Judge an export with one public key: one run's, or a whole tenant's log with every leaf and every root."""

import hashlib
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .chain import ENTRY, Chain
from .findings import Finding, Incomplete, Tampered
from .leaves import Leaf, read_hashes, read_leaf
from .lines import Progress, check_begin, read_blocks, read_entry, read_header, read_object, whole_line
from .notes import Checkpoint, VerifierKey, open_checkpoint
from .tree import GrowingRoot, extends, includes

HOLDS = 0


@dataclass
class Verdict:
    """`code` 0 holds, 1 tampered, 2 incomplete, 3 unsupported; what was checked; and where it fails."""

    code: int = HOLDS
    why: str = ""
    run: str | None = None
    sequence: int | None = None
    line: int | None = None
    entries: int = 0
    runs: int = 0
    leaves: int = 0
    checkpoints: int = 0
    newer: int = 0
    """Entries behind the last checkpointed head of their run: chained, but not yet signed for."""
    size: int = 0
    """Leaves the newest checkpoint signs for."""

    @property
    def holds(self) -> bool:
        return self.code == HOLDS

    def to_json(self) -> dict[str, Any]:
        return {"holds": self.holds} | {
            key: value for key, value in asdict(self).items() if value is not None
        }


def verify_run(
    path: Path, key: VerifierKey, pinned: str | None = None, progress: Progress | None = None
) -> Verdict:
    """Judge the export of one run; `pinned` is a note kept from earlier."""
    return _judged(_RunFile(key, pinned), path, progress)


def audit(
    path: Path, key: VerifierKey, pinned: str | None = None, progress: Progress | None = None
) -> Verdict:
    """Judge the export of a whole log; the tree at the size of `pinned` must have that note's root."""
    return _judged(_WholeFile(key, pinned), path, progress)


def _judged(judge: "_File", path: Path, progress: Progress | None) -> Verdict:
    verdict = judge.verdict
    try:
        judge.read(path, progress)
    except Finding as finding:
        verdict.code, verdict.why = finding.code, finding.why
        verdict.run, verdict.sequence = finding.run, finding.sequence
        verdict.line = judge.number or None
    return verdict


class _Section:
    """One run's part of a file: its entries in order, each checkpointed head followed by its leaf."""

    def __init__(self, run: str, tenant: str) -> None:
        self.chain = Chain(run, tenant)
        self.anchored = -1

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


class _File:
    """What both kinds of file share: a header first, run sections, an end that counts."""

    kind: str

    def __init__(self, key: VerifierKey, pinned: str | None) -> None:
        self.key = key
        self.verdict = Verdict()
        self.number = 0
        self.tenant = ""
        self.section: _Section | None = None
        self.newest: Checkpoint | None = None
        self.ended = False
        self._pinned_note = pinned
        self.pinned: Checkpoint | None = None

    def read(self, path: Path, progress: Progress | None) -> None:
        for before, block in read_blocks(path, progress):
            self._take(before, block)
        if not self.ended:
            raise Incomplete("the file has no last line: it was cut")
        self.number = 0
        self.finish()

    def _take(self, before: int, block: list[bytes]) -> None:
        at = 0
        while at < len(block):
            if self.section is not None:
                taken = self.section.chain.follow_lines(block, at)
                self.verdict.entries += taken
                at += taken
                if at == len(block):
                    return
            self.number = before + at + 1
            if self.number == 1:
                check_begin(block[at])
            self._line(whole_line(self.number, block[at]))
            at += 1

    def _line(self, line: bytes) -> None:
        if self.number == 1:
            self.start(read_header(line, self.kind))
            if self._pinned_note is not None:
                self.pinned = open_checkpoint(self._pinned_note, self.key, self.tenant)
        elif self.ended:
            raise Tampered("there is more behind the last line")
        elif line.startswith(ENTRY) and self.section is not None:
            self.section.chain.follow(*read_entry(line))
            self.verdict.entries += 1
        else:
            self.other(read_object(line))

    def start(self, header: dict[str, Any]) -> None:
        self.tenant = header["tenant"]

    def other(self, line: dict[str, Any]) -> None:
        """Any line but an entry's."""
        if "leaf" in line:
            self.leaf(read_leaf(line))
        elif "checkpoint" in line:
            self.checkpoint(self._checkpoint(line["checkpoint"]))
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

    def finish(self) -> None:
        if self.verdict.entries == 0:
            raise Incomplete("there is not one entry to check")

    def begin(self, run: Any) -> None:
        self.close()
        if not isinstance(run, str):
            raise Tampered("a run has no name")
        self.section = _Section(run, self.tenant)
        self.verdict.runs += 1

    def close(self) -> None:
        """The section is over: what is behind its last leaf is chained, not signed for."""
        if self.section is None:
            return
        if self.section.chain.sequence < 0 and self.section.anchored < 0:
            raise Tampered(
                "it is missing, and every other entry of its run", run=self.section.chain.run, sequence=0
            )
        self.verdict.newer += self.section.chain.sequence - self.section.anchored

    def end(self, counts: Any) -> None:
        self.close()
        self.section = None
        self.ended = True
        found = {"entries": self.verdict.entries, "leaves": self.verdict.leaves, "lines": self.number}
        if counts != found:
            raise Tampered("lines were added or removed: the last line counts others")

    def _checkpoint(self, note: Any) -> Checkpoint:
        if not isinstance(note, str):
            raise Tampered("a checkpoint is no signed note")
        self.verdict.checkpoints += 1
        return open_checkpoint(note, self.key, self.tenant)


class _RunFile(_File):
    """Each leaf proves that the newest checkpoint includes it; older checkpoints prove that the newest extends them."""

    kind = "run"

    def start(self, header: dict[str, Any]) -> None:
        super().start(header)
        self.run = header["run"]
        self.pin_met = False

    def other(self, line: dict[str, Any]) -> None:
        if "older" in line:
            self._older(self._checkpoint(line["older"]), read_hashes(line.get("proof")))
        else:
            super().other(line)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        if self.newest is not None or self.section is not None:
            raise Tampered("the newest checkpoint is there twice")
        self.newest = checkpoint
        self.verdict.size = checkpoint.size
        self._meet(checkpoint)

    def begin(self, run: Any) -> None:
        if run != self.run or self.section is not None:
            raise Tampered("the file holds another run than its header says")
        super().begin(run)

    def leaf(self, leaf: Leaf) -> None:
        if self.section is None or self.newest is None or leaf.proof is None:
            raise Tampered("a leaf stands without its run, its proof or a checkpoint")
        proven = includes(leaf.hash, leaf.index, self.newest.size, leaf.proof, self.newest.root)
        if not proven:
            raise Tampered(
                f"the proof of leaf {leaf.index} does not lead to the checkpoint's root",
                run=self.run,
                sequence=leaf.sequence,
            )
        self.section.leaf(leaf)
        self.verdict.leaves += 1

    def finish(self) -> None:
        super().finish()
        if self.verdict.leaves == 0:
            raise Incomplete("no checkpoint covers this run yet: make one, then export again")
        if self.pinned is not None and not self.pin_met:
            raise self._pin_missed(self.pinned)

    def _older(self, older: Checkpoint, proof: tuple[bytes, ...]) -> None:
        if self.newest is None or self.section is not None:
            raise Tampered("an older checkpoint stands without the newest")
        if not extends(older.size, self.newest.size, proof, older.root, self.newest.root):
            raise Tampered(f"the newest checkpoint does not extend the one of {older.size} leaves")
        self._meet(older)

    def _meet(self, checkpoint: Checkpoint) -> None:
        if self.pinned is None or self.pinned.size != checkpoint.size:
            return
        if self.pinned.root != checkpoint.root:
            raise Tampered(f"the pinned checkpoint of {checkpoint.size} leaves is of another history")
        self.pin_met = True

    def _pin_missed(self, pinned: Checkpoint) -> Incomplete:
        if pinned.size > self.verdict.size:
            return Incomplete("the pinned checkpoint is newer than this export: export again")
        return Incomplete(
            "the file does not prove that it extends the pinned checkpoint: export with --checkpoint NOTE"
        )


@dataclass
class _Tally:
    """Whether two streams name the same leaves, in constant memory.

    Each leaf adds, or takes away, its keyed hash; the key is random and made after the file, so only equal collections
    end at zero.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    total: int = 0

    def count(self, leaf: Leaf, sign: int) -> None:
        named = b"%d|" % leaf.index + leaf.statement
        hashed = hashlib.blake2b(named, key=self.key, digest_size=32).digest()
        self.total = (self.total + sign * int.from_bytes(hashed)) % (1 << 256)


class _WholeFile(_File):
    """First the tree: every leaf in order, each checkpoint behind its last leaf. Then every run with its leaves again."""

    kind = "all"

    def __init__(self, key: VerifierKey, pinned: str | None) -> None:
        super().__init__(key, pinned)
        self.tree = GrowingRoot()
        self.tally = _Tally()
        self.path = Path()

    def read(self, path: Path, progress: Progress | None) -> None:
        self.path = path
        super().read(path, progress)

    def leaf(self, leaf: Leaf) -> None:
        if self.section is not None:
            self.section.leaf(leaf)
            self.tally.count(leaf, -1)
            return
        if leaf.index != self.tree.size:
            raise Tampered(
                f"leaf {self.tree.size} is missing from the tree", run=leaf.run, sequence=leaf.sequence
            )
        self.tree.add(leaf.hash)
        self.tally.count(leaf, 1)
        self.verdict.leaves += 1
        if (
            self.pinned is not None
            and self.pinned.size == self.tree.size
            and self.pinned.root != self.tree.root()
        ):
            raise Tampered(f"the pinned checkpoint of {self.tree.size} leaves is of another history")

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        if self.section is not None or (self.newest is not None and checkpoint.size <= self.newest.size):
            raise Tampered("a checkpoint is repeated, or stands among the runs")
        if checkpoint.size != self.tree.size:
            raise Tampered(f"a checkpoint of {checkpoint.size} leaves stands behind {self.tree.size}")
        if checkpoint.root != self.tree.root():
            raise Tampered(
                f"the leaves do not have the root of the checkpoint of {checkpoint.size}: one was changed"
            )
        self.newest = checkpoint
        self.verdict.size = checkpoint.size

    def begin(self, run: Any) -> None:
        if self.section is None:
            self._close_tree()
        super().begin(run)

    def finish(self) -> None:
        if self.newest is None:
            self._close_tree()
        if self.tally.total:
            raise self._unmatched()
        super().finish()

    def _close_tree(self) -> None:
        if self.newest is None:
            raise Incomplete("there is no checkpoint yet: make one, then export again")
        if self.newest.size != self.tree.size:
            raise Tampered(f"leaf {self.tree.size - 1} is covered by no checkpoint")
        if self.pinned is not None and self.pinned.size > self.tree.size:
            raise Tampered(
                f"the pinned checkpoint has {self.pinned.size} leaves, this history only {self.tree.size}"
            )

    def _unmatched(self) -> Tampered:
        """Which leaf the tree and the runs disagree about. Reads the file again; only a failing one costs memory."""
        waiting: dict[tuple[int, bytes], Leaf] = {}
        inside = False
        for line in (line for _, block in read_blocks(self.path) for line in block):
            if line.startswith(b'{"run":'):
                inside = True
            elif line.startswith(b'{"leaf":'):
                leaf = read_leaf(read_object(line))
                named = (leaf.index, leaf.statement)
                if not inside:
                    waiting[named] = leaf
                elif waiting.pop(named, None) is None:
                    return Tampered(
                        f"leaf {leaf.index} is not in the tree", run=leaf.run, sequence=leaf.sequence
                    )
        leaf = min(waiting.values(), key=lambda each: each.index)
        return Tampered(
            f"leaf {leaf.index} commits to it, but the run was dropped or its leaf removed",
            run=leaf.run,
            sequence=leaf.sequence,
        )
