"""What the API says of the search index."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from factbook.api.retrieval.models import IndexJobAnswer
from factbook.domain.facts.fact import Fact
from factbook.domain.strict_json import Json
from factbook.ports.policy.store import PolicyStore
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


def index_progress_json(retrieval: "RetrievalServices") -> Json:
    found = index_progress(retrieval.job_store, retrieval.backlog)
    answer: Json = {"waiting": found.waiting}
    if found.job is None:
        return answer
    shown = {name: value for name, value in asdict(found.job).items() if name not in ("cursor", "step")}
    return answer | {"job": IndexJobAnswer(**shown).to_json()}


def search_line(settings: Settings) -> str:
    """The line that says which search there is, at start-up and in the status."""
    if not settings.semantic:
        return "Memory search: keyword (KINDGI_MEMORY_EMBEDDINGS turns on search by meaning)"
    model, url = settings.memory_embeddings_model, settings.memory_embeddings_url
    return f"Memory search: keyword and by meaning (openai-compat {model} at {url})"
