"""Queue the facts that are due: the most urgent first, then those that have been due for longest.

A round ends when nothing is left that is due. It is a job, and its cursor says of each priority how far it is: after each
page it is kept, so whatever ends an invocation, the next one goes on there. At most one page is queued twice, and who takes
a message looks first whether its fact is still due. Each invocation begins at priority 9, with what has become due since.
Where there is more than the queue takes, each priority leaves some room to each one below it: what is urgent comes first,
and nothing waits for ever. The next round begins at what was due when the last one began, less what the index may not have
shown yet; now and then one begins at the very beginning, for what a lost message left behind.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from factbook.domain import times
from factbook.domain.facts.freshness import MOST_PRIORITY
from factbook.domain.sources.turns import taking_turns
from factbook.ports.clock import Clock
from factbook.ports.deadline import Deadline
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.ports.sources.stores import Due, DueIndex, RefreshQueue, Wanted
from factbook.usecases import jobs
from factbook.usecases.merging import at_once

SWEEP = "sweep"
"""The name of the job: there is one, of all tenants."""
SHARD_ROWS = 50
"""Rows of each shard that one page reads at most."""
MOST_WAITING = 10_000
"""Messages to be worked on beyond which a sweep adds none: what is urgent must not wait behind what is not."""
RESERVED_PART = 20
"""Of the room, so much less is left to each priority below another: all the others together leave more than half to the first."""
OVERLAP_SECONDS = 60
WHOLE_MINUTES = 15
TENANT_ROWS = 5_000
"""Rows that a sweep of one tenant goes over, whosever they are."""


@dataclass(frozen=True)
class SweepPorts:
    due: DueIndex
    queue: RefreshQueue
    jobs: JobStore
    clock: Clock


@dataclass(frozen=True)
class Swept:
    """`queued` facts since `started_at`; `more`: there may be others that are due."""

    started_at: str
    queued: int
    more: bool


class _Full(Exception):
    """The queue has enough for now."""


def sweep(ports: SweepPorts, deadline: Deadline) -> Job | None:
    """Go on with the round there is, or begin one; the job, None when another runner was faster.

    Raises Throttled, StorageUnavailable: the job is kept as it was after its last page.
    """
    room = MOST_WAITING - ports.queue.waiting()
    job = ports.jobs.job(SWEEP)
    if room <= 0:
        return job
    engine = jobs.JobPorts(ports.jobs, ports.clock)
    if job is None or job.phase == DONE:
        job = jobs.start(engine, _next_round(ports.clock.now(), job))
    if job is None:
        return None
    try:
        return jobs.work(engine, job, {"due": partial(_pages, ports, room)}, deadline)
    except _Full:
        return ports.jobs.job(SWEEP)


def sweep_tenant(ports: SweepPorts, tenant: str, deadline: Deadline) -> Swept:
    """Queue what is due of one tenant now, apart from the round that is under way."""
    now = ports.clock.now()
    room = MOST_WAITING - ports.queue.waiting()
    queued = rows = 0
    for priority in range(MOST_PRIORITY, -1, -1):
        after: str | None = ""
        while after is not None:
            if deadline.passed or rows >= TENANT_ROWS or queued >= room:
                return Swept(now, queued, more=True)
            found, after = _page(ports.due, priority, after, now)
            own = [each for each in found if each.tenant == tenant]
            _send(ports.queue, own)
            rows += len(found)
            queued += len(own)
    return Swept(now, queued, more=False)


def _next_round(now: str, last: Job | None) -> Job:
    """`since`: what was due before is queued already; "" for everything. `whole`: when everything was looked at last."""
    since, whole = "", now
    if last is not None and last.about["whole"] > times.add(now, minutes=-WHOLE_MINUTES):
        since, whole = times.add(last.started_at, seconds=-OVERLAP_SECONDS), last.about["whole"]
    return Job(SWEEP, "round", "due", "", "", counters={"queued": 0}, about={"since": since, "whole": whole})


def _pages(ports: SweepPorts, room: int, job: Job, _: Deadline) -> Iterator[Job]:
    """Page by page, each priority behind the last fact that the cursor names. What holds nothing is passed without a word."""
    until, ends = ports.clock.now(), _ends(job)
    left = list(range(MOST_PRIORITY, -1, -1))
    while left:
        reserve = room // RESERVED_PART
        for priority in tuple(left):
            share, more = room - priority * reserve, True
            while more and share > 0:
                found, following = _page(ports.due, priority, ends[priority], until)
                _send(ports.queue, found)
                room, share, more = room - len(found), share - len(found), following is not None
                if found:
                    ends[priority] = following or max(row.order for row in found)
                    job = job.at(json.dumps(ends), queued=len(found))
                    yield job
            if not more:
                left.remove(priority)
        if left and room <= 0:
            raise _Full
    yield job.turned(DONE)


def _ends(job: Job) -> list[str]:
    """How far each priority is, by its number. A cursor of a former form says nothing."""
    read: list[str] = json.loads(job.cursor) if job.cursor else []
    return read if len(read) == MOST_PRIORITY + 1 else [job.about["since"]] * (MOST_PRIORITY + 1)


def _page(index: DueIndex, priority: int, after: str, until: str) -> tuple[list[Due], str | None]:
    """The next facts of a priority, longest due first, and the order of the last; None when none is left behind them."""
    pages = [
        *at_once(lambda shard: index.due(priority, shard, after, until, SHARD_ROWS), range(index.shards))
    ]
    # What is read beyond the nearest end of a shard that has more waits: that shard may have something before it.
    line = min((rows[-1].order for rows, more in pages if more and rows), default=None)
    found = sorted((row for rows, _ in pages for row in rows), key=lambda row: row.order)
    if line is None:
        return found, None
    return [row for row in found if row.order <= line], line


def _send(queue: RefreshQueue, due: list[Due]) -> None:
    if due:
        queue.send(
            [Wanted(row.tenant, row.fact_id, "due") for row in taking_turns(due, lambda row: row.tenant)]
        )
