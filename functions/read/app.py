"""Reads: facts, the log, tokens, and what the service says of itself."""

from factbook import SCHEMA_VERSION
from factbook.api.access.models import Identity, TokenPage
from factbook.api.access.views import token_json
from factbook.api.app import Answer, App, Call
from factbook.api.facts.models import ContentQuery, FactAnswer, FactPage, GetQuery, ListQuery
from factbook.api.health import Health
from factbook.api.log import routes as log_routes
from factbook.api.models import CursorQuery, PageQuery, ScopeRequest
from factbook.api.pages import page_json
from factbook.api.policy import routes as policy_routes
from factbook.api.requests import validate
from factbook.api.retrieval.models import Status
from factbook.api.retrieval.views import index_progress_json, index_state_json, search_line
from factbook.domain import errors as e
from factbook.domain.strict_json import Json, parse_json
from factbook.usecases.access import tokens
from factbook.usecases.facts import listing, reading

app = App("read")
lambda_handler = app
log_routes.add_reads(app)
policy_routes.add_reads(app)


@app.route("GET /health", "Whether the service answers", answer=Health, public=True)
def health(_: Call) -> Answer:
    return Answer(200, {"ok": True})


@app.route("GET /v1/identity/whoami", "Who the token is", answer=Identity)
def whoami(call: Call) -> Answer:
    principal = call.principal
    answer = {
        "tenantId": principal.tenant,
        "actor": principal.name,
        "scopes": [],
        "tenantAdmin": principal.admin,
    }
    return Answer(200, answer if principal.user_id is None else answer | {"userId": principal.user_id})


@app.route("GET /v1/memory/status", "Which search there is, the build and the schema version", answer=Status)
def status(call: Call) -> Answer:
    settings = call.services.settings
    answer = {
        "search": search_line(settings),
        "build": settings.factbook_build,
        "schemaVersion": SCHEMA_VERSION,
        "index": index_progress_json(call.services),
    }
    return Answer(200, answer)


@app.route(
    "GET /v1/memory/facts",
    "List facts, newest first",
    query=ListQuery,
    answer=FactPage,
    refusals=(e.PermissionDenied, e.ScopeInvalid),
)
def list_facts(call: Call) -> Answer:
    asked = call.query(ListQuery)
    scope = {} if asked.scope is None else _scope_filter(call, asked.scope)
    container = asked.container()
    query = listing.Query(
        type=asked.type,
        scope=scope | container,
        nothing_narrower_than=asked.scope_kind if asked.inherit is False else None,
        as_of=asked.as_of,
    )
    if any(scope.get(key, value) != value for key, value in container.items()):
        return Answer(200, page_json([], None))  # no scope names two projects
    identity: Json = {"facts": [query.type, query.scope, query.nothing_narrower_than, query.as_of]}
    position = _position(call, identity, asked.cursor)
    page = listing.list_facts(
        call.services.memory, call.principal, query, asked.limit, position or listing.NEWEST
    )
    cursor = _cursor(call, identity, page.position)
    return Answer(200, page_json([fact.to_json() for fact in page.facts], cursor))


@app.route(
    "GET /v1/memory/facts/{id}",
    "Read a fact",
    query=GetQuery,
    answer=FactAnswer,
    refusals=(e.FactNotFound, e.SearchUnavailable),
)
def get_fact(call: Call) -> Answer:
    asked = call.query(GetQuery)
    fact = reading.get_fact(call.services.memory, call.principal, call.path["id"], asked.version, asked.as_of)
    shown = fact.to_json()
    return Answer(200, shown if asked.include is None else shown | index_state_json(call.services, fact))


@app.route(
    "GET /v1/memory/facts/{id}/revisions",
    "All revisions of a fact, newest first",
    query=CursorQuery,
    answer=FactPage,
    refusals=(e.FactNotFound,),
)
def list_revisions(call: Call) -> Answer:
    fact_id = call.path["id"]
    identity: Json = {"revisions": fact_id}
    position = _position(call, identity, call.query(CursorQuery).cursor)
    found, below = reading.list_revisions(
        call.services.memory, call.principal, fact_id, int(position) if position else None
    )
    cursor = _cursor(call, identity, None if below is None else str(below))
    return Answer(200, page_json([fact.to_json() for fact in found], cursor))


@app.route(
    "GET /v1/memory/facts/{id}/content",
    "Download a fact's large content",
    query=ContentQuery,
    status=307,
    refusals=(e.FactNotFound, e.NotFound),
)
def get_content(call: Call) -> Answer:
    version = call.query(ContentQuery).version
    url = reading.get_content_url(call.services.memory, call.principal, call.path["id"], version)
    return Answer(307, None, {"Location": url})


@app.route(
    "GET /v1/access/tokens",
    "List API tokens",
    query=PageQuery,
    answer=TokenPage,
    refusals=(e.PermissionDenied,),
)
def list_tokens(call: Call) -> Answer:
    asked = call.query(PageQuery)
    identity: Json = {"tokens": True}
    position = _position(call, identity, asked.cursor)
    found, last = tokens.list_tokens(call.services.access, call.principal, position or "", asked.limit)
    return Answer(200, page_json([token_json(token) for token in found], _cursor(call, identity, last)))


def _scope_filter(call: Call, text: str) -> dict[str, str]:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise e.BadInput('scope must be a JSON object such as {"projectId":"p1"}.')
    return validate(ScopeRequest, value, "/scope").wanted(call.principal)


def _position(call: Call, identity: Json, cursor: str | None) -> str | None:
    if not cursor:
        return None
    return str(call.services.cursors.read(call.principal, identity, cursor)["at"])


def _cursor(call: Call, identity: Json, position: str | None) -> str | None:
    return (
        None if position is None else call.services.cursors.write(call.principal, identity, {"at": position})
    )
