"""What the use cases need of the world, and the frozen records that cross the boundary.

Every store operation may raise Throttled or StorageUnavailable; a conditional write that loses answers with the
record that won, so its caller decides without another read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from factbook.domain import times
from factbook.domain.facts.fact import Fact, StaleReason
from factbook.domain.facts.freshness import RefreshState, known_of_next, stale_reason
from factbook.domain.facts.holds import held
from factbook.domain.facts.reach import restored
from factbook.domain.facts.transitions import erased
from factbook.domain.strict_json import dump_json
from factbook.ports.flaws import UNREADABLE

MARKS_KEPT = 16
GONE = "." * 12
"""Stands in a mark in place of the body's digest once what the write made is erased."""


@dataclass(frozen=True)
class Mark:
    """That an operation made a version: 12 characters each of its key's and its body's digest."""

    key: str
    body: str
    version: int

    @property
    def gone(self) -> bool:
        """Whether what the operation made was erased: a retry of it brings nothing back."""
        return self.body == GONE


@dataclass(frozen=True)
class Erased:
    """By which erasure a fact goes, and how many versions of its payloads there were when it came to it."""

    by: str
    blobs: int = 0


@dataclass(frozen=True)
class Head:
    """A fact's current (or last) revision with what the store keeps beside it.

    `edition` grows by one at every write of the head, in-place ones included; it orders the index. `life` tells a fact
    from one that had its id before: the time of its first write, in epoch milliseconds. `subjects` are those of all its
    revisions, as `kind:id`. A head of the former format has neither: its life stays untold, its subjects are collected
    (`usecases.facts.upgrading`). `confirmed`: the confirmed text that is kept beside a proposal over it, as it was, with
    the edition at which it was put there. `lapsed`: see `settled`. `refresh`: what is known of the source. `index_edition`:
    the edition in which the search index has the head, when later ones changed nothing that it holds.
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
    refresh: RefreshState | None = None
    index_edition: int | None = None
    erasure: Erased | None = None
    """Of a tombstone, and of a fact that is about to become one."""

    def __post_init__(self) -> None:
        # Whoever judges a fact by itself, as the gates do, is to know whom all of its revisions are about.
        if self.subjects is not None:
            object.__setattr__(self, "fact", _about(self.fact, self.subjects))
            if self.confirmed is not None:
                confirmed = replace(self.confirmed, fact=_about(self.confirmed.fact, self.subjects))
                object.__setattr__(self, "confirmed", confirmed)

    @classmethod
    def first(cls, fact: Fact, mark: Mark) -> "Head":
        """The head of a new fact."""
        return cls(fact, 1, (mark,), times.epoch_ms(fact.created_at), subjects_of(fact))

    def reborn_as(self, fact: Fact, mark: Mark) -> "Head":
        """The head of a new life of the same id. The edition goes on, so that no write and no index mixes the two up.

        A retry of a write of an erased life is still to be recognised.
        """
        erased = tuple(each for each in self.marks if each.gone)
        return replace(Head.first(fact, mark), edition=self.edition + 1, marks=(mark, *erased[-MARKS_KEPT:]))

    def followed_by(
        self,
        fact: Fact,
        mark: Mark,
        beside: Fact | None = None,
        refresh: RefreshState | None = None,
        *,
        by_agent: bool = False,
    ) -> "Head":
        """The head with this revision. `beside`: the confirmed text beside the head as it is from now on; None: as it was.

        `refresh`: what its source told, of a revision that comes from there. `by_agent`: an agent makes it.
        """
        # The first mark is the creation's, which can be replayed for as long as the fact is.
        first, later = self.marks[:1], (*self.marks[1:], mark)
        subjects = None if self.subjects is None else united(self.subjects, subjects_of(fact))
        return replace(
            self,
            fact=fact,
            edition=self.edition + 1,
            marks=(*first, *later[-MARKS_KEPT:]),
            subjects=subjects,
            confirmed=self._beside(fact, beside, refresh),
            lapsed=None,
            refresh=refresh or known_of_next(self.fact, self.refresh, fact, by_agent=by_agent),
            index_edition=None,
            erasure=None,
        )

    def erased_by(self, erasure: Erased, at: str) -> "Head":
        """The tombstone: it tells which operations made what is gone, so that a retry of one brings nothing back."""
        return replace(
            self,
            fact=erased(self.fact, at),
            edition=self.edition + 1,
            marks=tuple(replace(mark, body=GONE) for mark in self.marks),
            subjects=(),
            confirmed=None,
            lapsed=None,
            refresh=None,
            index_edition=None,
            erasure=erasure,
        )

    def rechecked(self, fact: Fact, refresh: RefreshState) -> "Head":
        """The head after its source was asked and its content stays. No mark: it is nobody's operation."""
        return replace(
            self, fact=fact, edition=self.edition + 1, refresh=refresh, index_edition=self.searched_as
        )

    @property
    def searched_as(self) -> int:
        """The edition that the search index is to have."""
        return self.edition if self.index_edition is None else self.index_edition

    def marked(self, now: str, why: StaleReason | None = None) -> "Head":
        """The head as it is answered: its fact, and the confirmed text beside it, say whether they are stale.

        `why`: a better reason, if they are.
        """
        confirmed = None if self.confirmed is None else self.confirmed.marked(now)
        reason = stale_reason(self.fact, self.refresh, now)
        if reason is None:
            return replace(self, confirmed=confirmed)
        said = {"stale": True, "stale_reason": why or reason}
        return replace(self, fact=self.fact.model_copy(update=said), confirmed=confirmed)

    @property
    def confirmed_fact(self) -> Fact | None:
        return None if self.confirmed is None else self.confirmed.fact

    def stands(self, now: str) -> Fact | None:
        """The confirmed text beside a proposal, unless it has run out itself."""
        confirmed = self.confirmed_fact
        return None if confirmed is None or confirmed.expired(now) else confirmed

    @property
    def two_types(self) -> bool:
        """Whether the confirmed text beside the head is of another type than the head."""
        return self.confirmed is not None and self.confirmed.fact.type != self.fact.type

    def _beside(self, following: Fact, stated: Fact | None, refresh: RefreshState | None) -> "Head | None":
        """The confirmed text stays beside the head for as long as proposals follow it, and is held as long as they are.

        `refresh` says that the proposal came from its source: that is no longer what the text says.
        """
        if following.reach != "account-proposed" or not following.current:
            return None
        kept = self.confirmed
        if self.fact.reach == "account" and self.fact.current:
            known = None if refresh is None else RefreshState(source_changed=True)
            kept = Head(self.fact, self.edition + 1, life=self.life, beside=True, refresh=known)
        if kept is None:
            return None
        text = stated or kept.fact
        text = held(text) if following.held else text
        return kept if text == kept.fact else replace(kept, fact=text, edition=self.edition + 1)

    def settled(self, now: str) -> "Head":
        """The head as it is at `now`: of a proposal past its window the confirmed text is the next revision.

        `lapsed` is then the proposal as it is closed. Nothing has stored either yet; the next write does.
        """
        if self.confirmed is None or not self.fact.expired(now) or self.fact.expires_at is None:
            return self
        lapsed, fact = restored(self.fact, self.confirmed.fact, None, self.fact.expires_at)
        return replace(
            self,
            fact=fact,
            edition=self.edition + 1,
            confirmed=None,
            lapsed=lapsed,
            refresh=None,
            index_edition=None,
        )

    @property
    def stored_bytes(self) -> int:
        """About what the head takes as one item: its text, or the confirmed one that may take its place, whichever is
        larger, and the subjects of all its revisions. Its keys and its marks are few, and not counted.
        """
        texts = [self.fact] if self.confirmed is None else [self.fact, self.confirmed.fact]
        return max(text.stored_bytes + self._bytes_of_others(text) for text in texts)

    def _bytes_of_others(self, text: Fact) -> int:
        """Of the subjects that are those of other revisions alone."""
        return len(dump_json(sorted(set(self.subjects or ()) - set(subjects_of(text)))).encode())

    def mark_of(self, key: str) -> Mark | None:
        return next((mark for mark in self.marks if mark.key == key), None)


def review_since(head: Head) -> str | None:
    """Since when a head waits for a person, or was rejected; None when it does neither."""
    fact = head.fact
    asked = None if head.refresh is None else head.refresh.asked_at
    if fact.review is not None or fact.reach in ("account-proposed", "account-rejected"):
        return fact.updated_at
    return asked


def _about(fact: Fact, subjects: tuple[str, ...]) -> Fact:
    """The same revision, which knows the subjects of the others too, where these are more than its own."""
    ever = subjects if set(subjects).difference(subjects_of(fact)) else None
    return fact if fact.ever_about == ever else fact.model_copy(update={"ever_about": ever})


def subjects_of(fact: Fact) -> tuple[str, ...]:
    """Those of this revision alone."""
    return united(f"{subject.kind}:{subject.id}" for subject in fact.subjects or ())


def united(*subjects: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order."""
    return tuple(sorted(set(chain(*subjects))))


@dataclass(frozen=True)
class Row:
    """One row of a listing index: enough to filter by before the fact is fetched, and whose memory it is.

    `two_types`: a confirmed text of another type stands beside the fact, and may be what is shown.
    """

    order: str
    fact_id: str
    type: str
    scope: dict[str, str]
    expires_at: str | None
    pending_review: bool
    agent_id: str | None = None
    owner: str | None = None
    two_types: bool = False


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

        `container` None reads the administrators' index. A fact has one row. By type, the confirmed text beside it has one
        of its own where it is of another type; and among the closed ones, so has each revision whose next one was.
        Eventually consistent.
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
        """Rows of one listing partition, as those by type, from place `first` to place `last` of
        `domain.facts.type_order`, lowest first; whether more remain. Eventually consistent.
        """
        ...

    def shards(self, container: str | None) -> int: ...


def readable_heads(
    store: FactStore, tenant: str, fact_ids: Sequence[str]
) -> tuple[dict[str, Head], set[str]]:
    """Heads by id, and the ids of those that were edited past being read: one such must not end what looks at many."""
    try:
        return (store.heads(tenant, fact_ids) if fact_ids else {}), set()
    except UNREADABLE:
        if len(fact_ids) == 1:
            return {}, set(fact_ids)
    heads: dict[str, Head] = {}
    unreadable: set[str] = set()
    for fact_id in fact_ids:
        found, left = readable_heads(store, tenant, [fact_id])
        heads |= found
        unreadable |= left
    return heads, unreadable
