"""Reads of the log beyond one run: several entries at once, every entry, every run, and entries as the stream tells them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from factbook.ports.log.entries import StoredEntry
from factbook.ports.walks import WalkPage


class EntrySource(Protocol):
    def several(self, tenant: str, places: Sequence[tuple[str, int]]) -> list[StoredEntry]:
        """Entries by run and sequence, at most 100, strongly consistent; those that are not there are left out."""
        ...

    def walk(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[StoredEntry]:
        """Every entry of one tenant's runs (of all: None) once, at most `limit` a page; unreadable ones are left out.

        The log has no index by tenant: a walk of one tenant reads the whole table and leaves out the others, so its
        pages may be empty, and it costs what a walk of all does.
        """
        ...


@dataclass(frozen=True)
class RunName:
    tenant: str
    run_id: str


class RunWalk(Protocol):
    def walk(self, after: str | None, limit: int) -> WalkPage[RunName]:
        """Every run of every tenant once, at most `limit` a page, each page of other tenants than the last ones as far as
        that can be: one with many runs does not keep the others waiting.

        Eventually consistent. Runs that were begun before there was an index of them, and rows that cannot be read, are
        left out. May raise Throttled or StorageUnavailable.
        """
        ...


@dataclass(frozen=True)
class EntryRecord:
    """One appended entry as the stream tells it; `problem`: why it cannot be read."""

    position: str
    """Names the record among those of one delivery."""
    key: str
    """The item's key, which names the record where its content must not be shown."""
    entry: StoredEntry | None
    problem: str | None = None
