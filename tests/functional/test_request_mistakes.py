"""Requests as a newcomer sends them: the status, and a message that says where the fault is and what to send instead."""

from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import Gateway, load_app
from support.principals import TenantService

FACTS, MEMORY = "/v1/memory/facts", "/v1/memory"
NOTE = {"type": "acme.note", "content": 1}


@pytest.fixture
def admin(moto: Aws, tenant: str) -> Gateway:
    services = moto.services()
    made = TenantService(services, tenant).admin
    made.apps["retrieve"] = load_app("retrieve")
    made.apps["retrieve"].services = lambda: services
    return made


FORMER = "There is no such route"
ROUTES = [
    ("PUT", FACTS, f"{FORMER}: {FACTS} takes GET and POST."),
    ("GET", f"{MEMORY}/retrieve", f"{FORMER}: {MEMORY}/retrieve takes POST."),
    ("GET", f"{FACTS}/", f"{FORMER}: the path ends in a slash. It is {FACTS}."),
    ("GET", f"{MEMORY}//facts", f"{FORMER}: the path has a slash twice. It is {FACTS}."),
    ("GET", f"/v1{FACTS}", f"{FORMER}: the path has /v1 twice. It is {FACTS}."),
    ("GET", "/memory/facts", f"{FORMER}: the path begins with /v1. It is {FACTS}."),
    ("GET", "/v1/facts", f"{FORMER}: the path begins with /v1/memory. It is {FACTS}."),
    (
        "GET",
        "/facts/abc/revisions",
        f"{FORMER}: the path begins with /v1/memory. It is {FACTS}/{{id}}/revisions.",
    ),
    (
        "POST",
        f"{MEMORY}/runs/a/b/log",
        f"{FORMER}. The API reference lists them; an id in a path is percent-encoded.",
    ),
]


@pytest.mark.parametrize(("method", "path", "told"), ROUTES)
def test_a_route_that_is_nearly_one_is_told_what_it_lacks(
    admin: Gateway, method: str, path: str, told: str
) -> None:
    answer = admin.call(method, path)
    assert (answer.status, answer.code, answer.json["error"]["message"]) == (404, "not-found", told)


UNKNOWN: list[tuple[str, Any, str, str]] = [
    (
        FACTS,
        NOTE | {"contents": 1},
        "/contents",
        "Unknown field 'contents': is it 'content'? The fields are …",
    ),
    (
        FACTS,
        NOTE | {"caused_by_log_id": []},
        "/caused_by_log_id",
        "Unknown field 'caused_by_log_id': is it 'causedByLogId'? The fields are …",
    ),
    (
        FACTS,
        NOTE | {"scope": {"project": "p"}},
        "/scope/project",
        "Unknown field 'project' in /scope: is it 'projectId'? The fields are …",
    ),
    (
        FACTS,
        NOTE | {"retention": {"days": 5}},
        "/retention/days",
        "Unknown field 'days' in /retention: is it 'keepDays'? The fields are keepUntil, keepDays, legalHold.",
    ),
    (
        FACTS,
        NOTE | {"subjects": [{"kind": "user", "id": "a"}, {"kind": "user", "name": "a"}]},
        "/subjects/1/name",
        "Unknown field 'name' in /subjects/1. Remove it; the fields are kind, id.",
    ),
    (
        f"{MEMORY}/runs/r1/log",
        {"entries": [{"kind": "user-message", "text": "hi"}]},
        "/entries/0/text",
        "Unknown field 'text' in /entries/0. Remove it; the fields are kind, payload, actor, scope, causedByLogId.",
    ),
    (
        f"{MEMORY}/runs/r1/log",
        {"kind": "user-message", "payload": 1},
        "/kind",
        "Unknown field 'kind'. Remove it; the fields are entries, afterSequence.",
    ),
    (
        "/v1/access/tokens",
        {"actor": {"kind": "user", "id": "ann"}, "projects": {"writes": ["p"]}},
        "/projects/writes",
        "Unknown field 'writes' in /projects: is it 'write'? The fields are read, write.",
    ),
    (
        f"{MEMORY}/context",
        {"query": "x", "intents": [{"type": "acme.note", "scope": "tenant"}]},
        "/intents/0/type",
        "Unknown field 'type' in /intents/0: is it 'types'? The fields are …",
    ),
    (
        FACTS,
        NOTE | {"source": {"kind": "http-api", "freshness": {"ttl": 5}, "refresh": {"strategy": "manual"}}},
        "/source/freshness/ttl",
        "Unknown field 'ttl' in /source/freshness. Remove it; the fields are ttlSeconds, lastVerifiedAt, etag, sourceVersion.",
    ),
]


@pytest.mark.parametrize(("path", "body", "where", "told"), UNKNOWN, ids=[each[2] for each in UNKNOWN])
def test_an_unknown_field_is_told_where_it_stands_and_what_there_is(
    admin: Gateway, path: str, body: Any, where: str, told: str
) -> None:
    answer = admin.call("POST", path, body)
    assert (answer.status, answer.code) == (400, "unknown-field")
    assert answer.json["error"]["details"] == {"path": where}
    said = answer.json["error"]["message"]
    assert said.startswith(told.removesuffix("…"))
    assert told.endswith("…") or said == told


def test_a_field_of_a_type_in_the_policy_is_told_what_a_type_takes(admin: Gateway) -> None:
    answer = admin.call("PUT", f"{MEMORY}/policy", {"types": {"acme.note": {"keepFor": 30}}})
    assert answer.json["error"]["message"] == (
        "Unknown field 'keepFor' in /types/acme.note. Remove it; the fields are index, retention."
    )


def test_an_unknown_parameter_is_told_which_there_are(admin: Gateway) -> None:
    told = admin.call("GET", FACTS, query={"projectId": "p1"}).json["error"]["message"]
    assert told.startswith("Unknown query parameter 'projectId'. Remove it; the parameters are ")
    assert "scope" in told.partition("are ")[2].removesuffix(".").split(", ")
    told = admin.call("GET", FACTS, query={"limt": 1}).json["error"]["message"]
    assert told.startswith("Unknown query parameter 'limt': is it 'limit'? The parameters are ")
    told = admin.call("GET", f"{MEMORY}/runs/r1/log", query={"from": 3}).json["error"]["message"]
    assert "cursor" in told, "a guess that is wrong is not all that is said"


def test_no_message_repeats_more_than_the_beginning_of_a_field_of_the_callers(admin: Gateway) -> None:
    for body in (NOTE | {"x" * 500: 1}, NOTE | {"scope": {"x" * 500: "p"}}):
        assert "x" * 101 not in admin.call("POST", FACTS, body).text


NO_JSON = [
    (
        "{'type': 'acme.note', 'content': 1}",
        "expecting property name enclosed in double quotes, at line 1, column 2.",
    ),
    ("type=acme.note", "expecting value, at line 1, column 1."),
    ('{"type": "acme.note",\n "content" 1}', "expecting ':' delimiter, at line 2, column 12."),
    ('{"type": "acme.note", "content": 1} x', "extra data, at line 1, column 37."),
    ('{"type": "acme.note", "content": "', "unterminated string starting, at line 1, column 34."),
]


@pytest.mark.parametrize(("text", "told"), NO_JSON)
def test_a_body_that_is_no_json_is_told_where_it_is_none(admin: Gateway, text: str, told: str) -> None:
    answer = admin.call("POST", FACTS, raw=text)
    assert (answer.status, answer.code) == (400, "bad-input")
    assert answer.json["error"]["message"] == f"The body is not valid JSON: {told}"


def test_a_body_that_did_not_arrive_is_said(admin: Gateway) -> None:
    answer = admin.call("POST", FACTS, raw=" ")
    assert (answer.status, answer.code) == (400, "validation-failed")
    assert answer.json["error"]["message"].startswith("The request has no body. /type: is missing.")


def test_a_change_that_did_not_arrive_makes_no_revision(admin: Gateway) -> None:
    fact = admin.call("POST", FACTS, {"type": "acme.note", "content": "tea"}).json
    answer = admin.call("POST", f"{FACTS}/{fact['id']}/supersede", raw=" ")
    assert (answer.status, answer.code) == (400, "bad-input")
    assert answer.json["error"]["message"].startswith("The request has no body. Send what is to change")
    assert admin.call("GET", f"{FACTS}/{fact['id']}").json["version"] == 1


def test_a_policy_that_did_not_arrive_replaces_none(admin: Gateway) -> None:
    policy = {"retention": {"keepDays": 30}}
    admin.call("PUT", f"{MEMORY}/policy", policy)
    answer = admin.call("PUT", f"{MEMORY}/policy", raw=" ")
    assert (answer.status, answer.code) == (400, "bad-input")
    assert answer.json["error"]["message"].startswith("The request has no body.")
    assert admin.call("GET", f"{MEMORY}/policy").json["retention"] == policy["retention"]
    assert admin.call("PUT", f"{MEMORY}/policy", {}).json == {"types": {}}


SCOPED = [FACTS, f"{MEMORY}/types", f"{MEMORY}/runs", f"{MEMORY}/agents/copilot/memories"]


@pytest.mark.parametrize("path", SCOPED)
@pytest.mark.parametrize(
    "scope", ["p1", "{projectId: p1}", '"p1"', "[]", '"projectId":"p1"', "{'projectId': 'p1'}"]
)
def test_a_scope_that_is_no_object_is_blamed_and_not_the_body(admin: Gateway, path: str, scope: str) -> None:
    answer = admin.call("GET", path, query={"scope": scope})
    assert (answer.status, answer.code) == (400, "bad-input")
    told = answer.json["error"]["message"]
    assert told.startswith('scope must be a JSON object such as {"projectId":"p1"}')
    assert "json.dumps" in told, "whoever gave Python's own text of a dict"
    assert "--data-urlencode" in told, "curl takes braces in a URL for its own"


PLUS = "Query parameter asOf: a + in a query string stands for a space; write the zone's as %2B."
ZONE = "Query parameter asOf: A time must look like 2026-10-09T12:00:00Z, with a zone and up to 9 digits of a fraction."


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("asOf=2026-10-09T12:00:00+01:00", PLUS),
        ("asOf=2026-10-09T12:00:00.5+01:00", PLUS),
        ("asOf=2026-10-09%2012:00:00+01:00", PLUS),
        ("asOf=2026-10-09T12:00:00", ZONE),
        ("asOf=2026-10-09", ZONE),
        ("asOf=2026-10-09%2012:00", ZONE),
        ("asOf=yesterday", ZONE),
        ("asOf=2026-10-09T12:00:00.1234567890Z", ZONE),
    ],
)
def test_a_plus_that_became_a_space_is_told_from_a_missing_zone(
    admin: Gateway, query: str, told: str
) -> None:
    answer = admin.call("GET", FACTS, raw_query=query)
    assert (answer.status, answer.code, answer.json["error"]["message"]) == (400, "bad-input", told)


def test_the_same_time_with_its_plus_escaped_is_taken(admin: Gateway) -> None:
    assert admin.call("GET", FACTS, raw_query="asOf=2026-10-09T12:00:00%2B01:00").status == 200


FIRST = [
    (FACTS, {"type": 5, "content": 1}, "/type: must be a string."),
    (FACTS, {"type": "acme.note"}, "content is missing: give any JSON, or a contentRef."),
    (
        FACTS,
        NOTE | {"validFrom": "2026-01-01"},
        "/validFrom: A time must look like 2026-10-09T12:00:00Z, with a zone and up to 9 digits of a fraction.",
    ),
    (FACTS, NOTE | {"subjects": ["ann"]}, "/subjects/0: must be an object."),
    (FACTS, NOTE | {"causedByLogId": "r:0:x"}, "/causedByLogId: must be a list."),
    (
        FACTS,
        NOTE | {"source": {"kind": "http"}},
        (
            "/source/kind: must be 'http-api', 'blob', 'mcp-tool', 'external-db' or 'user-input'. "
            "In all 3 fields are invalid; see details.issues."
        ),
    ),
    (f"{MEMORY}/remember", {"agent": "copilot", "type": "m", "text": "x"}, "/agent: must be an object."),
    (f"{MEMORY}/retrieve", {"query": "x"}, "/mode: is missing."),
    (
        f"{MEMORY}/retrieve",
        {"mode": "vector", "query": "x"},
        "/mode: must be 'list', 'keyword', 'semantic' or 'both'.",
    ),
    (f"{MEMORY}/context", {"query": "x", "intents": ["acme.note"]}, "/intents/0: must be an object."),
    (f"{MEMORY}/runs/r1/log", {"entries": []}, "/entries: must have 1 or more items."),
]


@pytest.mark.parametrize(("path", "body", "told"), FIRST, ids=[each[2][:40] for each in FIRST])
def test_the_first_fault_stands_in_the_message_with_its_path(
    admin: Gateway, path: str, body: Any, told: str
) -> None:
    answer = admin.call("POST", path, body)
    assert (answer.status, answer.code, answer.json["error"]["message"]) == (400, "validation-failed", told)


REFUSED = [
    (
        "GET",
        f"{FACTS}?{'&'.join('limit=1' for _ in range(51))}",
        "A query string may have 50 parameters, and no route takes as many.",
    ),
    (
        "POST",
        f"{MEMORY}/import?file=zz",
        "Query parameter file: must be 16 to 128 hexadecimal digits in lower case, such as the file's SHA-256.",
    ),
    (
        "GET",
        f"{MEMORY}/runs/{'r' * 257}/log",
        "runId cannot stand in a path: use 1 to 256 letters, digits and . _ : @ ~ -.",
    ),
]


@pytest.mark.parametrize(("method", "path", "told"), REFUSED, ids=[each[2][:40] for each in REFUSED])
def test_what_is_too_long_or_of_another_form_is_told_what_may_be_sent(
    admin: Gateway, method: str, path: str, told: str
) -> None:
    path, _, query = path.partition("?")
    answer = admin.call(method, path, {} if method == "POST" else None, raw_query=query)
    assert (answer.status, answer.code, answer.json["error"]["message"]) == (400, "bad-input", told)


@pytest.mark.parametrize("path", [FACTS, f"{MEMORY}/retrieve", f"{MEMORY}/runs/r1/log"])
def test_a_body_that_is_too_large_is_not_sent_to_the_uploads_of_facts_alone(
    admin: Gateway, path: str
) -> None:
    answer = admin.call("POST", path, {"x": "x" * (4 * 1024 * 1024)})
    assert (answer.status, answer.code) == (413, "request-too-large")
    assert answer.json["error"]["message"].startswith("A request body may have 4 MB. Send less at once;")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "{",
            "The first line is no JSON: expecting property name enclosed in double quotes, at line 1, column 2.",
        ),
        (
            "[" * 100_000,
            "The first line is refused: The JSON is nested too deeply. Content may be nested 32 levels deep.",
        ),
        (
            '{"header": {"format": "another"}}',
            "The first line is no header of an export. Send a file of an export from its first line on.",
        ),
    ],
    ids=["no JSON", "deep", "another header"],
)
def test_the_first_line_of_an_import_is_told_what_it_lacks(admin: Gateway, line: str, told: str) -> None:
    answer = admin.call("POST", f"{MEMORY}/import", raw=line, query={"file": "ab" * 16})
    assert (answer.status, answer.code, answer.json["error"]["message"]) == (400, "bad-input", told)


def test_a_token_writes_as_many_projects_as_its_containers_leave_room_for(admin: Gateway) -> None:
    def made(count: int) -> Any:
        projects = {"write": [f"p{number}" for number in range(count)]}
        return admin.call(
            "POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": "ann"}, "projects": projects}
        )

    assert made(49).status == 201
    told = made(50).json["error"]["message"]
    assert told.startswith(
        "A token may reach 100 containers: its tenant, its holder, each org and each project are one"
    )


@pytest.mark.parametrize(
    "query", ["version=9", "asOf=2020-01-01T00:00:00Z", "version=1&asOf=2020-01-01T00:00:00Z"]
)
def test_a_version_or_time_that_a_fact_has_not_is_not_blamed_on_its_id_alone(
    admin: Gateway, query: str
) -> None:
    fact = admin.call("POST", FACTS, NOTE).json["id"]
    there, nowhere = (
        admin.call("GET", f"{FACTS}/{each}", raw_query=query) for each in (fact, f"{fact[:-1]}x")
    )
    assert (there.status, there.code) == (404, "fact-not-found")
    assert "or not with this version or at this time" in there.json["error"]["message"]
    assert there.json["error"]["message"] == nowhere.json["error"]["message"], "it tells nobody which"


LACKING = [
    {"kind": "http-api"},
    {"kind": "blob"},
    {"kind": "mcp-tool"},
    {"kind": "external-db", "handler": "http"},
]
NEEDING_NONE = [
    {"kind": "user-input"},
    {"kind": "external-db"},
    {"kind": "http-api", "handler": "lambda:prices"},
    {"kind": "blob", "handler": "user-input"},
]


URI_MISSING = "is missing"


def _issue(refused: Any) -> tuple[str, str]:
    (issue,) = refused["error"]["details"]["issues"]
    return issue["path"], issue["message"]


def _source(kind: str, handler: str | None = None) -> dict[str, Any]:
    named = {} if handler is None else {"handler": handler}
    return {"kind": kind, "freshness": {}, "refresh": {"strategy": "manual"} | named}


@pytest.mark.parametrize("said", LACKING, ids=str)
def test_a_source_that_is_asked_at_its_uri_is_refused_without_one(
    admin: Gateway, said: dict[str, str]
) -> None:
    body = NOTE | {"source": _source(**said)}
    fact = admin.call("POST", FACTS, NOTE).json["id"]
    for path, sent in ((FACTS, body), (f"{FACTS}/{fact}/supersede", {"source": body["source"]})):
        refused = admin.call("POST", path, sent)
        assert (refused.status, refused.code) == (400, "validation-failed")
        assert _issue(refused.json) == ("/source/uri", URI_MISSING)
    first, second = admin.call("POST", f"{FACTS}/batch", {"items": [NOTE, body]}).json["results"]
    assert (first["status"], second["status"]) == (201, 400)
    assert _issue(second) == ("/items/1/source/uri", URI_MISSING)


@pytest.mark.parametrize("said", NEEDING_NONE, ids=str)
def test_a_source_whose_handler_knows_its_place_needs_no_uri(admin: Gateway, said: dict[str, str]) -> None:
    made = admin.call("POST", FACTS, NOTE | {"source": _source(**said)})
    assert made.status == 201
    assert "uri" not in made.json["source"]
