"""What only an export reads, and how an import writes records as they were stored elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from factbook.domain.facts.fact import Fact
from factbook.ports.facts.store import Head
from factbook.ports.log.checkpoints import PublishedNote
from factbook.ports.log.entries import StoredEntry
from factbook.ports.walks import WalkPage


@dataclass(frozen=True)
class Revision:
    """A closed revision as it is stored; `retyped`: the next one is of another type."""

    fact: Fact
    life: int | None
    retyped: bool = False


@dataclass(frozen=True)
class FormerNote:
    """A checkpoint that another service published of the tenant's log, with the key that signed it: evidence."""

    tenant: str
    note: PublishedNote


Copy = Head | Revision | StoredEntry | FormerNote
"""A record that is written as it was stored, with whatever finds it made anew."""

Outcome = Literal["written", "present", "other"]
"""`present`: it was there already, the same to the byte. `other`: something else has its place, and was left."""


class Originals(Protocol):
    """Operations may raise Throttled or StorageUnavailable."""

    def entries_below(self, tenant: str, run_id: str, below: int | None, limit: int) -> list[StoredEntry]:
        """A run's entries with sequence < `below` (None: the last ones), newest first: at most `limit`, and what one read
        holds (1 MB). Strongly consistent.
        """
        ...

    def unlisted(self, tenant: str, run_ids: Sequence[str]) -> list[str]:
        """Those of these runs, at most 100, whose first entry stands in no index of runs: they were begun before there was one."""
        ...

    def former_notes(self, tenant: str, after: str | None, limit: int) -> WalkPage[FormerNote]:
        """Evidence that earlier imports brought, of small trees first."""
        ...


class Copies(Protocol):
    """Operations may raise Throttled or StorageUnavailable."""

    def look(self, copies: Sequence[Copy]) -> list[Outcome]:
        """What `put` would come to now; nothing is written."""
        ...

    def put(self, copies: Sequence[Copy]) -> list[Outcome]:
        """Put those whose place is free, each whole or not at all; nothing that is there is ever changed.

        Of two with one place the second is `present`, or `other`. Raises NotStorable for one that no store can hold.
        """
        ...


class Rewrapper(Protocol):
    """Encrypts data keys for whoever holds a private key."""

    def rewrap(self, public: bytes, plain: bytes, bound: bytes) -> bytes:
        """A data key, encrypted for `public` (SubjectPublicKeyInfo, DER) and bound to what it is of.

        Raises BadInput for a key that is none, or too weak.
        """
        ...
