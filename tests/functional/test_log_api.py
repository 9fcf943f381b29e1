"""The log's routes, called as API Gateway calls them: what they answer, to whom, and what an append costs."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import Gateway
from support.logs import CHECKPOINT_APP, LogService
from support.principals import issue, principal

from factbook.adapters.log.dynamodb_entries import entry_records
from factbook.domain.log.chain import text_hash

RUN = "/v1/memory/runs/r1/log"


@pytest.fixture
def log_service(ministack: Aws, tmp_path: Path) -> LogService:
    return LogService(ministack, tmp_path)


def as_(log_service: LogService, name: str, **grants: Any) -> Gateway:
    return log_service.admin.as_(issue(log_service.services, principal(log_service.tenant, name, **grants)))


def test_a_run_is_read_in_pages_from_a_sequence_on(log_service: LogService) -> None:
    written = log_service.append("r1", *range(7))
    seen, query = [], {"sinceSequence": 2, "limit": 2}
    while True:
        page = log_service.admin.call("GET", RUN, query=query).json
        seen += page["data"]
        if not page["hasMore"]:
            break
        query = {"limit": 2, "cursor": page["nextCursor"]}
    assert seen == written[2:]


def test_the_stored_form_is_what_hashes_to_the_entry_hash(log_service: LogService) -> None:
    written = log_service.append("r1", {"text": "hidden words"}, scope={"userId": "u"})
    (stored,) = log_service.admin.call("GET", RUN, query={"form": "stored"}).json["data"]
    assert stored["entryHash"] == text_hash(stored["canonical"]) == written[0]["entryHash"]
    assert "hidden words" not in stored["canonical"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "validation-failed"),
        ({"entries": []}, "validation-failed"),
        ({"entries": [{"kind": "tool-call"}] * 101}, "validation-failed"),
        ({"entries": [{"kind": "gossip"}]}, "validation-failed"),
        ({"entries": [{"kind": "tool-call", "paylod": 1}]}, "unknown-field"),
        ({"entries": [{"kind": "tool-call", "actor": ""}]}, "bad-input"),
        ({"entries": [{"kind": "tool-call", "actor": None}]}, "bad-input"),
        ({"entries": [{"kind": "tool-call", "payload": 2**53}]}, "bad-input"),
        ({"entries": [{"kind": "tool-call", "scope": {"participantId": "x"}}]}, "scope-invalid"),
        ({"entries": [{"kind": "tool-call", "scope": {"tenantId": "other"}}]}, "permission-denied"),
        ({"entries": [{"kind": "tool-call"}], "afterSequence": 4}, "log-changed"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_refused_append_writes_nothing(log_service: LogService, body: Any, code: str) -> None:
    reply = log_service.admin.call("POST", RUN, body)
    assert reply.code == code, reply.text
    log_service.runs.add("r1")
    assert log_service.items() == []


def test_a_proof_that_cannot_be_had_says_whether_the_entry_or_the_checkpoint_is_missing(
    log_service: LogService,
) -> None:
    def refusal(sequence: int) -> str:
        reply = log_service.admin.call("GET", f"{RUN}/proof", query={"sequence": sequence})
        assert (reply.status, reply.code) == (404, "not-found")
        return str(reply.json["error"]["message"])

    log_service.append("r1", "x")
    assert "POST /v1/memory/checkpoints" in refusal(0)
    assert "no entry 99" in refusal(99)
    log_service.checkpoint()
    log_service.append("r1", "y")
    assert "POST /v1/memory/checkpoints" in refusal(1)
    assert "no entry 99" in refusal(99)


def test_after_sequence_on_a_run_without_entries_says_what_to_send(log_service: LogService) -> None:
    log_service.runs.add("r1")
    body = {"entries": [{"kind": "tool-call"}], "afterSequence": 7}
    error = log_service.admin.call("POST", RUN, body).json["error"]
    assert error["message"] == "The run has no entries yet. Send afterSequence -1."
    assert error["details"] == {"currentSequence": -1}
    assert log_service.admin.call("POST", RUN, body | {"afterSequence": -1}).status == 201


def test_who_may_not_read_a_runs_scope_finds_nothing_of_it(log_service: LogService) -> None:
    (entry,) = log_service.append("r1", "x", kind="user-message", scope={"projectId": "p", "threadId": "t"})
    log_service.checkpoint()
    for paths in (RUN, f"{RUN}/verify", f"{RUN}/proof?sequence=0", f"/v1/memory/log/{entry['id']}"):
        path, _, _ = paths.partition("?")
        query = {"sequence": 0} if "?" in paths else None
        for reader in (as_(log_service, "eve"), as_(log_service, "bob", reads=["p"])):
            reply = reader.call("GET", path, query=query)
            assert (reply.status, reply.code) == (404, "not-found"), path
        assert as_(log_service, "ann", writes=["p"]).call("GET", path, query=query).status == 200, path
    assert as_(log_service, "eve").call("GET", "/v1/memory/threads/t/messages").json["data"] == []


def test_a_threads_messages_come_in_order_across_runs_and_no_other_entry(log_service: LogService) -> None:
    scope = {"projectId": "p", "threadId": "t"}
    for run, kind, text in (
        ("r1", "user-message", "one"),
        ("r2", "agent-message", "two"),
        ("r1", "tool-call", "no message"),
        ("r1", "system-message", "three"),
    ):
        log_service.append(run, text, kind=kind, scope=scope)
    log_service.append("r3", "elsewhere", kind="user-message", scope={"projectId": "q", "threadId": "t"})
    path = "/v1/memory/threads/t/messages"
    seen, query = [], {"limit": 2, "projectId": "p"}
    while True:
        page = log_service.admin.call("GET", path, query=query).json
        seen += [entry["payload"] for entry in page["data"]]
        if not page["hasMore"]:
            break
        query = {"limit": 2, "projectId": "p", "cursor": page["nextCursor"]}
    assert seen == ["one", "two", "three"]
    newest = log_service.admin.call("GET", path, query={"order": "desc", "limit": 1}).json["data"]
    assert [entry["payload"] for entry in newest] == ["elsewhere"]
    assert len(as_(log_service, "ann", writes=["p"]).call("GET", path).json["data"]) == 3


def test_strangers_messages_under_a_threads_name_take_no_page_and_show_in_none(
    log_service: LogService,
) -> None:
    """Each page of a reader is full while there is more of theirs, and one who has nothing sees no end of pages."""

    def say(run: str, user: str, count: int) -> None:
        entry = {"kind": "user-message", "scope": {"userId": user, "threadId": "main"}, "payload": user}
        for start in range(0, count, 100):
            body = {"entries": [entry] * min(100, count - start)}
            assert as_(log_service, user).call("POST", f"/v1/memory/runs/{run}/log", body).status == 201

    for number, (user, count) in enumerate((("bob", 1), ("ann", 400), ("bob", 2), ("ann", 100))):
        say(f"r{number}", user, count)
    path, pages = "/v1/memory/threads/main/messages", []
    query: dict[str, Any] = {"limit": 1}
    while True:
        page = as_(log_service, "bob").call("GET", path, query=query).json
        pages.append([entry["payload"] for entry in page["data"]])
        if not page["hasMore"]:
            break
        query["cursor"] = page["nextCursor"]
    assert pages[:3] == [["bob"]] * 3
    assert pages[3:] in ([], [[]])
    nothing = {"data": [], "hasMore": False}
    assert as_(log_service, "eve").call("GET", path, query={"limit": 1}).json == nothing
    assert as_(log_service, "bob").call("GET", path, query={"userId": "ann"}).json == nothing
    seen = as_(log_service, "ann").call("GET", path, query={"limit": 100, "order": "desc"}).json
    assert len(seen["data"]) == 100


def test_only_an_administrator_makes_checkpoints_or_reads_leaves(log_service: LogService) -> None:
    ann = as_(log_service, "ann", writes=["p"])
    assert log_service.admin.call("GET", "/v1/memory/checkpoints/latest").status == 404
    assert log_service.admin.call("POST", "/v1/memory/checkpoints", {}).status == 404
    log_service.append("r1", 1)
    assert ann.call("POST", "/v1/memory/checkpoints", {}).code == "permission-denied"
    assert ann.call("GET", "/v1/memory/checkpoints/leaves").code == "permission-denied"
    made = log_service.admin.call("POST", "/v1/memory/checkpoints", {"runIds": ["r1"]})
    assert (made.status, made.json["size"]) == (201, 1)
    assert made.json["vkey"] == log_service.vkey
    for path in ("/v1/memory/checkpoints/latest", "/v1/memory/checkpoints"):
        reply = ann.call("GET", path).json
        assert (reply["data"][0] if "data" in reply else reply)["note"] == made.json["note"]


def test_provenance_leads_from_a_fact_to_the_causes_of_its_causes(log_service: LogService) -> None:
    (asked,) = log_service.append("r1", "please", scope={"projectId": "p"})
    (called,) = log_service.append("r1", "tool", causedByLogId=asked["id"])
    (hidden,) = log_service.append("r2", "secret", scope={"projectId": "q"})
    body = {"type": "note", "scope": {"projectId": "p"}, "content": 1, "causedByLogId": [called["id"]]}
    fact = log_service.admin.call("POST", "/v1/memory/facts", body).json
    change = {"content": 2, "causedByLogId": [hidden["id"], "r9:0:0123456789abcdef"]}
    assert log_service.admin.call("POST", f"/v1/memory/facts/{fact['id']}/supersede", change).status == 200
    path = f"/v1/memory/facts/{fact['id']}/provenance"
    graph = log_service.admin.call("GET", path).json
    assert [node["node"] for node in graph["nodes"]].count("unavailable") == 1
    edges = {(edge["from"], edge["relation"], edge["to"]) for edge in graph["edges"]}
    first, second = f"{fact['id']}:1", f"{fact['id']}:2"
    assert {
        (second, "supersedes", first),
        (second, "caused-by", hidden["id"]),
        (first, "caused-by", called["id"]),
        (called["id"], "caused-by", asked["id"]),
    } <= edges
    assert graph["truncated"] is False
    seen = as_(log_service, "ann", reads=["p"]).call("GET", path).json
    kinds = {node["id"]: node["node"] for node in seen["nodes"]}
    assert kinds[hidden["id"]] == "unavailable"
    assert kinds[called["id"]] == "log-entry"
    assert as_(log_service, "eve").call("GET", path).code == "fact-not-found"


def test_a_warm_append_of_a_kilobyte_is_one_call_and_one_write_unit(log_service: LogService) -> None:
    log_service.append("r1", "warm", kind="user-message", scope={"projectId": "p", "threadId": "t"})
    calls: list[tuple[str, Any]] = []

    def count(params: Any, model: Any, **_: Any) -> None:
        calls.append((model.name, params.get("Item")))

    events = log_service.services._client("dynamodb").meta.events
    events.register("before-parameter-build.dynamodb", count)
    try:
        log_service.append("r1", "x" * 250, kind="user-message")
    finally:
        events.unregister("before-parameter-build.dynamodb", count)
    assert [name for name, _ in calls] == ["PutItem"]
    size = sum(len(name) + len(next(iter(value.values())).encode()) for name, value in calls[0][1].items())
    assert size <= 1024, "one unit for the item, and one for its place in its thread"
    assert {"th", "to"} <= calls[0][1].keys()


def test_the_checkpoint_function_reports_changes_that_are_no_appends(
    log_service: LogService, caplog: pytest.LogCaptureFixture
) -> None:
    log_service.append("r1", 1)
    (record,) = log_service.stream()
    assert CHECKPOINT_APP.mark(log_service.services.logs, [record | {"eventName": "MODIFY"}]) == {
        "batchItemFailures": []
    }
    assert "past the service" in caplog.text
    assert json.dumps(record["dynamodb"]["NewImage"]["j"]["S"]) not in caplog.text


@pytest.mark.parametrize("part", ["tenant", "run"])
def test_an_item_whose_text_names_another_place_than_its_key_is_foreign_to_all_that_follow_the_log(
    log_service: LogService, caplog: pytest.LogCaptureFixture, part: str
) -> None:
    log_service.append("r1", 1)
    (record,) = log_service.stream()
    ours = f"{log_service.tenant}|r1"
    keys = record["dynamodb"]["Keys"] | {"pk": {"S": ours + "x" if part == "run" else "x" + ours}}
    planted = record | {"dynamodb": record["dynamodb"] | {"Keys": keys}}
    tree = log_service.services.logs.tree
    for mark in list(tree.dirty_of(log_service.tenant)):
        tree.clear(mark)

    CHECKPOINT_APP.mark(log_service.services.logs, [planted])

    assert "past the service" in caplog.text
    assert list(tree.dirty_of(log_service.tenant)) == []
    assert [found.entry for found in entry_records([planted])] == [None]
    assert [found.entry is not None for found in entry_records([record])] == [True]


def test_an_append_that_shows_one_entry_after_the_other_is_no_gap(
    log_service: LogService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query beside a transaction may meet some of its items and not yet the others."""
    written = log_service.append("r1", *range(4))
    store = log_service.services.logs.store
    of_store, asked = store.entries, []

    def halfway(*arguments: Any) -> Any:
        found, more = of_store(*arguments)
        asked.append(len(found))
        return ([entry for entry in found if entry.sequence != 2], more) if len(asked) == 1 else (found, more)

    monkeypatch.setattr(store, "entries", halfway)
    assert log_service.admin.call("GET", RUN).json["data"] == written
    assert len(asked) == 2
