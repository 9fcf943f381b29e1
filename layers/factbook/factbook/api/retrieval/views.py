"""What the API says of the search index."""

from typing import TYPE_CHECKING

from factbook.api.retrieval.models import IndexJobAnswer
from factbook.domain.facts.fact import Fact
from factbook.domain.strict_json import Json
from factbook.ports.jobs import Job, JobStore
from factbook.ports.policy.store import PolicyStore
from factbook.ports.retrieval.upkeep import Backlog
from factbook.settings import Settings
from factbook.usecases.retrieval.index_state import index_progress, index_state

if TYPE_CHECKING:
    from factbook.api.retrieval.services import RetrievalServices


def index_state_json(retrieval: "RetrievalServices", policies: PolicyStore, fact: Fact) -> Json:
    """`indexState` of a current fact, nothing for one that no search is to find. Raises SearchUnavailable."""
    if not fact.current:
        return {}
    found = index_state(retrieval.index, retrieval.backlog, policies, fact)
    if found is None:
        return {}
    return {"indexState": found.state} | ({"indexProblem": found.problem} if found.problem else {})


def index_progress_json(jobs: JobStore, backlog: Backlog, tenant: str) -> Json:
    """The index's job, and how many of this tenant's records wait."""
    found = index_progress(jobs, backlog, tenant)
    answer: Json = {"waiting": found.waiting}
    return answer if found.job is None else answer | {"job": index_job_json(found.job)}


def index_job_json(job: Job) -> Json:
    said = {"kind": job.kind, "phase": job.phase, "startedAt": job.started_at, "updatedAt": job.updated_at}
    return IndexJobAnswer.model_validate({**said, **job.about}).to_json()


def search_line(settings: Settings) -> str:
    """The line that says which search there is, at start-up and in the status."""
    if not settings.searches or settings.search_problem:
        return f"Memory search: none ({settings.search_problem or 'OPENSEARCH_URL names a search index'})"
    if settings.embeddings_problem and not settings.by_words:
        return f"Memory search: none ({settings.embeddings_problem})"
    if settings.embeddings_problem:
        return f"Memory search: keyword ({settings.embeddings_problem})"
    if not settings.semantic:
        return "Memory search: keyword (KINDGI_MEMORY_EMBEDDINGS turns on search by meaning)"
    made_by = f"{settings.memory_embeddings} {settings.embedding_model}"
    if settings.memory_embeddings == "openai-compat":
        made_by += f" at {settings.shown_embeddings_url}"
    how = "keyword and by meaning" if settings.by_words else "by meaning alone"
    return f"Memory search: {how} ({made_by})"
