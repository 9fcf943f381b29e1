"""Data keys that seal payloads, and what wraps them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from factbook.domain.log.sealing import KeyName
from factbook.domain.scope import Scope


@dataclass(frozen=True)
class SealedKey:
    """A generation of a data key: wrapped, or destroyed since `destroyed_at` for good, or neither: kept elsewhere, since
    what it sealed was imported without it.

    `begun_at`: the instant before which nothing was sealed with it; None where that was not yet kept.
    """

    tenant: str
    name: KeyName
    generation: int
    wrapped: bytes | None
    destroyed_at: str | None = None
    begun_at: str | None = None

    @property
    def scope(self) -> Scope:
        """The scope whose payloads the key seals, as far as it names persons and conversations."""
        name = self.name
        return Scope(
            tenant_id=self.tenant,
            project_id=name.project or None,
            user_id=name.user or None,
            participant_id=name.participant or None,
            thread_id=name.thread or None,
        )

    def begun_before(self, instant: str) -> bool:
        """Whether the generation is older; one that does not say is."""
        return self.begun_at is None or self.begun_at < instant


class KeyStore(Protocol):
    def newest(self, tenant: str, name: KeyName) -> SealedKey | None: ...

    def generation(self, tenant: str, name: KeyName, generation: int) -> SealedKey | None: ...

    def create(self, key: SealedKey) -> SealedKey | None:
        """Keep a new generation; the key that has its place."""
        ...

    def walk(self, tenant: str, after: SealedKey | None = None) -> Iterator[SealedKey]:
        """Every key of the tenant, tombstones included, always in one order, read as they are asked for; those behind
        `after` alone. Strongly consistent.
        """
        ...

    def supply(self, key: SealedKey) -> SealedKey | None:
        """Put a wrapped key in the place of one that is kept elsewhere; the one that is there when it is no such one."""
        ...

    def destroy(self, key: SealedKey, at: str) -> None:
        """Put a tombstone in the key's place; the first instant stays."""
        ...


class KeyWrapper(Protocol):
    def new_key(self, tenant: str) -> tuple[bytes, bytes]:
        """A fresh 32-byte data key: itself, and wrapped."""
        ...

    def wrap(self, tenant: str, plain: bytes) -> bytes:
        """A data key that came from elsewhere, wrapped."""
        ...

    def unwrap(self, tenant: str, wrapped: bytes) -> bytes: ...
