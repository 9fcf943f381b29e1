"""What is searched of a conversation's message: who spoke, what they said, and what was said right before."""

from dataclasses import dataclass

from factbook.domain.filters import Fields
from factbook.domain.log.entries import LogEntry
from factbook.domain.retrieval.searchable import CONVERSATIONS, content_words, scope_fields
from factbook.domain.strict_json import dump_json

SPOKEN = frozenset({"user-message", "agent-message"})
"""Kinds of entries that conversations are searched by."""

BEFORE_CHARACTERS = 1_000
"""How many characters of the message before are indexed with a message."""

MESSAGE_VERSION = 1
ERASED_VERSION = 2
"""Versions of a message in the index. A message never changes, but an erasure may remove its words."""


@dataclass(frozen=True)
class Spoken:
    """One message in plain words; `speaker` is empty when the entry names nobody."""

    speaker: str
    words: str

    @classmethod
    def of(cls, entry: LogEntry) -> "Spoken":
        return cls(_name(entry.actor), content_words(dump_json(entry.payload)))

    @property
    def line(self) -> str:
        return f"{self.speaker}: {self.words}" if self.speaker else self.words


def meaning(own: Spoken, listener: str) -> str:
    """The text to embed. It always names both speakers, so that a name in a query matches what either of them says."""
    if not own.speaker or listener in ("", own.speaker):
        return own.line
    return f"{own.speaker} told {listener} about {own.speaker}: {own.words}"


def message_fields(entry: LogEntry) -> Fields:
    return {**scope_fields(entry.scope), "source": CONVERSATIONS, "type": entry.kind, "revision": 1}


def _name(actor: str | None) -> str:
    """The speaker's name: ana for `user:ana`."""
    return (actor or "").rpartition(":")[2]
