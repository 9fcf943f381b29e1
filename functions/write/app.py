"""Writes: facts, log entries, checkpoints and API tokens."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from factbook.api.access.authentication import derived_token_id, new_secret, secret_digest, token_text
from factbook.api.access.models import CreateToken, NewTokenAnswer, TokenAnswer
from factbook.api.access.views import token_json
from factbook.api.app import UNFORESEEN, Answer, App, Call
from factbook.api.errors import status_of
from factbook.api.facts.models import (
    MAX_BATCH,
    DeleteQuery,
    RequestUpload,
    SupersedeFact,
    UploadAnswer,
    VerifyFact,
    WriteFact,
    WriteFacts,
    WriteResults,
)
from factbook.api.log import routes as log_routes
from factbook.api.policy import routes as policy_routes
from factbook.api.requests import MAX_NAME, read_object, validate
from factbook.domain import errors as e
from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.ids import fact_id_for
from factbook.domain.strict_json import Json, dump_json
from factbook.ports.access.stores import Token
from factbook.ports.facts.store import Operation
from factbook.usecases.access import tokens
from factbook.usecases.facts import changes as facts
from factbook.usecases.facts import payloads

BATCH_THREADS = 8
ANSWER_BYTES = 3_900_000
"""Of a batch's results, escaped once more as a function's answer is."""
app = App("write")
lambda_handler = app
log_routes.add_writes(app)
policy_routes.add_writes(app)
CHANGES = (
    e.FactNotFound,
    e.PermissionDenied,
    e.LegalHold,
    e.FactChanged,
    e.IdempotencyMismatch,
    e.ValidationFailed,
)


@app.route(
    "POST /v1/memory/facts",
    "Write a fact",
    body=WriteFact,
    answer=Fact,
    status=201,
    idempotent=True,
    refusals=(e.PermissionDenied, e.ScopeInvalid, e.IdempotencyMismatch, e.ValidationFailed),
)
def write_fact(call: Call) -> Answer:
    return Answer(201, _write(call, call.body(WriteFact), call.operation))


@app.route(
    "POST /v1/memory/facts/batch",
    "Write up to 100 independent facts",
    body=WriteFacts,
    answer=WriteResults,
    idempotent=True,
    refusals=(e.ValidationFailed,),
)
def write_facts(call: Call) -> Answer:
    items, operation = _batch_items(call), call.operation

    def write(position: int) -> Json:
        try:
            body = validate(WriteFact, items[position], f"/items/{position}")
            return {"status": 201, "fact": _write(call, body, operation.at(position))}
        except e.FactbookError as error:
            refusal: Json = {"code": error.code, "message": error.message}
            if error.details:
                refusal["details"] = error.details
            return {"status": status_of(error), "error": refusal}
        except Exception as error:  # noqa: BLE001 - what became of the other items must still be told
            call.seen.failed(error)
            return {"status": 500, "error": {"code": "internal-error", "message": UNFORESEEN}}

    with ThreadPoolExecutor(max_workers=BATCH_THREADS) as pool:
        return Answer(200, {"results": _within_an_answer(list(pool.map(write, range(len(items)))))})


@app.route(
    "POST /v1/memory/facts/{id}/supersede",
    "Write the next revision of a fact",
    body=SupersedeFact,
    answer=Fact,
    idempotent=True,
    refusals=CHANGES,
)
def supersede_fact(call: Call) -> Answer:
    body = call.body(SupersedeFact)
    fact = facts.supersede_fact(
        call.services.memory,
        call.principal,
        call.operation,
        call.path["id"],
        body,
        body.sent(),
        body.expect_version,
    )
    return Answer(200, fact.to_json())


@app.route(
    "POST /v1/memory/facts/{id}/verify",
    "Verify a fact as a person",
    body=VerifyFact,
    answer=Fact,
    idempotent=True,
    refusals=CHANGES,
)
def verify_fact(call: Call) -> Answer:
    expected = call.body(VerifyFact).expect_version
    fact = facts.verify_fact(call.services.memory, call.principal, call.operation, call.path["id"], expected)
    return Answer(200, fact.to_json())


@app.route("DELETE /v1/memory/facts/{id}", "Delete a fact", query=DeleteQuery, answer=Fact, refusals=CHANGES)
def delete_fact(call: Call) -> Answer:
    expected = call.query(DeleteQuery).expect_version
    fact = facts.delete_fact(call.services.memory, call.principal, call.operation, call.path["id"], expected)
    return Answer(200, fact.to_json())


@app.route(
    "POST /v1/memory/blobs",
    "Get a presigned upload for content too large for a request",
    body=RequestUpload,
    answer=UploadAnswer,
    status=201,
    refusals=(e.FactNotFound, e.PermissionDenied, e.ValidationFailed),
)
def request_upload(call: Call) -> Answer:
    body = call.body(RequestUpload)
    memory = call.services.memory
    if body.fact_id is not None:
        facts.changeable_head(memory, call.principal, body.fact_id)
    fact_id = body.fact_id or fact_id_for(call.operation.key)
    ref, url = payloads.grant_upload(memory, call.principal.tenant, fact_id, body.size, body.sha256)
    answer = {
        "contentRef": ref,
        "uploadUrl": url,
        "headers": memory.blobs.upload_headers(body.size, body.sha256),
        "expiresAt": times.add(call.services.clock.now(), seconds=payloads.UPLOAD_SECONDS),
    }
    return Answer(201, answer)


@app.route(
    "POST /v1/access/tokens",
    "Make an API token",
    body=CreateToken,
    answer=NewTokenAnswer,
    status=201,
    idempotent=True,
    refusals=(e.PermissionDenied, e.ReplayWithheld, e.ValidationFailed),
)
def create_token(call: Call) -> Answer:
    body = call.body(CreateToken)
    secret = new_secret()
    token = Token(
        id=derived_token_id(call.operation.key),
        secret_sha256=secret_digest(secret),
        principal=_holder(call.principal.tenant, body),
        created_at=call.services.clock.now(),
        created_by=call.principal.name,
        expires_at=body.expires_at,
    )
    tokens.create_token(call.services.access, call.principal, token)
    return Answer(201, token_json(token) | {"token": token_text(token.id, secret)})


@app.route(
    "DELETE /v1/access/tokens/{id}",
    "Revoke an API token",
    answer=TokenAnswer,
    refusals=(e.NotFound, e.PermissionDenied),
)
def revoke_token(call: Call) -> Answer:
    services = call.services
    token = tokens.revoke_token(services.access, services.clock, call.principal, call.path["id"])
    return Answer(200, token_json(token))


def _within_an_answer(results: list[Json]) -> list[Json]:
    """The results, of which those that no longer fit in an answer leave out the content that its caller just sent."""
    size = 0
    for result in results:
        size += len(json.dumps(dump_json(result), ensure_ascii=False).encode())
        if size > ANSWER_BYTES and "content" in result.get("fact", {}):
            content = result["fact"].pop("content")
            size -= len(json.dumps(dump_json(content), ensure_ascii=False).encode())
    return results


def _write(call: Call, body: WriteFact, operation: Operation) -> Json:
    scope = body.scope.resolve(call.principal)
    fact = facts.write_fact(
        call.services.memory, call.principal, operation, body.type, scope, body, body.sent(), body.key
    )
    return fact.to_json()


def _batch_items(call: Call) -> list[Any]:
    body = read_object(call.request)
    if unknown := set(body) - {"items"}:
        raise e.UnknownField(
            f"Unknown field {min(unknown)[:MAX_NAME]!r}. A batch has the field items and no other."
        )
    items = body.get("items")
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_BATCH:
        raise e.ValidationFailed(
            "items must be a list of 1 to 100 facts.",
            issues=[{"path": "/items", "message": "1 to 100 facts"}],
        )
    return items


def _holder(tenant: str, body: CreateToken) -> Principal:
    return Principal(
        tenant=tenant,
        actor=body.actor,
        admin=body.admin,
        reads_projects=frozenset(body.projects.read),
        writes_projects=frozenset(body.projects.write),
        reads_orgs=frozenset(body.orgs.read),
        administers_orgs=frozenset(body.orgs.admin),
        agent_id=body.agent_id or (body.actor.id if body.actor.kind == "agent" else None),
    )
