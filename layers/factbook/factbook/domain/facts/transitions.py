"""What may happen to a fact: pure transitions between revisions."""

from typing import Any

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactChanged, LegalHold, RequestTooLarge, ValidationFailed
from factbook.domain.facts.fact import (
    MAX_STORED_BYTES,
    Attribution,
    Fact,
    FactChanges,
    InvalidationReason,
    Payload,
    Retention,
    Trust,
)
from factbook.domain.facts.freshness import of_its_own_place, require_not_ahead, vouched_for, with_new_content
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope


def writers_trust(principal: Principal) -> Trust:
    return "unverified" if principal.actor.kind == "agent" else "asserted"


def open_fact(
    fact_id: str,
    fact_type: str,
    scope: Scope,
    changes: FactChanges,
    payload: Payload,
    principal: Principal,
    now: str,
    key: str | None = None,
    keep: KeepLimits | None = None,
) -> Fact:
    """The first revision of a new fact; `keep` limits one that states no retention, here and in what follows.

    Raises RequestTooLarge, ValidationFailed.
    """
    require_not_ahead(changes.source, now)
    fact = with_expiry(
        Fact(
            id=fact_id,
            type=fact_type,
            scope=scope,
            version=1,
            revision_id=f"{fact_id}:1",
            created_at=now,
            updated_at=now,
            trust=writers_trust(principal),
            attributed_to=Attribution(kind=principal.actor.kind, id=principal.actor.id),
            key=key,
            **changes.stated(),
            **_payload_fields(payload),
        ),
        keep,
    )
    _require_room(fact)
    return fact


def supersede(
    head: Fact,
    changes: FactChanges,
    payload: Payload | None,
    principal: Principal,
    now: str,
    keep: KeepLimits | None = None,
) -> tuple[Fact, Fact]:
    """The closed revision and the next one. New content takes its writer's trust and attribution.

    Validators of a mirrored fact are those of its content, so new content without a source of its own is without them.
    Raises RequestTooLarge, ValidationFailed.
    """
    update: dict[str, Any] = changes.stated()
    require_not_ahead(update.get("source"), now)
    if update.get("source") is not None:
        update["source"] = of_its_own_place(update["source"], head.source)
    if payload is not None:
        update |= _payload_fields(payload) | {
            "trust": writers_trust(principal),
            "verified_by": None,
            "verified_at": None,
            "attributed_to": Attribution(kind=principal.actor.kind, id=principal.actor.id),
        }
        if "source" not in update:
            update["source"] = with_new_content(head.source, times.later_than(now, head.updated_at))
    closed, following = _advance(head, update, principal, now, keep)
    _require_room(following)
    return closed, following


def reopen(
    head: Fact,
    changes: FactChanges,
    payload: Payload,
    principal: Principal,
    now: str,
    keep: KeepLimits | None = None,
) -> Fact:
    """The next revision of a deleted fact, which says what its writer says and nothing of before.

    `keepDays` counts from it. The deleted revision stays as it was closed.
    """
    start = times.later_than(now, ended_at(head))
    require_time_left(start, changes.retention, keep, start)
    said = open_fact(head.id, head.type, head.scope, changes, payload, principal, start, head.key, keep)
    return said.model_copy(
        update={**_following(head), "created_at": head.created_at, "kept_from": said.created_at}
    )


def ended_at(head: Fact) -> str:
    """The last time at which something happened to the fact: what comes after it comes later."""
    return head.invalidated_at or head.updated_at


def says_nothing_new(head: Fact, changes: FactChanges, content_hash: str, summary: str | None) -> bool:
    """Whether a next revision would have the content and the fields of this one.

    `summary`: the text beside an uploaded content, None where there is none.
    """
    own_summary = head.content_text if head.content_ref is not None else None
    return (head.content_hash, own_summary) == (content_hash, summary) and all(
        getattr(head, name) == value for name, value in changes.stated().items()
    )


def verify(head: Fact, principal: Principal, now: str, keep: KeepLimits | None = None) -> tuple[Fact, Fact]:
    """The closed revision and one whose trust a person has verified."""
    start = times.later_than(now, head.updated_at)
    stated = {
        "trust": "verified",
        "verified_by": principal.name,
        "verified_at": start,
        "source": vouched_for(head.source, start),
    }
    return _advance(head, stated, principal, now, keep)


def close(head: Fact, by: str, now: str, reason: InvalidationReason) -> Fact:
    """The same revision, ended now."""
    return head.model_copy(
        update={
            "invalidated_at": times.later_than(now, head.updated_at),
            "invalidated_by": by,
            "invalidation_reason": reason,
        }
    )


def erased(head: Fact, at: str) -> Fact:
    """What stays of a fact: that it was there. Nothing that anybody said, no key, nobody it was about."""
    return Fact(
        id=head.id,
        type=head.type,
        scope=head.scope,
        version=head.version,
        revision_id=head.revision_id,
        created_at=head.created_at,
        updated_at=head.updated_at,
        attributed_to=Attribution(kind="service", id="erasure"),
        invalidated_at=times.later_than(at, head.updated_at),
        invalidation_reason="erased",
    )


def reopened(revision: Fact) -> Fact:
    """A closed revision as it was answered when it was written."""
    return revision.model_copy(
        update={"invalidated_at": None, "invalidated_by": None, "invalidation_reason": None}
    )


def require_changeable(head: Fact, expected: int | None) -> None:
    """Raises LegalHold, then FactChanged, in the order the API promises."""
    if head.held:
        raise LegalHold(head.id)
    if expected is not None and expected != head.version:
        raise FactChanged(head.id, head.version)


def expiry(kept_from: str, retention: Retention | None, default: KeepLimits | None) -> str | None:
    """When the fact ends: the later of keepDays from its first (or reopening) write and keepUntil; never while it is held."""
    if retention is not None and retention.legal_hold:
        return None
    keep = retention if retention is not None and retention.limited else default
    if keep is None:
        return None
    limits = [keep.keep_until] if keep.keep_until else []
    if keep.keep_days is not None:
        limits.append(times.add(kept_from, days=keep.keep_days))
    return max(limits, default=None)


def has_time_left(created_at: str, retention: Retention | None, default: KeepLimits | None, now: str) -> bool:
    """Whether a fact of this retention, or of the policy's, would not have ended by now."""
    end = expiry(created_at, retention, default)
    return end is None or end > now


def require_time_left(
    created_at: str, retention: Retention | None, default: KeepLimits | None, now: str
) -> None:
    """Raises ValidationFailed for a fact that would have ended already: nobody could ever read it."""
    if has_time_left(created_at, retention, default, now):
        return
    if retention is not None and retention.limited:
        raise ValidationFailed(
            "The fact's retention has run out already, so nobody could read it. Send a later keepUntil, more keepDays "
            "(they count from the fact's first write), or legalHold.",
            issues=[{"path": "/retention", "message": "has run out already"}],
        )
    raise ValidationFailed(
        "The policy's retention for this fact has run out already, so nobody could read it. Send a retention with the "
        "fact, or ask an administrator for another policy.",
        issues=[{"path": "/retention", "message": "is missing, and the policy's has run out already"}],
    )


def _advance(
    head: Fact, update: dict[str, Any], principal: Principal, now: str, keep: KeepLimits | None
) -> tuple[Fact, Fact]:
    closed = close(head, principal.name, now, "superseded")
    following = head.model_copy(update={**update, **_following(head), "updated_at": closed.invalidated_at})
    if following.valid_from and following.valid_until and following.valid_from >= following.valid_until:
        raise ValidationFailed(
            "The fact's validFrom and validUntil no longer form an interval.",
            issues=[{"path": "/validUntil", "message": "must be later than validFrom"}],
        )
    require_time_left(head.kept_from or head.created_at, following.retention, keep, now)
    return closed, with_expiry(following, keep)


def _require_room(fact: Fact) -> None:
    if fact.stored_bytes > MAX_STORED_BYTES:
        raise RequestTooLarge(
            "The fact takes more than 370 KB besides large content. Name fewer causes and subjects, or shorten them."
        )


def _following(head: Fact) -> dict[str, Any]:
    version = head.version + 1
    return {
        "version": version,
        "revision_id": f"{head.id}:{version}",
        "supersedes": head.revision_id,
    }


def _payload_fields(payload: Payload) -> dict[str, Any]:
    return {
        "content_text": payload.text,
        "content_hash": payload.content_hash,
        "size": payload.size,
        "content_ref": payload.content_ref,
    }


def with_expiry(fact: Fact, keep: KeepLimits | None) -> Fact:
    """The fact with the end that its retention says, else `keep`."""
    return fact.model_copy(
        update={"expires_at": expiry(fact.kept_from or fact.created_at, fact.retention, keep)}
    )
