"""A leaf as an export carries it: a run's head at a checkpoint, with the salt that hides it in the tree."""

import base64
import binascii
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from .findings import Tampered
from .tree import leaf_hash

# What names a run and a hash needs no escape in JSON, so a statement reads in one way only.
_RUN = re.compile(r"[A-Za-z0-9._:@~-]{1,256}", re.ASCII)
_HEAD = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_NUMBER = rb"(0|[1-9][0-9]{0,17})"
_HASH = rb'"[A-Za-z0-9+/]{43}="'
_LINE = re.compile(
    rb'\{"leaf":%b,"run":"([A-Za-z0-9._:@~-]{1,256})","seq":%b,"head":"(sha256:[0-9a-f]{64})","salt":"([0-9a-f]*)"'
    rb'(?:,"proof":\[((?:%b(?:,%b)*)?)\])?\}' % (_NUMBER, _NUMBER, _HASH, _HASH)
)
"""A leaf's line as every export writes it."""
_IN_TREE = re.compile(
    rb'(\{"leaf":%b,"run":"([A-Za-z0-9._:@~-]{1,256})","seq":%b,"head":"(sha256:[0-9a-f]{64})"),'
    rb'"salt":"((?:[0-9a-f]{2})*)"\}\n' % (_NUMBER, _NUMBER)
)
_NAME = re.compile(rb"[A-Za-z0-9._:@~-]{1,256}")
_INDEX = re.compile(rb'\{"leaf":%b' % _NUMBER)
_SALT = re.compile(rb',"salt":"(?:[0-9a-f]{2})*"\}')


@dataclass(slots=True)
class Leaf:
    """`hash` is the leaf's hash in the tree: RFC 6962 over SHA-256(salt ‖ statement)."""

    index: int
    run: str
    sequence: int
    head: str
    salt: bytes
    proof: tuple[bytes, ...] | None = None

    @property
    def name(self) -> bytes:
        """What tells it from every other leaf: how its line begins, up to the salt."""
        return f'{{"leaf":{self.index},"run":"{self.run}","seq":{self.sequence},"head":"{self.head}"'.encode()

    @property
    def statement(self) -> bytes:
        return f'{{"head":"{self.head}","run":"{self.run}","seq":{self.sequence},"t":"runhead"}}'.encode()

    @property
    def hash(self) -> bytes:
        return leaf_hash(sha256(self.salt + self.statement).digest())


def read_leaf_line(line: bytes) -> Leaf | None:
    """What `read_leaf` makes of a line, of one that is laid out as an export's; None of any other, which says nothing of it."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    index, run, sequence, head, salt, proof = match.groups()
    if len(salt) % 2:
        return None
    hashes = None if proof is None else _hashes(proof)
    return Leaf(int(index), run.decode(), int(sequence), head.decode(), bytes.fromhex(salt.decode()), hashes)


def read_leaf_in_tree(line: bytes, index: int) -> tuple[bytes, bytes] | None:
    """The name and the hash of the leaf of this index, if this is its line, without a proof and laid out as an export's."""
    match = _IN_TREE.fullmatch(line)
    if match is None:
        return None
    name, at, run, sequence, head, salt = match.groups()
    if int(at) != index:
        return None
    statement = b'{"head":"%b","run":"%b","seq":%b,"t":"runhead"}' % (head, run, sequence)
    return name, leaf_hash(sha256(bytes.fromhex(salt.decode()) + statement).digest())


def name_of_leaf(line: bytes, run: bytes, sequence: int, digest: bytes) -> bytes | None:
    """The name of the leaf that commits to this entry, if this is its line, without a proof and laid out as an export's."""
    says = b',"run":"%b","seq":%d,"head":"sha256:%b"' % (run, sequence, digest)
    index, found, salt = line.partition(says)
    if found and _INDEX.fullmatch(index) and _SALT.fullmatch(salt) and _NAME.fullmatch(run):
        return index + says
    return None


def _hashes(proof: bytes) -> tuple[bytes, ...]:
    return tuple(base64.b64decode(each[1:-1]) for each in proof.split(b",")) if proof else ()


def read_leaf(line: dict[str, Any]) -> Leaf:
    """Raises Tampered for a line that is no leaf."""
    index, sequence = line.get("leaf"), line.get("seq")
    run, head = str(line.get("run")), str(line.get("head"))
    if type(index) is int and type(sequence) is int and _RUN.fullmatch(run) and _HEAD.fullmatch(head):
        try:
            salt = bytes.fromhex(line["salt"])
            proof = read_hashes(line["proof"]) if "proof" in line else None
            return Leaf(index, run, sequence, head, salt, proof)
        except (KeyError, TypeError, ValueError):
            pass
    raise Tampered("a leaf's line is incomplete")


def read_hashes(proof: Any) -> tuple[bytes, ...]:
    """Raises Tampered for what is no list of hashes."""
    try:
        hashes = tuple(base64.b64decode(text, validate=True) for text in proof)
    except (binascii.Error, TypeError, ValueError) as error:
        raise Tampered("a proof is no list of hashes") from error
    if any(len(each) != 32 for each in hashes):
        raise Tampered("a proof is no list of hashes")
    return hashes
