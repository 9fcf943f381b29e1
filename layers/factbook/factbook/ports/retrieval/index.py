"""The search index: a cache of facts and messages that can be dropped and rebuilt, never the truth.

What every adapter promises (tests/contract/search_index.py):

* A search names its tenant; no document of another tenant takes part in any leg, whatever the filter says.
* Each leg applies its filter before it ranks, so `limit` documents that pass come back when there are that many.
* Scores and order depend on documents alone that the leg's filter keeps: what a reader may not see changes nothing of what
  they see. Exact while what matches a keyword leg is no more than its limit; which neighbours an approximate graph finds
  may vary, their scores do not.
* Changes are idempotent and order-safe (`domain.retrieval.documents`): once a change is applied, no older one shows again.
* An index is created on purpose only. One that is gone is reported as IndexMissing and never made up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from factbook.domain.errors import SearchUnavailable
from factbook.domain.filters import Filter
from factbook.domain.retrieval.documents import Change


class IndexMissing(SearchUnavailable):
    """There is no such index, or none is active. Only a rebuild makes one."""


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Where an index's vectors live: the model that makes them and their number of dimensions."""

    model: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index; `space` is absent in one without vectors. Searches and changes go to the active one unless they name another."""

    name: str
    space: EmbeddingSpace | None
    active: bool
    current: bool = True
    """Whether its documents are of the present format (`domain.retrieval.documents.FORMAT`): if not, it is to be built anew."""


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """BM25 (k1 1.2, b 0.75) over documents that hold any of the terms (`Tokenizer.query`); no terms, no hits.

    Counts, lengths and frequencies are of the documents that the filter keeps. A term's frequency counts as 1, 2, 3,
    4, 6, 9 or 14, whichever it reaches.
    """

    terms: tuple[str, ...]
    filter: Filter
    limit: int


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """Nearest by cosine among documents with a vector; `vector` has the index's dimensions and is not zero."""

    vector: tuple[float, ...]
    filter: Filter
    limit: int


Leg = KeywordLeg | VectorLeg


@dataclass(frozen=True, slots=True)
class Hit:
    """The best chunk of a record. `score`: BM25 > 0, or cosine in [-1, 1]; `version` is the index's (a head's edition)."""

    id: str
    score: float
    chunk: int
    version: int


@dataclass(frozen=True, slots=True)
class LegFailure:
    """Why a leg has no answer while another may have one; its hits are unknown, not none."""

    reason: Literal["timeout", "unavailable"]


@dataclass(frozen=True, slots=True)
class PartialHits:
    """Hits of an index that gives so many neighbours and no more: below `sure` there may be records that are missing here."""

    hits: tuple[Hit, ...]
    sure: float


LegAnswer = tuple[Hit, ...] | PartialHits | LegFailure
"""Hits best first, one per record, equal scores ordered by id; of equally near ones past the limit, any may be left out."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A change that was not applied and may be tried again when `retry` says so; `reason` names no content."""

    change: Change
    reason: str
    retry: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index holds for a record, as a search sees it now."""

    tenant: str
    id: str
    version: int
    live: bool
    """False for a tombstone."""
    revision: int | None
    chunks: int
    embedded: bool
    """False while vectors of it are still to come."""


@dataclass(frozen=True, slots=True)
class EntryPage:
    entries: tuple[Entry, ...]
    next: str | None


class SearchIndex(Protocol):
    """Every operation may raise SearchUnavailable, or IndexMissing where an index is needed."""

    def search(
        self, tenant: str, legs: Sequence[Leg], *, timeout: float = 2.0, index: str | None = None
    ) -> list[LegAnswer]:
        """One answer per leg, in one round trip of at most about `timeout` seconds (a second where neighbours fell short).

        Raises SearchUnavailable when no leg could be answered, ValueError for a filter on a field that no document has.
        """
        ...

    def apply(self, changes: Sequence[Change], *, index: str | None = None) -> list[Refused]:
        """Applies each change by itself, in any order, and tells which were not. One made obsolete by a newer one counts as applied."""
        ...

    def lookup(self, tenant: str, ids: Sequence[str], *, index: str | None = None) -> dict[str, Entry]:
        """The records a search can see; absent ids are left out."""
        ...

    def walk(
        self,
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 1000,
        index: str | None = None,
    ) -> EntryPage:
        """Every record once, tombstones included, by cursor; what changes meanwhile is seen before or after its change."""
        ...

    def refresh(self, *, index: str | None = None) -> None:
        """On return every applied change is visible to searches."""
        ...

    def indexes(self) -> list[IndexInfo]: ...

    def create(self, space: EmbeddingSpace | None) -> IndexInfo:
        """A new, empty, inactive index, beside any that exist."""
        ...

    def activate(self, name: str) -> None:
        """Makes it the active index in one step; the one before stays until dropped."""
        ...

    def drop(self, name: str) -> None:
        """Removes an index and all it holds; one that is gone already is no error."""
        ...

    def purge(self) -> None:
        """What was removed, replaced or dropped goes from what the indexes keep it in, as far as the adapter can.

        A removed document is not found from its tombstone on; until it is purged its words may still lie where nothing
        finds them. A service may keep back what was removed within the last minute: then a later purge lets it go. It
        takes the longer the larger the indexes are, and is safe to repeat.
        """
        ...
