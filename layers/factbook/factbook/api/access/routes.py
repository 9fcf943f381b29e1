"""Routes of who calls: whoami, and the tenant's API tokens."""

from factbook.api.access.authentication import derived_token_id, new_secret, secret_digest, token_text
from factbook.api.access.models import CreateToken, Identity, NewTokenAnswer, TokenAnswer, TokenPage
from factbook.api.access.views import token_json
from factbook.api.app import Answer, App, Call
from factbook.api.models import PageQuery
from factbook.api.pages import page_json
from factbook.domain import errors as e
from factbook.domain.access.principals import Principal
from factbook.domain.strict_json import Json
from factbook.ports.access.stores import Token
from factbook.usecases.access import tokens


def add_reads(app: App) -> None:
    """Register what the `read` function serves of access."""
    app.route("GET /v1/identity/whoami", "Who the token is", answer=Identity)(whoami)
    app.route(
        "GET /v1/access/tokens",
        "List API tokens",
        query=PageQuery,
        answer=TokenPage,
        refusals=(e.PermissionDenied,),
    )(list_tokens)


def add_writes(app: App) -> None:
    """Register what the `write` function serves of access."""
    app.route(
        "POST /v1/access/tokens",
        "Make an API token",
        body=CreateToken,
        answer=NewTokenAnswer,
        status=201,
        idempotent=True,
        refusals=(e.PermissionDenied, e.ReplayWithheld, e.ValidationFailed),
    )(create_token)
    app.route(
        "DELETE /v1/access/tokens/{id}",
        "Revoke an API token",
        answer=TokenAnswer,
        refusals=(e.NotFound, e.PermissionDenied),
    )(revoke_token)


def whoami(call: Call) -> Answer:
    principal = call.principal
    answer: Json = {
        "tenantId": principal.tenant,
        "actor": principal.name,
        "scopes": [],
        "tenantAdmin": principal.admin,
    }
    return Answer(200, answer if principal.user_id is None else answer | {"userId": principal.user_id})


def list_tokens(call: Call) -> Answer:
    asked = call.query(PageQuery)
    identity: Json = {"tokens": True}
    position = call.position(identity, asked.cursor)
    found, last = tokens.list_tokens(
        call.services.access, call.principal, str(position["at"]) if position else "", asked.limit
    )
    following = None if last is None else {"at": last}
    return Answer(200, page_json([token_json(token) for token in found], call.cursor(identity, following)))


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


def revoke_token(call: Call) -> Answer:
    services = call.services
    token = tokens.revoke_token(services.access, services.clock, call.principal, call.path["id"])
    return Answer(200, token_json(token))


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
