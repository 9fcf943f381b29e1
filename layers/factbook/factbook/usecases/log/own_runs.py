"""Entries that the service itself makes, in runs that no caller appends to."""

from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import IdempotencyMismatch
from factbook.domain.log.chain import derived_seed
from factbook.domain.log.entries import LogEntry
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log.appending import LOOKED_BACK, LogWriter, Request, append_as
from factbook.usecases.log.entries import log_id_of, open_entry, tail_of

SKEW_HOURS = 1.0
"""How far the clocks of two processes may differ, generously: an entry bears the time of the process that made it."""


def append_once(
    log: LogWriter,
    tenant: str,
    run_id: str,
    request: Request,
    operation: str,
    since: str,
    deadline: Deadline = NEVER,
) -> LogEntry:
    """Chain the entry of an operation that began at the instant `since`, and that may be tried again by anybody at any time.

    There is one such entry, whatever the tries say: a later one finds the first as it was written. Raises LogChanged,
    Throttled, StorageUnavailable.
    """
    there = find_entry(log, tenant, run_id, operation, since, deadline)
    if there is None:
        service = Principal(tenant, Actor(kind="service", id="factbook"), admin=True)
        try:
            (made,) = append_as(log, service, run_id, [request], operation=operation, deadline=deadline)
        except IdempotencyMismatch:  # another try was faster, and says something else
            there = find_entry(log, tenant, run_id, operation, since, deadline)
            if there is None:
                raise
        else:
            return made
    return open_entry(log.vault, there)


def find_entry(
    log: LogWriter, tenant: str, run_id: str, operation: str, since: str, deadline: Deadline = NEVER
) -> StoredEntry | None:
    """The entry that an operation made; looked for among those of the run that are not older than it."""
    seed = derived_seed(operation, 0)
    oldest_of_interest = times.add(since, hours=-SKEW_HOURS).removesuffix("Z")
    found = list(reversed(log.store.newest(tenant, run_id, LOOKED_BACK)))
    while found:
        deadline.require()
        met = next((entry for entry in found if log_id_of(entry).seed == seed), None)
        first = found[0]
        if met is not None or first.sequence == 0 or tail_of(first).timestamp < oldest_of_interest:
            return met
        start = max(0, first.sequence - LOOKED_BACK)
        found, _ = log.store.entries(tenant, run_id, start, first.sequence - start)
    return None
