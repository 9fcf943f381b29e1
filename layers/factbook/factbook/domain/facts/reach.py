"""Reach: for whom a remembered fact is, and what a change makes of it.

A memory is a fact of one agent (`agentId`) about one person, its owner:

user                the owner's alone, with that agent; so is a memory that says nothing of reach
account-proposed    the same, until an administrator decides
account             confirmed: the owner's, and every administrator's who uses that agent
account-rejected    in reviews only

Reach governs what a model gets to read (standing sets, retrieve, context). Whoever acts for the owner is meant by it:
that user, or whoever writes the project of the participant. docs/memories.md has the table.
"""

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_admin
from factbook.domain.errors import PermissionDenied
from factbook.domain.facts.fact import Fact, Retention
from factbook.domain.facts.transitions import with_expiry
from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, Not, OneOf
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope

WINDOW_DAYS = 30
"""How long a memory is kept that nobody verified or confirmed, unless it says so."""


def may_decide(principal: Principal) -> bool:
    """Whether its word stands, on what waits, on the account and on holds: an administrator's, but no agent's."""
    return principal.admin and principal.actor.kind != "agent"


def require_whole_tenant(principal: Principal) -> None:
    """Raises PermissionDenied unless the principal may have all facts as they are kept, and say what they are.

    An agent is shown memories of its own definition alone, so no copy of the tenant that it makes would be whole; and who
    imports what is said to be confirmed decides on it.
    """
    require_admin(principal)
    if not may_decide(principal):
        raise PermissionDenied(
            "An agent neither sees the whole tenant nor decides what is confirmed in it, so it moves none. Use the token of "
            "an administrator who is no agent."
        )


def acts_for(principal: Principal, scope: Scope) -> bool:
    """Whether the principal is the person that a memory's scope names, or acts for that person."""
    if scope.user_id is not None:
        return principal.user_id == scope.user_id
    if scope.participant_id is None or scope.project_id is None:
        return False
    return principal.admin or scope.project_id in principal.writes_projects


def uses(principal: Principal, agent_id: str, wanted: str | None = None) -> bool:
    """Whether the principal uses this agent: its own, if it has one or is one; of the others the `wanted` one, or any."""
    if principal.agent_id is not None or principal.actor.kind == "agent":
        return agent_id == principal.agent_id and wanted in (None, agent_id)
    return wanted in (None, agent_id)


def reaches(principal: Principal, fact: Fact, wanted: str | None = None, person: str | None = None) -> bool:
    """Whether a memory is for this principal, which uses the agent `wanted` (None: whichever it may), in a conversation of
    the owner `person` (None: it says of nobody).
    """
    if fact.agent_id is None:
        return True
    if not uses(principal, fact.agent_id, wanted) or fact.reach == "account-rejected":
        return False
    if fact.reach == "account-proposed" and not _speaks_for(principal, fact, person):
        return False
    return acts_for(principal, fact.scope) or (principal.admin and fact.reach == "account")


def _speaks_for(principal: Principal, proposal: Fact, person: str | None) -> bool:
    """An administrator acts for every participant, and would have all their proposals in each answer: it reads those of the
    one whom it names. Of others only who writes the project does, which acts for its users.
    """
    return (
        not principal.admin
        or proposal.scope.user_id is not None
        or proposal.scope.project_id in principal.writes_projects
        or proposal.owner == person
    )


def reach_filter(principal: Principal, wanted: str | None = None, person: str | None = None) -> Filter:
    """`reaches` as a filter of index documents (fields: `domain.retrieval.documents`)."""
    agents: list[Filter] = [
        Equals("agent", each) for each in (principal.agent_id, wanted) if each is not None
    ]
    if principal.agent_id is None and principal.actor.kind == "agent":
        agents.append(AnyOf())
    persons: list[Filter] = []
    if principal.user_id is not None:
        persons.append(Equals("s_user", principal.user_id))
    projects: Filter = OneOf("s_project", tuple(sorted(principal.writes_projects)))
    if principal.admin:
        named: Filter = AnyOf() if person is None else Equals("owner", person)
        spoken_for = AnyOf((Not(Equals("reach", "account-proposed")), projects, named))
        projects = AllOf((Not(Missing("s_project")), spoken_for))
    persons.append(AllOf((Missing("s_user"), Not(Missing("s_participant")), projects)))
    if principal.admin:
        persons.append(Equals("reach", "account"))
    memory = AllOf((*agents, Not(Equals("reach", "account-rejected")), AnyOf(tuple(persons))))
    return AnyOf((Missing("agent"), memory))


def require_deletable(head: Fact, confirmed: Fact | None, principal: Principal) -> None:
    """Raises PermissionDenied: what the account confirmed goes only when an administrator says so."""
    if (head.reach == "account" or confirmed is not None) and not may_decide(principal):
        raise PermissionDenied(
            "This memory was confirmed for the account. Ask an administrator to delete it.", factId=head.id
        )


def changed(head: Fact, following: Fact, principal: Principal, keep: KeepLimits | None = None) -> Fact:
    """What the next revision of a fact becomes by who wrote it.

    An administrator's stands, and releases what waited. Anybody else's, over a confirmed memory, proposes again, and a
    proposal keeps a window whatever its writer clears; nobody's new words are said to be confirmed.
    """
    if may_decide(principal):
        return following.model_copy(update={"review": None, "review_why": None})
    if head.reach in ("account", "account-proposed"):
        return proposed(following, following.retention, keep)
    same_words = (following.content_hash, following.content_text) == (head.content_hash, head.content_text)
    return following if same_words else undecided(following)


def undecided(following: Fact) -> Fact:
    """New words, about which no administrator has decided anything, whatever was decided about those before them."""
    return following.model_copy(update={"confirmed_by": None, "confirmed_at": None, "decided_because": None})


def proposed(following: Fact, retention: Retention | None, keep: KeepLimits | None = None) -> Fact:
    """A revision that waits to be confirmed for the account, within a window."""
    if retention is None or not retention.limited:
        held = None if retention is None else retention.legal_hold
        retention = Retention(keep_days=WINDOW_DAYS, legal_hold=held)
    update = {
        "reach": "account-proposed",
        "retention": retention,
        "kept_from": following.updated_at,
    }
    return with_expiry(undecided(following).model_copy(update=update), keep)


def without_window(following: Fact, keep: KeepLimits | None = None) -> Fact:
    """A memory that a person answers for is kept as the tenant's policy says, and no longer for its window alone."""
    if following.agent_id is None:
        return following
    update = {"retention": None, "kept_from": following.updated_at}
    return with_expiry(following.model_copy(update=update), keep)


def restored(head: Fact, confirmed: Fact, by: str | None, at: str) -> tuple[Fact, Fact]:
    """A proposal as it is closed, by a decision or (None) past its window, and the confirmed text as the next revision."""
    ended = times.later_than(at, head.updated_at)
    closed = head.model_copy(
        update={
            "invalidated_at": ended,
            "invalidated_by": by,
            "invalidation_reason": "expired" if by is None else "superseded",
        }
    )
    version = head.version + 1
    following = confirmed.model_copy(
        update={
            "version": version,
            "revision_id": f"{head.id}:{version}",
            "supersedes": head.revision_id,
            "updated_at": ended,
        }
    )
    return closed, following
