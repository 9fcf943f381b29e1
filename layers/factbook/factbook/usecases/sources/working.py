"""Work off the queue: refresh each fact that somebody wants, and put off what cannot be asked now.

An invocation ends with its slowest message, and there are few at once. So whoever waits for a slow source takes more from the
queue meanwhile: a dead host takes a thread of an invocation, and not the invocation, from the others.
"""

import secrets
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.sources.stores import RefreshQueue, Taken, Wanted
from factbook.usecases.sources.hosts import unless_it_runs_out
from factbook.usecases.sources.ports import RefreshPorts
from factbook.usecases.sources.refreshing import Outcome, refresh_fact
from factbook.usecases.tally import counted

THREADS = 10
REFRESH_SECONDS = 16.0
"""For one refresh; with less left no more are taken. What comes after fits the reserve of an invocation."""
SLOW_SECONDS = 0.5
"""Nobody waits longer for a message before more are taken."""
FIRST_DELAY = 2
"""Seconds for which a message is put off whose host has no place left: doubled each time, half of it drawn."""
UNTAKEN = "what else is queued"
"""As whose trouble it is told when no more can be taken."""
MOST_DEFERRED = 8
"""Times, within nine minutes; then the fact waits for its next reader, or for a round of the sweep that begins at the very
beginning. A message that lived on until then would meet another one of its fact.
"""


@dataclass(frozen=True)
class Worked:
    """What became of each message that was brought, and of those that were taken besides; None: it is to come again, as nothing
    is known of it.
    """

    brought: list[Outcome | None]
    besides: list[Outcome | None]


def work_off(
    ports: RefreshPorts, queue: RefreshQueue, wanted: Sequence[Wanted], deadline: Deadline
) -> Worked:
    """Refresh them, and what else the queue has for as long as one of them is slow."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        brought = [pool.submit(counted(_work_off), ports, queue, each, deadline) for each in wanted]
        besides: list[Future[Outcome | None]] = []
        # Whatever is wrong with taking more (a role that may not), those at hand are done all the same.
        with unless_it_runs_out(ports, UNTAKEN):
            pending = wait(brought, SLOW_SECONDS).not_done
            while pending and deadline.left >= REFRESH_SECONDS:
                more = [
                    pool.submit(counted(_work_off_taken), ports, queue, each, deadline)
                    for each in _taken(queue, THREADS - len(pending))
                ]
                besides += more
                pending = wait([*pending, *more], SLOW_SECONDS, FIRST_COMPLETED).not_done
    return Worked([each.result() for each in brought], [each.result() for each in besides])


def _taken(queue: RefreshQueue, most: int) -> list[Taken]:
    if most > 0:
        with suppress(StorageUnavailable, Throttled):
            return queue.take(most)
    return []


def _work_off_taken(
    ports: RefreshPorts, queue: RefreshQueue, taken: Taken, deadline: Deadline
) -> Outcome | None:
    outcome = _work_off(ports, queue, taken.wanted, deadline)
    if outcome is not None:
        with unless_it_runs_out(ports, taken.wanted.fact_id):
            queue.remove(taken)
    return outcome


def _work_off(ports: RefreshPorts, queue: RefreshQueue, wanted: Wanted, deadline: Deadline) -> Outcome | None:
    try:
        deadline.require()
        own = deadline.within(REFRESH_SECONDS)
        outcome = refresh_fact(ports, wanted.tenant, wanted.fact_id, wanted.why, own).outcome
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
