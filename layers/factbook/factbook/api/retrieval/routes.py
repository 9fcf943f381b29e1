"""Routes of search: `retrieve` finds facts and messages, `read` shows which search there is."""

from factbook import SCHEMA_VERSION
from factbook.api.app import Answer, App, Call
from factbook.api.retrieval.models import ContextAnswer, ContextRequest, Retrieve, Retrieved, Status
from factbook.api.retrieval.views import index_progress_json, search_line
from factbook.domain import errors as e
from factbook.domain.retrieval.rendering import MemoryItem
from factbook.domain.strict_json import Json
from factbook.usecases.retrieval import context, recall, retrieve

SEARCHES = (
    e.PermissionDenied,
    e.SemanticUnavailable,
    e.SearchUnavailable,
    e.Unsupported,
    e.ValidationFailed,
)


def add_searches(app: App) -> None:
    """Register what the `retrieve` function serves."""
    app.route(
        "POST /v1/memory/retrieve",
        "Find facts or messages",
        body=Retrieve,
        answer=Retrieved,
        refusals=(*SEARCHES, e.SourceUnavailable),
    )(retrieve_facts)
    app.route(
        "POST /v1/memory/context",
        "The memory block of a turn",
        body=ContextRequest,
        answer=ContextAnswer,
        refusals=SEARCHES,
    )(build_context)


def add_reads(app: App) -> None:
    """Register what the `read` function serves of search."""
    app.route(
        "GET /v1/memory/status",
        "Which search there is, the build and the schema version",
        answer=Status,
    )(status)


def retrieve_facts(call: Call) -> Answer:
    body = call.body(Retrieve)
    question = body.question(call.principal)
    if body.source == "conversations":
        return _recalled(call, question)
    services = call.services
    found = retrieve.retrieve_facts(
        services.memory, services.searching.engine, call.principal, question, deadline=call.deadline
    )
    results: list[Json] = [
        {"fact": fact.to_json()} | ({} if score is None else {"score": score}) for fact, score in found.facts
    ]
    return _answer(results, degraded=found.degraded, lookedBackTo=found.looked_back_to)


def build_context(call: Call) -> Answer:
    turn = call.body(ContextRequest).turn(call.principal)
    services, who = call.services, call.principal
    standing = () if turn.agent is None else services.standing_of_turn(who, turn.agent, turn.scope)
    made = context.build_context(
        services.memory, services.searching.engine, who, turn, standing, call.deadline
    )
    body: Json = {
        "system": made.rendered.system,
        "message": made.rendered.message,
        "facts": [_version(item) for item in made.rendered.used],
        "omitted": [_version(item) for item in made.rendered.omitted],
    }
    optional = {"warnings": list(made.warnings), "degraded": made.degraded}
    return Answer(200, body | {name: value for name, value in optional.items() if value})


def status(call: Call) -> Answer:
    settings = call.services.settings
    answer: Json = {
        "search": search_line(settings),
        "build": settings.factbook_build,
        "schemaVersion": SCHEMA_VERSION,
        "index": index_progress_json(
            call.services.jobs, call.services.searching.backlog, call.principal.tenant
        ),
    }
    return Answer(200, answer | ({"problems": settings.problems} if settings.problems else {}))


def _version(item: MemoryItem) -> Json:
    return {"id": item.id, "version": item.version}


def _recalled(call: Call, question: retrieve.Question) -> Answer:
    found, degraded = recall.recall_messages(
        call.services.searching.recall, call.principal, question, call.deadline
    )
    results: list[Json] = []
    for each in found:
        sides = {"before": each.before, "after": each.after}
        near = {name: entry.to_json() for name, entry in sides.items() if entry is not None}
        results.append({"entry": each.entry.to_json(), "score": each.score} | near)
    return _answer(results, degraded=degraded)


def _answer(results: list[Json], **said: str | None) -> Answer:
    return Answer(
        200, {"results": results, **{name: value for name, value in said.items() if value is not None}}
    )
