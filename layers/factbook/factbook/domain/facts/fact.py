"""What a fact is and what may happen to it: pure transitions between revisions.

A fact keeps its id; each change closes the current revision and opens the next, with versions 1, 2, 3 … without gaps
and start times that strictly increase. `updated_at` is a revision's start, `invalidated_at` its end.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from factbook.domain import wire
from factbook.domain.access.principals import Actor
from factbook.domain.fields import CamelModel, CauseId, Id, Instant
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope
from factbook.domain.strict_json import dump_json, parse_json

MAX_SUBJECTS = 20
MAX_CAUSES = 100
MAX_STORED_BYTES = 370_000
"""Of one revision as its writer leaves it. An item has 400 KB: the rest is for who verifies, confirms, holds and closes it,
for the keys of its indexes and for the marks of its writes, so that what was written can always be changed and ended.
"""

Trust = Literal["asserted", "unverified", "verified"]
Reach = Literal["user", "account", "account-proposed", "account-rejected"]
ReviewWhy = Literal["instruction-like", "derived-from-erased"]
InvalidationReason = Literal["superseded", "deleted", "erased", "expired"]
StaleReason = Literal[
    "ttl-passed",
    "source-unavailable",
    "source-refused",
    "refresh-handler-missing",
    "source-changed",
    "person-asked",
    "busy",
]
"""Why a mirrored fact may not say what its source says now. `busy`: somebody else was asking, and took too long."""


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


ASKED_AT_URI = {"http-api": "http", "blob": "s3", "mcp-tool": "mcp"}
"""Handlers that ask at a source's `uri` and know no other place, each by the kind whose default it is."""


class Source(CamelModel):
    """Where a cached fact's ground truth lives."""

    kind: Literal["http-api", "blob", "mcp-tool", "external-db", "user-input"]
    uri: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    freshness: Freshness
    refresh: Refresh

    @property
    def place(self) -> tuple[str, str | None, str | None]:
        """Where the truth lives, and who looks there."""
        return self.kind, self.uri, self.refresh.handler

    @property
    def lacks_uri(self) -> bool:
        """Whether it can never be asked: its handler needs to be told where. Facts of earlier versions have such sources."""
        handler = self.refresh.handler or ASKED_AT_URI.get(self.kind)
        return self.uri is None and handler in ASKED_AT_URI.values()


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

    @property
    def about(self) -> tuple[str, ...]:
        """The subjects as `kind:id`, each once, in order."""
        return tuple(sorted({f"{subject.kind}:{subject.id}" for subject in self.subjects or ()}))

    def stated(self) -> dict[str, Any]:
        """The fields to set, by Python name: an absent one is left out, an empty list or retention clears."""
        given = {name: getattr(self, name) for name in FactChanges.model_fields}
        return {
            name: None if value == [] or value == Retention() else value
            for name, value in given.items()
            if value is not None
        }


class Payload(CamelModel):
    """A fact's content as stored: inline JSON text, a blob, or a blob with a summary as text."""

    text: str | None
    content_hash: str
    size: int
    content_ref: str | None = None


class Fact(FactChanges):
    """One revision. `content` is kept as JSON text in `content_text`, None when the content lives in a blob alone.

    `kept_from`: the write that reopened or remembered the fact, from which `keepDays` counts; None where that is its
    first write. `review_why`: why it waits. `decided_because`: what whoever confirmed or rejected it gave as the reason.
    `ever_about`: of a head, the subjects of all its revisions as `kind:id`, where they are more than its own.
    `stale`, `stale_reason`: of what is answered, never of what is stored (`domain.facts.freshness`).
    """

    id: str
    type: str
    scope: Scope
    version: int
    revision_id: str
    created_at: str
    updated_at: str
    content_text: Annotated[str | None, Field(exclude=True)] = None
    kept_from: Annotated[str | None, Field(exclude=True)] = None
    review_why: Annotated[tuple[ReviewWhy, ...] | None, Field(exclude=True)] = None
    decided_because: Annotated[str | None, Field(exclude=True)] = None
    ever_about: Annotated[tuple[str, ...] | None, Field(exclude=True)] = None
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
    reach: Reach | None = None
    confirmed_by: str | None = None
    confirmed_at: str | None = None
    stale: bool | None = None
    stale_reason: StaleReason | None = None

    def to_json(self) -> dict[str, Any]:
        fields = super().to_json()
        answer = {name: fields[name] for name in ("id", "type", "scope", "version")} | fields
        if self.content_text is not None:
            answer["content"] = parse_json(self.content_text)
        return answer

    @property
    def wire_bytes(self) -> int:
        """What the fact takes of an answer; its content is not parsed for that."""
        text = dump_json(super().to_json()) + (self.content_text or "")
        return wire.text_bytes(text) + 32  # the name of `content`, and what separates

    @property
    def stored_bytes(self) -> int:
        """About what the fact takes as one item of the store, its subjects twice: what finds it by them is kept beside it."""
        fields = super().to_json()
        texts = (dump_json(fields), dump_json(fields.get("subjects", [])), self.content_text or "")
        return sum(len(text.encode()) for text in texts)

    @property
    def current(self) -> bool:
        return self.invalidated_at is None

    @property
    def about(self) -> tuple[str, ...]:
        """Its subjects and those of the revisions before it."""
        return tuple(sorted({*super().about, *(self.ever_about or ())}))

    @property
    def held(self) -> bool:
        return self.retention is not None and self.retention.legal_hold is True

    def over(self, now: str) -> bool:
        """Whether this life of the fact has ended for good: it expired or was erased."""
        return self.expired(now) or self.invalidation_reason in ("expired", "erased")

    def expired(self, now: str) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def holds_at(self, instant: str) -> bool:
        """Whether this revision was the current one at `instant` (record time): start ≤ instant < end."""
        return self.updated_at <= instant and (self.invalidated_at is None or instant < self.invalidated_at)

    def valid_at(self, instant: str) -> bool:
        """Whether the fact is said to hold in the world at `instant`."""
        return (self.valid_from or "") <= instant and (self.valid_until is None or instant < self.valid_until)
