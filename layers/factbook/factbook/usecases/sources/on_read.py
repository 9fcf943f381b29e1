"""Ask the source of a stale fact while its reader waits; one reader asks, the others wait for it.

A reader is answered two seconds after the request came, whatever came before and comes after the wait.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.domain.facts.fact import Fact, StaleReason
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import FactStore, Head
from factbook.ports.sources.stores import Leases, Refresher, RefreshQueue, Wanted
from factbook.usecases.caches import RecentValues
from factbook.usecases.sources.refreshing import LEASE_SECONDS, is_asked_by_reads, lease_of

READ_SECONDS = 2.0
ANSWER_SECONDS = 0.2
"""Of these, for what comes after the wait, beside twice the longest call of the store that the reader has seen: one more
of these, and the answer of a process that is as slow at everything.
"""
LEAST_SECONDS = 0.2
"""With less left nobody is asked: the function might not even hear of it."""
_FIRST_LOOK, _LONGEST_LOOK = 0.05, 0.5
MOST_AT_ONCE = 20
"""Stale facts of one answer that are queued; the next answer queues others."""
QUEUED_SECONDS = 60.0
QUEUED_FACTS = 4096
_FAULTS = (StorageUnavailable, Throttled, Contended)
Found = TypeVar("Found")


def _untold(_: Exception) -> None:
    """Nobody is told."""


def _from_now() -> Deadline:
    return Deadline(READ_SECONDS)


@dataclass(frozen=True)
class OnRead:
    """Freshens the head of a stale fact for its reader (`FactPorts.freshen`)."""

    facts: FactStore
    leases: Leases
    refresher: Refresher
    unanswered: Callable[[Exception], None] = _untold
    """Hears why the function did not begin, when it is nothing that passes."""
    patience: Callable[[], Deadline] = _from_now
    """When the reader at hand is to be answered."""
    pause: Callable[[float], None] = time.sleep

    def __call__(self, head: Head, now: str) -> tuple[Head | None, StaleReason | None]:
        """The head as it is afterwards, and why its fact is still stale, if that is no fault of the source. Never fails for
        the sake of freshness: what cannot be asked is answered as it is.
        """
        if not is_asked_by_reads(head, now):
            return head, None
        owner, tenant, fact_id = secrets.token_hex(8), head.fact.scope.tenant_id, head.fact.id
        wait = _Wait(self.patience())
        if wait.left < LEAST_SECONDS:
            return head, None
        try:
            first = wait.timed(lambda: self.leases.take(lease_of(tenant, fact_id), owner, LEASE_SECONDS))
            return self._ask(head, owner, wait.left) if first else self._look(head, wait)
        except _FAULTS:
            return head, None

    def _ask(self, head: Head, owner: str, seconds: float) -> tuple[Head | None, StaleReason | None]:
        tenant, fact_id = head.fact.scope.tenant_id, head.fact.id
        why: StaleReason | None = None
        try:
            self.refresher.refresh(tenant, fact_id, owner, seconds)
        except StorageUnavailable:  # it goes on, maybe
            why = "busy"
        except Exception as error:  # noqa: BLE001 - the fact is answered as it is, whatever is wrong with the function
            # It did not begin, so nobody else will give this back.
            self.leases.give_back(lease_of(tenant, fact_id), owner)
            if not isinstance(error, Throttled):
                self.unanswered(error)
        return self.facts.head(tenant, fact_id), why

    def _look(self, head: Head, wait: "_Wait") -> tuple[Head | None, StaleReason | None]:
        """Look until the head has been written since, or time is over."""
        look = _FIRST_LOOK
        while look < wait.left:
            found = wait.timed(partial(self._after, look, head), look)
            if found is None or (found.life, found.edition) != (head.life, head.edition):
                return found, None
            look = min(2 * look, _LONGEST_LOOK)
        return head, "busy"

    def _after(self, seconds: float, head: Head) -> Head | None:
        self.pause(seconds)
        return self.facts.head(head.fact.scope.tenant_id, head.fact.id)


class _Wait:
    """What a reader may still wait, which leaves time for what comes after it."""

    def __init__(self, patience: Deadline) -> None:
        self._patience = patience
        self._longest = 0.0

    @property
    def left(self) -> float:
        return max(0.0, self._patience.left - 2 * self._longest - ANSWER_SECONDS)

    def timed(self, call: Callable[[], Found], meant: float = 0.0) -> Found:
        """What the call gives. What it takes beyond what it is meant to, later ones may take as well."""
        before = self._patience.left
        found = call()
        self._longest = max(self._longest, before - self._patience.left - meant)
        return found


@dataclass(frozen=True)
class MetStale:
    """Queues stale facts that a list or a search showed (`FactPorts.met_stale`): each once a minute by one process."""

    queue: RefreshQueue
    unsent: Callable[[Exception], None] = _untold
    _queued: RecentValues[tuple[str, str], float] = field(
        default_factory=lambda: RecentValues(QUEUED_FACTS, lambda queued: queued + QUEUED_SECONDS)
    )

    def __call__(self, facts: Sequence[Fact]) -> None:
        wanted = [
            Wanted(fact.scope.tenant_id, fact.id, "read")
            for fact in facts
            if fact.source is not None
            and fact.source.refresh.strategy == "on-read"
            and self._queued.get((fact.scope.tenant_id, fact.id)) is None
        ][:MOST_AT_ONCE]
        if not wanted:
            return
        try:
            self.queue.send(wanted)
        except Exception as error:  # noqa: BLE001 - the list is answered whatever the queue says
            self.unsent(error)
            return
        for each in wanted:
            self._queued.put((each.tenant, each.fact_id), time.monotonic())
