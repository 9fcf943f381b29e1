"""The export of a whole log: the tree with every checkpoint behind its last leaf, then every run with its leaves again."""

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .exports import Export
from .findings import Incomplete, Tampered
from .leaves import Leaf, read_leaf
from .lines import read_object
from .notes import Checkpoint, VerifierKey
from .tree import GrowingRoot, Subtrees


@dataclass
class Tally:
    """Whether two streams name the same leaves, in constant memory.

    Each leaf adds, or takes away, its keyed hash; the key is random and made after the file, so only equal collections
    end at zero.
    """

    key: bytes = field(default_factory=lambda: os.urandom(32))
    total: int = 0

    def count(self, leaf: Leaf, sign: int) -> None:
        named = b"%d|" % leaf.index + leaf.statement
        hashed = hashlib.blake2b(named, key=self.key, digest_size=32).digest()
        self.add(sign * int.from_bytes(hashed))

    def add(self, amount: int) -> None:
        self.total = (self.total + amount) % (1 << 256)


class WholeExport(Export):
    kind = "all"

    def __init__(self, key: VerifierKey, pinned: str | None, again: Callable[[], Iterable[bytes]]) -> None:
        """`again` gives the file's lines once more: only of one that fails it is asked which leaf is to blame."""
        super().__init__(key, pinned)
        self.tree: GrowingRoot | Subtrees = GrowingRoot()
        self.tally = Tally()
        self._again = again

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
        self.meet_pinned()

    def meet_pinned(self) -> None:
        """Raises Tampered when the tree has grown to the pinned size, and has another root there."""
        if (
            self.pinned is not None
            and self.pinned.size == self.tree.size
            and self.pinned.root != self._root()
        ):
            raise Tampered(f"the pinned checkpoint of {self.tree.size} leaves is of another history")

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        if self.section is not None or (self.newest is not None and checkpoint.size <= self.newest.size):
            raise Tampered("a checkpoint is repeated, or stands among the runs")
        if checkpoint.size != self.tree.size:
            raise Tampered(f"a checkpoint of {checkpoint.size} leaves stands behind {self.tree.size}")
        if checkpoint.root != self._root():
            raise Tampered(
                f"the leaves do not have the root of the checkpoint of {checkpoint.size}: one was changed"
            )
        self.newest = checkpoint
        self.verdict.size = checkpoint.size

    def _root(self) -> bytes:
        assert isinstance(self.tree, GrowingRoot), "a part of a tree has no root"
        return self.tree.root()

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
        for line in self._again():
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
