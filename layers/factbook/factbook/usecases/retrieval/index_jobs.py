"""Build a search index from the tables, repair one, and catch up with what waits for its embedding.

A build makes a new index beside the one in use, for a first start, a lost index, another embedding model or documents of
another format: writes go into both from its first moment, every head is walked, then searches switch over in one step. A
repair walks the tables against the index in use, and the index against the tables; it starts by itself when a change was
given up. Both are jobs of `usecases.jobs`: kept after every portion, and resumed from there.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from factbook.domain import times
from factbook.domain.errors import SearchUnavailable, StorageUnavailable, Throttled
from factbook.domain.log.chain import read_log_id
from factbook.domain.retrieval.documents import Tombstone
from factbook.domain.retrieval.searchable import BESIDE, index_version, searchable
from factbook.ports.clock import Clock
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import FactStore, Head, readable_heads
from factbook.ports.facts.walks import FactWalk
from factbook.ports.flaws import UNREADABLE
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.ports.log.walks import EntrySource
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable
from factbook.ports.retrieval.index import EmbeddingSpace, Entry, IndexInfo
from factbook.ports.retrieval.upkeep import WAITING, Backlog, Troubled
from factbook.usecases import jobs
from factbook.usecases.retrieval import indexing, messages
from factbook.usecases.retrieval.embedding_spaces import TRUSTED_SECONDS
from factbook.usecases.retrieval.index_state import INDEX
from factbook.usecases.retrieval.indexing import PORTION_BYTES, Draft, IndexingPorts, Name, Outcome
from factbook.usecases.retrieval.leftovers import claim_of
from factbook.usecases.retrieval.messages import MessagePorts
from factbook.usecases.retrieval.turns import in_turns

Record = TypeVar("Record")

PAGE = 100
CLAIM_DAYS = 3
"""A repair has what was written so lately claimed again: a payload that is still pending is gone after two days."""
SETTLE_SECONDS = 3 * TRUSTED_SECONDS
"""Until every process that writes knows of the new index: they ask at most so often, and finish what they began."""


@dataclass(frozen=True)
class IndexJobPorts:
    """The ports of index jobs."""

    indexing: IndexingPorts
    facts: FactStore
    walk: FactWalk
    jobs: JobStore
    clock: Clock
    conversations: MessagePorts
    entries: EntrySource
    leftovers: Backlog
    sleep: Callable[[float], None] = field(default=time.sleep)


def run_jobs(ports: IndexJobPorts, deadline: Deadline) -> Job | None:
    """Start a build when one is needed, or a repair that was asked for, and work on the job there is; the job, if any.

    Raises SearchUnavailable, and EmbeddingsUnavailable when a new index needs to know its number of dimensions while
    there is one in use.
    """
    job = _running(ports)
    if job is None:
        job = _start_what_is_needed(ports) or last_job(ports.jobs)
    return _work(ports, job, deadline)


def repair(ports: IndexJobPorts, deadline: Deadline) -> Job | None:
    """Start a repair unless a job is running, and work on it. Raises as `run_jobs`."""
    job = _running(ports) or _start_build(ports) or _start(ports, "repair", _active(ports), "facts")
    return _work(ports, job, deadline)


def rebuild(ports: IndexJobPorts, deadline: Deadline) -> Job | None:
    """Build a new index even though the one in use looks right. Raises as `run_jobs`."""
    return _work(ports, _start_build(ports, needed=True), deadline)


def last_job(store: JobStore) -> Job | None:
    """The job there is or was last, as it is."""
    return store.job(INDEX)


def ask_for_repair(store: JobStore, clock: Clock) -> None:
    """A change was given up: what it would have changed is to be compared with the tables."""
    store.ask(INDEX, clock.now())


def catch_up(ports: IndexJobPorts, deadline: Deadline) -> int:
    """Try again what waits in the backlog; how many tries of records that were.

    Tenants take turns, in rounds, until the deadline or until a round has got nowhere. Raises SearchUnavailable. One
    tenant's trouble is its own: its records go on waiting.
    """
    backlog = ports.indexing.backlog
    return in_turns(backlog, lambda tenant, waiting: _try_again(ports, tenant, waiting, deadline), deadline)


def _try_again(ports: IndexJobPorts, tenant: str, waiting: Sequence[Troubled], deadline: Deadline) -> int:
    """How many of one tenant's records are settled."""
    try:
        versions, outcome = _bring_again(ports, tenant, waiting, deadline)
        left = outcome.again | {name for name, trouble in outcome.troubled.items() if trouble in WAITING}
        over = [note for note in waiting if (tenant, note.id) not in left]
        for note in over:
            if (tenant, note.id) not in outcome.troubled:
                ports.indexing.backlog.settle(tenant, note.id, versions.get(note.id, note.version))
    except (StorageUnavailable, Throttled):
        return 0
    except UNREADABLE:
        if len(waiting) == 1:
            return 0
        return sum(_try_again(ports, tenant, [note], deadline) for note in waiting)
    return len(over)


def _bring_again(
    ports: IndexJobPorts, tenant: str, waiting: Sequence[Troubled], deadline: Deadline
) -> tuple[dict[str, int], Outcome]:
    """The versions of the facts that are still there, and what became of all."""
    noted = {note.id for note in waiting if note.source == "facts"}
    found = ports.facts.heads(tenant, sorted({name.removesuffix(BESIDE) for name in noted}))
    records = {indexing.name_of(each)[1]: each for each in indexing.with_confirmed(found.values())}
    heads = {name: each for name, each in records.items() if name in noted}
    outcome = indexing.index_heads(ports.indexing, heads.values(), deadline)
    for note in waiting:
        if note.source == "facts" and note.id not in heads:  # removed, maybe while the index was down
            outcome.add(indexing.forget(ports.indexing, tenant, note.id, note.version))
    places = [read_log_id(note.id) for note in waiting if note.source == "conversations"]
    entries = ports.entries.several(tenant, [(each.run_id, each.sequence) for each in places if each])
    outcome.add(messages.index_messages(ports.conversations, entries, deadline))
    return {key: index_version(head.fact, head.searched_as) for key, head in heads.items()}, outcome


def _running(ports: IndexJobPorts) -> Job | None:
    """The job that has something left to do: an index that was dropped meanwhile ends it."""
    job = last_job(ports.jobs)
    if job is None or job.phase == DONE or _info(ports, job.about["index"]) is None:
        return None
    return job


def _info(ports: IndexJobPorts, name: str) -> IndexInfo | None:
    return next((info for info in ports.indexing.index.indexes() if info.name == name), None)


def _start_what_is_needed(ports: IndexJobPorts) -> Job | None:
    try:
        return _start_build(ports) or _start_asked(ports)
    except EmbeddingsUnavailable:
        job = _start_asked(ports)  # a repair does not wait for a new model
        if job is None:
            raise
        return job


def _start_asked(ports: IndexJobPorts) -> Job | None:
    """A repair, when somebody asked for one since the last job began: that one may have been past what was given up."""
    asked, last = ports.jobs.asked(INDEX), last_job(ports.jobs)
    if asked is None or (last is not None and last.started_at > asked):
        return None
    return _start(ports, "repair", _active(ports), "facts")


def _start_build(ports: IndexJobPorts, *, needed: bool = False) -> Job | None:
    known = ports.indexing.index.indexes()
    active = next((info for info in known if info.active), None)
    if not (needed or active is None or not active.current or _model_changed(ports, active)):
        return None
    space = _wanted_space(ports, needed=needed or active is not None)
    for info in known:
        if not info.active:
            ports.indexing.index.drop(info.name)  # what an abandoned build left
    made = ports.indexing.index.create(space)
    return _start(ports, "build", made, "settle" if active else "facts")


def _model_changed(ports: IndexJobPorts, active: IndexInfo) -> bool:
    spaces = ports.indexing.spaces
    return spaces is not None and (active.space is None or active.space.model != spaces.embedder.model)


def _wanted_space(ports: IndexJobPorts, *, needed: bool) -> EmbeddingSpace | None:
    """The space of the configured model; its size is what the endpoint answers.

    Without an answer, an index of words alone is better than none; where there is one in use, or one of vectors is
    `needed`, EmbeddingsUnavailable is raised.
    """
    spaces = ports.indexing.spaces
    if spaces is None:
        return None
    try:
        vector = spaces.embedder.embed(["dimensions"])[0]
        if isinstance(vector, EmbeddingFailure):
            raise EmbeddingsUnavailable(vector.reason)
    except EmbeddingsUnavailable:
        if needed:
            raise
        return None
    return EmbeddingSpace(spaces.embedder.model, len(vector))


def _start(ports: IndexJobPorts, kind: str, index: IndexInfo, phase: str) -> Job | None:
    counters = {"records": 0, "changed": 0}
    job = Job(INDEX, kind, phase, "", "", counters=counters, about={"index": index.name})
    return jobs.start(_engine(ports), job)


def _active(ports: IndexJobPorts) -> IndexInfo:
    found = next((info for info in ports.indexing.index.indexes() if info.active), None)
    if found is None:
        raise SearchUnavailable("There is no search index. Rebuild it.")
    return found


def _engine(ports: IndexJobPorts) -> jobs.JobPorts:
    return jobs.JobPorts(ports.jobs, ports.clock)


def _work(ports: IndexJobPorts, job: Job | None, deadline: Deadline) -> Job | None:
    if job is None:
        return None
    phases: Mapping[str, jobs.Phase] = {name: partial(phase, ports) for name, phase in _PHASES.items()}
    return jobs.work(_engine(ports), job, phases, deadline)


def _settle(ports: IndexJobPorts, job: Job, _: Deadline) -> Iterator[Job]:
    ports.sleep(SETTLE_SECONDS)
    yield job.turned("facts")


def _facts(ports: IndexJobPorts, job: Job, deadline: Deadline) -> Iterator[Job]:
    page = ports.walk.heads(None, job.cursor, PAGE)
    for heads, cursor in jobs.portions(page, indexing.weight, PORTION_BYTES):
        if job.kind == "repair":
            _have_claimed(ports, indexing.with_confirmed(heads))
        wanting = _without_held(ports, job, indexing.with_confirmed(heads), indexing.name_of, _state_of_head)
        _check(indexing.bring_heads(ports.indexing, wanting, deadline, [_target(ports, job)]))
        job = job.at(cursor, records=len(heads), changed=len(wanting))
        yield job if cursor else job.turned("messages")


def _have_claimed(ports: IndexJobPorts, heads: Iterable[Head]) -> None:
    """The record that told of a payload may be among those that a stream gave up."""
    since = times.add(ports.clock.now(), days=-CLAIM_DAYS)
    for head in heads:
        if head.fact.content_ref is not None and head.fact.updated_at > since:
            ports.leftovers.note(claim_of(head.fact, head.fact.content_ref))


def _messages(ports: IndexJobPorts, job: Job, deadline: Deadline) -> Iterator[Job]:
    page = ports.entries.walk(None, job.cursor, PAGE)
    for entries, cursor in jobs.portions(page, messages.weight, PORTION_BYTES):
        said = list(filter(messages.is_message, entries))
        drafts, outcome = messages.drafts_of(ports.conversations, said)
        wanting = _without_held(ports, job, drafts, lambda draft: draft.name, _state_of_draft)
        outcome.add(indexing.apply_drafts(ports.indexing, wanting, [_target(ports, job)], deadline))
        _check(outcome)
        job = job.at(cursor, records=len(said), changed=len(wanting))
        yield job if cursor else job.turned("swap" if job.kind == "build" else "orphans")


def _orphans(ports: IndexJobPorts, job: Job, _: Deadline) -> Iterator[Job]:
    """Entries whose fact the tables do not have: what a restored table lost, or a removal nobody heard of."""
    index = job.about["index"]
    page = ports.indexing.index.walk(after=job.cursor, limit=PAGE, index=index)
    live = [entry for entry in page.entries if entry.live and ":" not in entry.id]
    gone: list[Entry] = []
    for tenant, own in _by_tenant(live, lambda entry: entry.tenant).items():
        ids = sorted({entry.id.removesuffix(BESIDE) for entry in own})
        heads, unreadable = readable_heads(ports.facts, tenant, ids)
        there = {indexing.name_of(each)[1] for each in indexing.with_confirmed(heads.values())}
        there |= {entry.id for entry in own if entry.id.removesuffix(BESIDE) in unreadable}
        gone += [entry for entry in own if entry.id not in there]
    ports.indexing.index.apply(
        [Tombstone(entry.tenant, entry.id, entry.version) for entry in gone], index=index
    )
    job = job.at(page.next, changed=len(gone))
    yield job if page.next else job.turned(DONE)


def _swap(ports: IndexJobPorts, job: Job, _: Deadline) -> Iterator[Job]:
    index = ports.indexing.index
    index.refresh(index=job.about["index"])
    index.activate(job.about["index"])
    for info in index.indexes():
        if not info.active:
            index.drop(info.name)
    yield job.turned(DONE)


_PHASES: dict[str, Callable[[IndexJobPorts, Job, Deadline], Iterator[Job]]] = {
    "settle": _settle,
    "facts": _facts,
    "messages": _messages,
    "orphans": _orphans,
    "swap": _swap,
}


def _without_held(
    ports: IndexJobPorts,
    job: Job,
    records: Sequence[Record],
    name_of: Callable[[Record], Name],
    state_of: Callable[[Record], tuple[int, bool]],
) -> list[Record]:
    """The records that the job's index does not have as they are; `state_of` one is its version, and whether it is searched."""
    there: dict[Name, Entry] = {}
    for tenant, names in _by_tenant(map(name_of, records), lambda name: name[0]).items():
        found = ports.indexing.index.lookup(tenant, [record for _, record in names], index=job.about["index"])
        there |= {(tenant, record): entry for record, entry in found.items()}
    return [record for record in records if not _holds(there.get(name_of(record)), *state_of(record))]


def _holds(entry: Entry | None, version: int, wanted: bool) -> bool:  # noqa: FBT001 - one half of a state
    """Whether the index has a record at this version as it was decided: what was kept out, or let in, stays so until a build."""
    if entry is None or entry.version < version:
        return False
    return not entry.live or (wanted and entry.embedded)


def _state_of_head(head: Head) -> tuple[int, bool]:
    return index_version(head.fact, head.searched_as), searchable(head.fact)


def _state_of_draft(draft: Draft) -> tuple[int, bool]:
    return draft.version, bool(draft.pieces)


def _by_tenant(records: Iterable[Record], tenant_of: Callable[[Record], str]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(tenant_of(record), []).append(record)
    return groups


def _target(ports: IndexJobPorts, job: Job) -> IndexInfo:
    target = _info(ports, job.about["index"])
    if target is None:
        raise SearchUnavailable("The index being built is gone. Start again.")
    return target


def _check(outcome: Outcome) -> None:
    if outcome.again:
        raise SearchUnavailable("The index refused changes for now. Try again.")
