"""Encryption that tells whether a text is genuine."""

from typing import Protocol

NONCE_BYTES = 12


class Forged(Exception):
    """A cipher text was not made with this key for this place."""


class Cipher(Protocol):
    """Keys have 32 bytes."""

    def seal(self, key: bytes, text: bytes, bound: bytes) -> tuple[bytes, bytes]:
        """A fresh nonce of `NONCE_BYTES` and the cipher text, authenticated together with `bound`."""
        ...

    def open(self, key: bytes, nonce: bytes, sealed: bytes, bound: bytes) -> bytes:
        """Raises Forged."""
        ...
