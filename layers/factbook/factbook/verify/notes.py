"""C2SP signed notes and tlog checkpoints: what a public key says a tree was.

A note's text ends in a newline; after an empty line come signatures, `— <name> base64(4-byte key id ‖ signature)`. A
checkpoint's text is its origin, the tree's size and the base64 root, a line each. The key id is the start of
SHA-256(name ‖ newline ‖ 0x01 ‖ public key); a verifier key is `<name>+<key id in hex>+base64(0x01 ‖ public key)`.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from urllib.parse import quote

from .findings import Tampered, Unsupported

ED25519 = b"\x01"
_SIGNATURE = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/=]+)")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
MAX_SIGNATURES = 100


@dataclass(frozen=True)
class VerifierKey:
    """A public key and the name it signs under."""

    name: str
    key_id: bytes
    public: bytes

    @property
    def text(self) -> str:
        """What `read_key` reads."""
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"

    def signed(self, text: bytes, signature: bytes) -> bool:
        # Not before a note is met: it takes longer to load than all else here together.
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class Checkpoint:
    """A statement that the tree of `origin` has `size` leaves and this root."""

    origin: str
    size: int
    root: bytes
    note: str


def key_id(name: str, public: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + ED25519 + public).digest()[:4]


def origin_of(name: str, tenant: str) -> str:
    """The origin line of a tenant's checkpoints under a key's name."""
    return f"{name}/t/{quote(tenant, safe='')}"


def read_key(vkey: str) -> VerifierKey:
    """Raises Unsupported for what is no Ed25519 verifier key."""
    name, _, rest = vkey.strip().partition("+")
    digits, _, encoded = rest.partition("+")
    raw = _base64(encoded)
    if not name or raw is None or len(raw) != 33 or raw[:1] != ED25519:
        raise Unsupported("the verifier key is not <name>+<id>+<base64 of an Ed25519 key>")
    key = VerifierKey(name, key_id(name, raw[1:]), raw[1:])
    if digits != key.key_id.hex():
        raise Unsupported("the verifier key's id does not belong to its name and key: it was copied badly")
    return key


def open_checkpoint(note: str, key: VerifierKey, tenant: str | None = None) -> Checkpoint:
    """The checkpoint of a note the key signed; other keys' signatures are left aside.

    The origin is the key's name or a tenant's under it; `tenant` says which. Raises Tampered.
    """
    text, separator, signatures = note.rpartition("\n\n")
    lines = signatures.split("\n")
    if not separator or lines[-1] != "" or not 1 < len(lines) <= MAX_SIGNATURES + 1 or "\r" in note:
        raise Tampered("a checkpoint is no signed note")
    body = (text + "\n").encode()
    signed = [_signed(line, body, key) for line in lines[:-1]]  # every line has to be one
    if not any(signed):
        raise Tampered(f"a checkpoint carries no signature of the key {key.name}")
    checkpoint = _read_text(text, note)
    expected = (key.name, origin_of(key.name, tenant)) if tenant is not None else (checkpoint.origin,)
    if checkpoint.origin not in expected:
        raise Tampered(f"a checkpoint is of another log: {checkpoint.origin}")
    return checkpoint


def note_size(note: str) -> int:
    """How many leaves a note says that it signs for; nothing is checked. Raises Tampered for what is no checkpoint."""
    return _read_text(note.rpartition("\n\n")[0], note).size


def _signed(line: str, body: bytes, key: VerifierKey) -> bool:
    match = _SIGNATURE.fullmatch(line)
    raw = _base64(match[2]) if match else None
    if match is None or raw is None or len(raw) < 5:
        raise Tampered("a checkpoint has a line that is no signature")
    if match[1] != key.name or raw[:4] != key.key_id:
        return False
    if not key.signed(body, raw[4:]):
        raise Tampered("a checkpoint's signature is not of its text")
    return True


def _read_text(text: str, note: str) -> Checkpoint:
    lines = text.split("\n")
    root = _base64(lines[2]) if len(lines) >= 3 else None
    if root is None or len(root) != 32 or not lines[0] or _SIZE.fullmatch(lines[1]) is None:
        raise Tampered("a signed note is no checkpoint")
    return Checkpoint(lines[0], int(lines[1]), root, note)


def _base64(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None
