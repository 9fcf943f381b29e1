"""Data keys that seal payloads, and what wraps them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from factbook.domain.log.sealing import KeyName


@dataclass(frozen=True)
class SealedKey:
    """A generation of a data key: wrapped, or destroyed since `destroyed_at` for good."""

    tenant: str
    name: KeyName
    generation: int
    wrapped: bytes | None
    destroyed_at: str | None = None


class KeyStore(Protocol):
    def newest(self, tenant: str, name: KeyName) -> SealedKey | None: ...

    def generation(self, tenant: str, name: KeyName, generation: int) -> SealedKey | None: ...

    def create(self, key: SealedKey) -> SealedKey | None:
        """Keep a new generation; the key that has its place."""
        ...

    def walk(self, tenant: str) -> Iterator[SealedKey]:
        """Every key of the tenant, tombstones included; strongly consistent."""
        ...

    def destroy(self, key: SealedKey, at: str) -> None:
        """Put a tombstone in the key's place; the first instant stays."""
        ...


class KeyWrapper(Protocol):
    def new_key(self, tenant: str) -> tuple[bytes, bytes]:
        """A fresh 32-byte data key: itself, and wrapped."""
        ...

    def unwrap(self, tenant: str, wrapped: bytes) -> bytes: ...
