"""Commit a change of a fact together with its entry of the log, wherever in its run that comes to stand."""

from collections.abc import Callable, Sequence

from factbook.ports.facts.joint import Change, OwnEntry
from factbook.ports.facts.store import Head
from factbook.ports.log.entries import StoredEntry
from factbook.ports.operations import Operation
from factbook.ports.provenance.joint import JointStore
from factbook.usecases.log.appending import LogWriter, Request, append_own
from factbook.usecases.log.entries import log_id_of


class _HeadMoved(Exception):
    """The fact is not what the change was decided on any more."""

    def __init__(self, there: Head) -> None:
        super().__init__()
        self.there = there


class LoggedChanges:
    """The port `CommitWithEntry`, on a log and a store of both."""

    def __init__(self, log: LogWriter, store: JointStore) -> None:
        self._log = log
        self._store = store

    def commit(
        self, tenant: str, entry: OwnEntry, operation: Operation, change: Callable[[str], Change]
    ) -> Head | None:
        """As the port says: the run's contention is the append's to sort out, the fact's its caller's."""

        def put(entries: Sequence[StoredEntry]) -> StoredEntry | None:
            (stored,) = entries
            there = self._store.put(stored, change(str(log_id_of(stored))))
            if isinstance(there, Head):
                raise _HeadMoved(there)
            return there

        request = Request(entry.kind, entry.payload, entry.actor, scope=entry.scope)
        try:
            append_own(self._log, tenant, entry.run_id, request, operation.key, put, operation.deadline)
        except _HeadMoved as moved:
            return moved.there
        return None
