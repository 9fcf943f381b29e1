"""Checkpoints signed by an Ed25519 key that never leaves KMS."""

from functools import cached_property
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from factbook.adapters.aws_errors import aws_errors
from factbook.domain.log.notes import NoteKey


class KmsSigner:
    """Signer."""

    def __init__(self, client: Any, key_id: str, name: str) -> None:
        self._client = client
        self._key_id = key_id
        self._name = name

    @cached_property
    def key(self) -> NoteKey:
        with aws_errors("kms"):
            answer = self._client.get_public_key(KeyId=self._key_id)
        public = load_der_public_key(bytes(answer["PublicKey"]))
        if not isinstance(public, Ed25519PublicKey):
            raise TypeError("CHECKPOINT_SIGNER must name an ECC_NIST_EDWARDS25519 key.")
        return NoteKey(self._name, public.public_bytes_raw())

    def sign(self, text: bytes) -> bytes:
        with aws_errors("kms"):
            answer = self._client.sign(
                KeyId=self._key_id,
                Message=text,
                MessageType="RAW",
                SigningAlgorithm="ED25519_SHA_512",
            )
        return bytes(answer["Signature"])
