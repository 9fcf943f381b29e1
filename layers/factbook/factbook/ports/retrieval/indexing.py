"""What keeping the search index in line with the tables needs of the world."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from factbook.domain.facts.facts import Fact
from factbook.domain.policy.policy import Policy
from factbook.ports.facts.facts import Head
from factbook.ports.log.log import StoredEntry


class PolicyStore(Protocol):
    def policy(self, tenant: str) -> Policy: ...

    def put_policy(self, tenant: str, policy: Policy) -> None: ...


class BlobReader(Protocol):
    def read(self, ref: str) -> bytes | None:
        """A kept payload; None when it is gone. Raises StorageUnavailable."""
        ...


class Remains(Protocol):
    """What is left of a fact whose head the table's time to live removed."""

    def remove(self, last: Fact) -> None:
        """Removes that life's revisions and payloads; another life of the same id keeps its own. Safe to repeat."""
        ...


Trouble = Literal["embedding", "too-large", "not-text", "refused"]
"""Why a record is not wholly in the index. `embedding` is waited out and tried again; the others stay."""


@dataclass(frozen=True)
class Troubled:
    tenant: str
    id: str
    source: Literal["facts", "conversations"]
    version: int
    """Of the record in the index; a note about an older version than the record's says nothing."""
    trouble: Trouble


class Backlog(Protocol):
    """Records that are not wholly indexed, one mark each."""

    def note(self, troubled: Troubled) -> None: ...

    def settle(self, tenant: str, record: str) -> None:
        """The record is wholly indexed now, or gone."""
        ...

    def of(self, tenant: str, record: str) -> Troubled | None: ...

    def waiting(self, limit: int) -> list[Troubled]:
        """Records that wait for their embedding, at most `limit`, in no order."""
        ...


class DeadLetters(Protocol):
    def send(self, key: str, reason: str) -> None:
        """Keep a record's key and why it could not be indexed; never its content."""
        ...


@dataclass(frozen=True)
class HeadPage:
    """Heads of every tenant, or of one; `next` resumes the walk, None at its end."""

    heads: Sequence[Head]
    next: str | None


class FactWalk(Protocol):
    def heads(self, tenant: str | None, after: str | None, limit: int) -> HeadPage:
        """Every head once, by cursor; what changes meanwhile is seen before or after its change."""
        ...


JobKind = Literal["build", "repair"]
JobPhase = Literal["settle", "facts", "messages", "orphans", "swap", "done"]


@dataclass(frozen=True)
class IndexJob:
    """A build of a new index, or a repair of the one in use; kept after each step, so that it resumes where it was."""

    kind: JobKind
    index: str
    phase: JobPhase
    cursor: str | None
    records: int
    """Records seen so far."""
    changed: int
    """Of these, how many were brought into the index."""
    started_at: str
    updated_at: str
    step: int = 0
    """Grows by one at every step; two runners of one job notice each other by it."""


class JobStore(Protocol):
    def job(self) -> IndexJob | None:
        """The job of this deployment, running or last done."""
        ...

    def keep(self, job: IndexJob) -> bool:
        """Replaces the job of the step before (any, for step 0); False when another runner was faster."""
        ...


@dataclass(frozen=True)
class EntryPage:
    """Entries of every run; `next` resumes the walk, None at its end."""

    entries: Sequence[StoredEntry]
    next: str | None


class EntrySource(Protocol):
    def several(self, tenant: str, places: Sequence[tuple[str, int]]) -> list[StoredEntry]:
        """Entries by run and sequence, at most 100, strongly consistent; those that are not there are left out."""
        ...

    def walk(self, after: str | None, limit: int) -> EntryPage:
        """Every entry once, by cursor."""
        ...
