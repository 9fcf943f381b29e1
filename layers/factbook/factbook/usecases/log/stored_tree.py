"""Nodes of a stored tree, for proofs and roots."""

from factbook.domain.log.merkle import Nodes, node_hash
from factbook.ports.log.checkpoints import TreeStore


def stored_nodes(tree: TreeStore, tenant: str) -> Nodes:
    """Complete nodes from stored pages: leaves, and every eighth level above them; what lies between is hashed.

    The nodes raise IndexError where the store lacks leaves.
    """
    pages: dict[tuple[int, int], list[bytes]] = {}

    def node(level: int, index: int) -> bytes:
        height, levels = divmod(level, 8)
        first = index << levels
        where = (height, first >> 8)
        if where not in pages:
            pages[where] = tree.hashes(tenant, *where)
        hashes = pages[where][first & 255 : (first & 255) + (1 << levels)]
        if len(hashes) != 1 << levels:
            raise IndexError(f"The stored tree lacks leaves of node {index} at level {level}.")
        while len(hashes) > 1:
            hashes = [node_hash(*pair) for pair in zip(hashes[::2], hashes[1::2], strict=True)]
        return hashes[0]

    return node
