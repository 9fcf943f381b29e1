"""What the search index makes of one fact, and how far its building has come."""

from dataclasses import dataclass
from typing import Literal

from factbook.domain.facts.fact import Fact
from factbook.domain.retrieval.searchable import searchable
from factbook.ports.jobs import Job, JobStore
from factbook.ports.policy.store import PolicyStore
from factbook.ports.retrieval.index import SearchIndex
from factbook.ports.retrieval.upkeep import Backlog, Trouble

COUNTED = 1_000
INDEX = "index"
"""The name of the job: there is one index, of all tenants."""

State = Literal["pending", "indexed", "failed"]


@dataclass(frozen=True)
class Indexed:
    """`problem` says why a fact is not wholly searchable."""

    state: State
    problem: Trouble | None = None


def index_state(index: SearchIndex, backlog: Backlog, policies: PolicyStore, fact: Fact) -> Indexed | None:
    """Of a current revision; None for a fact that no search is to find. Raises SearchUnavailable."""
    tenant = fact.scope.tenant_id
    if not searchable(fact) or not policies.policy(tenant).indexes_of(fact.type):
        return None
    entry = index.lookup(tenant, [fact.id]).get(fact.id)
    note = backlog.of(tenant, fact.id)
    if note is not None and (entry is None or note.version >= entry.version):
        return Indexed("pending" if note.waits else "failed", note.trouble)
    there = entry is not None and entry.live and (entry.revision or 0) >= fact.version
    return Indexed("indexed" if there else "pending")


@dataclass(frozen=True)
class Progress:
    """The job there is or was last, and how many records wait to be tried again (no more than `COUNTED` are counted)."""

    job: Job | None
    waiting: int


def index_progress(jobs: JobStore, backlog: Backlog, tenant: str | None) -> Progress:
    """Of one tenant's records, or of all: None."""
    return Progress(jobs.job(INDEX), backlog.waiting(tenant, COUNTED))
