"""What the use cases need of the world, and the frozen records that cross the boundary.

Every store operation may raise Throttled or StorageUnavailable; a conditional write that loses answers with the
record that won, so its caller decides without another read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from factbook.domain import times
from factbook.domain.facts.fact import Fact

MARKS_KEPT = 16


@dataclass(frozen=True)
class Mark:
    """That an operation made a version: 12 characters each of its key's and its body's digest."""

    key: str
    body: str
    version: int


@dataclass(frozen=True)
class Head:
    """A fact's current (or last) revision with what the store keeps beside it.

    `edition` grows by one at every write of the head, in-place ones included; it orders the index. `life` tells a fact
    from one that had its id before: the time of its first write, in epoch milliseconds. A head of the former format has
    none: its life stays untold.
    """

    fact: Fact
    edition: int = 1
    marks: tuple[Mark, ...] = ()
    life: int | None = None

    @classmethod
    def first(cls, fact: Fact, mark: Mark) -> "Head":
        """The head of a new fact."""
        return cls(fact, 1, (mark,), times.epoch_ms(fact.created_at))

    def reborn_as(self, fact: Fact, mark: Mark) -> "Head":
        """The head of a new life of the same id. The edition goes on, so that no write and no index mixes the two up."""
        return replace(Head.first(fact, mark), edition=self.edition + 1)

    def followed_by(self, fact: Fact, mark: Mark) -> "Head":
        # The first mark is the creation's, which can be replayed for as long as the fact is.
        first, later = self.marks[:1], (*self.marks[1:], mark)
        return replace(self, fact=fact, edition=self.edition + 1, marks=(*first, *later[-MARKS_KEPT:]))

    def mark_of(self, key: str) -> Mark | None:
        return next((mark for mark in self.marks if mark.key == key), None)


@dataclass(frozen=True)
class Row:
    """One row of a listing index: enough to filter by before the fact is fetched."""

    order: str
    fact_id: str
    type: str
    scope: dict[str, str]
    expires_at: str | None
    pending_review: bool


class FactStore(Protocol):
    def head(self, tenant: str, fact_id: str) -> Head | None:
        """Strongly consistent, one read."""
        ...

    def revision(self, head: Head, version: int) -> Fact | None:
        """A closed revision of this head's life."""
        ...

    def revisions(self, head: Head, below: int, budget: int) -> tuple[list[Fact], bool]:
        """Closed revisions of this head's life with version < `below`, newest first, about `budget` bytes of them;
        whether more remain.
        """
        ...

    def heads(self, tenant: str, fact_ids: Sequence[str]) -> dict[str, Head]:
        """Heads by id, strongly consistent; ids that are not there are left out. At most 100 ids."""
        ...

    def create(self, head: Head) -> Head | None:
        """Put the head of a new fact; the head already there when the id is taken."""
        ...

    def advance(self, before: Head, closed: Fact, after: Head) -> Head | None:
        """Atomically keep `closed` and replace the head; the present head when it is not `before` any more.

        Raises Contended when another transaction was in the way.
        """
        ...

    def amend(self, before: Head, after: Head) -> Head | None:
        """Replace the head in place; the present head when it is not `before` any more."""
        ...

    def rows(
        self, tenant: str, container: str | None, shard: int, before: str, limit: int, *, closed: bool = False
    ) -> tuple[list[Row], bool]:
        """Rows of one listing partition with order < `before`, newest first; whether more remain.

        `container` None reads the administrators' index. Eventually consistent.
        """
        ...

    def shards(self, container: str | None) -> int: ...
