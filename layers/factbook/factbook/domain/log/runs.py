"""Runs and their checkpointed heads: what the next entry builds on, its time, and what a leaf of the tree states."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from factbook.domain.scope import Scope

SALT_BYTES = 16


def format_micros(moment: datetime) -> str:
    """Canonical text of an aware `datetime` in whole microseconds, always 27 characters."""
    utc = moment.astimezone(UTC)
    return f"{utc.year:04d}-{utc:%m-%dT%H:%M:%S}.{utc.microsecond:06d}Z"


def later_micros(now: str, previous: str) -> str:
    """`now`, or one microsecond after `previous` when the clock has not passed it."""
    if now > previous:
        return now
    return format_micros(datetime.fromisoformat(previous) + timedelta(microseconds=1))


@dataclass(frozen=True)
class Tail:
    """What the next entry needs to know of a run's last entry."""

    sequence: int
    entry_hash: str
    timestamp: str
    scope: Scope


@dataclass(frozen=True)
class Leaf:
    """A run's head as the tree commits to it. Only the salted hash goes into the tree and the notes above it."""

    index: int
    run_id: str
    sequence: int
    head: str
    salt: str

    @property
    def statement(self) -> str:
        """The canonical text that a leaf commits to. Run ids and hashes hold no character that JSON escapes."""
        return f'{{"head":"{self.head}","run":"{self.run_id}","seq":{self.sequence},"t":"runhead"}}'

    @property
    def data(self) -> bytes:
        """SHA-256(salt ‖ statement): what the tree hashes as the leaf's data."""
        return hashlib.sha256(bytes.fromhex(self.salt) + self.statement.encode()).digest()


def new_salt() -> str:
    return secrets.token_hex(SALT_BYTES)
