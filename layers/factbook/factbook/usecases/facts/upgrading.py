"""Bring facts of the former format into the present one: a job that walks all heads once, or twice.

A head of the former format stands in no index by type, and does not say whom its earlier revisions are about. Each is
rewritten in place; that makes no revision. The walk is repeated until it has found none, since what wrote the former
format may still have been running. The last job of that name says that it is done; it needs no search index.

A head that cannot be brought up whole (it would be too large, or one of its revisions cannot be read) is set aside: it
goes into the indexes and keeps its former format in the rest. It keeps no other from being brought up.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from factbook.domain.errors import Throttled
from factbook.domain.facts.fact import MAX_STORED_BYTES
from factbook.ports.clock import Clock
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import FactStore, Head, subjects_of, united
from factbook.ports.facts.walks import FactWalk
from factbook.ports.flaws import FLAWS, NotStorable
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.usecases import jobs

UPGRADE = "upgrade"
FORMAT = "facts-2"
"""The kind of the job: heads with `subjects`, in the indexes by type."""
PAGE = 100
ATTEMPTS = 8
REVISION_BYTES = 3_500_000
PORTION_VERSIONS = 50
"""Revisions of the heads between two times that the job is kept; one head may have more."""
SetAside = Callable[[str], None]
"""Is told the id of each fact that was set aside."""


class _OutOfTime(Exception):
    """The turn's time ran out while one fact's revisions were read."""


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


def upgrade_facts(
    ports: UpgradePorts, deadline: Deadline, set_aside: SetAside = lambda _: None
) -> Job | None:
    """Start the job unless there is one, and work on it; the job. Raises Throttled, StorageUnavailable: go on later."""
    engine = jobs.JobPorts(ports.jobs, ports.clock)
    job = ports.jobs.job(UPGRADE)
    if job is None or job.kind != FORMAT:
        counters = {"records": 0, "changed": 0, "before": 0, "setAside": 0}
        job = jobs.start(engine, Job(UPGRADE, FORMAT, "facts", "", "", counters=counters))
    return (
        None
        if job is None
        else jobs.work(engine, job, {"facts": partial(_facts, ports, set_aside)}, deadline)
    )


def _facts(ports: UpgradePorts, set_aside: SetAside, job: Job, deadline: Deadline) -> Iterator[Job]:
    """One page, in portions. `before`: how many had been changed when this walk began; `setAside`: in this walk."""
    page = ports.walk.heads(None, job.cursor, PAGE)
    for heads, cursor in jobs.portions(page, _versions_to_read, PORTION_VERSIONS):
        try:
            results = [_result(ports, set_aside, head, deadline) for head in heads if head.subjects is None]
        except _OutOfTime:
            yield job
            return
        job = job.at(
            cursor, records=len(heads), changed=results.count("changed"), setAside=results.count("set aside")
        )
        yield job if cursor else _walked(job)


def _walked(job: Job) -> Job:
    found = job.counters["changed"] - job.counters["before"]
    if not found:
        return job.turned(DONE)
    return job.turned("facts").at(None, before=found, setAside=-job.counters["setAside"])


def _versions_to_read(head: Head) -> int:
    return head.fact.version if head.subjects is None else 0


Result = Literal["changed", "as it was", "set aside"]


def _result(ports: UpgradePorts, set_aside: SetAside, head: Head, deadline: Deadline) -> Result:
    """Raises _OutOfTime for a fact that a later turn has time enough for."""
    began = deadline.left
    try:
        return _brought_up(ports, head, deadline)
    except _OutOfTime:
        # One that had most of a turn to itself would not be read in the next either.
        if 2 * began < deadline.seconds:
            raise
    except FLAWS:
        pass
    with suppress(*FLAWS, Contended):
        ports.facts.amend(head, replace(head, edition=head.edition + 1))
    set_aside(head.fact.id)
    return "set aside"


def _brought_up(ports: UpgradePorts, head: Head, deadline: Deadline) -> Result:
    """One that changes meanwhile is looked at again; one that goes needs nothing."""
    for _ in range(ATTEMPTS):
        after = replace(head, edition=head.edition + 1, subjects=_all_subjects(ports, head, deadline))
        if after.stored_bytes > MAX_STORED_BYTES:
            raise NotStorable
        try:
            there = ports.facts.amend(head, after)
        except Contended:
            there = ports.facts.head(head.fact.scope.tenant_id, head.fact.id)
        if there is None:
            return "changed"
        if there.subjects is not None:
            return "as it was"
        head = there
    raise Throttled


def _all_subjects(ports: UpgradePorts, head: Head, deadline: Deadline) -> tuple[str, ...]:
    """Those of the head and of every revision before it."""
    subjects, below, more = subjects_of(head.fact), head.fact.version, True
    while more:
        closed, more = ports.facts.revisions(head, below, REVISION_BYTES)
        subjects = united(subjects, *map(subjects_of, closed))
        below = closed[-1].version if closed else 0
        if more and deadline.passed:
            raise _OutOfTime
    return subjects
