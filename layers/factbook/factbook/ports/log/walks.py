"""Reads of the log beyond one run: several entries at once, and every entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from factbook.ports.log.entries import StoredEntry


@dataclass(frozen=True)
class EntryPage:
    """Entries of every run; `next` resumes the walk, None at its end."""

    entries: Sequence[StoredEntry]
    next: str | None


class EntrySource(Protocol):
    def several(self, tenant: str, places: Sequence[tuple[str, int]]) -> list[StoredEntry]:
        """Entries by run and sequence, at most 100, strongly consistent; those that are not there are left out."""
        ...

    def walk(self, after: str | None, limit: int) -> EntryPage:
        """Every entry once, by cursor."""
        ...
