"""Work on an erasure: a job of the job engine, in pieces that are kept one after another.

    seed     held facts, by their index: one that is reached ends the erasure, and nothing has happened
    settle   until every write begun before has ended, and every data key cached before is forgotten; held facts again
    erase    facts    a walk over the tenant's heads: what is reached becomes a tombstone, what it caused goes to review
             keys     the data keys of whom it is about
             uploads  objects that no fact came to name
             tally    what became of the facts, counted; their records leave the index
             runs     so do the messages of their runs
             end      the index drops what it still holds of them; the statement; the record

Nothing goes before the index of held facts has had a minute to show what is held, and nothing that is held goes: each head is
read before it does. What must go never waits for the search index, which comes last. What is counted is what stands there
afterwards, so a piece that is repeated counts the same. A head of the tenant is read once by the walk, and once more if it
is erased or goes to review.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from factbook.domain import times
from factbook.domain.errors import FactbookError, StorageUnavailable
from factbook.ports.deadline import Deadline
from factbook.ports.erasure.records import COUNTED, Erasure, Phase, Status
from factbook.ports.jobs import DONE, Job
from factbook.usecases import jobs
from factbook.usecases.erasure.facts import MeanwhileHeld
from factbook.usecases.erasure.ports import SKEW_SECONDS, TRUST_SECONDS, ErasurePorts
from factbook.usecases.erasure.reaching import held_facts
from factbook.usecases.erasure.silencing import destroy_keys, forget_messages
from factbook.usecases.erasure.sweeping import erase_facts, remove_uploads, tally
from factbook.usecases.erasure.turns import Turn, Waiting

KIND = "erasure-1"
TURN_SECONDS = 90.0
"""For so long nobody else works on an erasure that somebody took: longer than an invocation of the worker lasts."""
RETRY_SECONDS = 30.0
LEGAL_HOLD = "legal-hold"
UNREADABLE = (
    "unreadable: {} facts of the tenant cannot be read, so nobody can tell whether they are about whom this erases, and they "
    "stay as they are. Mend or remove them, then ask for the erasure again."
)
"""A warning, of the record and of the statement."""

_FORMER = "expand"
"""A phase of jobs that a former release began: it walked once more to look for held facts."""

_SEEN: dict[str, Phase] = {"seed": "seed", _FORMER: "expand", "settle": "settle", DONE: "done"}
"""What callers see of the job's phases; all others are `erase`."""

Untold = Callable[[Exception], None]
"""Hears of what nobody foresaw."""


def work_on_erasure(
    ports: ErasurePorts, tenant: str, erasure_id: str, deadline: Deadline, unforeseen: Untold = lambda _: None
) -> Erasure | None:
    """Take an erasure that is to be worked on now, and go on with it until the deadline; as it is then.

    None when there is nothing to do. Whatever stops it is kept as its `last_error`, and it goes on later. Raises Throttled,
    StorageUnavailable when not even that can be kept.
    """
    now = ports.clock.now()
    by, until = times.add(now, seconds=SKEW_SECONDS), times.add(now, seconds=TURN_SECONDS)
    if not ports.records.take(tenant, erasure_id, by, until):
        return None
    erasure = ports.records.erasure(tenant, erasure_id)
    if erasure is None or erasure.ended:
        return erasure
    job = _job_of(ports, erasure)
    begun = replace(
        erasure,
        status="running",
        attempts=erasure.attempts + 1,
        started_at=erasure.started_at or now,
    )
    if job is None or not ports.records.replace(begun):
        return None  # another runner is at it
    return _worked_on(ports, replace(begun, edition=begun.edition + 1), job, deadline, unforeseen)


def _job_of(ports: ErasurePorts, erasure: Erasure) -> Job | None:
    """A new job for an erasure that begins, or begins again; None when another runner has begun it meanwhile."""
    name = f"erasure-{erasure.id}"
    job = ports.jobs.job(name, erasure.tenant)
    if job is None or erasure.status == "pending":
        engine = jobs.JobPorts(ports.jobs, ports.clock)
        return jobs.start(engine, Job(name, KIND, "seed", "", "", erasure.tenant))
    return job


def _worked_on(
    ports: ErasurePorts, erasure: Erasure, job: Job, deadline: Deadline, unforeseen: Untold
) -> Erasure:
    wait, error = 0.0, None
    turn = Turn(ports, erasure)
    phases = {name: partial(phase, turn) for name, phase in _PHASES.items()}
    try:
        jobs.work(jobs.JobPorts(ports.jobs, ports.clock), job, phases, deadline)
    except Waiting as waiting:
        wait = waiting.seconds
    except MeanwhileHeld:
        error = LEGAL_HOLD
    except FactbookError as failure:
        wait, error = RETRY_SECONDS, failure.code
    except Exception as failure:  # noqa: BLE001 - it stays running, and says why nothing comes of it
        unforeseen(failure)
        wait, error = RETRY_SECONDS, "internal-error"
    return _kept(ports, erasure, wait, error)


def _kept(ports: ErasurePorts, erasure: Erasure, wait: float, error: str | None) -> Erasure:
    """The record as far as the job has come; it goes on after a wait, unless it has ended."""
    there = ports.records.erasure(erasure.tenant, erasure.id)
    job = ports.jobs.job(f"erasure-{erasure.id}", erasure.tenant)
    if there is None or there.ended or there.status == "pending" or job is None:
        return there or erasure  # pending: somebody had it begin again meanwhile
    status: Status = "failed" if error == LEGAL_HOLD else "running"
    seen = replace(_seen(there, job), status=status, last_error=error)
    if not ports.records.replace(seen):
        return there
    if status == "running":
        due = times.add(ports.clock.now(), seconds=wait)
        ports.records.put_off(seen.tenant, seen.id, due)
        ports.queue.send(seen.tenant, seen.id, wait)
    return replace(seen, edition=seen.edition + 1)


def _seen(erasure: Erasure, job: Job) -> Erasure:
    """The record as it is after the job has come so far."""
    return replace(
        erasure,
        phase=_SEEN.get(job.phase, "erase"),
        counts={name: job.counters.get(name, 0) for name in COUNTED},
        warnings=_warnings(erasure, job.counters.get("unreadable", 0)),
    )


def _warnings(erasure: Erasure, unreadable: int) -> tuple[str, ...]:
    others = tuple(each for each in erasure.warnings if not each.startswith("unreadable:"))
    return (*others, UNREADABLE.format(unreadable)) if unreadable else others


def _seed(turn: Turn, job: Job, deadline: Deadline) -> Iterator[Job]:
    _require_none_held(turn, deadline)
    yield job.turned("settle")


def _require_none_held(turn: Turn, deadline: Deadline) -> None:
    if held_facts(turn.ports, turn.reach, deadline):
        raise MeanwhileHeld


def _settle(turn: Turn, job: Job, deadline: Deadline) -> Iterator[Job]:
    """Counted from the job's start, when the erasure was in force."""
    wait = TRUST_SECONDS + turn.ports.settle_seconds + SKEW_SECONDS
    over = times.add(job.started_at, seconds=wait)
    left = times.epoch_ms(over) - times.epoch_ms(turn.ports.clock.now())
    if left > 0:
        raise Waiting(math.ceil(left / 1000))
    _require_none_held(turn, deadline)
    yield job.turned("facts")


def _end(turn: Turn, job: Job, deadline: Deadline) -> Iterator[Job]:
    """The record ends before the job does: whatever ends this earlier, it is done again."""
    ports = turn.ports
    if ports.index is not None:
        ports.index.purge()
    erasure = ports.records.erasure(turn.tenant, turn.erasure.id)
    if erasure is not None and erasure.status == "pending":
        raise StorageUnavailable("The erasure was begun again meanwhile.")
    if erasure is not None and not erasure.ended:
        done = replace(_seen(erasure, job), phase="done", status="completed", last_error=None)
        stated = ports.state(done, ports.clock.now(), deadline)
        done = replace(done, entry_id=stated.entry_id, completed_at=stated.completed_at, selector=None)
        if not ports.records.replace(done):
            raise StorageUnavailable("Another runner is at this erasure.")
    yield job.turned(DONE)


_PHASES: Mapping[str, Callable[[Turn, Job, Deadline], Iterator[Job]]] = {
    "seed": _seed,
    _FORMER: _seed,
    "settle": _settle,
    "facts": erase_facts,
    "keys": destroy_keys,
    "uploads": remove_uploads,
    "tally": tally,
    "runs": forget_messages,
    "end": _end,
}
