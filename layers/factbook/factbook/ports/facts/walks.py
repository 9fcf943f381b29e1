"""Walks over all facts, what happened to a fact, and what a removed fact leaves behind."""

from dataclasses import dataclass
from typing import Protocol

from factbook.domain.facts.fact import Fact
from factbook.domain.scope import Scope
from factbook.ports.deadline import NEVER, Deadline
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

    def remove(self, last: Fact, deadline: Deadline = NEVER) -> None:
        """Removes that life's revisions and payloads; another life of the same id keeps its own, and payloads that it
        names too. Safe to repeat, and what was removed before an end is not met again.

        Raises StorageUnavailable, Throttled when some may be left, for want of time too: repeat it.
        """
        ...

    def remove_life(self, life: Life, deadline: Deadline = NEVER) -> None:
        """As `remove`, where the last head is not at hand any more."""
        ...


class Orphans(Protocol):
    """What facts left behind whose end nobody heard of. Every operation may raise Throttled or StorageUnavailable."""

    def lives(self, after: str | None, limit: int) -> WalkPage[Life]:
        """Lives that have revisions, or a confirmed text, and no head; a page looks at `limit` records of all facts.

        A life may come in several pages. What cannot be read is left out.
        """
        ...

    def payloads(self, before: str, after: str | None, limit: int) -> WalkPage[str]:
        """References of payloads that were stored before an instant and that no fact names; a page looks at `limit` payloads."""
        ...

    def named(self, ref: str) -> bool:
        """Whether a revision of its fact names a payload now; strongly consistent."""
        ...


class FactWalk(Protocol):
    def heads(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[Head]:
        """Every head of one tenant (of all: None) once, closed ones too, at most `limit` (and 100) a page.

        What changes meanwhile is seen before or after its change; an item that cannot be read is left out, and counted.
        Tombstones are part of a walk of all tenants only.
        """
        ...


@dataclass(frozen=True)
class Held:
    """A fact under a legal hold, and whom it is about; `subjects` None: the index does not say."""

    fact_id: str
    scope: Scope
    owner: str | None
    subjects: tuple[str, ...] | None


class FactErasing(Protocol):
    """What only an erasure reads and removes of facts. Operations may raise Throttled or StorageUnavailable."""

    def held(self, tenant: str, after: str | None, limit: int) -> WalkPage[Held]:
        """The tenant's held facts, by an index: eventually consistent. A row that cannot be read is left out, and counted."""
        ...

    def tombstones(self, tenant: str, erasure_id: str, after: str | None, limit: int) -> WalkPage[Head]:
        """What an erasure has made of the facts it reached, by an index; at most `limit` (and 100) a page. One that cannot be
        read is left out, and counted.
        """
        ...

    def remove_revisions(self, tenant: str, fact_id: str, deadline: Deadline) -> bool:
        """Remove the closed revisions of every life of the id; whether none is left. Safe to repeat."""
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
    same_to_search: bool = False
    """Whether the change is of nothing that a search index holds, as when a source was found to agree."""

    @property
    def ended(self) -> Head | None:
        """The last head of a life that ended with this record."""
        if self.head is not None and self.head.beside:
            return None
        return self.head if self.gone else self.former
