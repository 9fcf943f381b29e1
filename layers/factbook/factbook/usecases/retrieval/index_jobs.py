"""Build a search index from the tables, repair one, and catch up with what waits for its embedding.

A build makes a new index beside the one in use, for a first start, a lost index or another embedding model: writes go
into both, every head is walked, then searches switch over in one step. A repair walks the tables against the index in
use, and the index against the tables. Both keep a job after every page and resume from it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from factbook.domain.errors import SearchUnavailable
from factbook.domain.log.chain import read_log_id
from factbook.domain.retrieval.documents import Tombstone
from factbook.domain.retrieval.searchable import index_version, searchable
from factbook.ports.clock import Clock
from factbook.ports.facts.store import FactStore, Head
from factbook.ports.facts.walks import FactWalk
from factbook.ports.log.walks import EntrySource
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable
from factbook.ports.retrieval.index import EmbeddingSpace, Entry, IndexInfo
from factbook.ports.retrieval.upkeep import IndexJob, JobStore
from factbook.usecases.retrieval.embedding_spaces import TRUSTED_SECONDS
from factbook.usecases.retrieval.indexing import Draft, IndexingPorts, apply_drafts, draft_of, index_heads
from factbook.usecases.retrieval.messages import MessagePorts, drafts_of, index_messages

PAGE = 100
CAUGHT_UP_AT_ONCE = 100
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
    sleep: Callable[[float], None] = field(default=time.sleep)


def run_jobs(ports: IndexJobPorts, seconds: float) -> IndexJob | None:
    """Start a build when one is needed, and work on the job there is for about `seconds`; the job, when there is one.

    Raises SearchUnavailable, and EmbeddingsUnavailable when a new index needs to know its number of dimensions.
    """
    job = ports.jobs.job()
    if job is None or not _is_running(ports, job):
        job = _start_build(ports) or job
    return _work(ports, job, seconds)


def repair(ports: IndexJobPorts, seconds: float) -> IndexJob | None:
    """Start a repair unless a job is running, and work on it. Raises as `run_jobs`."""
    job = ports.jobs.job()
    if job is None or not _is_running(ports, job):
        job = _start_build(ports) or _start(ports, "repair", _active(ports), "facts")
    return _work(ports, job, seconds)


def rebuild(ports: IndexJobPorts, seconds: float) -> IndexJob | None:
    """Build a new index even though the one in use looks right. Raises as `run_jobs`."""
    return _work(ports, _start_build(ports, needed=True), seconds)


def look(ports: IndexJobPorts, _: float) -> IndexJob | None:
    """The job there is or was last, as it is."""
    return ports.jobs.job()


def catch_up(ports: IndexJobPorts) -> int:
    """Try again what waits for its embedding; how many records were tried. Raises SearchUnavailable."""
    waiting = ports.indexing.backlog.waiting(CAUGHT_UP_AT_ONCE)
    for tenant in {each.tenant for each in waiting}:
        own = [each for each in waiting if each.tenant == tenant]
        facts = [each.id for each in own if each.source == "facts"]
        index_heads(ports.indexing, ports.facts.heads(tenant, facts).values())
        places = [read_log_id(each.id) for each in own if each.source == "conversations"]
        entries = ports.entries.several(tenant, [(each.run_id, each.sequence) for each in places if each])
        index_messages(ports.conversations, entries)
        _settle_what_is_embedded(ports, tenant, [each.id for each in own])
    return len(waiting)


def _settle_what_is_embedded(ports: IndexJobPorts, tenant: str, ids: list[str]) -> None:
    ports.indexing.index.refresh()
    entries = ports.indexing.index.lookup(tenant, ids)
    for record in ids:
        entry = entries.get(record)
        if entry is None or entry.embedded or not entry.live:
            ports.indexing.backlog.settle(tenant, record)


def _is_running(ports: IndexJobPorts, job: IndexJob) -> bool:
    """Whether there is something left to do for a job: an index that was dropped meanwhile ends it."""
    return job.phase != "done" and any(info.name == job.index for info in ports.indexing.index.indexes())


def _start_build(ports: IndexJobPorts, *, needed: bool = False) -> IndexJob | None:
    known = ports.indexing.index.indexes()
    active = next((info for info in known if info.active), None)
    if not (needed or active is None or _model_changed(ports, active)):
        return None
    for info in known:
        if not info.active:
            ports.indexing.index.drop(info.name)  # what an abandoned build left
    made = ports.indexing.index.create(_wanted_space(ports))
    return _start(ports, "build", made, "settle" if active else "facts")


def _model_changed(ports: IndexJobPorts, active: IndexInfo) -> bool:
    spaces = ports.indexing.spaces
    return spaces is not None and (active.space is None or active.space.model != spaces.embedder.model)


def _wanted_space(ports: IndexJobPorts) -> EmbeddingSpace | None:
    """The space of the configured model; its size is what the endpoint answers. Raises EmbeddingsUnavailable."""
    spaces = ports.indexing.spaces
    if spaces is None:
        return None
    vector = spaces.embedder.embed(["dimensions"])[0]
    if isinstance(vector, EmbeddingFailure):
        raise EmbeddingsUnavailable(vector.reason)
    return EmbeddingSpace(spaces.embedder.model, len(vector))


def _start(ports: IndexJobPorts, kind: str, index: IndexInfo, phase: str) -> IndexJob:
    now = ports.clock.now()
    job = IndexJob(kind, index.name, phase, None, 0, 0, now, now)  # type: ignore[arg-type]
    ports.jobs.keep(job)
    return job


def _active(ports: IndexJobPorts) -> IndexInfo:
    found = next((info for info in ports.indexing.index.indexes() if info.active), None)
    if found is None:
        raise SearchUnavailable("There is no search index. Rebuild it.")
    return found


def _work(ports: IndexJobPorts, job: IndexJob | None, seconds: float) -> IndexJob | None:
    deadline = time.monotonic() + seconds
    while job is not None and job.phase != "done" and time.monotonic() < deadline:
        following = replace(_STEPS[job.phase](ports, job), step=job.step + 1, updated_at=ports.clock.now())
        if not ports.jobs.keep(following):
            return ports.jobs.job()  # another runner works on it
        job = following
    return job


def _settle(ports: IndexJobPorts, job: IndexJob) -> IndexJob:
    ports.sleep(SETTLE_SECONDS)
    return replace(job, phase="facts")


def _facts(ports: IndexJobPorts, job: IndexJob) -> IndexJob:
    page = ports.walk.heads(None, job.cursor, PAGE)
    changed = _bring(ports, job, page.heads)
    job = replace(job, cursor=page.next, records=job.records + len(page.heads), changed=job.changed + changed)
    return job if page.next else replace(job, phase="messages", cursor=None)


def _messages(ports: IndexJobPorts, job: IndexJob) -> IndexJob:
    page = ports.entries.walk(job.cursor, PAGE)
    drafts = drafts_of(ports.conversations, page.entries)
    there: dict[str, Entry] = {}
    for tenant in {draft.tenant for draft in drafts}:
        ids = [draft.id for draft in drafts if draft.tenant == tenant]
        there |= ports.indexing.index.lookup(tenant, ids, index=job.index)
    wanting = [
        draft for draft in drafts if not _holds(there.get(draft.id), draft.version, wanted=bool(draft.pieces))
    ]
    _apply(ports, job, wanting)
    job = replace(
        job, cursor=page.next, records=job.records + len(drafts), changed=job.changed + len(wanting)
    )
    if page.next:
        return job
    return replace(job, phase="swap" if job.kind == "build" else "orphans", cursor=None)


def _orphans(ports: IndexJobPorts, job: IndexJob) -> IndexJob:
    """Entries whose fact the tables do not have: what a restored table lost, or a removal nobody heard of."""
    page = ports.indexing.index.walk(after=job.cursor, limit=PAGE, index=job.index)
    live = [entry for entry in page.entries if entry.live and ":" not in entry.id]
    gone: list[Entry] = []
    for tenant in {entry.tenant for entry in live}:
        own = [entry for entry in live if entry.tenant == tenant]
        there = ports.facts.heads(tenant, [entry.id for entry in own])
        gone += [entry for entry in own if entry.id not in there]
    ports.indexing.index.apply(
        [Tombstone(entry.tenant, entry.id, entry.version) for entry in gone], index=job.index
    )
    job = replace(job, cursor=page.next, changed=job.changed + len(gone))
    return job if page.next else replace(job, phase="done")


def _swap(ports: IndexJobPorts, job: IndexJob) -> IndexJob:
    index = ports.indexing.index
    index.refresh(index=job.index)
    index.activate(job.index)
    for info in index.indexes():
        if not info.active:
            index.drop(info.name)
    return replace(job, phase="done", cursor=None)


_STEPS: dict[str, Callable[[IndexJobPorts, IndexJob], IndexJob]] = {
    "settle": _settle,
    "facts": _facts,
    "messages": _messages,
    "orphans": _orphans,
    "swap": _swap,
}


def _bring(ports: IndexJobPorts, job: IndexJob, heads: Sequence[Head]) -> int:
    """Bring heads into the job's index where it does not have them as they are; how many."""
    drafts: list[Draft] = []
    for tenant in {head.fact.scope.tenant_id for head in heads}:
        own = [head for head in heads if head.fact.scope.tenant_id == tenant]
        entries = ports.indexing.index.lookup(tenant, [head.fact.id for head in own], index=job.index)
        wanting = [
            head
            for head in own
            if not _holds(
                entries.get(head.fact.id),
                index_version(head.fact, head.edition),
                wanted=searchable(head.fact),
            )
        ]
        policy = ports.indexing.policies.policy(tenant)
        drafts += [draft_of(ports.indexing, head, policy) for head in wanting]
    _apply(ports, job, drafts)
    return len(drafts)


def _apply(ports: IndexJobPorts, job: IndexJob, drafts: Sequence[Draft]) -> None:
    target = next((info for info in ports.indexing.index.indexes() if info.name == job.index), None)
    if target is None:
        raise SearchUnavailable("The index being built is gone. Start again.")
    if apply_drafts(ports.indexing, drafts, [target]):
        raise SearchUnavailable("The index refused changes for now. Try again.")


def _holds(entry: Entry | None, version: int, *, wanted: bool) -> bool:
    """Whether the index has a record at this version as it was decided: what was kept out, or let in, stays so until a build."""
    if entry is None or entry.version < version:
        return False
    return not entry.live or (wanted and entry.embedded)
