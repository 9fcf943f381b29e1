"""What a request may look like, and which refusal comes first; on fakes, through the real handlers."""

import json
from typing import Any

import pytest
from support.fakes import FakeClock, fake_services
from support.gateway import Gateway, Reply
from support.principals import TenantService

FACTS = "/v1/memory/facts"
FULL: dict[str, Any] = {
    "type": "note",
    "scope": {"projectId": "p", "orgId": "o", "sessionId": "s", "participantId": "x", "threadId": "c"},
    "content": {"text": "x"},
    "retention": {"keepDays": 1, "keepUntil": "2030-01-01T00:00:00Z", "legalHold": False},
    "source": {
        "kind": "http-api",
        "uri": "https://example.org",
        "freshness": {"ttlSeconds": 60, "lastVerifiedAt": "2026-01-01T00:00:00Z", "etag": "e", "sourceVersion": "1"},
        "refresh": {"strategy": "manual", "handler": "http", "priority": 3},
    },
    "subjects": [{"kind": "external", "id": "s1"}],
    "causedByLogId": ["r:0:0123456789abcdef"],
    "generatedBy": {"runId": "r", "stepId": "1", "toolCallId": "t"},
    "validFrom": "2026-01-01 00:00:00+01:00",
    "validUntil": "2027-01-01T00:00:00Z",
    "observedAt": "2026-01-01T00:00:00.123456789Z",
    "key": "k",
}  # fmt: skip


@pytest.fixture
def service() -> TenantService:
    return TenantService(fake_services(FakeClock()), "t")


@pytest.fixture
def admin(service: TenantService) -> Gateway:
    return service.admin


@pytest.fixture
def fact(admin: Gateway) -> str:
    return str(admin.call("POST", FACTS, {"type": "note", "content": 1}).json["id"])


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every object in a body, and of every field, but for what is inside content."""
    found: list[tuple[str | int, ...]] = []
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    )
    for name, child in children:
        found.append((*path, name))
        if name != "content":
            found += places(child, (*path, name))
    return found


def at(body: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        body = body[step]
    return body


def changed(body: Any, path: tuple[str | int, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(body))
    at(copy, path[:-1])[path[-1]] = value
    return copy


def pointer(path: tuple[str | int, ...]) -> str:
    return "".join(f"/{step}" for step in path)


FIELDS = [path for path in places(FULL) if path != ("content",)]
OBJECTS = [(), *(path for path in FIELDS if isinstance(at(FULL, path), dict))]
TEXTS = [path for path in FIELDS if isinstance(at(FULL, path), str)]


def refused(reply: Reply, status: int, code: str) -> dict[str, Any]:
    assert (reply.status, reply.code) == (status, code), reply.text
    error: dict[str, Any] = reply.json["error"]
    assert set(error) <= {"code", "message", "requestId", "details"}
    assert error["message"]
    assert error["requestId"]
    return error


# -- writing


def test_every_field_comes_back_and_can_be_sent_back(admin: Gateway) -> None:
    written = admin.call("POST", FACTS, FULL)
    assert written.status == 201
    fact = written.json
    for name in ("type", "content", "source", "subjects", "causedByLogId", "generatedBy", "key"):
        expected = FULL[name]
        if name == "source":
            expected = changed(expected, ("freshness", "lastVerifiedAt"), "2026-01-01T00:00:00.000Z")
        assert fact[name] == expected
    assert fact["scope"] == FULL["scope"] | {"tenantId": "t"}
    assert (fact["validFrom"], fact["observedAt"]) == ("2025-12-31T23:00:00.000Z", "2026-01-01T00:00:00.123Z")
    again = {name: fact[name] for name in FULL} | {"key": "another"}
    assert admin.call("POST", FACTS, again).status == 201
    revision = {name: fact[name] for name in FULL if name not in ("type", "scope", "key")}
    assert admin.call("POST", f"{FACTS}/{fact['id']}/supersede", revision).json["version"] == 2
    assert None not in fact.values()


def test_content_null_is_content_and_no_content_is_none(admin: Gateway) -> None:
    fact = admin.call("POST", FACTS, {"type": "note", "content": None}).json
    assert fact["content"] is None
    refused(admin.call("POST", FACTS, {"type": "note"}), 400, "validation-failed")


@pytest.mark.parametrize("path", OBJECTS, ids=pointer)
def test_an_unknown_field_is_refused_by_name_at_every_level(
    admin: Gateway, fact: str, path: tuple[Any, ...]
) -> None:
    body = changed(FULL, (*path, "projectid"), "x")
    error = refused(admin.call("POST", FACTS, body), 400, "unknown-field")
    assert "projectid" in error["message"]
    assert error["details"]["path"] == pointer((*path, "projectid"))
    revision = {name: value for name, value in body.items() if name not in ("type", "scope", "key")}
    if path[:1] != ("scope",):
        refused(admin.call("POST", f"{FACTS}/{fact}/supersede", revision), 400, "unknown-field")


@pytest.mark.parametrize("path", FIELDS, ids=pointer)
def test_null_is_no_value_for_any_field_but_content(admin: Gateway, path: tuple[Any, ...]) -> None:
    error = refused(admin.call("POST", FACTS, changed(FULL, path, None)), 400, "bad-input")
    assert pointer(path) in error["message"]


@pytest.mark.parametrize("path", TEXTS, ids=pointer)
def test_an_empty_string_is_no_value_for_any_field(admin: Gateway, path: tuple[Any, ...]) -> None:
    may_be_empty = path[-1] in ("etag", "sourceVersion")  # a validator of somebody else's, kept as it is
    assert admin.call("POST", FACTS, changed(FULL, path, "")).status == (201 if may_be_empty else 400)


@pytest.mark.parametrize("path", FIELDS, ids=pointer)
def test_a_field_of_another_kind_is_refused_with_its_place(admin: Gateway, path: tuple[Any, ...]) -> None:
    wrong: Any = 7 if isinstance(at(FULL, path), str | list | dict | bool) else "7"
    error = refused(admin.call("POST", FACTS, changed(FULL, path, wrong)), 400, "validation-failed")
    assert pointer(path) in {issue["path"] for issue in error["details"]["issues"]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("type",), "x" * 257),
        *((("type",), f"a{bad}") for bad in "\n\x00\x1f\x7f\x9f\ufdd0\ufdef\ufffe\uffff\U0001fffe\U0010ffff"),
        (("scope", "projectId"), "x" * 257),
        (("retention", "keepDays"), 0),
        (("retention", "keepDays"), 1.5),
        (("retention", "keepUntil"), "2030-01-01T00:00:00"),
        (("validFrom",), "2026-01-01"),
        (("validFrom",), "2027-01-01T00:00:00Z"),
        (("validFrom",), "2028-01-01T00:00:00Z"),
        (("observedAt",), "yesterday"),
        (("subjects",), [{"kind": "external", "id": str(number)} for number in range(21)]),
        (("subjects",), [{"kind": "person", "id": "x"}]),
        (("subjects",), [{"kind": "external"}]),
        (("source", "kind"), "ftp"),
        (("source", "refresh", "strategy"), "never"),
        (("source", "freshness", "ttlSeconds"), -1),
        (("generatedBy",), {"stepId": "1"}),
        (("causedByLogId",), [1]),
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_refused(admin: Gateway, path: tuple[Any, ...], value: Any) -> None:
    error = refused(admin.call("POST", FACTS, changed(FULL, path, value)), 400, "validation-failed")
    assert error["details"]["issues"]


def test_twenty_subjects_and_ids_of_256_characters_are_kept(admin: Gateway) -> None:
    body = FULL | {
        "subjects": [{"kind": "user", "id": str(number)} for number in range(20)],
        "type": "x" * 256,
    }
    body["scope"] = {"projectId": "é" * 256}
    assert admin.call("POST", FACTS, body).json["scope"]["projectId"] == "é" * 256


@pytest.mark.parametrize(
    "field", ["x" * 3_000_000, "\n\x00", "<script>", "~/"], ids=["long", "control", "markup", "pointer"]
)
def test_a_refusal_repeats_little_of_a_name_and_nothing_of_a_value(admin: Gateway, field: str) -> None:
    secret = "do not repeat me"
    for body in (
        {"type": "n", "content": 1, field: secret},
        {"type": "n", "content": 1, "scope": {field: None, "x": secret}},
    ):
        reply = admin.call("POST", FACTS, body)
        assert reply.status == 400
        assert secret not in reply.text
        assert len(reply.text) < 2000
    bad = admin.call(
        "POST",
        FACTS,
        {"type": [secret], "content": 1, "validFrom": secret, "subjects": [{"kind": secret, "id": "x"}]},
    )
    assert bad.code == "validation-failed"
    assert secret not in bad.text


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, True, None, [1]])
def test_an_expected_version_is_a_whole_number_from_one(admin: Gateway, fact: str, version: Any) -> None:
    for change in ("supersede", "verify"):
        reply = admin.call("POST", f"{FACTS}/{fact}/{change}", {"expectVersion": version})
        assert reply.status == 400
    assert admin.call("GET", f"{FACTS}/{fact}").json["version"] == 1


@pytest.mark.parametrize("version", ["0", "-1", "x", "", "1.0", "1e0", " 1", "٣"])
def test_a_version_in_a_query_is_a_whole_number_from_one(admin: Gateway, fact: str, version: str) -> None:
    refused(admin.call("DELETE", f"{FACTS}/{fact}", query={"expectVersion": version}), 400, "bad-input")
    for path in (f"{FACTS}/{fact}", f"{FACTS}/{fact}/content"):
        refused(admin.call("GET", path, query={"version": version}), 400, "bad-input")


def test_a_version_that_is_not_there_is_not_found_and_one_that_is_not_current_is_changed(
    admin: Gateway, fact: str
) -> None:
    for version in ("2", "9" * 12, "9" * 300):
        refused(admin.call("GET", f"{FACTS}/{fact}", query={"version": version}), 404, "fact-not-found")
        error = refused(
            admin.call("DELETE", f"{FACTS}/{fact}", query={"expectVersion": version}), 409, "fact-changed"
        )
        assert error["details"] == {"factId": fact, "currentVersion": 1}
    assert admin.call("DELETE", f"{FACTS}/{fact}", query={"expectVersion": 1}).status == 200


def test_a_verification_may_have_an_empty_body(admin: Gateway, fact: str) -> None:
    assert admin.call("POST", f"{FACTS}/{fact}/verify").json["version"] == 2
    assert admin.call("POST", f"{FACTS}/{fact}/verify", {}).json["version"] == 3
    assert admin.call("POST", f"{FACTS}/{fact}/verify", {"expectVersion": 3}).json["version"] == 4


@pytest.mark.parametrize("items", [None, [], 1, {}, [{"type": "n", "content": 1}] * 101])
def test_a_batch_holds_one_to_a_hundred_items(admin: Gateway, items: Any) -> None:
    assert (
        admin.call("POST", f"{FACTS}/batch", {} if items is None else {"items": items}).code
        == "validation-failed"
    )
    assert admin.call("GET", FACTS).json["data"] == []


def test_each_item_of_a_batch_has_the_answer_it_would_have_had_alone(service: TenantService) -> None:
    writer = service.of("ann", writes=["p"])
    good = {"type": "note", "scope": {"projectId": "p"}, "content": 1}
    items: list[Any] = [
        good,
        {},
        1,
        None,
        "x",
        good | {"scope": {"projectId": "q"}},
        good | {"scopes": {}},
        good | {"scope": {"tenantId": "u"}},
    ]
    results = writer.call("POST", f"{FACTS}/batch", {"items": items}).json["results"]
    assert [result["status"] for result in results] == [201, 400, 400, 400, 400, 403, 400, 403]
    assert [result.get("error", {}).get("code") for result in results[4:]] == [
        "validation-failed",
        "permission-denied",
        "unknown-field",
        "permission-denied",
    ]
    issue = results[1]["error"]["details"]["issues"][0]
    assert issue["path"].startswith("/items/1")


# -- listing


@pytest.mark.parametrize(
    ("limit", "count"), [(None, 25), ("1", 1), ("100", 100), ("101", 100), ("0100", 100), ("9" * 30, 100)]
)
def test_a_limit_is_25_unless_given_and_at_most_100(admin: Gateway, limit: str | None, count: int) -> None:
    for start in (0, 60):
        items = [{"type": "note", "content": start + number} for number in range(60)]
        admin.call("POST", f"{FACTS}/batch", {"items": items})
    page = admin.call("GET", FACTS, query={} if limit is None else {"limit": limit}).json
    assert (len(page["data"]), page["hasMore"]) == (count, True)


@pytest.mark.parametrize(
    "limit", ["0", "-1", "-0", "", "x", "1.5", "1e2", "--5", "+5", "5 ", "٣", "0x10", "null"]
)
def test_a_limit_below_one_or_no_number_is_refused(admin: Gateway, limit: str) -> None:
    error = refused(admin.call("GET", FACTS, query={"limit": limit}), 400, "bad-input")
    assert limit in ("", "x", "-0", "0", "-1") or limit not in error["message"]


@pytest.mark.parametrize(
    "query",
    [
        {"type": ""}, {"scope": ""}, {"scope": "p"}, {"scope": "[]"}, {"scope": "null"}, {"scope": '"p"'}, {"scope": '{"projectId":""}'},
        {"scope": '{"projectId":null}'}, {"scope": '{"projectId":"p","projectId":"q"}'}, {"asOf": ""}, {"asOf": "2026-01-01T00:00:00"},
        {"asOf": "2026-01-01"}, {"cursor": "x"}, {"cursor": "%00"}, {"scopeKind": ""}, {"scopeKind": "org", "scopeId": ""},
        {"scopeKind": "tenant", "inherit": "yes"}, {"scopeKind": "tenant", "inherit": ""}, {"scope": '{"projectId":1}'}, {"type": "x" * 257},
    ],
)  # fmt: skip
def test_a_filter_without_a_meaning_is_refused_and_never_a_wider_list(
    admin: Gateway, query: dict[str, str]
) -> None:
    reply = admin.call("GET", FACTS, query=query)
    assert reply.status == 400
    assert reply.code in {"bad-input", "validation-failed"}


@pytest.mark.parametrize(
    "query",
    [{"Type": "n"}, {"projectId": "p"}, {"scope": '{"projectid":"p"}'}, {"scopekind": "org"}, {"sort": "x"}],
)
def test_a_misspelt_filter_is_refused_by_name(admin: Gateway, query: dict[str, str]) -> None:
    error = refused(admin.call("GET", FACTS, query=query), 400, "unknown-field")
    name = "projectid" if "scope" in query else next(iter(query))
    assert name in error["message"]


@pytest.mark.parametrize(
    "query",
    [
        {"scopeKind": "tenant", "scopeId": "t"},
        {"scopeKind": "org"},
        {"scopeKind": "project"},
        {"scopeKind": "user", "scopeId": "u"},
        {"scopeKind": "TENANT"},
        {"scopeId": "p"},
        {"inherit": "false"},
        {"inherit": "true"},
    ],
)
def test_a_container_kind_without_a_meaning_is_an_invalid_scope(
    admin: Gateway, query: dict[str, str]
) -> None:
    refused(admin.call("GET", FACTS, query=query), 400, "scope-invalid")


NO_OBJECT = (
    'scope must be a JSON object such as {"projectId":"p1"}, as text in double quotes: '
    "json.dumps in Python, -G --data-urlencode 'scope=…' with curl."
)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("scope=%00", NO_OBJECT),
        ("scope=%EF%BB%BF%7B%7D", NO_OBJECT),
        ("scope=[NaN]", "scope: NaN and Infinity are not JSON. Send a number or null."),
        ("type=a&typePrefix=b", "Query parameters: send type or typePrefix, not both."),
        ("limit=x", "Query parameter limit: must be a whole number, 1 or more; above 100 counts as 100."),
    ],
)
def test_a_refused_query_is_told_which_of_its_parameters_is_wrong(
    admin: Gateway, query: str, message: str
) -> None:
    assert refused(admin.call("GET", FACTS, raw_query=query), 400, "bad-input")["message"] == message


def test_a_body_with_a_byte_order_mark_is_told_so(admin: Gateway) -> None:
    for path in (FACTS, f"{FACTS}/batch"):
        reply = admin.call("POST", path, raw='\ufeff{"type":"n","content":1}')
        assert "byte order mark" in refused(reply, 400, "bad-input")["message"]


def test_a_parameter_given_twice_or_not_in_utf_8_is_refused(admin: Gateway) -> None:
    for raw in ("type=a&type=b", "type=%FF", "type=%ED%A0%80"):
        refused(admin.call("GET", FACTS, raw_query=raw), 400, "bad-input")


def test_a_plus_is_a_space_and_an_empty_cursor_is_the_first_page(admin: Gateway) -> None:
    admin.call("POST", FACTS, {"type": "my note", "content": 1})
    assert len(admin.call("GET", FACTS, raw_query="type=my+note&cursor=").json["data"]) == 1
    assert len(admin.call("GET", FACTS, raw_query="type=my%20note").json["data"]) == 1
    assert admin.call("GET", FACTS, raw_query="type=my%2Bnote").json["data"] == []


def test_a_scope_and_a_container_that_contradict_each_other_keep_nothing(admin: Gateway) -> None:
    admin.call("POST", FACTS, {"type": "n", "scope": {"projectId": "p"}, "content": 1})
    query = {"scope": '{"projectId":"p"}', "scopeKind": "project", "scopeId": "q"}
    assert admin.call("GET", FACTS, query=query).json == {"data": [], "hasMore": False}
    assert len(admin.call("GET", FACTS, query=query | {"scopeId": "p"}).json["data"]) == 1


def test_a_cursor_is_bound_to_its_list_its_filters_and_its_principal(service: TenantService) -> None:
    ann, bob = service.of("ann", admin=True), service.of("bob", admin=True)
    fact = ""
    for number in range(5):
        fact = ann.call("POST", FACTS, {"type": "note", "content": number}).json["id"]
    cursor = ann.call("GET", FACTS, query={"type": "note", "limit": 2}).json["nextCursor"]
    good = {"type": "note", "cursor": cursor}
    assert len(ann.call("GET", FACTS, query=good).json["data"]) == 3
    assert len(service.of("ann", admin=True).call("GET", FACTS, query=good | {"limit": 1}).json["data"]) == 1
    for caller, path, query in (
        (bob, FACTS, good),
        (ann, FACTS, {"cursor": cursor}),
        (ann, FACTS, {"type": "other", "cursor": cursor}),
        (ann, FACTS, good | {"scope": '{"projectId":"p"}'}),
        (ann, FACTS, good | {"asOf": "2026-01-01T00:00:00Z"}),
        (ann, f"{FACTS}/{fact}/revisions", {"cursor": cursor}),
        (ann, "/v1/access/tokens", {"cursor": cursor}),
        (ann, FACTS, good | {"cursor": cursor[:-2]}),
    ):
        refused(caller.call("GET", path, query=query), 400, "bad-input")


# -- which refusal comes first, and what every answer carries


def test_form_is_checked_before_existence_and_existence_before_permission(
    service: TenantService, fact: str
) -> None:
    stranger = service.of("eve")
    nowhere = f"{FACTS}/nobody"
    refused(stranger.call("POST", f"{nowhere}/supersede", {"contents": 1}), 400, "unknown-field")
    refused(stranger.call("POST", f"{nowhere}/verify", {"expectVersion": 0}), 400, "validation-failed")
    refused(stranger.call("DELETE", nowhere, query={"expectVersion": "x"}), 400, "bad-input")
    refused(stranger.call("POST", f"{nowhere}/supersede", {"content": 1}), 404, "fact-not-found")
    refused(stranger.call("POST", f"{FACTS}/{fact}/supersede", {"content": 1}), 403, "permission-denied")
    foreign = {"type": "n", "scope": {"tenantId": "u"}, "content": json.loads("[" * 33 + "]" * 33)}
    refused(stranger.call("POST", FACTS, foreign), 400, "bad-input")
    refused(stranger.call("POST", FACTS, foreign | {"content": 1}), 403, "permission-denied")
    lonely = {"type": "n", "scope": {"tenantId": "u", "participantId": "x"}, "content": 1}
    refused(stranger.call("POST", FACTS, lonely), 400, "scope-invalid")


def test_another_tenants_name_in_a_scope_or_filter_is_refused(admin: Gateway) -> None:
    refused(
        admin.call("POST", FACTS, {"type": "n", "scope": {"tenantId": "u"}, "content": 1}),
        403,
        "permission-denied",
    )
    refused(admin.call("GET", FACTS, query={"scope": '{"tenantId":"u"}'}), 403, "permission-denied")
    assert admin.call("POST", FACTS, {"type": "n", "scope": {"tenantId": "t"}, "content": 1}).status == 201


@pytest.mark.parametrize(
    "fact_id", ["nobody", "%00", "a%2Fb", "%25", "x" * 300, "..", "%E2%98%83", "h", "v0000000001"]
)
def test_an_id_that_no_fact_has_is_not_found_on_every_route(admin: Gateway, fact_id: str) -> None:
    for method, suffix in (
        ("GET", ""), ("GET", "/revisions"), ("GET", "/content"), ("DELETE", ""), ("POST", "/supersede"), ("POST", "/verify"),
    ):  # fmt: skip
        body = {} if method == "POST" else None
        refused(admin.call(method, f"{FACTS}/{fact_id}{suffix}", body), 404, "fact-not-found")


def test_inline_content_is_no_download(admin: Gateway, fact: str) -> None:
    error = refused(admin.call("GET", f"{FACTS}/{fact}/content"), 404, "not-found")
    assert error["details"] == {"factId": fact}


def test_without_a_token_every_route_but_health_is_401_before_anything_else(service: TenantService) -> None:
    nobody = service.admin.as_("")
    keys = [route.key for app in nobody.apps.values() for route in app if not route.public]
    assert len(keys) > 10
    for key in [*keys, "GET /nowhere", "PATCH /v1/memory/facts"]:
        method, path = key.split()
        for token in ("", "fb_00000000_" + "x" * 43, "garbage"):
            caller = nobody.as_(token)
            refused(caller.call(method, path, raw="{", query={"limit": "x"}), 401, "auth-missing")
    assert nobody.call("GET", "/health").json == {"ok": True}


def test_a_route_that_is_not_there_is_404_in_the_same_form(admin: Gateway) -> None:
    for method, path in (
        ("GET", "/"),
        ("GET", "/v1/memory/fact"),
        ("PATCH", FACTS),
        ("POST", "/health"),
        ("GET", f"{FACTS}//"),
    ):
        refused(admin.call(method, path), 404, "not-found")


def test_parameters_or_a_body_where_none_belong_are_refused(admin: Gateway, fact: str) -> None:
    for method, path in (
        ("POST", FACTS),
        ("POST", f"{FACTS}/{fact}/verify"),
        ("GET", "/v1/identity/whoami"),
        ("GET", "/v1/memory/status"),
    ):
        error = refused(admin.call(method, path, query={"expectVersion": "1"}), 400, "unknown-field")
        assert "expectVersion" in error["message"]
    refused(admin.call("DELETE", f"{FACTS}/{fact}", {"expectVersion": 7}), 400, "unknown-field")
    refused(admin.call("GET", FACTS, {"scope": {}}), 400, "unknown-field")
    assert admin.call("GET", f"{FACTS}/{fact}").status == 200
    assert admin.call("DELETE", f"{FACTS}/{fact}", {}).status == 200


def test_no_answer_may_be_stored_by_anyone_between(admin: Gateway, fact: str) -> None:
    for reply in (
        admin.call("GET", f"{FACTS}/{fact}"),
        admin.call("GET", FACTS),
        admin.call("GET", f"{FACTS}/nobody"),
        admin.as_("").call("GET", FACTS),
        admin.call("GET", "/health"),
        admin.call("POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": "x"}}),
    ):
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["Content-Type"].startswith("application/json")


def test_whoami_says_what_a_client_needs(service: TenantService) -> None:
    assert service.admin.call("GET", "/v1/identity/whoami").json == {
        "tenantId": "t", "actor": "user:admin", "scopes": [], "userId": "admin", "tenantAdmin": True,
    }  # fmt: skip
    service = service.of("job", "service").call("GET", "/v1/identity/whoami").json
    assert service == {"tenantId": "t", "actor": "service:job", "scopes": [], "tenantAdmin": False}
