"""Work off the queue: refresh each fact that somebody wants, and put off what cannot be asked now."""

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.sources.stores import RefreshQueue, Wanted
from factbook.usecases.sources.ports import RefreshPorts
from factbook.usecases.sources.refreshing import Outcome, refresh_fact

THREADS = 10
FIRST_DELAY = 2
"""Seconds for which a message is put off whose host has no place left: doubled each time, half of it drawn."""
MOST_DEFERRED = 8
"""Times, within nine minutes; then the fact waits for its next reader, or for a round of the sweep that begins at the very
beginning. A message that lived on until then would meet another one of its fact.
"""


def work_off(
    ports: RefreshPorts, queue: RefreshQueue, wanted: Sequence[Wanted], deadline: Deadline
) -> list[Outcome | None]:
    """What became of each; None: to be sent again, nothing is known of it."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        return list(pool.map(lambda each: _work_off(ports, queue, each, deadline), wanted))


def _work_off(ports: RefreshPorts, queue: RefreshQueue, wanted: Wanted, deadline: Deadline) -> Outcome | None:
    try:
        deadline.require()
        outcome = refresh_fact(ports, wanted.tenant, wanted.fact_id, wanted.why, deadline).outcome
        goes_on = wanted.deferred < MOST_DEFERRED or wanted.why == "resend"  # whose letter is gone
        if outcome in ("busy", "no-place") and goes_on:
            again = Wanted(wanted.tenant, wanted.fact_id, wanted.why, wanted.deferred + 1)
            queue.send([again], _delay(again.deferred))
    except (StorageUnavailable, Throttled, Contended):
        return None
    except Exception as error:  # noqa: BLE001 - one fact's trouble is not the others'
        ports.unforeseen(wanted.fact_id, error)
        return None
    return outcome


def _delay(deferred: int) -> int:
    longest = FIRST_DELAY << min(deferred, MOST_DEFERRED) - 1
    return longest // 2 + secrets.randbelow(longest // 2 + 1)
