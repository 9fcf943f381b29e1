"""The export of a whole log: the tree with every checkpoint behind its last leaf, then every run with its leaves again."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from .exports import Export
from .findings import Incomplete, Tampered
from .leaves import Leaf, read_leaf, read_leaf_in_tree
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
        self.add(sign * self._hash(leaf.name))

    def count_all(self, names: list[bytes], sign: int) -> None:
        self.add(sign * sum(map(self._hash, names)))

    def _hash(self, name: bytes) -> int:
        return int.from_bytes(sha256(self.key + name).digest())

    def add(self, amount: int) -> None:
        self.total = (self.total + amount) % (1 << 256)


class WholeExport(Export):
    kind = "all"
    across_runs = True

    def __init__(self, key: VerifierKey, pinned: str | None, again: Callable[[], Iterable[bytes]]) -> None:
        """`again` gives the file's lines once more: only of one that fails it is asked which leaf is to blame."""
        super().__init__(key, pinned)
        self.tree: GrowingRoot | Subtrees = GrowingRoot()
        self.tally = Tally()
        self._again = again

    def follow(self, lines: list[bytes], start: int) -> int:
        in_tree = self.started and self.section is None and not self.ended
        return self._follow_leaves(lines, start) if in_tree else super().follow(lines, start)

    def _follow_leaves(self, lines: list[bytes], start: int) -> int:
        """How many lines from `start` on are the next leaves of the tree, short of the one that makes the pinned size."""
        names: list[bytes] = []
        tree = self.tree
        end = len(lines) if tree.size > self.pinned_size else start + max(0, self.pinned_size - 1 - tree.size)
        for line in lines[start:end]:
            read = read_leaf_in_tree(line, tree.size)
            if read is None:
                break
            names.append(read[0])
            tree.add(read[1])
        self.tally.count_all(names, 1)
        self.verdict.leaves += len(names)
        self.passed += len(names)
        return len(names)

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

    def leaves_met(self, names: list[bytes]) -> None:
        self.tally.count_all(names, -1)

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
