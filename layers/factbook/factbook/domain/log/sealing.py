"""Which payloads are sealed, under whose key, and what stands in the log in their place.

A payload whose scope names a person or a conversation is chained and stored as an envelope, so destroying the key of
(project, person, thread) erases the words in every copy of the log while every hash still recomputes.
"""

from dataclasses import dataclass
from typing import Any

from factbook.domain.scope import Scope

ALGORITHM = "A256GCM"
PADDING = 32
"""Plain texts are filled up with spaces to a multiple of this many bytes, since the length of a short answer can reveal
the answer."""


@dataclass(frozen=True)
class KeyName:
    """The project, person and conversation whose payloads a data key seals; an empty string where there is none."""

    project: str = ""
    user: str = ""
    participant: str = ""
    thread: str = ""

    def covered_by(self, selector: "KeyName") -> bool:
        """Whether an erasure of `selector` destroys this key: every name in the selector is also a name of this key."""
        pairs = (
            (selector.project, self.project),
            (selector.user, self.user),
            (selector.participant, self.participant),
            (selector.thread, self.thread),
        )
        return all(not wanted or wanted == own for wanted, own in pairs)


def key_name(scope: Scope) -> KeyName | None:
    """The key a scope's payloads are sealed under; None for a scope without person or conversation."""
    if scope.user_id is None and scope.participant_id is None and scope.thread_id is None:
        return None
    return KeyName(
        scope.project_id or "", scope.user_id or "", scope.participant_id or "", scope.thread_id or ""
    )


def padded(text: str) -> bytes:
    """JSON text filled up with spaces, which a JSON parser ignores."""
    raw = text.encode()
    return raw + b" " * (-len(raw) % PADDING)


@dataclass(frozen=True)
class Envelope:
    """An encrypted payload as it is chained; `nonce` and `text` are base64url without padding."""

    generation: int
    nonce: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"alg": ALGORITHM, "ct": self.text, "gen": self.generation, "iv": self.nonce}


def read_envelope(payload: Any) -> Envelope | None:
    """The envelope, or None when the payload is none. In a sealed scope None means that somebody replaced the payload."""
    if not isinstance(payload, dict) or payload.keys() != {"alg", "ct", "gen", "iv"}:
        return None
    generation, nonce, text = (payload[name] for name in ("gen", "iv", "ct"))
    well_formed = type(generation) is int and isinstance(nonce, str) and isinstance(text, str)
    return Envelope(generation, nonce, text) if well_formed and payload["alg"] == ALGORITHM else None


def is_sealed_for(scope: Scope, payload: Any) -> bool:
    """Whether a chained payload is what an append makes of one in this scope: an envelope where there is somebody to seal
    it for, whatever was said elsewhere, and nothing everywhere.
    """
    return payload is None or key_name(scope) is None or read_envelope(payload) is not None
