"""The tables of facts and of the log, written in one transaction."""

from typing import Protocol

from factbook.ports.facts.joint import Change
from factbook.ports.facts.store import Head
from factbook.ports.log.entries import StoredEntry


class JointStore(Protocol):
    def put(self, entry: StoredEntry, change: Change) -> Head | StoredEntry | None:
        """The entry and the change, or neither: the head that is there instead of `change.before`, else the entry that has
        the place, None when both were put. Raises Contended.
        """
        ...
