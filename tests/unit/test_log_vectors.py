"""The reference vectors: canonical texts, a chain, a tree and signed notes, accepted and refused."""

import base64
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from factbook.canonical import log_canonical
from factbook.domain.errors import BadInput
from factbook.domain.log import merkle
from factbook.domain.log.chain import text_hash
from factbook.domain.log.notes import NoteKey, checkpoint_text
from factbook.domain.strict_json import parse_json
from factbook.verify import notes, tree

VECTORS = json.loads(Path(__file__).with_name("log_vectors.json").read_text("utf-8"))
CHECKPOINT = VECTORS["checkpoint"]
ORIGIN = CHECKPOINT["notes"][0].partition("\n")[0]


def signer() -> tuple[Ed25519PrivateKey, NoteKey]:
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(CHECKPOINT["seed_hex"]))
    return private, NoteKey(ORIGIN, private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def leaf_hashes() -> list[bytes]:
    return [merkle.leaf_hash(leaf.encode()) for leaf in CHECKPOINT["leaves"]]


def read(leaves: list[bytes]) -> merkle.Nodes:
    def node(level: int, index: int) -> bytes:
        edge = merkle.Edge()
        for leaf in leaves[index << level : (index + 1) << level]:
            edge, _ = edge.append(leaf)
        return edge.root()

    return node


@pytest.mark.parametrize("vector", VECTORS["accept"], ids=lambda vector: vector["input"][:40])
def test_an_accepted_input_has_the_canonical_text_and_hash_of_the_vector(vector):
    text = log_canonical(parse_json(vector["input"]))
    assert text == vector["canonical"]
    assert text_hash(text) == vector["contentHash"]


@pytest.mark.parametrize("vector", VECTORS["reject"], ids=lambda vector: vector["input"][:40])
def test_a_refused_input_is_bad_input(vector):
    with pytest.raises(BadInput):
        log_canonical(parse_json(vector["input"]))


def test_the_reference_chain_has_the_heads_of_the_vectors():
    before = "sha256:" + "0" * 64
    for link in VECTORS["chain"]:
        assert link["entry"]["prevHash"] == before
        text = log_canonical(link["entry"])
        assert text == link["canonical"]
        assert text_hash(log_canonical(link["entry"]["payload"])) == link["contentHash"]
        before = text_hash(text)
        assert before == link["entryHash"]


def test_signing_the_reference_tree_gives_the_notes_of_the_vectors_byte_for_byte():
    private, key = signer()
    assert key.vkey == CHECKPOINT["vkey"]
    for note, size in zip(CHECKPOINT["notes"], (1, 3), strict=True):
        text = checkpoint_text(ORIGIN, size, merkle.root_of(read(leaf_hashes()), size))
        assert key.note(text, private.sign(text.encode())) == note


def test_the_notes_of_the_vectors_open_with_their_key():
    key = notes.read_key(CHECKPOINT["vkey"])
    opened = [notes.open_checkpoint(note, key) for note in CHECKPOINT["notes"]]
    assert [(note.origin, note.size) for note in opened] == [(ORIGIN, 1), (ORIGIN, 3)]
    growing = tree.GrowingRoot()
    roots = {}
    for leaf in leaf_hashes():
        growing.add(leaf)
        roots[growing.size] = growing.root()
    assert [note.root for note in opened] == [roots[1], roots[3]]


def test_the_proofs_of_the_vectors_are_made_and_hold():
    leaves = leaf_hashes()
    nodes = read(leaves)
    inclusion = [base64.b64decode(each) for each in CHECKPOINT["inclusion_0_of_3_b64"]]
    consistency = [base64.b64decode(each) for each in CHECKPOINT["consistency_1_3_b64"]]
    assert merkle.inclusion_proof(nodes, 0, 3) == inclusion
    assert merkle.consistency_proof(nodes, 1, 3) == consistency
    roots = [merkle.root_of(nodes, size) for size in (1, 2, 3)]
    assert tree.includes(leaves[0], 0, 3, inclusion, roots[2])
    assert tree.extends(1, 3, consistency, roots[0], roots[2])


def test_the_root_of_eight_known_leaves_is_that_of_the_vector():
    # the eight leaves every RFC 6962 implementation is tried on
    leaves = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
    hashes = [merkle.leaf_hash(bytes.fromhex(leaf)) for leaf in leaves]
    assert merkle.root_of(read(hashes), 8).hex() == VECTORS["merkle_rfc6962_root8"]
    assert hashlib.sha256(b"").digest() == merkle.Edge().root()
