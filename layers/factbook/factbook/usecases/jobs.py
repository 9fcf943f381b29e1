"""Work too long for one invocation, done in bounded pieces that are kept one after another.

A job goes through phases. A phase is a function that does one bounded piece of work after another and yields the job as
it is after each; the engine keeps it before the next piece begins. So whatever ends an invocation (its time, an error,
a kill), the next one goes on behind the last piece that was kept, and repeats at most one: every piece must be safe to
repeat. Two runners of one job notice each other when they keep it: the slower one stops. Nothing here knows what a job
is about.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from factbook.ports.clock import Clock
from factbook.ports.deadline import Deadline
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.ports.walks import WalkPage

Record = TypeVar("Record")

Phase = Callable[[Job, Deadline], Iterator[Job]]
"""Yields the job after each bounded piece of work, at least once."""


@dataclass(frozen=True)
class JobPorts:
    store: JobStore
    clock: Clock


def start(ports: JobPorts, job: Job) -> Job | None:
    """Start a job in the place of the last one of its name. None when another runner has started one meanwhile."""
    before = ports.store.job(job.name, job.tenant)
    now = ports.clock.now()
    job = replace(job, step=0 if before is None else before.step + 1, started_at=now, updated_at=now)
    return job if ports.store.keep(job) else None


def work(ports: JobPorts, job: Job, phases: Mapping[str, Phase], deadline: Deadline) -> Job:
    """Go on with a job until it is done or the deadline has passed; the job as it is then.

    Raises what a phase raises: the job is kept as it was after the piece before.
    """
    while job.phase != DONE and not deadline.passed:
        for after in phases[job.phase](job, deadline):
            following = replace(after, step=job.step + 1, updated_at=ports.clock.now())
            if not ports.store.keep(following):
                return ports.store.job(job.name, job.tenant) or job
            job = following
            if deadline.passed:
                break
    return job


def portions(
    page: WalkPage[Record], weigh: Callable[[Record], int], most: int
) -> Iterator[tuple[list[Record], str | None]]:
    """A page of a walk in pieces that together weigh at most `most`, or are one record; each with the cursor behind it.

    The last cursor is the page's own. A page without records is one empty piece.
    """
    groups = list(fitting(page.stops, lambda stop: weigh(stop.record), most)) or [[]]
    for place, stops in enumerate(groups):
        last = place == len(groups) - 1
        yield [stop.record for stop in stops], page.next if last else stops[-1].cursor


def fitting(records: Iterable[Record], weigh: Callable[[Record], int], most: int) -> Iterator[list[Record]]:
    """Records in groups that weigh at most `most` together; what is heavier alone is a group of its own."""
    group: list[Record] = []
    weight = 0
    for record in records:
        own = weigh(record)
        if group and weight + own > most:
            yield group
            group, weight = [], 0
        group.append(record)
        weight += own
    if group:
        yield group
