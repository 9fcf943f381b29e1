"""Routes of facts: `write` changes them one at a time, `read` shows them. Batches are in `batch`."""

from factbook.api.app import Answer, App, Call
from factbook.api.facts import batch
from factbook.api.facts.models import (
    ContentQuery,
    DeleteQuery,
    FactAnswer,
    FactPage,
    GetQuery,
    HoldFact,
    KeyQuery,
    ListQuery,
    RequestUpload,
    SupersedeFact,
    TypePage,
    TypesQuery,
    UploadAnswer,
    VerifyFact,
    WriteFact,
)
from factbook.api.models import CursorQuery, ScopeRequest
from factbook.api.pages import page_json
from factbook.api.requests import require_body
from factbook.api.scopes import read_scope, wanted_scope
from factbook.domain import errors as e
from factbook.domain import times
from factbook.domain.access.rules import require_write
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.ids import fact_id_for
from factbook.domain.facts.type_order import LOWEST
from factbook.domain.scope import Scope
from factbook.domain.strict_json import Json
from factbook.usecases.facts import changes, holds, keyed, listing, payloads, reading, types
from factbook.usecases.merging import NEWEST

CHANGES = (
    e.FactNotFound,
    e.PermissionDenied,
    e.ErasureInProgress,
    e.LegalHold,
    e.FactChanged,
    e.IdempotencyMismatch,
    e.ValidationFailed,
)

HOLDS = (
    e.FactNotFound,
    e.PermissionDenied,
    e.ErasureInProgress,
    e.FactChanged,
    e.IdempotencyMismatch,
    e.ValidationFailed,
)


def add_writes(app: App) -> None:
    """Register what the `write` function serves of facts."""
    app.route(
        "POST /v1/memory/facts",
        "Write a fact",
        body=WriteFact,
        answer=Fact,
        status=201,
        idempotent=True,
        refusals=(
            e.PermissionDenied,
            e.ScopeInvalid,
            e.IdempotencyMismatch,
            e.ValidationFailed,
            e.FactNotFound,
            e.ErasureInProgress,
            e.FactExists,
            e.MemoryFull,
            e.LegalHold,
        ),
    )(write_fact)
    batch.add_writes(app)
    app.route(
        "POST /v1/memory/facts/{id}/supersede",
        "Write the next revision of a fact",
        body=SupersedeFact,
        answer=Fact,
        idempotent=True,
        refusals=CHANGES,
    )(supersede_fact)
    app.route(
        "POST /v1/memory/facts/{id}/verify",
        "Verify a fact as a person",
        body=VerifyFact,
        answer=Fact,
        idempotent=True,
        refusals=CHANGES,
    )(verify_fact)
    app.route(
        "DELETE /v1/memory/facts/{id}", "Delete a fact", query=DeleteQuery, answer=Fact, refusals=CHANGES
    )(delete_fact)
    app.route(
        "POST /v1/memory/facts/{id}/hold",
        "Put a fact under legal hold",
        body=HoldFact,
        answer=Fact,
        idempotent=True,
        refusals=HOLDS,
    )(hold_fact)
    app.route(
        "POST /v1/memory/facts/{id}/release",
        "Release a fact from legal hold",
        body=HoldFact,
        answer=Fact,
        idempotent=True,
        refusals=HOLDS,
    )(release_fact)
    app.route(
        "POST /v1/memory/blobs",
        "Get a presigned upload for content too large for a request",
        body=RequestUpload,
        answer=UploadAnswer,
        status=201,
        idempotent=True,
        refusals=(
            e.FactNotFound,
            e.PermissionDenied,
            e.ErasureInProgress,
            e.ScopeInvalid,
            e.ValidationFailed,
        ),
    )(request_upload)


def add_reads(app: App) -> None:
    """Register what the `read` function serves of facts."""
    app.route(
        "GET /v1/memory/facts",
        "List facts, newest first",
        query=ListQuery,
        answer=FactPage,
        refusals=(e.PermissionDenied, e.ScopeInvalid),
    )(list_facts)
    app.route(
        "GET /v1/memory/facts/by-key",
        "Read the current fact of a key",
        query=KeyQuery,
        answer=Fact,
        refusals=(e.FactNotFound, e.PermissionDenied, e.ScopeInvalid, e.SourceUnavailable),
    )(get_keyed_fact)
    app.route(
        "GET /v1/memory/types",
        "The types of facts there are, by name",
        query=TypesQuery,
        answer=TypePage,
        refusals=(e.PermissionDenied,),
    )(list_types)
    app.route(
        "GET /v1/memory/facts/{id}",
        "Read a fact",
        query=GetQuery,
        answer=FactAnswer,
        refusals=(e.FactNotFound, e.SearchUnavailable, e.SourceUnavailable),
    )(get_fact)
    app.route(
        "GET /v1/memory/facts/{id}/revisions",
        "All revisions of a fact, newest first",
        query=CursorQuery,
        answer=FactPage,
        refusals=(e.FactNotFound,),
    )(list_revisions)
    app.route(
        "GET /v1/memory/facts/{id}/content",
        "Download a fact's large content",
        query=ContentQuery,
        status=307,
        refusals=(e.FactNotFound, e.NotFound),
    )(get_content)


def write_fact(call: Call) -> Answer:
    return Answer(*batch.write_one(call, call.body(WriteFact), call.operation))


def supersede_fact(call: Call) -> Answer:
    require_body(call.request, "Send what is to change; {} makes a revision that changes nothing.")
    body = call.body(SupersedeFact)
    fact = changes.supersede_fact(
        call.services.memory,
        call.principal,
        call.operation,
        call.path["id"],
        body,
        body.sent(),
        body.expect_version,
    )
    return Answer(200, fact.to_json())


def verify_fact(call: Call) -> Answer:
    expected = call.body(VerifyFact).expect_version
    fact = changes.verify_fact(
        call.services.memory, call.principal, call.operation, call.path["id"], expected
    )
    return Answer(200, fact.to_json())


def delete_fact(call: Call) -> Answer:
    expected = call.query(DeleteQuery).expect_version
    fact = changes.delete_fact(
        call.services.memory, call.principal, call.operation, call.path["id"], expected
    )
    return Answer(200, fact.to_json())


def hold_fact(call: Call) -> Answer:
    fact_id, asked = call.path["id"], call.body(HoldFact)
    fact = holds.hold_fact(
        call.services.memory, call.principal, call.operation, fact_id, asked.reason, asked.expect_version
    )
    return Answer(200, fact.to_json())


def release_fact(call: Call) -> Answer:
    fact_id, asked = call.path["id"], call.body(HoldFact)
    fact = holds.release_fact(
        call.services.memory, call.principal, call.operation, fact_id, asked.reason, asked.expect_version
    )
    return Answer(200, fact.to_json())


def request_upload(call: Call) -> Answer:
    body = call.body(RequestUpload)
    ports = call.services.memory
    fact_id, has_key, scope = _fact_to_fill(call, body)
    ref, url = payloads.grant_upload(
        ports,
        call.principal.tenant,
        fact_id,
        body.size,
        body.sha256,
        keyed=has_key,
        scope=scope,
        operation_key=call.operation.key if "idempotency-key" in call.request.headers else None,
    )
    answer = {
        "contentRef": ref,
        "uploadUrl": url,
        "headers": ports.blobs.upload_headers(body.size, body.sha256),
        "expiresAt": times.add(call.services.clock.now(), seconds=payloads.UPLOAD_SECONDS),
    }
    return Answer(201, answer)


def _fact_to_fill(call: Call, body: RequestUpload) -> tuple[str, bool, Scope | None]:
    """The id of the fact that an upload is for, whether it has a key, and its scope, where that is known."""
    if body.fact_id is not None:
        head = changes.changeable_head(call.services.memory, call.principal, body.fact_id)
        return body.fact_id, head.fact.key is not None, head.fact.scope
    if body.type is not None or body.scope is not None:
        scope = (body.scope or ScopeRequest()).resolve(call.principal)
        require_write(call.principal, scope)
        keyed_id = None
        if body.type is not None and body.key is not None:
            keyed_id = keyed.Key(scope, body.type, body.key).fact_id
        call.services.memory.require_place_spared(scope, keyed_id or "")
        return keyed_id or fact_id_for(call.operation.key), keyed_id is not None, scope
    return fact_id_for(call.operation.key), False, None


def list_facts(call: Call) -> Answer:
    asked = call.query(ListQuery)
    scope = wanted_scope(call.principal, asked.scope)
    container = asked.container()
    query = listing.Query(
        types=() if asked.type is None else (asked.type,),
        type_prefix=asked.type_prefix,
        scope=scope | container,
        nothing_narrower_than=asked.scope_kind if asked.inherit is False else None,
        as_of=asked.as_of,
    )
    if any(scope.get(key, value) != value for key, value in container.items()):
        return Answer(200, page_json([], None))  # no scope names two projects
    identity: Json = {
        "facts": [asked.type, asked.type_prefix, query.scope, query.nothing_narrower_than, query.as_of]
    }
    position = call.position(identity, asked.cursor)
    before = str(position["at"]) if position else NEWEST
    page = listing.list_facts(
        call.services.memory, call.principal, query, asked.limit, before, deadline=call.deadline
    )
    following = None if page.position is None else {"at": page.position}
    return Answer(200, page_json([fact.to_json() for fact in page.facts], call.cursor(identity, following)))


def get_keyed_fact(call: Call) -> Answer:
    asked = call.query(KeyQuery)
    scope = read_scope(asked.scope).resolve(call.principal)
    key = keyed.Key(scope, asked.type, asked.key)
    fresh = asked.require_fresh is True
    fact = keyed.get_keyed_fact(call.services.memory, call.principal, key, require_fresh=fresh)
    return Answer(200, fact.to_json())


def list_types(call: Call) -> Answer:
    asked = call.query(TypesQuery)
    wanted = wanted_scope(call.principal, asked.scope)
    identity: Json = {"types": wanted}
    position = call.position(identity, asked.cursor)
    start = str(position["at"]) if position else LOWEST
    page = types.list_types(call.services.memory, call.principal, wanted, asked.limit, start, call.deadline)
    following = None if page.position is None else {"at": page.position}
    return Answer(200, page_json([{"type": name} for name in page.types], call.cursor(identity, following)))


def get_fact(call: Call) -> Answer:
    asked = call.query(GetQuery)
    fact = reading.get_fact(
        call.services.memory,
        call.principal,
        call.path["id"],
        asked.version,
        asked.as_of,
        require_fresh=asked.require_fresh is True,
    )
    more = {} if asked.include is None else call.services.includes[asked.include](fact)
    return Answer(200, fact.to_json() | more)


def list_revisions(call: Call) -> Answer:
    fact_id = call.path["id"]
    identity: Json = {"revisions": fact_id}
    position = call.position(identity, call.query(CursorQuery).cursor)
    found, below = reading.list_revisions(
        call.services.memory, call.principal, fact_id, int(position["at"]) if position else None
    )
    following = None if below is None else {"at": str(below)}
    return Answer(200, page_json([fact.to_json() for fact in found], call.cursor(identity, following)))


def get_content(call: Call) -> Answer:
    version = call.query(ContentQuery).version
    url = reading.get_content_url(call.services.memory, call.principal, call.path["id"], version)
    return Answer(307, headers={"Location": url})
