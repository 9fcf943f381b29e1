"""Find runs whose mark was lost: a job that walks all runs for those that have grown past their last leaf.

The log's stream marks a run when it grows. A record that the stream gave up, after 23 hours, leaves its run out of every
checkpoint until somebody appends to it again. So each run is looked at once a week, and marked if its last leaf is not of
its last entry; the next pass of checkpoints does the rest. A mark too many is no harm: the pass clears it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from factbook.domain import times
from factbook.ports.clock import Clock
from factbook.ports.deadline import Deadline
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.ports.log.checkpoints import DirtyRun, TreeStore
from factbook.ports.log.entries import LogStore
from factbook.ports.log.walks import RunName, RunWalk
from factbook.usecases import jobs

MARKS = "marks"
EVERY_DAYS = 7
RUNS = 100
"""Between two times that the job is kept."""


@dataclass(frozen=True)
class MarkPorts:
    """`each` maps over the runs of a page, several at once where that is safe."""

    runs: RunWalk
    log: LogStore
    tree: TreeStore
    jobs: JobStore
    clock: Clock
    each: Callable[..., Iterable[Any]] = map


def sweep_marks(ports: MarkPorts, deadline: Deadline) -> Job | None:
    """Start a walk if it is time for one, and work on it; the last job there is. Raises Throttled, StorageUnavailable: go on later."""
    engine = jobs.JobPorts(ports.jobs, ports.clock)
    job = ports.jobs.job(MARKS)
    if job is None or (job.phase == DONE and ports.clock.now() >= times.add(job.started_at, days=EVERY_DAYS)):
        job = jobs.start(engine, Job(MARKS, "walk", "runs", "", "", counters={"runs": 0, "marked": 0}))
    if job is None or job.phase == DONE:
        return job
    return jobs.work(engine, job, {"runs": partial(_runs, ports)}, deadline)


def _runs(ports: MarkPorts, job: Job, _: Deadline) -> Iterator[Job]:
    page = ports.runs.walk(job.cursor, RUNS)
    grown = [run for run in ports.each(partial(_grown, ports), page.records) if run is not None]
    for run in grown:
        ports.tree.mark_dirty(run)
    job = job.at(page.next, runs=len(page.stops), marked=len(grown))
    yield job if page.next else job.turned(DONE)


def _grown(ports: MarkPorts, run: RunName) -> DirtyRun | None:
    """The mark of a run that has an entry behind the one of its last leaf; most runs have none, which is a read of nothing."""
    leaf = ports.tree.last_leaf(run.tenant, run.run_id)
    behind = 0 if leaf is None else leaf.sequence + 1
    if ports.log.entry(run.tenant, run.run_id, behind) is None:
        return None
    newest = ports.log.newest(run.tenant, run.run_id, 1)
    return DirtyRun(run.tenant, run.run_id, newest[0].sequence) if newest else None
