"""The phases of an erasure's job that are about facts: find them, erase them, count what became of them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from functools import partial
from typing import Any

from factbook.domain.errors import StorageUnavailable
from factbook.domain.retrieval.documents import Tombstone
from factbook.domain.retrieval.searchable import BESIDE, index_version
from factbook.ports.deadline import Deadline
from factbook.ports.facts.blobs import StoredObject
from factbook.ports.facts.store import Head, readable_heads
from factbook.ports.jobs import Job
from factbook.usecases import jobs
from factbook.usecases.erasure.facts import OutOfTime, erase_fact, send_to_review
from factbook.usecases.erasure.ports import ErasurePorts
from factbook.usecases.erasure.reaching import Reach, heads
from factbook.usecases.erasure.turns import Turn, counted_anew
from factbook.usecases.facts.payloads import whom_digest, whom_in
from factbook.usecases.merging import at_once

PORTION = 16
"""Facts that are erased between two times that the job is kept, several at a time."""
TOMBSTONES_AT_ONCE = HEADS_AT_ONCE = 100
OBJECTS_AT_ONCE = 200


def erase_facts(turn: Turn, job: Job, deadline: Deadline) -> Iterator[Job]:
    """A walk over the tenant's heads: what is reached becomes a tombstone, what it caused goes to review, and what cannot be
    read is counted. Raises MeanwhileHeld, FactUnreadable.
    """
    if job.cursor is None:
        job = counted_anew(job, "erased", "derived", "unreadable")
    page = heads(turn.ports, turn.reach, job.cursor)
    # Where some cannot be read the page is one portion, so that they are counted once: a turn that ends within it repeats it.
    most = len(page.stops) if page.unreadable else PORTION
    for some, cursor in jobs.portions(page, lambda head: int(turn.reach.names(head)), most):
        doomed = [head for head in some if turn.reach.names(head)]
        erase = partial(erase_fact, turn.ports, turn.erasure, deadline=deadline)
        try:
            erased = sum(at_once(erase, doomed))
        except OutOfTime:
            yield job
            return
        others = [head for head in some if head not in doomed]
        derive = partial(send_to_review, turn.ports, turn.erasure, is_derived=turn.causes.reach_one_of)
        job = job.at(cursor, erased=erased, derived=sum(map(derive, others)), unreadable=page.unreadable)
        yield job if cursor else job.turned("keys")


def tally(turn: Turn, job: Job, _: Deadline) -> Iterator[Job]:
    """Count the tombstones of this erasure, whoever made them at whichever try; their records leave the search index.

    The table's index must show no fewer than were made: it may lag.
    """
    if job.cursor is None:
        job = counted_anew(job, "facts", "revisions", "blobs", "documents")
    page = turn.ports.erasing.tombstones(turn.tenant, turn.erasure.id, job.cursor, TOMBSTONES_AT_ONCE)
    mine = [(head, head.erasure) for head in page.records if head.erasure is not None]
    made = [(head, erased.blobs) for head, erased in mine if erased.by == turn.erasure.id]
    indexed = turn.leave_the_index([each for head, _ in made for each in _out_of_the_index(head)])
    job = job.at(
        page.next,
        facts=len(made) + page.unreadable,
        unreadable=page.unreadable,
        revisions=sum(head.fact.version for head, _ in made),
        blobs=sum(blobs for _, blobs in made),
        documents=len(made) if indexed else 0,
    )
    if page.next is None and job.counters["facts"] < job.counters["erased"]:
        raise StorageUnavailable("The table's index does not show all tombstones yet.")
    yield job if page.next else job.turned("runs")


def _out_of_the_index(head: Head) -> list[Tombstone]:
    tenant, version = head.fact.scope.tenant_id, index_version(head.fact, head.edition)
    return [Tombstone(tenant, head.fact.id + beside, version) for beside in ("", BESIDE)]


def remove_uploads(turn: Turn, job: Job, _: Deadline) -> Iterator[Job]:
    """Objects that were stored for a fact of whom this is about, and that no fact came to name.

    Which are to go is kept before they go, so that they are counted whoever removes them.
    """
    if not turn.reach.has_words:
        yield job.turned("tally")
        return
    where: dict[str, Any] = {"after": None} if job.cursor is None else json.loads(job.cursor)
    if "doomed" in where:
        doomed = [StoredObject(*each) for each in where["doomed"]]
        turn.ports.blobs.remove(turn.tenant, doomed)
        yield _behind(job.at(None, uploads=len(doomed)), where["next"])
        return
    objects, following = turn.ports.blobs.of_tenant(turn.tenant, where["after"], OBJECTS_AT_ONCE)
    unnamed = nobodys(turn.ports, turn.reach, objects)
    if unnamed:
        kept = list(map(astuple, unnamed))
        yield job.at(json.dumps({"doomed": kept, "next": following}))
    else:
        yield _behind(job, following)


def _behind(job: Job, following: str | None) -> Job:
    return job.turned("tally") if following is None else job.at(json.dumps({"after": following}))


def nobodys(ports: ErasurePorts, reach: Reach, objects: Sequence[StoredObject]) -> list[StoredObject]:
    """Those of the objects that are of whom an erasure is about, by their names, and of no fact that is there; one that
    cannot be read is, and stays.
    """
    digest = whom_digest(ports.facts, reach.tenant, reach.selector)
    about = [each for each in objects if digest in whom_in(each.name) and reach.began_in_time(each.stored_at)]
    ids = sorted({each.fact_id for each in about})
    living: set[str] = set()
    for start in range(0, len(ids), HEADS_AT_ONCE):
        there, unreadable = readable_heads(
            ports.facts.facts, reach.tenant, ids[start : start + HEADS_AT_ONCE]
        )
        living |= unreadable
        living |= {name for name, head in there.items() if head.fact.invalidation_reason != "erased"}
    return [each for each in about if each.fact_id not in living]
