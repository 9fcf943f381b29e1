"""The formula that chains a run: what is hashed, how hashes are written, and the ids that carry a cause.

entryHash = "sha256:" + SHA-256(canonical text of {id, kind, scope, runId, actor, timestamp, sequence, payload,
prevHash}); `actor` is left out when absent, `payload` is null when absent. The formula has no cause, so the id carries
it: `<runId>:<sequence>:<nonce>`, where the nonce of an entry with a cause ends in 20 hex digits of the cause's SHA-256.
"""

import hashlib
import secrets
from dataclasses import dataclass

from factbook.domain.fields import LOG_ID

FORMAT = "jcs-sha256-v1"
"""The tag stored with each entry; what it means never changes."""

ZERO_HASH = "sha256:" + "0" * 64
NONCE_DIGITS = 16
CAUSE_DIGITS = 20


def text_hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class LogId:
    """The parts of an entry's id. They are the key of its item, so one read finds the entry."""

    run_id: str
    sequence: int
    nonce: str

    def __str__(self) -> str:
        return f"{self.run_id}:{self.sequence}:{self.nonce}"

    @property
    def seed(self) -> str:
        """The digits of the nonce that no cause decides."""
        return self.nonce[:NONCE_DIGITS]


def read_log_id(text: str) -> LogId | None:
    """The parts of an id, or None when the text is not the id of any entry."""
    match = LOG_ID.fullmatch(text)
    return LogId(match[1], int(match[2]), match[3]) if match else None


def nonce_for(seed: str, cause: str | None) -> str:
    """The nonce of an entry from its seed (16 hex digits) and its cause."""
    return seed if cause is None else seed + hashlib.sha256(cause.encode()).hexdigest()[:CAUSE_DIGITS]


def random_seed() -> str:
    return secrets.token_hex(NONCE_DIGITS // 2)


def derived_seed(operation: str, position: int) -> str:
    """The seed of one entry of a request with an idempotency key: the request always makes the same seed when sent again."""
    return hashlib.sha256(f"log:{operation}/{position}".encode()).hexdigest()[:NONCE_DIGITS]
