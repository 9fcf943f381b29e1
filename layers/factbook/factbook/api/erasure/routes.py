"""Routes of erasures: ask for one, try it without changing anything, look at them, have one go on."""

from factbook.api.app import Answer, App, Call
from factbook.api.erasure.models import (
    CreatedOrTried,
    CreateErasure,
    CreateQuery,
    ErasureAnswer,
    ErasurePage,
    ResumeErasure,
)
from factbook.api.erasure.views import erasure_json
from factbook.api.models import PageQuery
from factbook.api.pages import page_json
from factbook.domain import errors as e
from factbook.domain.strict_json import Json
from factbook.usecases.erasure import requesting
from factbook.usecases.erasure.trying import try_erasure


def add_erasures(app: App) -> None:
    """Register what the `erase` function serves of erasures themselves; `ledger` has what they leave."""
    app.route(
        "POST /v1/memory/erasures",
        "Erase a person, a conversation or a fact",
        query=CreateQuery,
        body=CreateErasure,
        answer=CreatedOrTried,
        status=202,
        idempotent=True,
        refusals=(
            e.PermissionDenied,
            e.FactNotFound,
            e.FactUnreadable,
            e.LegalHold,
            e.IdempotencyMismatch,
            e.ValidationFailed,
        ),
    )(create_erasure)
    app.route(
        "GET /v1/memory/erasures",
        "Erasures, newest first",
        query=PageQuery,
        answer=ErasurePage,
        refusals=(e.PermissionDenied,),
    )(list_erasures)
    app.route(
        "GET /v1/memory/erasures/{id}",
        "Read an erasure",
        answer=ErasureAnswer,
        refusals=(e.NotFound, e.PermissionDenied),
    )(get_erasure)
    app.route(
        "POST /v1/memory/erasures/{id}/resume",
        "Have an erasure go on now",
        body=ResumeErasure,
        answer=ErasureAnswer,
        idempotent=True,
        refusals=(e.NotFound, e.PermissionDenied, e.LegalHold, e.ValidationFailed),
    )(resume_erasure)


def create_erasure(call: Call) -> Answer:
    asked, selector = call.query(CreateQuery), call.body(CreateErasure).selector
    ports = call.services.erasures.requesting
    if not asked.dry_run:
        erasure = requesting.request_erasure(ports, call.principal, call.operation, selector)
        return Answer(202, erasure_json(erasure))
    trial = try_erasure(ports, call.principal, selector, call.deadline)
    said: Json = {
        "dryRun": True,
        "counts": trial.counts,
        "heldFactIds": trial.held,
        "complete": trial.complete,
    }
    return Answer(200, said)


def list_erasures(call: Call) -> Answer:
    asked = call.query(PageQuery)
    identity: Json = {"erasures": "newest"}
    position = call.position(identity, asked.cursor)
    at = None if position is None else str(position["at"])
    found, following = requesting.list_erasures(
        call.services.erasures.requesting, call.principal, at, asked.limit
    )
    cursor = call.cursor(identity, None if following is None else {"at": following})
    return Answer(200, page_json([erasure_json(erasure) for erasure in found], cursor))


def get_erasure(call: Call) -> Answer:
    erasure = requesting.get_erasure(call.services.erasures.requesting, call.principal, call.path["id"])
    return Answer(200, erasure_json(erasure))


def resume_erasure(call: Call) -> Answer:
    force = call.body(ResumeErasure).force is True
    erasure = requesting.resume_erasure(
        call.services.erasures.requesting, call.principal, call.operation, call.path["id"], force=force
    )
    return Answer(200, erasure_json(erasure))
