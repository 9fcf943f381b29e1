"""Entries of runs as the log's store keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class StoredEntry:
    """An entry as the table has it: `text` is the canonical text, the only authority; `thread` and `timestamp` index it."""

    tenant: str
    run_id: str
    sequence: int
    text: str
    entry_hash: str
    format: str
    cause: str | None = None
    thread: str | None = None
    timestamp: str | None = None


class LogStore(Protocol):
    """Entries are put once and never changed. Reads are strongly consistent but for `thread`."""

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        """All of one run's consecutive entries or none; the entry that has the place of one of them. Raises Contended."""
        ...

    def entry(self, tenant: str, run_id: str, sequence: int) -> StoredEntry | None: ...

    def newest(self, tenant: str, run_id: str, count: int) -> list[StoredEntry]:
        """The run's last entries, newest first: at most `count`, and of those what one read holds (1 MB), the last always."""
        ...

    def entries(
        self, tenant: str, run_id: str, since: int, limit: int, budget: int = ...
    ) -> tuple[list[StoredEntry], bool]:
        """Entries with sequence ≥ `since`, in order, about `budget` bytes of their texts; whether more may follow."""
        ...

    def thread(
        self, tenant: str, thread: str, position: str, limit: int, *, newest_first: bool
    ) -> tuple[list[tuple[str, StoredEntry]], bool]:
        """Messages of a thread with their positions, beyond `position` ("" to start); whether more may follow."""
        ...
