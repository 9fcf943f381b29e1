"""A change of a fact and an entry of the log, written together or not at all.

The log is another column's, so what a change needs of it is a port of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from factbook.domain.facts.fact import Fact
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation


@dataclass(frozen=True)
class OwnEntry:
    """An entry of one of the service's own runs, all of whose entries have one scope.

    `actor`: who did what it records. `is_cause`: the revision it goes with names it in `causedByLogId`.
    """

    run_id: str
    scope: Scope
    kind: Literal["event-emitted", "tool-result"]
    payload: Any
    actor: str
    is_cause: bool = False


@dataclass(frozen=True)
class Change:
    """A head that takes the place of another, and the revision that is kept then; None for a change in place."""

    before: Head
    after: Head
    closed: Fact | None = None


CommitWithEntry = Callable[[str, OwnEntry, Operation, Callable[[str], Change]], Head | None]
"""Of a tenant, puts an entry behind its run's last one, and with it what the last argument makes of the entry's id: both or
neither.

None when done, also by an earlier try of this operation; the present head when the change's `before` is not it any more. A
run that others write is contended for as an append does. Raises Throttled (others were always faster), and
StorageUnavailable, also past the operation's deadline.
"""
