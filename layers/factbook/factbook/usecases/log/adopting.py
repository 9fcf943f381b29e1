"""Take over the leaves of an imported log, before its entries come: they are the beginning of the tenant's tree.

Only whoever makes checkpoints writes the tree, so this is theirs to do, and it can do no more than they can: append behind
the edge, on condition that the edge is as it was read.
"""

from collections.abc import Sequence

from factbook.domain.errors import Throttled
from factbook.domain.log.runs import Leaf
from factbook.ports.log.checkpoints import CheckpointRefused, TreeStore
from factbook.usecases.log.checkpoints import ATTEMPTS, LEAVES_AT_ONCE, growth_by


def adopt_leaves(tree: TreeStore, tenant: str, leaves: Sequence[Leaf]) -> int:
    """Put consecutive leaves where they stood; how many were not there yet. Safe to repeat.

    Raises CheckpointRefused when another leaf stands at one of their places, or one before them is missing.
    """
    new = 0
    for start in range(0, len(leaves), LEAVES_AT_ONCE):
        new += _adopt(tree, tenant, leaves[start : start + LEAVES_AT_ONCE])
    return new


def known_leaves(tree: TreeStore, tenant: str, leaves: Sequence[Leaf]) -> int:
    """How many of consecutive leaves the tree has already. Raises CheckpointRefused when it has others."""
    size = tree.edge(tenant).size
    there = [leaf for leaf in leaves if leaf.index < size]
    if there and there != tree.leaves(tenant, there[0].index, len(there)):
        raise CheckpointRefused("Another leaf stands at this place of the tree.")
    return len(there)


def _adopt(tree: TreeStore, tenant: str, leaves: Sequence[Leaf]) -> int:
    for _ in range(ATTEMPTS):
        edge = tree.edge(tenant)
        known = known_leaves(tree, tenant, leaves)
        behind = leaves[known:]
        if not behind:
            return 0
        if [leaf.index for leaf in behind] != list(range(edge.size, edge.size + len(behind))):
            raise CheckpointRefused("Leaves before these are missing.")
        if tree.grow(tenant, growth_by(edge, behind)):
            return len(behind)
    raise Throttled
