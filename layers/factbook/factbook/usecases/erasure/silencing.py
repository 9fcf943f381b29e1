"""The phases of an erasure's job that are about the log: destroy data keys, and take messages out of the search index."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from factbook.domain.log.sealing import KeyName
from factbook.domain.retrieval.documents import Tombstone
from factbook.domain.retrieval.messages import ERASED_VERSION
from factbook.ports.deadline import Deadline
from factbook.ports.jobs import Job
from factbook.ports.log.sealing import SealedKey
from factbook.usecases.erasure.turns import Turn, counted_anew
from factbook.usecases.log.entries import log_id_of
from factbook.usecases.merging import NEWEST
from factbook.usecases.retrieval.messages import is_message

KEYS_AT_ONCE = 100
RUNS_AT_ONCE = 50
ENTRIES_AT_ONCE = 200
ENTRY_BYTES = 2_000_000


def destroy_keys(turn: Turn, job: Job, _: Deadline) -> Iterator[Job]:
    """A walk over the tenant's data keys. Counted are those that this erasure destroyed, at whichever try."""
    if not turn.reach.has_words:
        yield job.turned("uploads")
        return
    if job.cursor is None:
        job = counted_anew(job, "keys")
    some = list(islice(turn.ports.keys.walk(turn.tenant, _key(turn.tenant, job.cursor)), KEYS_AT_ONCE))
    at = turn.erasure.created_at
    reached = [key for key in some if turn.reach.names_key(key) and key.destroyed_at in (None, at)]
    for key in reached:
        if key.destroyed_at is None:
            turn.ports.keys.destroy(key, at)
    more = len(some) == KEYS_AT_ONCE
    job = job.at(_cursor(some[-1]) if more else None, keys=len(reached))
    yield job if more else job.turned("uploads")


def _cursor(key: SealedKey) -> str:
    name = key.name
    return json.dumps([name.project, name.user, name.participant, name.thread, key.generation])


def _key(tenant: str, cursor: str | None) -> SealedKey | None:
    if cursor is None:
        return None
    *names, generation = json.loads(cursor)
    return SealedKey(tenant, KeyName(*names), generation, None)


def forget_messages(turn: Turn, job: Job, _: Deadline) -> Iterator[Job]:
    """The messages of every run that is reached: a page of runs, then page after page of each."""
    if turn.ports.index is None or not turn.reach.has_words:
        yield job.turned("end")
        return
    if job.cursor is None:
        job = counted_anew(job, "messages")
    where: dict[str, Any] = {"shard": 0, "before": NEWEST, "runs": []}
    if job.cursor is not None:
        where = json.loads(job.cursor)
    if where["runs"]:
        (run_id, since), *others = where["runs"]
        found, more = turn.ports.log.entries(turn.tenant, run_id, since, ENTRIES_AT_ONCE, ENTRY_BYTES)
        said = [str(log_id_of(entry)) for entry in found if is_message(entry) and turn.words.reach_one(entry)]
        turn.leave_the_index([Tombstone(turn.tenant, each, ERASED_VERSION) for each in said])
        left = [[run_id, found[-1].sequence + 1]] if more and found else []
        yield _behind(turn, job.at(None, messages=len(said)), where | {"runs": [*left, *others]})
        return
    rows, more = turn.ports.log.runs(turn.tenant, None, where["shard"], where["before"], RUNS_AT_ONCE)
    reached = [[row.run_id, 0] for row in rows if turn.reach.names_scope(row.scope)]
    within = {"before": rows[-1].order} if more and rows else {"shard": where["shard"] + 1, "before": NEWEST}
    yield _behind(turn, job, where | within | {"runs": reached})


def _behind(turn: Turn, job: Job, where: dict[str, Any]) -> Job:
    over = not where["runs"] and where["shard"] == turn.ports.log.run_shards(None)
    return job.turned("end") if over else job.at(json.dumps(where))
