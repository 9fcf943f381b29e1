"""RFC 6962 trees as a verifier needs them: a root from leaves in order, and proofs against a root.

Written apart from `factbook.domain.merkle`, which builds the service's trees, so that one checks the other.
"""

import hashlib
from collections.abc import Sequence


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class GrowingRoot:
    """The root after every leaf, in logarithmic memory."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, node: bytes, height: int = 0) -> None:
        """Take the next leaf's hash, or the root of the complete subtree of 2^height leaves that comes next."""
        carry = self.size >> height
        while carry & 1:
            node = node_hash(self._peaks.pop(), node)
            carry >>= 1
        self._peaks.append(node)
        self.size += 1 << height

    def root(self) -> bytes:
        if not self._peaks:
            return hashlib.sha256(b"").digest()
        root = self._peaks[-1]
        for peak in self._peaks[-2::-1]:
            root = node_hash(peak, root)
        return root


class Subtrees:
    """What some leaves add to a tree whose other leaves are not known: complete subtrees, from left to right."""

    def __init__(self, size: int) -> None:
        """`size`: how many leaves the tree has before."""
        self.size = size
        self.nodes: list[tuple[int, bytes]] = []
        """(height, root), each in its place for `GrowingRoot.add`."""

    def add(self, leaf: bytes) -> None:
        """Take the next leaf's hash."""
        height, carry = 0, self.size
        while carry & 1 and self.nodes and self.nodes[-1][0] == height:
            leaf = node_hash(self.nodes.pop()[1], leaf)
            height, carry = height + 1, carry >> 1
        self.nodes.append((height, leaf))
        self.size += 1


def includes(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether `proof` shows a leaf's hash at `index` of the tree of `size` leaves under `root` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    position, last, result = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if position & 1 or position == last:
            result = node_hash(sibling, result)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            result = node_hash(result, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and result == root


def extends(older: int, newer: int, proof: Sequence[bytes], older_root: bytes, newer_root: bytes) -> bool:
    """Whether `proof` shows that the tree of `newer` leaves begins with the one of `older` (RFC 9162, 2.1.4.2)."""
    if not 0 < older <= newer:
        return False
    if older == newer:
        return not proof and older_root == newer_root
    path = [older_root, *proof] if older & (older - 1) == 0 else list(proof)
    if not path:
        return False
    position, last = older - 1, newer - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if position & 1 or position == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            second = node_hash(second, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and first == older_root and second == newer_root
