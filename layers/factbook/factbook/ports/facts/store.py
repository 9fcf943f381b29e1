"""What the use cases need of the world, and the frozen records that cross the boundary.

Every store operation may raise Throttled or StorageUnavailable; a conditional write that loses answers with the
record that won, so its caller decides without another read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from factbook.domain import times
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import restored
from factbook.domain.strict_json import dump_json

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
    from one that had its id before: the time of its first write, in epoch milliseconds. `subjects` are those of all its
    revisions, as `kind:id`. A head of the former format has neither: its life stays untold, its subjects are collected
    (`usecases.facts.upgrading`). `confirmed`: the confirmed text that is kept beside a proposal over it, as it was, with
    the edition at which it was put there. `lapsed`: see `settled`.
    """

    fact: Fact
    edition: int = 1
    marks: tuple[Mark, ...] = ()
    life: int | None = None
    subjects: tuple[str, ...] | None = None
    confirmed: "Head | None" = None
    lapsed: Fact | None = None
    beside: bool = False
    """Whether this is a confirmed text beside a head, and no head."""

    @classmethod
    def first(cls, fact: Fact, mark: Mark) -> "Head":
        """The head of a new fact."""
        return cls(fact, 1, (mark,), times.epoch_ms(fact.created_at), subjects_of(fact))

    def reborn_as(self, fact: Fact, mark: Mark) -> "Head":
        """The head of a new life of the same id. The edition goes on, so that no write and no index mixes the two up."""
        return replace(Head.first(fact, mark), edition=self.edition + 1)

    def followed_by(self, fact: Fact, mark: Mark) -> "Head":
        # The first mark is the creation's, which can be replayed for as long as the fact is.
        first, later = self.marks[:1], (*self.marks[1:], mark)
        subjects = None if self.subjects is None else united(self.subjects, subjects_of(fact))
        return replace(
            self,
            fact=fact,
            edition=self.edition + 1,
            marks=(*first, *later[-MARKS_KEPT:]),
            subjects=subjects,
            confirmed=self._beside(fact),
            lapsed=None,
        )

    @property
    def confirmed_fact(self) -> Fact | None:
        return None if self.confirmed is None else self.confirmed.fact

    def _beside(self, following: Fact) -> "Head | None":
        """The confirmed text stays beside the head for as long as proposals follow it."""
        if following.reach != "account-proposed" or not following.current:
            return None
        if self.fact.reach == "account" and self.fact.current:
            return Head(self.fact, self.edition + 1, life=self.life, beside=True)
        return self.confirmed

    def settled(self, now: str) -> "Head":
        """The head as it is at `now`: of a proposal past its window the confirmed text is the next revision.

        `lapsed` is then the proposal as it is closed. Nothing has stored either yet; the next write does.
        """
        if self.confirmed is None or not self.fact.expired(now) or self.fact.expires_at is None:
            return self
        lapsed, fact = restored(self.fact, self.confirmed.fact, None, self.fact.expires_at)
        return replace(self, fact=fact, edition=self.edition + 1, confirmed=None, lapsed=lapsed)

    @property
    def stored_bytes(self) -> int:
        """About what the head takes as one item, the subjects of its earlier revisions included.

        Its keys, its marks and its own subjects as an index of them are few, and not counted.
        """
        earlier = set(self.subjects or ()) - set(subjects_of(self.fact))
        return self.fact.stored_bytes + len(dump_json(sorted(earlier)).encode())

    def mark_of(self, key: str) -> Mark | None:
        return next((mark for mark in self.marks if mark.key == key), None)


def subjects_of(fact: Fact) -> tuple[str, ...]:
    return united(f"{subject.kind}:{subject.id}" for subject in fact.subjects or ())


def united(*subjects: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order."""
    return tuple(sorted(set(chain(*subjects))))


@dataclass(frozen=True)
class Row:
    """One row of a listing index: enough to filter by before the fact is fetched, and whose memory it is."""

    order: str
    fact_id: str
    type: str
    scope: dict[str, str]
    expires_at: str | None
    pending_review: bool
    agent_id: str | None = None
    owner: str | None = None


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
        """Replace the head in place; the present head when it is not `before` any more.

        Raises NotStorable (`ports.flaws`) for a head that is too large.
        """
        ...

    def rows(
        self,
        tenant: str,
        container: str | None,
        shard: int,
        before: str,
        limit: int,
        *,
        closed: bool = False,
        of_type: str | None = None,
    ) -> tuple[list[Row], bool]:
        """Rows of one listing partition (`of_type`: of this type alone) with order < `before`, newest first; whether more
        remain.

        `container` None reads the administrators' index. Eventually consistent.
        """
        ...

    def rows_by_type(
        self,
        tenant: str,
        container: str | None,
        shard: int,
        first: str,
        last: str,
        limit: int,
        *,
        closed: bool = False,
    ) -> tuple[list[Row], bool]:
        """Rows of one listing partition from place `first` to place `last` of `domain.facts.type_order`, lowest first;
        whether more remain. Eventually consistent.
        """
        ...

    def shards(self, container: str | None) -> int: ...
