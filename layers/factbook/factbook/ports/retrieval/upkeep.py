"""What keeping the search index in line with the tables needs of the world."""

from dataclasses import dataclass
from typing import Literal, Protocol

Trouble = Literal[
    "embedding",
    "payload",
    "index",
    "embedding-refused",
    "too-large",
    "not-text",
    "too-slow",
    "refused",
    "remains",
    "claim",
]
"""Why a record is not wholly in the index.

`embedding`: there is no vector of it yet; `payload`: its content or its key could not be read; `index`: the index was
down, or wanted it later. They wait and are tried again. The next stay until the record changes: the embeddings endpoint
or the index refused it, its text is above 10 MB or takes too long to be read, or its content is no text.
`remains` and `claim` are leftovers (`usecases.retrieval.leftovers`), noted apart from the others.
"""
WAITING: frozenset[Trouble] = frozenset({"embedding", "payload", "index", "remains", "claim"})


@dataclass(frozen=True)
class Troubled:
    tenant: str
    id: str
    source: Literal["facts", "conversations"]
    version: int
    """Of the record in the index; a note about an older version than the record's says nothing."""
    trouble: Trouble

    @property
    def waits(self) -> bool:
        return self.trouble in WAITING


class Backlog(Protocol):
    """Records that are not wholly indexed, one note each: those that wait, and apart from them those that failed.

    Every operation may raise Throttled or StorageUnavailable.
    """

    def note(self, troubled: Troubled) -> None:
        """Takes the place of the record's note, if it has one."""
        ...

    def settle(self, tenant: str, record: str, version: int) -> None:
        """The record is wholly indexed, or gone, at this version: notes of it or of older ones are removed."""
        ...

    def of(self, tenant: str, record: str) -> Troubled | None: ...

    def turn(self, limit: int) -> list[Troubled]:
        """The next that wait, of one tenant, at most `limit` (and 100); none when nothing waits.

        Each call is another tenant's turn, until all that have something waiting had one; a tenant's turn goes on
        behind its last one, and begins again when all of it was given. What is given stays noted.
        """
        ...

    def waiting(self, tenant: str | None, most: int) -> int:
        """How many records of a tenant (of all: None) wait, counted up to `most` and no further than one query (each) reads."""
        ...


class DeadLetters(Protocol):
    def send(self, key: str, reason: str) -> None:
        """Keep a record's key and why it could not be indexed; never its content."""
        ...
