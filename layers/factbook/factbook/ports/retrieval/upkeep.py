"""What keeping the search index in line with the tables needs of the world."""

from dataclasses import dataclass
from typing import Literal, Protocol

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
