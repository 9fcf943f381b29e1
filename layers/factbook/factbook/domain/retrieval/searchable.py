"""What of a fact can be searched: the fields a filter may look at, and its words."""

from factbook.domain import times
from factbook.domain.facts.fact import Fact
from factbook.domain.filters import Fields, FieldValue
from factbook.domain.scope import Scope
from factbook.domain.strict_json import parse_json

FACTS, CONVERSATIONS = "facts", "conversations"
"""Values of the field `source` of a document: whether it is a fact or a message."""

SCOPE_FIELDS = {
    "userId": "s_user",
    "orgId": "s_org",
    "projectId": "s_project",
    "threadId": "s_thread",
    "sessionId": "s_session",
    "participantId": "s_participant",
}


BESIDE = "/confirmed"
"""Ends the id of the record of a confirmed text that stands beside a proposal; before it stands the fact's id."""


def scope_fields(scope: Scope) -> dict[str, FieldValue]:
    stated = scope.to_json()
    named = {field: stated[key] for key, field in SCOPE_FIELDS.items() if key in stated}
    return {"container": scope.container, **named}


def fact_fields(fact: Fact) -> Fields:
    """Fields of a fact's document (see `domain.retrieval.documents`); a value that the fact does not have is left out."""
    fields: dict[str, FieldValue | None] = {
        "source": FACTS,
        "type": fact.type,
        "trust": fact.trust,
        "agent": fact.agent_id,
        "owner": fact.owner,
        "reach": fact.reach,
        "review": fact.review,
        "subjects": tuple(f"{subject.kind}:{subject.id}" for subject in fact.subjects or ()) or None,
        "valid_from": _epoch(fact.valid_from),
        "valid_until": _epoch(fact.valid_until),
        "expires_at": _epoch(fact.expires_at),
        "revision": fact.version,
    }
    return {
        **scope_fields(fact.scope),
        **{name: value for name, value in fields.items() if value is not None},
    }


def searchable(fact: Fact) -> bool:
    """Whether a head may be in the index at all.

    Expiry and validity are not decided here: each search compares them with the time it is asked at.
    """
    return fact.current and fact.review is None


UNSAID_KEYS = frozenset({"text", "content", "message", "body", "value"})
"""Keys of a content that are not indexed, since they do not describe their value."""


def content_words(content_text: str | None) -> str:
    """The words of a content, one value a line. A key that describes its value stands before it: `city: Lisbon`."""
    return "\n".join(_lines(None if content_text is None else parse_json(content_text)))


def _lines(value: object, key: str = "") -> list[str]:
    match value:
        case dict():
            return [line for name, inner in value.items() for line in _lines(inner, _said(name))]
        case list():
            return [line for inner in value for line in _lines(inner, key)]
        case None | bool():
            return [f"{key}{str(value).lower()}"] if key else []
        case _:
            return [f"{key}{value}"]


def _said(key: str) -> str:
    return "" if key in UNSAID_KEYS else f"{key}: "


def _epoch(instant: str | None) -> int | None:
    return None if instant is None else times.epoch_ms(instant)


def index_version(fact: Fact, edition: int) -> int:
    """The number that orders a fact's states in the index, below 2^63.

    It compares the time of the fact's first write (in seconds) before the edition. Once time to live has removed a fact,
    its id may be written again, and editions then start over at 1.
    """
    return times.epoch_ms(fact.created_at) // 1000 << 30 | edition
