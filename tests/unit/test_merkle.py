"""Trees as the service grows and proves them, held against the definition and against the verifier's own code."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.log_fakes import FakeTree

from factbook.domain.log import merkle
from factbook.domain.log.merkle import Edge
from factbook.domain.log.runs import Leaf
from factbook.ports.log.checkpoints import Growth
from factbook.usecases.log.stored_tree import stored_nodes
from factbook.verify import tree

SALT = "00" * 16


def defined_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, 2.1, word for word, over leaf hashes."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + defined_root(leaves[:k]) + defined_root(leaves[k:])).digest()


def hashes(count: int) -> list[bytes]:
    return [hashlib.sha256(b"\x00%d" % number).digest() for number in range(count)]


def stored(leaves: list[bytes]) -> FakeTree:
    store, edge, nodes, rows = FakeTree(), Edge(), [], []
    for index, leaf in enumerate(leaves):
        edge, completed = edge.append(leaf)
        nodes += completed
        rows.append((Leaf(index, "r", index, "h", SALT), leaf))
    assert store.grow("t", Growth(Edge(), edge, rows, nodes))
    return store


@given(st.integers(0, 300))
def test_the_edge_has_the_root_of_the_definition_at_every_size(count: int) -> None:
    leaves = hashes(count)
    edge, growing = Edge(), tree.GrowingRoot()
    for leaf in leaves:
        edge, _ = edge.append(leaf)
        growing.add(leaf)
    assert edge.root() == growing.root() == defined_root(leaves)
    assert len(edge.peaks) == count.bit_count()


@given(st.data())
def test_a_leaf_is_proven_in_every_tree_that_holds_it(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 300))
    index = data.draw(st.integers(0, size - 1))
    leaves = hashes(size)
    proof = merkle.inclusion_proof(stored_nodes(stored(leaves), "t"), index, size)
    assert len(proof) <= size.bit_length()
    assert tree.includes(leaves[index], index, size, proof, defined_root(leaves))


@given(st.data())
def test_a_tree_is_proven_to_extend_each_that_came_before(data: st.DataObject) -> None:
    newer = data.draw(st.integers(1, 300))
    older = data.draw(st.integers(1, newer))
    leaves = hashes(newer)
    proof = merkle.consistency_proof(stored_nodes(stored(leaves), "t"), older, newer)
    assert len(proof) <= newer.bit_length() + 1
    assert tree.extends(older, newer, proof, defined_root(leaves[:older]), defined_root(leaves))


@given(st.data())
def test_no_other_leaf_index_size_proof_or_root_passes_for_an_inclusion(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 130))
    index = data.draw(st.integers(0, size - 1))
    leaves = hashes(size)
    root = defined_root(leaves)
    proof = merkle.inclusion_proof(stored_nodes(stored(leaves), "t"), index, size)
    other = data.draw(st.integers(0, size - 1).filter(lambda each: each != index))
    assert not tree.includes(leaves[other], index, size, proof, root)
    assert not tree.includes(leaves[index], other, size, proof, root)
    assert not tree.includes(leaves[index], index, size, proof, leaves[0])
    at = data.draw(st.integers(0, len(proof) - 1))
    changed = [*proof[:at], hashlib.sha256(proof[at]).digest(), *proof[at + 1 :]]
    assert not tree.includes(leaves[index], index, size, changed, root)
    assert not tree.includes(leaves[index], index, size, proof[:-1], root)
    assert not tree.includes(leaves[index], index, size, [*proof, proof[0]], root)


@given(st.data())
def test_no_tree_with_another_past_is_an_extension(data: st.DataObject) -> None:
    newer = data.draw(st.integers(2, 130))
    older = data.draw(st.integers(1, newer))
    leaves = hashes(newer)
    at = data.draw(st.integers(0, older - 1))
    forged = [*leaves[:at], hashlib.sha256(b"forged").digest(), *leaves[at + 1 :]]
    proof = merkle.consistency_proof(stored_nodes(stored(forged), "t"), older, newer)
    assert not tree.extends(older, newer, proof, defined_root(leaves[:older]), defined_root(forged))


@pytest.mark.parametrize(("older", "newer"), [(0, 5), (5, 3), (-1, 2)])
def test_nothing_extends_an_empty_or_a_larger_tree(older: int, newer: int) -> None:
    assert not tree.extends(older, newer, [], b"", b"")
    assert not tree.includes(b"", 0, 0, [], b"")


def test_proofs_reach_over_pages_of_nodes_at_every_height() -> None:
    size = 2 * 65_536 + 300
    leaves = hashes(size)
    nodes = stored_nodes(stored(leaves), "t")
    growing, roots = tree.GrowingRoot(), {}
    wanted = {255, 256, 257, 65_535, 65_536, 65_537, 131_073, size}
    for leaf in leaves:
        growing.add(leaf)
        if growing.size in wanted:
            roots[growing.size] = growing.root()
    for older in wanted:
        proof = merkle.consistency_proof(nodes, older, size)
        assert tree.extends(older, size, proof, roots[older], roots[size])
        assert merkle.root_of(nodes, older) == roots[older]
    for index in (0, 255, 65_535, 65_536, 131_071, 131_072, size - 1):
        assert tree.includes(
            leaves[index], index, size, merkle.inclusion_proof(nodes, index, size), roots[size]
        )


def test_a_proof_reads_few_pages_however_large_the_tree() -> None:
    store = stored(hashes(70_000))
    read: list[tuple[int, int]] = []
    real = store.hashes

    def counted(tenant: str, height: int, page: int) -> list[bytes]:
        read.append((height, page))
        return real(tenant, height, page)

    store.hashes = counted  # type: ignore[method-assign]
    merkle.inclusion_proof(stored_nodes(store, "t"), 12_345, 70_000)
    assert len(read) <= 6
    read.clear()
    merkle.consistency_proof(stored_nodes(store, "t"), 54_321, 70_000)
    assert len(read) <= 6


def test_a_gap_in_the_stored_tree_is_no_proof() -> None:
    store = stored(hashes(300))
    with pytest.raises(IndexError):
        merkle.root_of(stored_nodes(store, "t"), 301)
