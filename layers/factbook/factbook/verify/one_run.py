"""The export of one run: each leaf proves that the newest checkpoint includes it, and that one extends the older ones."""

from typing import Any

from .exports import Export
from .findings import Incomplete, Tampered
from .leaves import Leaf, read_hashes
from .notes import Checkpoint
from .tree import extends, includes


class RunExport(Export):
    kind = "run"
    run: str

    def start(self, header: dict[str, Any]) -> None:
        super().start(header)
        self.run = header["run"]
        self.pin_met = False

    def other(self, line: dict[str, Any]) -> None:
        if "older" in line:
            self._older(self.open(line["older"]), read_hashes(line.get("proof")))
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
                run=self.section.chain.run,
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
