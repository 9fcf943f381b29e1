"""The gate: whether a principal may be shown a fact now. Every road to a fact asks here, and nowhere else.

`can_see` decides on a fact that was read. `shown_filter` says the same of index documents and `may_pass` of rows of a
list, so that neither proposes much that would be refused; they spare reads and decide nothing. Callers name the module
(`gate.can_see`), so that there is one function to replace.
"""

from dataclasses import dataclass
from typing import Literal

from factbook.domain import times
from factbook.domain.access.filters import readable_filter
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import can_read
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import acts_for, reach_filter, reaches, uses
from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, Range

Way = Literal["found", "recalled", "by-id", "write"]


@dataclass(frozen=True)
class Look:
    """One look at facts: what the gate has to know besides who looks at what.

    `now`: the instant of the look. `way`: how the fact is come by: `found` in a list, `recalled` for a model (a search,
    a block or a standing set), `by-id`, or named by a `write`. `past`: a version, an instant or the history is asked for,
    which closed facts answer too. `agent`: what is recalled is for this agent; None: for any the principal uses.
    """

    now: str
    way: Way = "found"
    past: bool = False
    agent: str | None = None


def can_see(principal: Principal, head: Fact, look: Look) -> bool:
    """Whether a fact may be shown. Its head decides, for each of its revisions that `shows_revision` allows.

    It is readable (scope; an agent sees memories of its own definition only), current unless the past is asked for, not
    expired, not erased, not in review, unless it waits for one who may know of it, and within its reach.
    """
    return (
        can_read(principal, head.scope)
        and _is_of_this_agent(principal, head.agent_id)
        and (head.current or look.past)
        and not head.expired(look.now)
        and head.invalidation_reason != "erased"
        and (head.review is None or _knows_what_waits(principal, head, look))
        and _within_reach(principal, head, look)
    )


def shows_revision(principal: Principal, revision: Fact, look: Look) -> bool:
    """Whether this revision of a fact that `can_see` allows may be shown: what was never released stays hidden when it is
    replaced, but for administrators by its id.
    """
    return revision.review is None or (look.way == "by-id" and principal.admin)


def shown(principal: Principal, head: Fact, confirmed: Fact | None, look: Look) -> Fact | None:
    """Which revision of a fact to show: its head, else the confirmed text that is kept beside a proposal, else none."""
    if can_see(principal, head, look):
        return head
    kept_beside = confirmed is not None and not look.past and can_see(principal, confirmed, look)
    return confirmed if kept_beside else None


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
        (readable_filter(principal), agent, kept, Missing("review"), reach_filter(principal, look.agent))
    )


def may_pass(
    principal: Principal, agent_id: str | None, expires_at: str | None, look: Look, *, in_review: bool
) -> bool:
    """Whether `can_see` may still allow a fact of a list, by what its row says of it."""
    return (
        not in_review
        and (expires_at is None or expires_at > look.now)
        and _is_of_this_agent(principal, agent_id)
    )


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
        return reaches(principal, head, look.agent)
    return head.reach != "account-rejected" or principal.admin
