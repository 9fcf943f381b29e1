"""What a fact is and what may happen to it: pure transitions between revisions.

A fact keeps its id; each change closes the current revision and opens the next, with versions 1, 2, 3 … without gaps
and start times that strictly increase. `updated_at` is a revision's start, `invalidated_at` its end.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import BadInput, FactChanged, LegalHold, ValidationFailed
from factbook.domain.scope import CamelModel, CauseId, Id, Scope
from factbook.domain.strict_json import dump_json, parse_json

MAX_SUBJECTS = 20
MAX_CAUSES = 100

Trust = Literal["asserted", "unverified", "verified"]
InvalidationReason = Literal["superseded", "deleted", "erased", "expired"]


def _instant(text: str) -> str:
    try:
        return times.parse_instant(text)
    except BadInput as error:
        raise ValueError(error.message) from error


Instant = Annotated[str, AfterValidator(_instant)]


class KeepLimits(CamelModel):
    """How long to keep a fact: the later of both limits."""

    keep_until: Instant | None = None
    keep_days: Annotated[int, Field(ge=1, le=36_525)] | None = None

    @property
    def limited(self) -> bool:
        return self.keep_until is not None or self.keep_days is not None


class Retention(KeepLimits):
    """A fact's own limits. `legal_hold` suspends them."""

    legal_hold: bool | None = None


class Subject(CamelModel):
    kind: Literal["participant", "user", "external"]
    id: Id


class Freshness(CamelModel):
    ttl_seconds: Annotated[int, Field(ge=0, le=10**10)] | None = None
    last_verified_at: Instant | None = None
    etag: Annotated[str, Field(max_length=1024)] | None = None
    source_version: Annotated[str, Field(max_length=1024)] | None = None


class Refresh(CamelModel):
    strategy: Literal["on-read", "background", "manual"]
    handler: Id | None = None
    priority: Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)] | None = None


class Source(CamelModel):
    """Where a cached fact's ground truth lives."""

    kind: Literal["http-api", "blob", "mcp-tool", "external-db", "user-input"]
    uri: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    freshness: Freshness
    refresh: Refresh


class GeneratedBy(CamelModel):
    run_id: Id
    step_id: Id | None = None
    tool_call_id: Id | None = None


class Attribution(Actor):
    agent_version: Id | None = None


class FactChanges(CamelModel):
    """What a caller may say in a new revision; an absent field keeps its value, an empty list clears it."""

    retention: Retention | None = None
    source: Source | None = None
    caused_by_log_id: Annotated[list[CauseId], Field(max_length=MAX_CAUSES)] | None = None
    generated_by: GeneratedBy | None = None
    subjects: Annotated[list[Subject], Field(max_length=MAX_SUBJECTS)] | None = None
    valid_from: Instant | None = None
    valid_until: Instant | None = None
    observed_at: Instant | None = None

    @model_validator(mode="after")
    def _validity_is_an_interval(self) -> "FactChanges":
        if (
            self.valid_from is not None
            and self.valid_until is not None
            and self.valid_from >= self.valid_until
        ):
            raise ValueError("validUntil must be later than validFrom")
        return self


class Payload(CamelModel):
    """A fact's content as stored: inline JSON text, a blob, or a blob with a summary as text."""

    text: str | None
    content_hash: str
    size: int
    content_ref: str | None = None


class Fact(FactChanges):
    """One revision. `content` is kept as JSON text in `content_text`, None when the content lives in a blob alone."""

    id: str
    type: str
    scope: Scope
    version: int
    revision_id: str
    created_at: str
    updated_at: str
    content_text: Annotated[str | None, Field(exclude=True)] = None
    content_ref: str | None = None
    content_hash: str | None = None
    size: int | None = None
    embedding_model: str | None = None
    supersedes: str | None = None
    trust: Trust = "asserted"
    verified_by: str | None = None
    verified_at: str | None = None
    attributed_to: Attribution
    invalidated_at: str | None = None
    invalidated_by: str | None = None
    invalidation_reason: InvalidationReason | None = None
    review: Literal["pending"] | None = None
    expires_at: str | None = None
    key: str | None = None
    agent_id: str | None = None
    owner: str | None = None
    reach: Literal["user", "account", "account-proposed", "account-rejected"] | None = None
    confirmed_by: str | None = None
    confirmed_at: str | None = None
    stale: bool | None = None

    def to_json(self) -> dict[str, Any]:
        fields = super().to_json()
        answer = {name: fields[name] for name in ("id", "type", "scope", "version")} | fields
        if self.content_text is not None:
            answer["content"] = parse_json(self.content_text)
        return answer

    @property
    def inline_bytes(self) -> int:
        """At most what the fact adds to a response, which is escaped once more on its way out of a function."""
        text = dump_json(super().to_json()) + (self.content_text or "")
        return len(text.encode()) + text.count('"') + text.count("\\") + 32

    @property
    def current(self) -> bool:
        return self.invalidated_at is None

    @property
    def held(self) -> bool:
        return self.retention is not None and self.retention.legal_hold is True

    def expired(self, now: str) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def holds_at(self, instant: str) -> bool:
        """Whether this revision was the current one at `instant` (record time): start ≤ instant < end."""
        return self.updated_at <= instant and (self.invalidated_at is None or instant < self.invalidated_at)

    def valid_at(self, instant: str) -> bool:
        """Whether the fact is said to hold in the world at `instant`."""
        return (self.valid_from or "") <= instant and (self.valid_until is None or instant < self.valid_until)


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
    """The first revision of a new fact; `keep` limits one that states no retention, here and in what follows."""
    return _with_expiry(
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
            **_stated(changes),
            **_payload_fields(payload),
        ),
        keep,
    )


def supersede(
    head: Fact,
    changes: FactChanges,
    payload: Payload | None,
    principal: Principal,
    now: str,
    keep: KeepLimits | None = None,
) -> tuple[Fact, Fact]:
    """The closed revision and the next one. New content takes its writer's trust and attribution."""
    update: dict[str, Any] = _stated(changes)
    if payload is not None:
        update |= _payload_fields(payload) | {
            "trust": writers_trust(principal),
            "verified_by": None,
            "verified_at": None,
            "attributed_to": Attribution(kind=principal.actor.kind, id=principal.actor.id),
        }
    return _advance(head, update, principal, now, keep)


def verify(head: Fact, principal: Principal, now: str, keep: KeepLimits | None = None) -> tuple[Fact, Fact]:
    """The closed revision and one whose trust a person has verified."""
    start = times.later_than(now, head.updated_at)
    stated = {"trust": "verified", "verified_by": principal.name, "verified_at": start}
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


def expiry(created_at: str, retention: Retention | None, default: KeepLimits | None) -> str | None:
    """When the fact ends: the later of keepDays from its first write and keepUntil; never while it is held."""
    if retention is not None and retention.legal_hold:
        return None
    keep = retention if retention is not None and retention.limited else default
    if keep is None:
        return None
    limits = [keep.keep_until] if keep.keep_until else []
    if keep.keep_days is not None:
        limits.append(times.add(created_at, days=keep.keep_days))
    return max(limits, default=None)


def _advance(
    head: Fact, update: dict[str, Any], principal: Principal, now: str, keep: KeepLimits | None
) -> tuple[Fact, Fact]:
    closed = close(head, principal.name, now, "superseded")
    version = head.version + 1
    following = head.model_copy(
        update={
            **update,
            "version": version,
            "revision_id": f"{head.id}:{version}",
            "supersedes": head.revision_id,
            "updated_at": closed.invalidated_at,
        }
    )
    if following.valid_from and following.valid_until and following.valid_from >= following.valid_until:
        raise ValidationFailed(
            "The fact's validFrom and validUntil no longer form an interval.",
            issues=[{"path": "/validUntil", "message": "must be later than validFrom"}],
        )
    return closed, _with_expiry(following, keep)


def _stated(changes: FactChanges) -> dict[str, Any]:
    stated = {
        name: getattr(changes, name)
        for name in FactChanges.model_fields
        if getattr(changes, name) is not None
    }
    return {name: (None if value == [] or value == Retention() else value) for name, value in stated.items()}


def _payload_fields(payload: Payload) -> dict[str, Any]:
    return {
        "content_text": payload.text,
        "content_hash": payload.content_hash,
        "size": payload.size,
        "content_ref": payload.content_ref,
    }


def _with_expiry(fact: Fact, keep: KeepLimits | None) -> Fact:
    return fact.model_copy(update={"expires_at": expiry(fact.created_at, fact.retention, keep)})
