"""Entries of the log: as a caller asks for one, as it is chained, and as it is read back."""

from dataclasses import dataclass
from typing import Any, Literal

from factbook.domain.fields import CamelModel
from factbook.domain.log.chain import ZERO_HASH, LogId, nonce_for
from factbook.domain.log.runs import Tail
from factbook.domain.scope import Scope

MAX_ENTRIES = 100
MAX_PAYLOAD_BYTES = 256 * 1024

Kind = Literal[
    "user-message",
    "agent-message",
    "system-message",
    "tool-call",
    "tool-result",
    "internal-thought",
    "retrieval",
    "artifact-produced",
    "event-emitted",
    "event-received",
    "guardrail-triggered",
    "wait-suspended",
    "wait-resumed",
]
MESSAGE_KINDS = frozenset({"user-message", "agent-message", "system-message"})


class LogEntry(CamelModel):
    """An entry as it is answered. `payload` is left out when it is null, or erased: then `payload_erased_at` says when. Or its key is
    kept elsewhere, as of an import without keys: then it says `payload_sealed`.
    """

    id: str
    kind: Kind
    scope: Scope
    run_id: str
    actor: str | None = None
    timestamp: str
    sequence: int
    payload: Any = None
    content_hash: str
    prev_hash: str
    entry_hash: str
    caused_by_log_id: str | None = None
    payload_erased_at: str | None = None
    payload_sealed: Literal[True] | None = None

    def to_json(self) -> dict[str, Any]:
        # The payload is the caller's JSON. A null inside it is a value and must not be left out.
        answer = self.model_dump(by_alias=True, exclude_none=True, exclude={"payload"})
        return answer if self.payload is None else answer | {"payload": self.payload}


@dataclass(frozen=True)
class Draft:
    """An entry to append; `text` is its payload's canonical text, "null" without a payload."""

    kind: Kind
    actor: str | None
    payload: Any
    text: str
    cause: str | None
    seed: str


@dataclass(frozen=True)
class Place:
    """The id, time and previous hash that an entry is chained with."""

    log_id: LogId
    timestamp: str
    prev_hash: str


def place_after(tail: Tail | None, run_id: str, draft: Draft, timestamp: str) -> Place:
    """The place of a draft that follows `tail`, or that opens the run when `tail` is None."""
    sequence, before = (0, ZERO_HASH) if tail is None else (tail.sequence + 1, tail.entry_hash)
    return Place(LogId(run_id, sequence, nonce_for(draft.seed, draft.cause)), timestamp, before)


def hashed_fields(draft: Draft, scope: Scope, place: Place, payload: Any) -> dict[str, Any]:
    """The object whose canonical text is chained; `payload` is an envelope when the scope is sealed."""
    fields: dict[str, Any] = {
        "id": str(place.log_id),
        "kind": draft.kind,
        "scope": scope.to_json(),
        "runId": place.log_id.run_id,
        "timestamp": place.timestamp,
        "sequence": place.log_id.sequence,
        "payload": payload,
        "prevHash": place.prev_hash,
    }
    return fields if draft.actor is None else fields | {"actor": draft.actor}
