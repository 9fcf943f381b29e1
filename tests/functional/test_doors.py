"""What may come in: each door says at once what it does not take, and nothing opens by being empty."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.fakes import FakeBlobs, FakeClock, fake_services
from support.gateway import Gateway, Reply, load_app
from support.log_fakes import FakeKeys, FakeLog, FakeTree, FakeWrapper
from support.logs import StandingClock
from support.principals import TenantService, principal

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.facts.fact import Fact, GeneratedBy
from factbook.domain.policy.policies import Policy
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.usecases.log import appending
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.sealing import Vault

FACTS = "/v1/memory/facts"
NOTE: dict[str, Any] = {"type": "note", "content": 1}
UNCARRIED = ["a b/c", "a/b", "a b", "é", "a%20b", "a?b", "a#b", "a\n", "x" * 257, "\u200b", "a|b"]
CARRIED = ["a", "A-Z_0.9~:@", "x" * 256, "user:7@example.org", "~", "-"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock("2026-06-01T00:00:00.000Z")


@pytest.fixture
def service(clock: FakeClock) -> TenantService:
    services = fake_services(clock)
    log = FakeLog()
    vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
    services.__dict__["logs"] = SimpleNamespace(
        store=log, vault=vault, tree=FakeTree(), log=LogWriter(log, vault, StandingClock())
    )
    made = TenantService(services, "t")
    made.admin.apps["retrieve"] = load_app("retrieve")
    made.admin.apps["retrieve"].services = lambda: services
    return made


@pytest.fixture
def admin(service: TenantService) -> Gateway:
    return service.admin


@pytest.fixture
def fact(admin: Gateway) -> str:
    return str(admin.call("POST", FACTS, NOTE).json["id"])


def issues(reply: Reply) -> dict[str, str]:
    assert (reply.status, reply.code) == (400, "validation-failed"), reply.text
    return {issue["path"]: issue["message"] for issue in reply.json["error"]["details"]["issues"]}


def refused(reply: Reply, *words: str, status: int = 400, code: str = "bad-input") -> None:
    assert (reply.status, reply.code) == (status, code), reply.text
    for word in words:
        assert word in reply.json["error"]["message"]


# -- ids that no path can carry


@pytest.mark.parametrize("name", UNCARRIED)
def test_an_id_that_no_path_can_carry_is_refused_in_every_field_that_names_one(
    admin: Gateway, name: str, fact: str
) -> None:
    thread, run = {"threadId": name}, {"runId": name}
    entries = {"entries": [{"kind": "tool-call", "scope": thread}]}
    search = {"mode": "keyword", "query": "x"}
    for method, path, body, place in (
        ("POST", FACTS, NOTE | {"scope": thread}, "/scope/threadId"),
        ("POST", FACTS, NOTE | {"generatedBy": run}, "/generatedBy/runId"),
        ("POST", f"{FACTS}/{fact}/supersede", {"generatedBy": run}, "/generatedBy/runId"),
        ("POST", "/v1/memory/runs/r/log", entries, "/entries/0/scope/threadId"),
        ("POST", "/v1/memory/checkpoints", {"runIds": ["r", name]}, "/runIds/1"),
        ("POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": "u"}, "agentId": name}, "/agentId"),
        ("POST", "/v1/memory/retrieve", search | {"scope": thread}, "/scope/threadId"),
        ("POST", "/v1/memory/context", {"query": "x", "intents": [{}], "scope": thread}, "/scope/threadId"),
    ):
        message = issues(admin.call(method, path, body))[place]
        assert len(name) > 256 or "letters, digits and . _ : @ ~ -" in message
        assert name not in message
    listed = admin.call("GET", FACTS, query={"scope": f'{{"threadId":{json.dumps(name)}}}'})
    assert "/scope/threadId" in issues(listed)
    (result,) = admin.call("POST", f"{FACTS}/batch", {"items": [NOTE | {"scope": thread}]}).json["results"]
    assert result["error"]["details"]["issues"][0]["path"] == "/items/0/scope/threadId"


@pytest.mark.parametrize("name", [name for name in UNCARRIED if len(name) < 257])
def test_an_agents_own_id_is_one_that_a_path_can_carry(admin: Gateway, name: str) -> None:
    agent = admin.call("POST", "/v1/access/tokens", {"actor": {"kind": "agent", "id": name}})
    assert any("actor.id" in message and "letters, digits" in message for message in issues(agent).values())
    assert admin.call("POST", "/v1/access/tokens", {"actor": {"kind": "service", "id": name}}).status == 201


@pytest.mark.parametrize("name", ["a%20b", "a%2Fb", "%C3%A9", "x" * 257, "a%2520b"])
def test_an_id_in_a_path_that_none_can_have_is_refused_and_not_merely_missing(
    admin: Gateway, name: str
) -> None:
    entries = {"entries": [{"kind": "tool-call"}]}
    refused(admin.call("POST", f"/v1/memory/runs/{name}/log", entries), "runId", "letters, digits")
    for suffix in ("log", "log/verify", "log/proof"):
        query = {"sequence": 0} if suffix == "log/proof" else None
        refused(
            admin.call("GET", f"/v1/memory/runs/{name}/{suffix}", query=query), "runId", "letters, digits"
        )
    refused(admin.call("GET", f"/v1/memory/threads/{name}/messages"), "threadId", "letters, digits")


@pytest.mark.parametrize("name", CARRIED)
def test_an_id_that_a_path_can_carry_is_taken(admin: Gateway, name: str) -> None:
    body = NOTE | {
        "scope": {"threadId": name, "projectId": "a b/c"},
        "generatedBy": {"runId": name, "stepId": "a b"},
    }
    written = admin.call("POST", FACTS, body)
    assert (written.status, written.json["scope"]["threadId"]) == (201, name)
    query = {"scope": f'{{"threadId":"{name}"}}'}
    assert [each["id"] for each in admin.call("GET", FACTS, query=query).json["data"]] == [written.json["id"]]


def test_records_of_before_with_other_ids_are_read_and_changed_as_ever(service: TenantService) -> None:
    memory, admin = service.services.memory, service.admin
    first = admin.call("POST", FACTS, NOTE).json["id"]
    head = memory.facts.head("t", first)
    assert head is not None
    former = head.fact.model_copy(
        update={
            "id": "former",
            "revision_id": "former:1",
            "scope": Scope(tenantId="t", projectId="p", threadId="a b/c"),
            "caused_by_log_id": ["garbage"],
            "generated_by": GeneratedBy(runId="a b/c"),
        }
    )
    stored = Fact.model_validate(former.model_dump(by_alias=True) | {"contentText": former.content_text})
    assert memory.facts.create(Head(stored)) is None

    read = admin.call("GET", f"{FACTS}/former").json
    assert (read["scope"]["threadId"], read["causedByLogId"], read["generatedBy"]) == (
        "a b/c", ["garbage"], {"runId": "a b/c"},
    )  # fmt: skip
    assert read in admin.call("GET", FACTS, query={"scope": '{"projectId":"p"}'}).json["data"]
    changed = admin.call("POST", f"{FACTS}/former/supersede", {"content": 2}).json
    assert (changed["version"], changed["causedByLogId"]) == (2, ["garbage"])
    assert admin.call("POST", f"{FACTS}/former/verify").status == 200
    assert len(admin.call("GET", f"{FACTS}/former/revisions").json["data"]) == 3
    agent = principal("t", "a b/c", "agent", agent_id="a b/c", writes=["p"])
    assert service.as_(agent).call("POST", FACTS, NOTE | {"scope": {"projectId": "p"}}).status == 201


# -- causes


@pytest.mark.parametrize(
    "cause",
    [
        "garbage",
        "r",
        "r:0",
        "r:0:abc",
        "r:-1:0123456789abcdef",
        "a b:0:0123456789abcdef",
        "r:0:0123456789ABCDEF",
    ],
)
def test_a_cause_that_is_no_log_id_is_refused_in_facts_and_entries(
    admin: Gateway, fact: str, cause: str
) -> None:
    good = "run-7:3:0123456789abcdef"
    for path, body in (
        (FACTS, NOTE | {"causedByLogId": [good, cause]}),
        (f"{FACTS}/{fact}/supersede", {"causedByLogId": [good, cause]}),
    ):
        assert "run:sequence:nonce" in issues(admin.call("POST", path, body))["/causedByLogId/1"]
    entries = {"entries": [{"kind": "tool-call"}, {"kind": "tool-call", "causedByLogId": cause}]}
    assert "/entries/1/causedByLogId" in issues(admin.call("POST", "/v1/memory/runs/r/log", entries))
    assert admin.call("POST", FACTS, NOTE | {"causedByLogId": [good]}).status == 201  # it need not exist


# -- the service's own runs


@pytest.mark.parametrize("run", ["_holds", "_erasures", "_refresh:x", "_", "_anything"])
def test_no_caller_appends_to_a_run_of_the_services_own(service: TenantService, run: str) -> None:
    for caller in (service.admin, service.of("ann", writes=["p"])):
        reply = caller.call("POST", f"/v1/memory/runs/{run}/log", {"entries": [{"kind": "tool-call"}]})
        refused(reply, "begin with _")


@pytest.mark.parametrize("run", ["_holds", "_erasures"])
def test_the_records_of_holds_and_erasures_are_for_administrators_by_every_route(
    service: TenantService, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    services, ann = service.services, service.of("ann", writes=["p"])
    with monkeypatch.context() as as_the_service:
        as_the_service.setattr(appending, "is_own_run", lambda _: False)
        (entry,) = append_entries(
            services.logs.log, principal("t", admin=True), run, [Request("event-emitted", "x")]
        )
    fact = ann.call("POST", FACTS, NOTE | {"scope": {"projectId": "p"}, "causedByLogId": [entry.id]}).json[
        "id"
    ]
    for path, query in (
        (f"/v1/memory/runs/{run}/log", {}),
        (f"/v1/memory/runs/{run}/log", {"form": "stored"}),
        (f"/v1/memory/runs/{run}/log/verify", {}),
        (f"/v1/memory/log/{entry.id}", {}),
    ):
        assert service.admin.call("GET", path, query=query).status == 200
        refused(ann.call("GET", path, query=query), status=404, code="not-found")
    for caller, node in ((service.admin, "log-entry"), (ann, "unavailable")):
        assert caller.call("GET", f"{FACTS}/{fact}/provenance").json["nodes"][1]["node"] == node


# -- what nobody could ever read

PAST = [
    "2026-05-31T23:59:59.999Z",
    "2026-06-01T00:00:00Z",
    "2026-06-01T01:00:00+01:00",
    "0001-01-01T00:00:00Z",
]


@pytest.mark.parametrize("until", PAST)
def test_a_retention_that_has_run_out_is_refused_on_every_write(
    service: TenantService, fact: str, until: str
) -> None:
    admin = service.admin
    body = NOTE | {"retention": {"keepUntil": until}}
    assert "/retention" in issues(admin.call("POST", FACTS, body))
    assert "/retention" in issues(
        admin.call("POST", f"{FACTS}/{fact}/supersede", {"retention": {"keepUntil": until}})
    )
    results = admin.call("POST", f"{FACTS}/batch", {"items": [NOTE, body, NOTE]}).json["results"]
    assert [each["status"] for each in results] == [201, 400, 201]
    assert "run out" in results[1]["error"]["message"]
    assert len(admin.call("GET", FACTS).json["data"]) == 3
    large = body | {"content": "x" * 70_000}
    assert "/retention" in issues(admin.call("POST", FACTS, large))
    assert isinstance(service.services.memory.blobs, FakeBlobs)
    assert service.services.memory.blobs.bodies == {}
    for keep in ({"keepDays": 1}, {"legalHold": True}):
        kept = admin.call("POST", FACTS, NOTE | {"retention": {"keepUntil": until} | keep})
        assert kept.status == 201
        assert admin.call("GET", f"{FACTS}/{kept.json['id']}").status == 200


def test_a_retention_that_would_end_before_now_is_refused_for_an_old_fact_and_nothing_is_stored(
    service: TenantService, clock: FakeClock, fact: str
) -> None:
    admin, blobs = service.admin, service.services.memory.blobs
    assert isinstance(blobs, FakeBlobs)
    clock.advance(days=10)
    path = f"{FACTS}/{fact}/supersede"
    large = {"content": "x" * 70_000, "retention": {"keepDays": 10}}
    assert "/retention" in issues(admin.call("POST", path, large))
    assert blobs.bodies == {}
    assert admin.call("GET", f"{FACTS}/{fact}").json["version"] == 1
    kept = admin.call("POST", path, {"content": 2, "retention": {"keepDays": 11}})
    assert (kept.status, kept.json["expiresAt"]) == (200, "2026-06-12T00:00:00.000Z")


def test_a_revision_under_a_policy_that_leaves_it_no_time_is_refused_and_says_whose_retention_it_is(
    service: TenantService, clock: FakeClock, fact: str
) -> None:
    clock.advance(days=10)
    short = Policy.model_validate({"retention": {"keepDays": 5}})
    service.services.__dict__["memory"] = replace(service.services.memory, policy=lambda _: short)
    for change, body in (("supersede", {"content": 2}), ("verify", {})):
        reply = service.admin.call("POST", f"{FACTS}/{fact}/{change}", body)
        assert "policy" in issues(reply)["/retention"]
    assert service.admin.call("GET", f"{FACTS}/{fact}").json["version"] == 1
    own = {"content": 2, "retention": {"keepDays": 30}}
    assert service.admin.call("POST", f"{FACTS}/{fact}/supersede", own).status == 200


def test_a_policy_that_would_refuse_every_write_is_refused(service: TenantService) -> None:
    late, past = {"keepUntil": "2027-01-01T00:00:00Z"}, {"keepUntil": "2026-01-01T00:00:00Z"}
    reply = service.admin.call(
        "PUT",
        "/v1/memory/policy",
        {"retention": past, "types": {"a/b": {"retention": past}, "c": {"retention": late}}},
    )
    assert set(issues(reply)) == {"/retention/keepUntil", "/types/a~1b/retention/keepUntil"}


def test_a_replay_of_a_write_that_had_time_when_it_was_sent_is_answered_as_the_first_time(
    admin: Gateway, clock: FakeClock
) -> None:
    body = NOTE | {"retention": {"keepUntil": "2026-06-02T00:00:00Z"}}
    first = admin.call("POST", FACTS, body, key="k")
    longer = {"retention": {"keepUntil": "2027-01-01T00:00:00Z"}}
    assert admin.call("POST", f"{FACTS}/{first.json['id']}/supersede", longer).status == 200
    clock.advance(days=2)
    assert admin.call("POST", FACTS, body, key="k").text == first.text
    refused(
        admin.call("POST", FACTS, body | {"content": 2}, key="k"),
        status=409,
        code="idempotency-key-body-mismatch",
    )
    assert "/retention" in issues(admin.call("POST", FACTS, body, key="other"))


# -- one bad part

FLAWS = {
    "lone surrogate": r'"\ud800"', "lone surrogate in a key": r'{"\udfff":1}', "NaN": "NaN", "beyond a double": "[1e400]", "many digits": "9" * 5000,
    "duplicate key": '{"a":1,"a":2}', "33 levels": "[" * 33 + "]" * 33, "100000 levels": "[" * 100_000 + "]" * 100_000,
    "900 levels": '{"a":' * 900 + "1" + "}" * 900,
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWS.values(), ids=FLAWS)
@pytest.mark.parametrize("key", [None, "k"])
def test_a_flawed_item_of_a_batch_is_refused_alone(admin: Gateway, flaw: str, key: str | None) -> None:
    good = '{"type":"note","content":{"b":1.0,"a":-0.0,"é":18446744073709551616}}'
    text = '{"items":[' + ",".join([good, '{"type":"note","content":' + flaw + "}", good]) + "]}"
    reply = admin.call("POST", f"{FACTS}/batch", raw=text, key=key)
    results = reply.json["results"]
    assert [each["status"] for each in results] == [201, 400, 201]
    assert results[1]["error"]["code"] == "bad-input"
    assert reply.text.count('"content":{"b":1.0,"a":-0.0,"é":18446744073709551616}') == 2
    alone = admin.call("POST", FACTS, raw='{"type":"note","content":' + flaw + "}").json["error"]
    assert results[1]["error"]["message"] == alone["message"]
    assert len(admin.call("GET", FACTS).json["data"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"items":[{"type":"n","content":1},{"type" "n"}]}',
        '{"items":[{"type":"n","content":1}',
        "{",
        '{"items":[NaN],"x":NaN}',
    ],
)
def test_a_batch_that_cannot_be_told_apart_is_refused_whole(admin: Gateway, text: str) -> None:
    refused(admin.call("POST", f"{FACTS}/batch", raw=text))
    assert admin.call("GET", FACTS).json["data"] == []


@pytest.mark.parametrize("flaw", FLAWS.values(), ids=FLAWS)
def test_a_flawed_entry_refuses_the_append_and_is_named(admin: Gateway, flaw: str) -> None:
    good = '{"kind":"tool-call","payload":1}'
    text = '{"entries":[' + ",".join([good, good, '{"kind":"tool-call","payload":' + flaw + "}"]) + "]}"
    reply = admin.call("POST", "/v1/memory/runs/r/log", raw=text)
    assert reply.status == 400
    assert reply.json["error"]["details"]["path"].startswith("/entries/2")
    assert "2" in reply.json["error"]["message"]


@pytest.mark.parametrize("payload", [2**53, 2.0**60], ids=["integer", "float"])
def test_a_payload_without_a_canonical_form_names_its_entry(admin: Gateway, payload: Any) -> None:
    entries = [{"kind": "tool-call"}, {"kind": "tool-call", "payload": {"n": payload}}]
    reply = admin.call("POST", "/v1/memory/runs/r/log", {"entries": entries})
    refused(reply, "Entry 1:", "string")


# -- nothing opens by being empty


@pytest.mark.parametrize("field", ["types", "trust", "subjects"])
def test_an_empty_list_is_no_filter_of_a_search(admin: Gateway, field: str) -> None:
    assert f"/{field}" in issues(
        admin.call("POST", "/v1/memory/retrieve", {"mode": "keyword", "query": "x", field: []})
    )


def test_an_empty_list_is_no_filter_of_a_block(admin: Gateway) -> None:
    asked = {"query": "x", "intents": [{}, {"types": []}]}
    assert "/intents/1/types" in issues(admin.call("POST", "/v1/memory/context", asked))
    asked = {"query": "x", "intents": [{}], "instructionTypes": []}
    assert "/instructionTypes" in issues(admin.call("POST", "/v1/memory/context", asked))
    assert "/intents" in issues(admin.call("POST", "/v1/memory/context", {"query": "x", "intents": []}))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"query": "x"}, ["query"]),
        ({"minScore": 0.5}, ["minScore"]),
        ({"query": "x", "minScore": 0}, ["query", "minScore"]),
    ],
)
def test_a_list_refuses_what_it_would_ignore(admin: Gateway, asked: dict[str, Any], named: list[str]) -> None:
    reply = admin.call("POST", "/v1/memory/retrieve", {"mode": "list", **asked})
    refused(reply, *named)


@pytest.mark.parametrize("mode", ["list", "keyword", "semantic", "both"])
def test_an_empty_query_is_refused(admin: Gateway, mode: str) -> None:
    refused(admin.call("POST", "/v1/memory/retrieve", {"mode": mode, "query": ""}), "/query is empty")
    asked = {"query": "", "intents": [{"mode": mode}]}
    refused(admin.call("POST", "/v1/memory/context", asked), "/query is empty")


# -- what a revision clears

CLEARABLE: dict[str, Any] = {
    "retention": {"keepDays": 9},
    "source": {"kind": "user-input", "freshness": {}, "refresh": {"strategy": "manual"}},
    "causedByLogId": ["r:0:0123456789abcdef"],
    "generatedBy": {"runId": "r"},
    "subjects": [{"kind": "external", "id": "s"}],
    "validFrom": "2026-01-01T00:00:00.000Z",
    "validUntil": "2027-01-01T00:00:00.000Z",
    "observedAt": "2026-01-01T00:00:00.000Z",
}


@pytest.mark.parametrize("name", CLEARABLE)
def test_a_named_field_is_cleared_and_every_other_kept(admin: Gateway, name: str) -> None:
    fact = admin.call("POST", FACTS, NOTE | CLEARABLE).json
    after = admin.call("POST", f"{FACTS}/{fact['id']}/supersede", {"clear": [name]})
    assert after.status == 200, after.text
    kept = {each: value for each, value in CLEARABLE.items() if each != name}
    assert {each: after.json.get(each) for each in CLEARABLE} == kept | {name: None}
    assert ("expiresAt" in after.json) is (name != "retention")
    assert (after.json["content"], after.json["version"]) == (1, 2)
    assert admin.call("GET", f"{FACTS}/{fact['id']}").text == after.text
    both = admin.call("POST", f"{FACTS}/{fact['id']}/supersede", {"clear": [name], name: CLEARABLE[name]})
    assert any(name in message and "clear" in message for message in issues(both).values())


def test_all_are_cleared_at_once_with_new_content_and_a_replay_answers_alike(admin: Gateway) -> None:
    fact = admin.call("POST", FACTS, NOTE | CLEARABLE).json
    body = {"content": 2, "clear": [*CLEARABLE, "source"], "expectVersion": 1}
    first = admin.call("POST", f"{FACTS}/{fact['id']}/supersede", body, key="k")
    assert (first.status, first.json["content"]) == (200, 2)
    assert not CLEARABLE.keys() & first.json.keys()
    assert admin.call("POST", f"{FACTS}/{fact['id']}/supersede", body, key="k").text == first.text


@pytest.mark.parametrize("name", ["content", "scope", "type", "key", "trust", "valid_until", "", "clear", 1])
def test_what_cannot_be_cleared_is_refused_by_its_place(admin: Gateway, fact: str, name: Any) -> None:
    reply = admin.call("POST", f"{FACTS}/{fact}/supersede", {"clear": ["source", name]})
    assert "'validUntil'" in issues(reply)["/clear/1"]
    assert admin.call("POST", FACTS, NOTE | {"clear": ["source"]}).code == "unknown-field"


def test_what_one_fact_answers_another_takes(admin: Gateway) -> None:
    """Scope, retention, subjects and source of an answer are sent back as they are, whatever a revision did to them."""
    fact = admin.call("POST", FACTS, NOTE | CLEARABLE | {"scope": {"projectId": "p"}}).json
    for change in (
        {"clear": ["source"]},
        {"subjects": []},
        {"retention": {}},
        {"retention": {"legalHold": False}},
    ):
        fact = admin.call("POST", f"{FACTS}/{fact['id']}/supersede", change).json
        sent = {name: fact[name] for name in ("scope", "retention", "subjects", "source") if name in fact}
        assert admin.call("POST", FACTS, NOTE | sent).status == 201


# -- names on the wire, and routes


@pytest.mark.parametrize("name", ["caused_by_log_id", "valid_until", "content_hash"])
def test_a_field_has_one_name(admin: Gateway, fact: str, name: str) -> None:
    refused(admin.call("POST", FACTS, NOTE | {name: "x"}), name, code="unknown-field")
    refused(
        admin.call("POST", FACTS, NOTE | {"generatedBy": {"runId": "r", name: "x"}}),
        name,
        code="unknown-field",
    )
    refused(
        admin.call("POST", FACTS, NOTE | {"generatedBy": {"run_id": "r"}}), "run_id", code="unknown-field"
    )
    refused(admin.call("GET", FACTS, query={"as_of": "2026-01-01T00:00:00Z"}), "as_of", code="unknown-field")


def test_a_route_to_come_is_unsupported_for_callers_and_says_nothing_to_others(
    service: TenantService,
) -> None:
    refused(
        service.admin.call("POST", "/mcp", {}),
        "not have this",
        status=501,
        code="memory-operation-unsupported",
    )
    refused(service.admin.as_("").call("POST", "/mcp", {}), status=401, code="auth-missing")
    refused(service.admin.call("PATCH", "/mcp"), status=404, code="not-found")


@pytest.mark.parametrize(
    ("path", "body", "where", "said"),
    [
        (FACTS, NOTE | {"scope": "p"}, "/scope", "must be an object"),
        (FACTS, {"content": 1}, "/type", "is missing"),
        (FACTS, NOTE | {"type": 7}, "/type", "must be a string"),
        (FACTS, NOTE | {"type": "x" * 257}, "/type", "may have 256 characters at most"),
        (FACTS, NOTE | {"key": "a\x07b"}, "/key", "has control characters: leave them out"),
        (FACTS, NOTE | {"onExisting": "fail"}, "/onExisting", "must be 'supersede'"),
        (FACTS, NOTE | {"subjects": {}}, "/subjects", "must be a list"),
        (FACTS, NOTE | {"causedByLogId": "r:0:0"}, "/causedByLogId", "must be a list"),
        (FACTS, NOTE | {"retention": {"legalHold": 1}}, "/retention/legalHold", "must be true or false"),
        (FACTS, NOTE | {"retention": {"keepDays": -1}}, "/retention/keepDays", "must be 1 or more"),
        ("/v1/memory/runs/r/log", {"entries": []}, "/entries", "must have 1 or more items"),
        ("/v1/memory/checkpoints", {"runIds": ["r"] * 101}, "/runIds", "may have 100 items at most"),
        ("/v1/memory/blobs", {"size": "1", "sha256": "0" * 64}, "/size", "must be a whole number"),
        (
            "/v1/memory/blobs",
            {"size": 6 * 2**30, "sha256": "0" * 64},
            "/size",
            f"must be {5 * 2**30} or less",
        ),
        ("/v1/memory/blobs", {"size": 1, "sha256": "A" * 64}, "/sha256", "must be 64 hexadecimal digits"),
        ("/v1/memory/retrieve", {"mode": "list", "minScore": "x"}, "/minScore", "must be a number"),
        ("/v1/memory/retrieve", {"mode": "x"}, "/mode", "must be 'list', 'keyword', 'semantic' or 'both'"),
        (
            "/v1/memory/runs/r/log",
            {"entries": [{"kind": "tool-call", "causedByLogId": ["r:0:0"]}]},
            "/entries/0/causedByLogId",
            "must be a string",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_with_a_field_is_said_in_plain_words_and_first(
    admin: Gateway, path: str, body: Any, where: str, said: str
) -> None:
    reply = admin.call("POST", path, body)
    assert issues(reply)[where].startswith(said)
    assert reply.json["error"]["message"].startswith(f"{where}: {said}")
    assert "details.issues" not in reply.json["error"]["message"]


def test_of_several_faults_the_first_is_said_and_the_others_are_pointed_at(admin: Gateway) -> None:
    reply = admin.call("POST", FACTS, {"scope": 1, "key": 2, "content": 3})
    assert len(issues(reply)) == 3
    refused(reply, "/type: is missing.", "all 3 fields", "details.issues", code="validation-failed")


def test_a_fault_of_a_whole_body_is_said_without_a_path(admin: Gateway) -> None:
    refused(admin.call("POST", FACTS, {"type": "note"}), "content is missing", code="validation-failed")


def test_an_empty_field_is_told_what_to_do_whether_it_is_optional_or_not(admin: Gateway) -> None:
    for path, body, where in (
        (FACTS, NOTE | {"type": ""}, "/type"),
        (FACTS, NOTE | {"scope": {"userId": ""}}, "/scope/userId"),
        ("/v1/memory/retrieve", {"mode": "keyword", "query": ""}, "/query"),
    ):
        refused(admin.call("POST", path, body), f"{where} is empty. Give a value, or leave it out where")


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/health"), ("GET", "/health/"), ("HEAD", "/health/"), ("OPTIONS", "/health")],
)
def test_a_public_path_asks_for_no_token_to_say_what_it_takes(admin: Gateway, method: str, path: str) -> None:
    stranger = admin.as_("")
    refused(stranger.call(method, path), status=404, code="not-found")
    assert stranger.call("GET", "/health").status == 200
    refused(stranger.call("GET", "/healthy"), status=401, code="auth-missing")


def test_who_only_asks_for_the_head_of_health_gets_its_status_and_no_body(admin: Gateway) -> None:
    stranger = admin.as_("")
    reply = stranger.call("HEAD", "/health")
    assert (reply.status, reply.text) == (200, "")
    assert reply.headers["Content-Type"] == stranger.call("GET", "/health").headers["Content-Type"]
    refused(stranger.call("HEAD", "/v1/memory/status"), status=401, code="auth-missing")


def test_a_wrong_method_is_told_the_right_ones_and_no_id_is_repeated(admin: Gateway, fact: str) -> None:
    reply = admin.call("PUT", f"{FACTS}/{fact}")
    refused(reply, "/v1/memory/facts/{id} takes GET and DELETE", status=404, code="not-found")
    assert fact not in reply.text


def test_every_refusal_at_a_door_tells_what_to_do_and_repeats_no_value(admin: Gateway, fact: str) -> None:
    secret = "do not repeat me"
    bodies: list[tuple[str, Any]] = [
        (
            FACTS,
            NOTE
            | {"scope": {"threadId": secret}, "causedByLogId": [secret], "generatedBy": {"runId": secret}},
        ),
        (f"{FACTS}/{fact}/supersede", {"clear": [secret]}),
        ("/v1/access/tokens", {"actor": {"kind": "agent", "id": secret}}),
        (f"/v1/memory/runs/{secret.replace(' ', '%20')}/log", {"entries": [{"kind": "tool-call"}]}),
        ("/v1/memory/retrieve", {"mode": "list", "query": secret}),
    ]
    for path, body in bodies:
        reply = admin.call("POST", path, body)
        assert reply.status == 400
        assert secret not in reply.text
