"""Bring facts of the former format into the present one: a job that walks all heads once, or twice.

A head of the former format stands in no index by type, and does not say whom its earlier revisions are about. Each is
rewritten in place; that makes no revision. The walk is repeated until it has found none, since what wrote the former
format may still have been running. The last job of that name says that it is done; it needs no search index.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from factbook.domain.errors import Throttled
from factbook.ports.clock import Clock
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import FactStore, Head, subjects_of, united
from factbook.ports.facts.walks import FactWalk
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.usecases import jobs

UPGRADE = "upgrade"
FORMAT = "facts-2"
"""The kind of the job: heads with `subjects`, in the indexes by type."""
PAGE = 100
ATTEMPTS = 8
REVISION_BYTES = 3_500_000


@dataclass(frozen=True)
class UpgradePorts:
    facts: FactStore
    walk: FactWalk
    jobs: JobStore
    clock: Clock


def is_upgraded(store: JobStore) -> bool:
    """Whether no fact of the former format is left. False, too, where nobody has looked yet."""
    job = store.job(UPGRADE)
    return job is not None and (job.kind, job.phase) == (FORMAT, DONE)


def upgrade_facts(ports: UpgradePorts, deadline: Deadline) -> Job | None:
    """Start the job unless there is one, and work on it; the job. Raises Throttled, StorageUnavailable: go on later."""
    engine = jobs.JobPorts(ports.jobs, ports.clock)
    job = ports.jobs.job(UPGRADE)
    if job is None or job.kind != FORMAT:
        counters = {"records": 0, "changed": 0, "before": 0}
        job = jobs.start(engine, Job(UPGRADE, FORMAT, "facts", "", "", counters=counters))
    return None if job is None else jobs.work(engine, job, {"facts": partial(_facts, ports)}, deadline)


def _facts(ports: UpgradePorts, job: Job, _: Deadline) -> Iterator[Job]:
    """One page. `before`: how many had been changed when this walk began."""
    page = ports.walk.heads(None, job.cursor, PAGE)
    changed = sum(_brought_up(ports, head) for head in page.records if head.subjects is None)
    job = job.at(page.next, records=len(page.records), changed=changed)
    if page.next is not None:
        yield job
        return
    found = job.counters["changed"] - job.counters["before"]
    yield job.turned("facts" if found else DONE).at(None, before=found)


def _brought_up(ports: UpgradePorts, head: Head) -> bool:
    """Whether the head was written anew. One that changes meanwhile is looked at again; one that goes needs nothing."""
    for _ in range(ATTEMPTS):
        after = replace(head, edition=head.edition + 1, subjects=_all_subjects(ports, head))
        try:
            there = ports.facts.amend(head, after)
        except Contended:
            there = ports.facts.head(head.fact.scope.tenant_id, head.fact.id)
        if there is None:
            return True
        if there.subjects is not None:
            return False
        head = there
    raise Throttled


def _all_subjects(ports: UpgradePorts, head: Head) -> tuple[str, ...]:
    """Those of the head and of every revision before it."""
    subjects, below, more = subjects_of(head.fact), head.fact.version, True
    while more:
        closed, more = ports.facts.revisions(head, below, REVISION_BYTES)
        subjects = united(subjects, *map(subjects_of, closed))
        below = closed[-1].version if closed else 0
    return subjects
