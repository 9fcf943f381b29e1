"""Checkpoints signed by a key in a file, for a service without KMS."""

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ..domain.notes import NoteKey


class FileSigner:
    """Signer. The file holds an Ed25519 private key as PKCS#8 PEM."""

    def __init__(self, path: Path, name: str) -> None:
        private = load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(private, Ed25519PrivateKey):
            raise TypeError("CHECKPOINT_SIGNER must name a file with an Ed25519 key.")
        self._private = private
        self._key = NoteKey(name, private.public_key().public_bytes_raw())

    @property
    def key(self) -> NoteKey:
        return self._key

    def sign(self, text: bytes) -> bytes:
        return self._private.sign(text)


def ensure_key_file(path: Path) -> None:
    """Make a key at `path`, readable by its owner only, unless one is there."""
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(fresh)  # fails when another process was first, and never shows half a key
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
