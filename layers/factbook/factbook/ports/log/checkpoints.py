"""The tree of run heads, the checkpoints published of it, and what signs them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from factbook.domain.log.merkle import Edge
from factbook.domain.log.notes import NoteKey
from factbook.domain.log.runs import Leaf
from factbook.ports.deadline import NEVER, Deadline


@dataclass(frozen=True)
class DirtyRun:
    """A run with entries since its last leaf, at least up to `sequence`."""

    tenant: str
    run_id: str
    sequence: int


@dataclass(frozen=True)
class LogRecord:
    """One change of the log table. `run` is None when no entry can be read from it; `foreign`: it was no append."""

    position: str
    key: str
    run: DirtyRun | None
    foreign: bool


@dataclass(frozen=True)
class PublishedNote:
    """A checkpoint as it was published; `vkey` names the key that signed.

    `more`: made on demand, when there was no time for all of the tenant's runs that grew.
    """

    size: int
    note: str
    vkey: str
    created_at: str
    more: bool = False


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

    def dirty_tenants(self, deadline: Deadline = NEVER) -> Iterator[str]:
        """Every tenant with a mark, once, read as they are asked for and from another place each time; what it costs does
        not grow with the marks that one tenant has. No read is begun past the deadline: then some may be left out.
        """
        ...

    def dirty_of(self, tenant: str, deadline: Deadline = NEVER) -> Iterator[DirtyRun]:
        """A tenant's marks, read as they are asked for; what is cleared behind the reader changes nothing. As above."""
        ...

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


class CheckpointRefused(Exception):
    """Signing would contradict what is published: the tables were set back or edited. An operator must look."""


class CheckpointRequests(Protocol):
    """Asks whoever makes checkpoints for one."""

    def make(self, tenant: str, run_ids: Sequence[str]) -> PublishedNote | None:
        """A checkpoint of the tenant now, with these runs and all that is marked as grown; the note then published last.

        None: the tenant has no entry yet. Raises CheckpointRefused, Throttled, StorageUnavailable.
        """
        ...


class LeafAdoption(Protocol):
    """Asks whoever makes checkpoints to take over the leaves of an imported log."""

    def adopt(self, tenant: str, leaves: Sequence[Leaf]) -> int:
        """Put consecutive leaves where they stood; how many were new. Raises CheckpointRefused, Throttled, StorageUnavailable."""
        ...


class Signer(Protocol):
    @property
    def key(self) -> NoteKey: ...

    def sign(self, text: bytes) -> bytes:
        """The Ed25519 signature of at most 4,096 bytes."""
        ...
