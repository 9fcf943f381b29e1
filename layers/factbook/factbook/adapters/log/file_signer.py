"""Checkpoints signed by a key in a file, for a service without KMS."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from factbook.domain.log.notes import NoteKey


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
