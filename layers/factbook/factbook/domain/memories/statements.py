"""What an agent asks to remember, and the revision that it becomes.

A memory is `unverified` and its agent's, whoever carried the request. It is kept for a window from each time it was
remembered; verifying or confirming it ends the window (`domain.facts.reach`).
"""

from dataclasses import dataclass
from typing import Any, Literal

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.errors import PermissionDenied, ValidationFailed
from factbook.domain.facts import reach as reaches
from factbook.domain.facts.fact import Attribution, Fact, FactChanges, GeneratedBy, Payload, Reach, Retention
from factbook.domain.facts.transitions import ended_at, open_fact, supersede, with_expiry
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope


@dataclass(frozen=True)
class Statement:
    """`about`: the person or the account; None: as the memory of that key says, the person's if there is none."""

    agent_id: str
    scope: Scope
    owner: str
    type: str
    text: str
    agent_version: str | None = None
    key: str | None = None
    about: Literal["user", "account"] | None = None
    keep_days: int = reaches.WINDOW_DAYS
    valid_until: str | None = None
    generated_by: GeneratedBy | None = None


def is_past(said: Statement, now: str) -> bool:
    """Whether it no longer holds."""
    return said.valid_until is not None and said.valid_until <= now


def require_not_past(said: Statement, now: str) -> None:
    """Raises ValidationFailed for what no longer holds: no standing set would ever show it."""
    if is_past(said, now):
        raise ValidationFailed(
            "The memory's validUntil has passed already. Send a later one, or none.",
            issues=[{"path": "/validUntil", "message": "has passed already"}],
        )


def first_remembered(
    said: Statement, fact_id: str, payload: Payload, principal: Principal, now: str, keep: KeepLimits | None
) -> Fact:
    """The first revision of a memory."""
    opened = open_fact(fact_id, said.type, said.scope, FactChanges(), payload, principal, now, said.key, keep)
    reach: Reach = "account-proposed" if said.about == "account" else "user"
    return _as_said(opened, said, reach, keep)


def remembered_again(
    said: Statement, head: Fact, payload: Payload, principal: Principal, now: str, keep: KeepLimits | None
) -> tuple[Fact, Fact]:
    """The revision as it is closed, and the next one. Raises PermissionDenied for a confirmed one that is to be personal."""
    reach = reach_again(said, head, principal)
    closed, following = supersede(head, FactChanges(), payload, principal, now, keep)
    released = {"review": None, "review_why": None} if reaches.may_decide(principal) else {}
    following = following.model_copy(update={"type": said.type, "key": said.key, **released})
    return closed, _as_said(following, said, reach, keep)


def reopened_by(
    said: Statement, head: Fact, payload: Payload, principal: Principal, now: str, keep: KeepLimits | None
) -> Fact:
    """The next revision of a memory that was deleted: nothing of what it said is kept."""
    start = times.later_than(now, ended_at(head))
    version = head.version + 1
    return first_remembered(said, head.id, payload, principal, start, keep).model_copy(
        update={
            "version": version,
            "revision_id": f"{head.id}:{version}",
            "supersedes": head.revision_id,
            "created_at": head.created_at,
            "kept_from": start,
        }
    )


def reach_again(said: Statement, head: Fact, principal: Principal) -> Reach:
    """The reach that remembering again leads to. What an administrator writes of the account needs no second look."""
    personal = head.reach in (None, "user")
    about = said.about or ("user" if personal else "account")
    if about == "account":
        stands = head.reach == "account" and reaches.may_decide(principal)
        return "account" if stands else "account-proposed"
    if head.reach == "account":
        raise confirmed_is_the_accounts(head.id)
    return "user"


def confirmed_is_the_accounts(fact_id: str) -> PermissionDenied:
    return PermissionDenied(
        "This memory was confirmed for the account: it cannot become personal. Use another key.",
        factId=fact_id,
    )


def says_the_same(said: Statement, head: Fact, content_hash: str) -> bool:
    """Whether remembering again would change nothing but the window."""
    personal = head.reach in (None, "user")
    about = said.about or ("user" if personal else "account")
    same_reach = head.reach != "account-rejected" and (about == "user") is personal
    return same_reach and (head.type, head.content_hash) == (said.type, content_hash)


def window_ended(head: Fact) -> bool:
    """Whether a person answers for the memory, by verifying it or by releasing it: no window begins again."""
    limited = head.retention is not None and head.retention.limited
    return head.trust == "verified" or (head.confirmed_by is not None and not limited)


def kept_longer(said: Statement, head: Fact, now: str, keep: KeepLimits | None) -> Fact:
    """The same revision, whose window begins again."""
    update = {"retention": _window(said, head), "kept_from": now}
    return with_expiry(head.model_copy(update=update), keep)


def _as_said(fact: Fact, said: Statement, reach: Reach, keep: KeepLimits | None) -> Fact:
    stands = reach == "account"
    update: dict[str, Any] = {
        "trust": "unverified",
        "attributed_to": Attribution(kind="agent", id=said.agent_id, agent_version=said.agent_version),
        "agent_id": said.agent_id,
        "owner": said.owner,
        "reach": reach,
        "valid_from": None,
        "valid_until": said.valid_until,
        "generated_by": said.generated_by,
        "retention": None if stands else _window(said, fact),
        "kept_from": None if fact.version == 1 else fact.updated_at,
    }
    fact = fact if stands else reaches.undecided(fact)
    return with_expiry(fact.model_copy(update=update), keep)


def _window(said: Statement, head: Fact) -> Retention:
    held = True if head.held else None
    return Retention(keep_days=said.keep_days, legal_hold=held)
