"""What an administrator's decision makes of what waits."""

from collections.abc import Sequence
from typing import Literal

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.facts.fact import Fact, FactChanges
from factbook.domain.facts.reach import without_window
from factbook.domain.facts.transitions import close, supersede
from factbook.domain.policy.retention import KeepLimits

Why = Literal["proposal", "instruction-like", "derived-from-erased", "source"]


def why_waits(head: Fact) -> Sequence[Why]:
    """Why a fact waits for a decision; nothing when it does not."""
    reasons: list[Why] = ["proposal"] if head.reach == "account-proposed" else []
    if head.review is not None:
        reasons += head.review_why or ()
    return reasons


def waits(head: Fact) -> bool:
    return head.review is not None or head.reach == "account-proposed"


def gives_way(revision: Fact) -> bool:
    """Whether a revision waits, or waited, since it was written: what it replaced stands until it is released.

    What derives from something erased stood before, so nothing of earlier comes back in its place.
    """
    return revision.review_why == ("instruction-like",) and revision.invalidation_reason in (
        None,
        "superseded",
    )


def stood(revision: Fact, now: str) -> bool:
    """Whether a closed revision can be current again: it waited for nobody, was replaced and not ended, and has time left."""
    ended = revision.invalidation_reason != "superseded" or revision.expired(now)
    return not (ended or waits(revision) or revision.reach == "account-rejected")


def confirmed(
    head: Fact, principal: Principal, now: str, reason: str | None, keep: KeepLimits | None
) -> tuple[Fact, Fact]:
    """The revision as it is closed, and the one that stands: a proposal becomes the account's, what waited is released."""
    closed, following = supersede(head, FactChanges(), None, principal, now, keep)
    following = _decided(following, principal, following.updated_at, reason)
    reach = "account" if head.reach == "account-proposed" else head.reach
    return closed, without_window(following.model_copy(update={"reach": reach}), keep)


def rejected(
    head: Fact, principal: Principal, now: str, reason: str | None, keep: KeepLimits | None
) -> tuple[Fact, Fact]:
    """A first proposal as it is closed, and its revision that only reviews show."""
    closed, following = supersede(head, FactChanges(), None, principal, now, keep)
    following = _decided(following, principal, following.updated_at, reason)
    return closed, following.model_copy(update={"reach": "account-rejected"})


def closed_by(head: Fact, principal: Principal, now: str, reason: str | None) -> Fact:
    """What waited and proposed nothing is closed as a deletion closes it. It is marked still: nobody has released it."""
    closed = close(head, principal.name, now, "deleted")
    return closed.model_copy(update=_decision(principal, times.later_than(now, head.updated_at), reason))


def _decided(fact: Fact, principal: Principal, at: str, reason: str | None) -> Fact:
    released = {"review": None, "review_why": None}
    return fact.model_copy(update=released | _decision(principal, at, reason))


def _decision(principal: Principal, at: str, reason: str | None) -> dict[str, str | None]:
    return {"confirmed_by": principal.name, "confirmed_at": at, "decided_because": reason}
