"""Retrieval: facts and messages by words, by meaning or both, and the memory block of a turn."""

from factbook.api.app import Answer, App, Call
from factbook.api.retrieval_models import Retrieve, Retrieved
from factbook.domain import errors as e
from factbook.ports import Json
from factbook.usecases import retrieve

app = App("retrieve")
lambda_handler = app


@app.route(
    "POST /v1/memory/retrieve",
    "Find facts or messages",
    body=Retrieve,
    answer=Retrieved,
    refusals=(e.PermissionDenied, e.SemanticUnavailable, e.SearchUnavailable, e.ValidationFailed),
)
def retrieve_facts(call: Call) -> Answer:
    question = call.body(Retrieve).question(call.principal)
    found = retrieve.retrieve_facts(call.services.searching.search, call.principal, question)
    results: list[Json] = [
        {"fact": fact.to_json()} | ({} if score is None else {"score": score}) for fact, score in found.facts
    ]
    return Answer(200, {"results": results} | ({"degraded": found.degraded} if found.degraded else {}))
