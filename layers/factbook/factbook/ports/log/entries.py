"""Entries of runs as the log's store keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from factbook.domain.scope import Scope


@dataclass(frozen=True)
class StoredEntry:
    """An entry as the table has it: `text` is the canonical text, the only authority.

    `thread`, `container` (its listing container) and `timestamp` index a message, `opens` (its scope) and `timestamp` the first entry of a run.
    """

    tenant: str
    run_id: str
    sequence: int
    text: str
    entry_hash: str
    format: str
    cause: str | None = None
    thread: str | None = None
    timestamp: str | None = None
    opens: Scope | None = None
    container: str | None = None


@dataclass(frozen=True)
class ThreadPage:
    """Some messages with their positions, maybe none, and the position to go on from; None at the thread's end."""

    found: list[tuple[str, StoredEntry]]
    following: str | None


@dataclass(frozen=True)
class RunRow:
    """One row of an index of runs: a run by when it began; `order` is its start and its id."""

    order: str
    scope: Scope

    @property
    def started_at(self) -> str:
        return self.order.partition("|")[0]

    @property
    def run_id(self) -> str:
        return self.order.partition("|")[2]


class LogStore(Protocol):
    """Entries are put once and never changed. Reads are strongly consistent but for `thread` and `runs`."""

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        """All of one run's consecutive entries or none; the entry that has the place of one of them. Raises Contended."""
        ...

    def stored_bytes(self, entry: StoredEntry) -> int:
        """What the entry takes of what one `put` may hold."""
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
        self,
        tenant: str,
        thread: str,
        containers: Sequence[str] | None,
        position: str,
        rows: int | None,
        *,
        newest_first: bool,
    ) -> ThreadPage:
        """Messages of these listing containers (at most 100; None: of all) in a thread, beyond `position` ("" to start).

        One read that looks at `rows` messages of the thread, whosever they are; None: at as many as a read holds (1 MB).
        Messages that were put before entries kept their container are found in every one.
        """
        ...

    def runs(
        self, tenant: str, container: str | None, shard: int, before: str, limit: int
    ) -> tuple[list[RunRow], bool]:
        """Runs of one listing container (of all: None) and shard with order < `before`, newest first; whether more may
        follow. Runs that were begun before there was such an index are not in it.
        """
        ...

    def run_shards(self, container: str | None) -> int: ...
