"""AES-256-GCM with a fresh nonce for every text."""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from factbook.ports.cipher import NONCE_BYTES, Forged


class AesGcm:
    """Cipher."""

    def seal(self, key: bytes, text: bytes, bound: bytes) -> tuple[bytes, bytes]:
        nonce = os.urandom(NONCE_BYTES)
        return nonce, AESGCM(key).encrypt(nonce, text, bound)

    def open(self, key: bytes, nonce: bytes, sealed: bytes, bound: bytes) -> bytes:
        try:
            return AESGCM(key).decrypt(nonce, sealed, bound)
        except (InvalidTag, ValueError) as error:
            raise Forged from error
