"""The route that says where a fact comes from."""

from factbook.api.app import Answer, App, Call
from factbook.api.provenance.models import ProvenanceAnswer
from factbook.domain import errors as e
from factbook.usecases.provenance import tracing


def add_reads(app: App) -> None:
    """Register what the `read` function serves of provenance."""
    app.route(
        "GET /v1/memory/facts/{id}/provenance",
        "Where a fact comes from",
        answer=ProvenanceAnswer,
        refusals=(e.FactNotFound, e.LogChanged),
    )(trace_fact)


def trace_fact(call: Call) -> Answer:
    logs = call.services.logs
    graph = tracing.trace_provenance(
        call.services.memory, logs.store, logs.vault, call.principal, call.path["id"], call.deadline
    )
    return Answer(200, graph)
