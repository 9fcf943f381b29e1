"""Find what facts left behind whose end nobody heard of: a job that walks the whole table and the whole bucket.

The stream's follower removes the revisions and payloads of what ended, and tries again for two days. A record that it could
not be given within the stream's own day is lost, and with it the only word of what is left. So this walk looks for
revisions without a head of their life, which it removes, and for payloads that no fact names: these it makes pending
again, and the bucket removes them. It runs once a month, and a day after something was given up at the earliest.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from factbook.domain import times
from factbook.ports.clock import Clock
from factbook.ports.deadline import Deadline
from factbook.ports.facts.blobs import BlobStore
from factbook.ports.facts.walks import Life, Orphans, Remains
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.usecases import jobs

ORPHANS = "orphans"
EVERY_DAYS, NOT_BEFORE_DAYS = 30, 1
"""After the beginning of the last walk: the next one, and the next one that somebody asked for."""
YOUNG_DAYS = 3
"""A payload may be that old before a write names it, or while it is pending."""
RECORDS, PAYLOADS, PORTION = 500, 50, 10
PAUSE_SECONDS = 0.1
"""After each page of the walk, which reads one part of the table after another: others want to read there, too."""


@dataclass(frozen=True)
class OrphanPorts:
    orphans: Orphans
    remains: Remains
    blobs: BlobStore
    jobs: JobStore
    clock: Clock
    sleep: Callable[[float], None] = field(default=time.sleep)


def sweep_orphans(ports: OrphanPorts, deadline: Deadline) -> Job | None:
    """Start a walk if it is time for one, and work on it; the last job there is. Raises Throttled, StorageUnavailable: go on later."""
    engine = jobs.JobPorts(ports.jobs, ports.clock)
    job = ports.jobs.job(ORPHANS)
    if _is_due(ports, job):
        job = jobs.start(
            engine, Job(ORPHANS, "walk", "revisions", "", "", counters=dict.fromkeys(_COUNTED, 0))
        )
    if job is None or job.phase == DONE:
        return job
    return jobs.work(engine, job, {name: partial(phase, ports) for name, phase in _PHASES.items()}, deadline)


def _is_due(ports: OrphanPorts, last: Job | None) -> bool:
    if last is None:
        return True
    now = ports.clock.now()
    if last.phase != DONE or now < times.add(last.started_at, days=NOT_BEFORE_DAYS):
        return False
    asked = ports.jobs.asked(ORPHANS)
    return (asked is not None and asked >= last.started_at) or now >= times.add(
        last.started_at, days=EVERY_DAYS
    )


def _revisions(ports: OrphanPorts, job: Job, deadline: Deadline) -> Iterator[Job]:
    page = ports.orphans.lives(job.cursor, RECORDS)
    for lives, cursor in jobs.portions(page, lambda _: 1, PORTION):
        done = [_done(partial(ports.remains.remove_life, life, deadline)) for life in _each_once(lives)]
        if deadline.passed and not all(done):
            yield job  # what there was no time for is no failure: this portion comes again
            return
        job = job.at(cursor, lives=len(done), failed=done.count(False))
        yield job if cursor else job.turned("payloads")
    ports.sleep(PAUSE_SECONDS)


def _payloads(ports: OrphanPorts, job: Job, _: Deadline) -> Iterator[Job]:
    before = times.add(job.started_at, days=-YOUNG_DAYS)
    page = ports.orphans.payloads(before, job.cursor, PAYLOADS)
    for refs, cursor in jobs.portions(page, lambda _: 1, PORTION):
        done = [_done(partial(_let_go, ports, ref)) for ref in refs]
        job = job.at(cursor, payloads=len(done), failed=done.count(False))
        if cursor is None and job.counters["failed"]:
            ports.jobs.ask(ORPHANS, ports.clock.now())
        yield job if cursor else job.turned(DONE)
    ports.sleep(PAUSE_SECONDS)


def _let_go(ports: OrphanPorts, ref: str) -> None:
    """A write may have named the payload since it was found to be nobody's: it claims what it names, and so does this."""
    ports.blobs.unclaim(ref)
    if ports.orphans.named(ref):
        ports.blobs.claim(ref)


def _each_once(lives: list[Life]) -> list[Life]:
    return list(dict.fromkeys(lives))


def _done(step: Callable[[], None]) -> bool:
    """One record's trouble holds up no other: it is counted, and another walk is asked for."""
    try:
        step()
    except Exception:  # noqa: BLE001 - whatever one fact's store says, the others' turn comes
        return False
    return True


_COUNTED = ("lives", "payloads", "failed")
_PHASES: dict[str, Callable[[OrphanPorts, Job, Deadline], Iterator[Job]]] = {
    "revisions": _revisions,
    "payloads": _payloads,
}
