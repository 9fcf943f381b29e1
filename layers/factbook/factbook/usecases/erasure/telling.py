"""Tell the worker again of what is due and was not taken: its message was lost, or nobody sent one.

A round looks at a part, goes on where the last one ended, and begins anew behind the last: so all come in turn, however many
there are and whatever becomes of the first. Of what a round looks at, tenants come in turn.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest

from factbook.domain import times
from factbook.ports.erasure.replays import ReplayStore
from factbook.ports.jobs import Job
from factbook.usecases.erasure.ports import ErasurePorts

JOB, KIND = "erasures-told", "round-1"

GRACE_SECONDS = 30.0
"""What has been due for so long and was not taken, nobody was told of."""

MOST_LOOKED_AT, MOST_TOLD = 1_000, 100


@dataclass(frozen=True)
class Told:
    """How many erasures were found due, how many of them the worker was told of, and of how many tenants with a replay."""

    due: int
    erasures: int
    replays: int


def tell_again(ports: ErasurePorts, replays: ReplayStore) -> Told:
    """One round. Raises Throttled, StorageUnavailable; whoever was not told then is told by a later round."""
    now = ports.clock.now()
    job = ports.jobs.job(JOB)
    before = json.loads(job.cursor) if job is not None and job.cursor else [None, None]
    due, further = ports.records.work(times.add(now, seconds=-GRACE_SECONDS), before[0], MOST_LOOKED_AT)
    told = list(islice(in_turn(due), MOST_TOLD))
    tenants, others = replays.tenants(before[1], MOST_TOLD)
    for tenant, erasure_id in told:
        ports.queue.send(tenant, erasure_id)
    for tenant in tenants:
        ports.queue.send_replays(tenant)
    if (after := [further, others]) != before:
        _go_on(ports, job, json.dumps(after), now)
    return Told(len(due), len(told), len(tenants))


def _go_on(ports: ErasurePorts, job: Job | None, cursor: str, now: str) -> None:
    """Have the next round begin there; another one that was as fast has done the same."""
    first = Job(JOB, KIND, "round", now, now)
    following = first if job is None else replace(job, step=job.step + 1, updated_at=now)
    ports.jobs.keep(replace(following, cursor=cursor))


def in_turn(due: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The first of each tenant, then the second of each, and so on."""
    by_tenant: dict[str, list[tuple[str, str]]] = {}
    for each in due:
        by_tenant.setdefault(each[0], []).append(each)
    rounds = zip_longest(*by_tenant.values())
    return (each for each in chain.from_iterable(rounds) if each is not None)
