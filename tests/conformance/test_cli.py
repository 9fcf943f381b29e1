"""Every fact command of the schema's public command line, unmodified, against the local service."""

import json
import re
import uuid

import pytest
from support.gateway import ROOT
from support.official import CommandLine

from .conftest import NewToken

ERASURES = {f"erasures {name}" for name in ("create", "get", "list", "resume", "export", "replay")}
FACTS = {
    f"facts {name}"
    for name in ("list", "get", "revisions", "write", "supersede", "delete", "verify", "retrieve")
}


def test_the_document_names_every_command_there_is() -> None:
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")

    assert {name for name in FACTS | ERASURES if f"`{name}`" in text} == FACTS | ERASURES


@pytest.fixture(scope="module")
def project() -> str:
    return f"p {uuid.uuid4()}"


def test_a_fact_lives_through_every_command(cli: CommandLine, project: str) -> None:
    scope = {"projectId": project}
    body = {"type": "note", "scope": scope, "content": {"text": "v1", "ü": [1.5, None]}}
    written = cli("facts", "write", "--input", json.dumps(body)).json
    assert written["scope"] == {"tenantId": "cli", "projectId": project}
    assert (written["version"], written["content"]) == (1, body["content"])
    fact_id = written["id"]

    changed = cli("facts", "supersede", fact_id, "--input", '{"content": "v2"}', "--expect-version", "1").json
    assert (changed["version"], changed["content"]) == (2, "v2")
    verified = cli("facts", "verify", fact_id, "--expect-version", "2").json
    assert (verified["version"], verified["trust"]) == (3, "verified")

    assert cli("facts", "get", fact_id).json == verified
    assert cli("facts", "get", fact_id, "--revision", "1").json["content"] == body["content"]
    assert cli("facts", "get", fact_id, "--as-of", changed["updatedAt"]).json["version"] == 2
    assert cli("facts", "retrieve", "--query", json.dumps({"mode": "list", "scope": scope})).json == [
        {"fact": verified}
    ]

    deleted = cli("facts", "delete", fact_id, "--expect-version", "3").json
    assert (deleted["version"], deleted["invalidationReason"]) == (3, "deleted")
    history = cli("facts", "revisions", fact_id).json
    assert [revision["version"] for revision in history] == [3, 2, 1]
    page = cli("facts", "list", "--scope", json.dumps(scope)).json
    assert page == {"data": [], "hasMore": False}
    then = cli("facts", "list", "--scope", json.dumps(scope), "--as-of", verified["updatedAt"]).json
    assert [fact["version"] for fact in then["data"]] == [3]
    assert cli.called == FACTS


def test_a_fact_written_without_a_tenant_goes_to_the_tokens_own(cli: CommandLine) -> None:
    written = cli("facts", "write", "--input", '{"type": "note", "content": null}').json

    assert written["scope"] == {"tenantId": "cli"}
    assert written["content"] is None


def test_a_list_goes_on_at_its_cursor(cli: CommandLine) -> None:
    kind = f"kind-{uuid.uuid4()}"
    written = [
        cli("facts", "write", "--input", json.dumps({"type": kind, "content": n})).json["id"]
        for n in range(3)
    ]
    first = cli("facts", "list", "--type", kind, "--limit", "2").json
    rest = cli("facts", "list", "--type", kind, "--limit", "2", "--cursor", first["nextCursor"]).json

    assert [fact["id"] for fact in first["data"] + rest["data"]] == written[::-1]
    assert (first["hasMore"], rest["hasMore"], "nextCursor" in rest) == (True, False, False)


def test_a_terminal_shows_what_is_there(cli: CommandLine) -> None:
    kind = f"kind-{uuid.uuid4().hex[:8]}"
    cli("facts", "write", "--input", json.dumps({"type": kind, "content": "seen by a person"}))
    for command in (
        ["facts", "list", "--type", kind],
        ["facts", "retrieve", "--query", json.dumps({"mode": "list", "type": kind})],
    ):
        seen = cli.on_a_terminal(*command)
        assert kind in seen
        assert not re.search(r"undefined|\bNaN\b|\{\}", seen)


def test_an_expectation_that_fails_ends_with_its_code(cli: CommandLine) -> None:
    fact_id = cli("facts", "write", "--input", '{"type": "note", "content": 1}').json["id"]
    for command in (["supersede", "--input", '{"content": 2}'], ["verify"], ["delete"]):
        name, *rest = command
        printed = cli("facts", name, fact_id, *rest, "--expect-version", "7")
        assert (printed.code, printed.out) == (1, "")
        assert printed.err.startswith("Error [fact-changed]: The fact is at version 1.")


def test_refusals_end_with_their_code_and_say_what_to_do(cli: CommandLine, new_token: NewToken) -> None:
    missing = cli("facts", "get", str(uuid.uuid4()))
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("Error [not-found]: No such fact, or not one you may read.")

    forbidden = cli.as_(new_token("cli", "user", "eve"))(
        "facts", "write", "--input", '{"type": "note", "content": 1}'
    )
    assert (forbidden.code, forbidden.out) == (1, "")
    assert forbidden.err.startswith("Error [auth]: ")

    unknown = cli.as_("nobody's")("facts", "list")
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.startswith("Error [auth]: ")

    wrong = cli("facts", "list", "--limit", "0")
    assert (wrong.code, wrong.out) == (1, "")
    assert wrong.err.startswith("Error [invalid-request]: ")

    semantic = cli("facts", "retrieve", "--query", '{"mode": "semantic", "query": "walrus"}')
    assert (semantic.code, semantic.out) == (1, "")
    assert semantic.err.startswith('Error [semantic-unavailable]: Mode "semantic" searches by meaning')


def test_a_keyword_search_prints_its_hits(cli: CommandLine) -> None:
    fact = cli("facts", "write", "--input", '{"type": "note", "content": "a narwhal at noon"}').json
    query = {"mode": "keyword", "query": "narwhal", "after": [{"id": fact["id"], "version": 1}]}
    (hit,) = cli("facts", "retrieve", "--query", json.dumps(query)).json

    assert hit["fact"] == fact
    assert hit["score"] > 0
    seen = cli.on_a_terminal("facts", "retrieve", "--query", json.dumps(query))
    assert not re.search(r"undefined|\bNaN\b", seen)
