"""What the log's use cases need of the world, and the frozen records that cross the boundary.

Every store operation may raise Throttled or StorageUnavailable; Contended means that a transaction was in the way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from factbook.domain.log.merkle import Edge
from factbook.domain.log.notes import NoteKey
from factbook.domain.log.runs import Leaf
from factbook.domain.log.sealing import KeyName


class LogClock(Protocol):
    def micros(self) -> str:
        """The current instant as the log writes it (`domain.runs.format_micros`)."""
        ...


@dataclass(frozen=True)
class StoredEntry:
    """An entry as the table has it: `text` is the canonical text, the only authority; `thread` and `timestamp` index it."""

    tenant: str
    run_id: str
    sequence: int
    text: str
    entry_hash: str
    format: str
    cause: str | None = None
    thread: str | None = None
    timestamp: str | None = None


class LogStore(Protocol):
    """Entries are put once and never changed. Reads are strongly consistent but for `thread`."""

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        """All of one run's consecutive entries or none; the entry that has the place of one of them. Raises Contended."""
        ...

    def entry(self, tenant: str, run_id: str, sequence: int) -> StoredEntry | None: ...

    def newest(self, tenant: str, run_id: str, count: int) -> list[StoredEntry]:
        """The run's last entries, newest first."""
        ...

    def entries(
        self, tenant: str, run_id: str, since: int, limit: int, budget: int = ...
    ) -> tuple[list[StoredEntry], bool]:
        """Entries with sequence ≥ `since`, in order, about `budget` bytes of them; whether more may follow."""
        ...

    def thread(
        self, tenant: str, thread: str, position: str, limit: int, *, newest_first: bool
    ) -> tuple[list[tuple[str, StoredEntry]], bool]:
        """Messages of a thread with their positions, beyond `position` ("" to start); whether more may follow."""
        ...


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


class Forged(Exception):
    """A cipher text was not made with this key for this place."""


class Cipher(Protocol):
    def seal(self, key: bytes, text: bytes, bound: bytes) -> tuple[bytes, bytes]:
        """A fresh nonce and the cipher text, authenticated together with `bound`."""
        ...

    def open(self, key: bytes, nonce: bytes, sealed: bytes, bound: bytes) -> bytes:
        """Raises Forged."""
        ...


@dataclass(frozen=True)
class DirtyRun:
    """A run with entries since its last leaf, at least up to `sequence`."""

    tenant: str
    run_id: str
    sequence: int


@dataclass(frozen=True)
class PublishedNote:
    """A checkpoint as it was published; `vkey` names the key that signed."""

    size: int
    note: str
    vkey: str
    created_at: str


@dataclass(frozen=True)
class Growth:
    """Leaves for the tree, with what they make of it: the hashes of leaves and of completed nodes (level, index, hash)."""

    before: Edge
    after: Edge
    leaves: Sequence[tuple[Leaf, bytes]]
    nodes: Sequence[tuple[int, int, bytes]] = field(default=())


class TreeStore(Protocol):
    def edge(self, tenant: str) -> Edge:
        """Strongly consistent."""
        ...

    def grow(self, tenant: str, growth: Growth) -> bool:
        """Leaves, nodes and the new edge in one transaction; False when the edge is not `before` any more."""
        ...

    def hashes(self, tenant: str, height: int, page: int) -> list[bytes]:
        """Up to 256 hashes of complete nodes at level 8·height, from index 256·page."""
        ...

    def leaves(self, tenant: str, start: int, limit: int) -> list[Leaf]: ...

    def run_leaves(self, tenant: str, run_id: str, since: int, limit: int) -> list[Leaf]:
        """A run's leaves with sequence ≥ `since`, in order."""
        ...

    def last_leaf(self, tenant: str, run_id: str) -> Leaf | None: ...

    def mark_dirty(self, run: DirtyRun) -> None: ...

    def dirty(self) -> Iterator[DirtyRun]: ...

    def dirty_of(self, tenant: str) -> list[DirtyRun]: ...

    def clear(self, run: DirtyRun) -> None:
        """Forget a mark unless the run has grown since."""
        ...

    def keep_note(self, tenant: str, note: PublishedNote) -> None: ...

    def notes(self, tenant: str, below: int, limit: int) -> list[PublishedNote]:
        """Published notes of trees smaller than `below`, newest first."""
        ...


class NoteConflict(Exception):
    """Another note of the same size is published."""


class CheckpointStore(Protocol):
    """The notes nobody can take back (a bucket under Object Lock)."""

    def newest(self, tenant: str) -> str | None: ...

    def publish(self, tenant: str, size: int, note: str) -> None:
        """Keep a note under its size, once. The same note again is no harm. Raises NoteConflict for another one."""
        ...


class Signer(Protocol):
    @property
    def key(self) -> NoteKey: ...

    def sign(self, text: bytes) -> bytes:
        """The Ed25519 signature of at most 4,096 bytes."""
        ...
