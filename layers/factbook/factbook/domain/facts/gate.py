"""The gate: whether a principal may be shown a fact now. Every road to a fact asks here, and nowhere else.

`can_see` decides on a fact that was read. `shown_filter` says the same of index documents and `may_pass` of rows of a
list, so that neither proposes much that would be refused; they spare reads and decide nothing. Callers name the module
(`gate.can_see`), so that there is one function to replace.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from factbook.domain import times
from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.access.filters import readable_filter, spared_filter
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import can_read
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import acts_for, reach_filter, reaches, uses
from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, Range
from factbook.domain.scope import Scope

Way = Literal["found", "recalled", "by-id", "write"]


@dataclass(frozen=True)
class Look:
    """One look at facts: what the gate has to know besides who looks at what.

    `now`: the instant of the look. `way`: how the fact is come by: `found` in a list, `recalled` for a model (a search,
    a block or a standing set), `by-id`, or named by a `write`. `past`: a version, an instant or the history is asked for,
    which closed facts answer too. `agent`: what is recalled is for this agent; None: for any the principal uses. `person`:
    the owner for whose conversation it is recalled, where the caller names one.
    `erasing`: the tenant's erasures that are in force; a write looks without them, and is refused what they name.
    """

    now: str
    way: Way = "found"
    past: bool = False
    agent: str | None = None
    person: str | None = None
    erasing: Erasing = NOTHING_ERASED


class Listed(Protocol):
    """What a row of a list says of its fact."""

    @property
    def fact_id(self) -> str: ...

    @property
    def scope(self) -> Mapping[str, str]: ...

    @property
    def owner(self) -> str | None: ...

    @property
    def agent_id(self) -> str | None: ...

    @property
    def expires_at(self) -> str | None: ...

    @property
    def pending_review(self) -> bool: ...


def can_see(principal: Principal, head: Fact, look: Look) -> bool:
    """Whether a fact may be shown. Its head decides, for each of its revisions that `shows_revision` allows.

    It is readable (scope; an agent sees memories of its own definition only), current unless the past is asked for, not
    expired, not erased nor being erased, not in review, unless it waits for one who may know of it, and within its reach.
    """
    return (
        can_read(principal, head.scope)
        and _is_of_this_agent(principal, head.agent_id)
        and (head.current or look.past)
        and not head.expired(look.now)
        and head.invalidation_reason != "erased"
        and being_erased(head, look.erasing) is None
        and (head.review is None or _knows_what_waits(principal, head, look))
        and _within_reach(principal, head, look)
    )


def being_erased(head: Fact, erasing: Erasing) -> str | None:
    """When the erasure in force was asked for that names the fact; None when none does."""
    return erasing.of_fact(head.id, head.scope, head.owner, head.about)


def shows_revision(principal: Principal, revision: Fact, look: Look) -> bool:
    """Whether this revision of a fact that `can_see` allows may be shown. What was never released stays hidden when it is
    replaced or closed, but for administrators by its id; so does what was rejected, but for administrators.
    """
    if revision.review is not None:
        return look.way == "by-id" and principal.admin
    return revision.reach != "account-rejected" or principal.admin


def shown(principal: Principal, head: Fact, confirmed: Fact | None, look: Look) -> Fact | None:
    """Which revision of a fact to show: its head, else the confirmed text that is kept beside a proposal, else none."""
    if can_see(principal, head, look):
        return head
    kept_beside = confirmed is not None and not look.past and can_see(principal, confirmed, look)
    return confirmed if kept_beside and being_erased(head, look.erasing) is None else None


def shown_filter(principal: Principal, look: Look) -> Filter:
    """`can_see` of a fact that is `recalled`, as a filter of index documents (fields: `domain.retrieval.documents`).

    Only current facts have documents, so the filter says nothing of closed and erased ones.
    """
    agent = (
        AnyOf((Missing("agent"), Equals("agent", principal.agent_id or "")))
        if principal.actor.kind == "agent"
        else AllOf()
    )
    kept = AnyOf((Missing("expires_at"), Range("expires_at", gt=times.epoch_ms(look.now))))
    return AllOf(
        (
            readable_filter(principal),
            agent,
            kept,
            Missing("review"),
            reach_filter(principal, look.agent, look.person),
            spared_filter(look.erasing),
        )
    )


def may_pass(principal: Principal, row: Listed, look: Look) -> bool:
    """Whether `can_see` may still allow a fact of a list, by what its row says of it."""
    return (
        not row.pending_review
        and (row.expires_at is None or row.expires_at > look.now)
        and _is_of_this_agent(principal, row.agent_id)
        and not (look.erasing.since and _row_is_erased(row, look.erasing))
    )


def _row_is_erased(row: Listed, erasing: Erasing) -> bool:
    return erasing.of_fact(row.fact_id, Scope.model_validate(row.scope), row.owner) is not None


def _is_of_this_agent(principal: Principal, agent_id: str | None) -> bool:
    return principal.actor.kind != "agent" or agent_id in (None, principal.agent_id)


def _knows_what_waits(principal: Principal, head: Fact, look: Look) -> bool:
    """Administrators know it by its id; so does its writer, to replace or delete it, but not to read it.

    A memory was written by its agent, for whoever acts for the owner.
    """
    by = head.attributed_to
    wrote_it = (by.kind, by.id) == (principal.actor.kind, principal.actor.id)
    if by.kind == "agent" and by.id == head.agent_id:
        wrote_it = wrote_it or (acts_for(principal, head.scope) and uses(principal, by.id))
    if look.way == "write":
        return principal.admin or wrote_it
    return look.way == "by-id" and principal.admin


def _within_reach(principal: Principal, head: Fact, look: Look) -> bool:
    """Reach governs what is recalled; elsewhere administrators see every memory, others what was not rejected."""
    if look.way == "recalled":
        return reaches(principal, head, look.agent, look.person)
    return head.reach != "account-rejected" or principal.admin
