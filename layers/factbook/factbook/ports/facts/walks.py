"""Walks over all facts, what happened to a fact, and what a removed fact leaves behind."""

from dataclasses import dataclass
from typing import Protocol

from factbook.domain.facts.fact import Fact
from factbook.ports.facts.store import Head
from factbook.ports.walks import WalkPage


@dataclass(frozen=True)
class Life:
    """One life of a fact that is over, by what its last head said."""

    tenant: str
    id: str
    created_at: str
    content_ref: str | None


class Remains(Protocol):
    """What is left of a fact whose head the table's time to live removed, or a new life of its id replaced."""

    def remove(self, last: Fact) -> None:
        """Removes that life's revisions and payloads; another life of the same id keeps its own, and payloads that it
        names too. Safe to repeat.

        Raises StorageUnavailable, Throttled when some may be left: repeat it.
        """
        ...

    def remove_life(self, life: Life) -> None:
        """As `remove`, where the last head is not at hand any more."""
        ...


class FactWalk(Protocol):
    def heads(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[Head]:
        """Every head of one tenant (of all: None) once, closed ones too, at most `limit` (and 100) a page.

        What changes meanwhile is seen before or after its change; an item that cannot be read is left out.
        """
        ...


@dataclass(frozen=True)
class FactRecord:
    """One change of a fact's head, or of the confirmed text beside it. Gone: `head` is the last one and the table's time to live (or an erasure) took it.

    `former`: the last head of an earlier life, whose place this one took.
    """

    position: str
    """Names the record among those of one delivery."""
    key: str
    """The item's key, which names the record where its content must not be shown."""
    head: Head | None
    gone: bool = False
    problem: str | None = None
    """Why the record cannot be read; its head is None then."""
    named: str | None = None
    """The payload that this change is the first to name."""
    former: Head | None = None

    @property
    def ended(self) -> Head | None:
        """The last head of a life that ended with this record."""
        if self.head is not None and self.head.beside:
            return None
        return self.head if self.gone else self.former
