"""RFC 6962 trees as the service grows them: appended leaf by leaf, proven from stored subtrees.

A node is (level, index): the root of the complete subtree over the leaves index·2^level up to (index + 1)·2^level. Nodes
never change once complete, so a root or a proof reads logarithmically many of them and hashes the rest.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

Nodes = Callable[[int, int], bytes]
"""The hash of the complete node (level, index)."""


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True)
class Edge:
    """The right edge of a tree: its size and its maximal complete subtrees, largest first."""

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def append(self, leaf: bytes) -> "tuple[Edge, list[tuple[int, int, bytes]]]":
        """The edge after a leaf's hash, and the nodes (level, index, hash) above it that it completed."""
        peaks, carry, level = list(self.peaks), self.size, 0
        completed = []
        while carry & 1:
            leaf = node_hash(peaks.pop(), leaf)
            carry >>= 1
            level += 1
            completed.append((level, carry, leaf))
        return Edge(self.size + 1, (*peaks, leaf)), completed

    def root(self) -> bytes:
        """The tree's root; of no leaves, the hash of nothing."""
        if not self.peaks:
            return hashlib.sha256(b"").digest()
        root = self.peaks[-1]
        for peak in self.peaks[-2::-1]:
            root = node_hash(peak, root)
        return root


def root_of(nodes: Nodes, size: int) -> bytes:
    """The root of the first `size` leaves, size ≥ 1."""
    return _range_hash(nodes, 0, size)


def inclusion_proof(nodes: Nodes, index: int, size: int) -> list[bytes]:
    """The audit path of leaf `index` in the tree of `size` leaves, nearest sibling first (RFC 6962, 2.1.1)."""
    low, high, path = 0, size, []
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append((middle, high))
            high = middle
        else:
            path.append((low, middle))
            low = middle
    return [_range_hash(nodes, *sibling) for sibling in reversed(path)]


def consistency_proof(nodes: Nodes, older: int, newer: int) -> list[bytes]:
    """What shows that the tree of `newer` leaves begins with that of `older`, 0 < older ≤ newer (RFC 6962, 2.1.2)."""
    low, high, path, whole = 0, newer, [], True
    while older != high:
        middle = low + _split(high - low)
        if older <= middle:
            path.append((middle, high))
            high = middle
        else:
            path.append((low, middle))
            low, whole = middle, False
    if not whole:
        path.append((low, high))
    return [_range_hash(nodes, *part) for part in reversed(path)]


def _split(width: int) -> int:
    """The largest power of two below `width`."""
    return 1 << (width - 1).bit_length() - 1


def _range_hash(nodes: Nodes, low: int, high: int) -> bytes:
    width = high - low
    if width & (width - 1) == 0:
        level = width.bit_length() - 1
        return nodes(level, low >> level)
    middle = low + _split(width)
    return node_hash(_range_hash(nodes, low, middle), _range_hash(nodes, middle, high))
