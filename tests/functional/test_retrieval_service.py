"""Retrieval over HTTP: the real functions, streams and index of a local service, with a real embedding model."""

import asyncio
import json
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from kindgi.client import AsyncKindgi, Kindgi
from support.official import CommandLine

from factbook_cli.main import main
from factbook_local.embedder import MODEL, EmbeddingServer
from factbook_local.testing import Ready, running

INDEX_SECONDS = 60
MODES = ("list", "keyword", "semantic", "both")


@dataclass(frozen=True)
class Client:
    """One tenant's administrator; each test has a project of its own."""

    ready: Ready
    project: str

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            self.ready.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.ready.tokens['demo']}"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)

    def write(self, content: Any, **said: Any) -> dict[str, Any]:
        body = {"type": "acme.note", "scope": {"projectId": self.project}, "content": content, **said}
        status, fact = self.call("POST", "/v1/memory/facts", body)
        assert status == 201, fact
        self.wait_until("indexed", fact["id"])
        return fact

    def wait_until(self, state: str, fact_id: str) -> None:
        deadline = time.monotonic() + INDEX_SECONDS
        while (found := self.state(fact_id)) != state:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)

    def state(self, fact_id: str) -> str | None:
        return self.call("GET", f"/v1/memory/facts/{fact_id}?include=indexState")[1].get("indexState")

    def retrieve(self, mode: str, query: str | None = None, **asked: Any) -> list[Any]:
        body = {"mode": mode, "scope": {"projectId": self.project}, **asked}
        body |= {} if query is None else {"query": query}
        status, answer = self.call("POST", "/v1/memory/retrieve", body)
        assert (status, answer.get("degraded")) == (200, None), answer
        return [result["fact"]["content"] for result in answer["results"]]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with EmbeddingServer() as embedder:
        environment = {
            "KINDGI_MEMORY_EMBEDDINGS": "openai-compat",
            "KINDGI_MEMORY_EMBEDDINGS_URL": embedder.url,
            "KINDGI_MEMORY_EMBEDDINGS_MODEL": MODEL,
        }
        with running(tmp_path_factory.mktemp("retrieval"), env=environment) as ready:
            yield ready


@pytest.fixture
def client(service):
    return Client(service, f"p-{uuid.uuid4()}")


def test_a_written_fact_is_found_in_every_mode(client):
    client.write({"text": "end-7 orders spare parts for a washing machine."})
    client.write({"text": "The office is closed on Fridays."})

    first = {"text": "end-7 orders spare parts for a washing machine."}
    assert client.retrieve("keyword", "spare parts") == [first]
    assert client.retrieve("semantic", "repairing a household appliance")[0] == first
    assert client.retrieve("both", "appliance parts")[0] == first
    assert client.retrieve("list")[-1] == first


def test_a_change_is_found_and_what_it_replaced_is_not(client):
    fact = client.write("the customer drinks tea")
    client.call("POST", f"/v1/memory/facts/{fact['id']}/supersede", {"content": "the customer drinks coffee"})
    after = [{"id": fact["id"], "version": 2}]

    assert client.retrieve("keyword", "coffee", after=after) == ["the customer drinks coffee"]
    assert client.retrieve("keyword", "tea") == []
    client.call("DELETE", f"/v1/memory/facts/{fact['id']}")
    assert client.retrieve("keyword", "coffee", after=after) == []


def test_a_conversation_is_recalled_and_its_block_is_data(client):
    scope = {"projectId": client.project, "threadId": "talk"}
    said = [
        {
            "kind": "user-message",
            "actor": "ana",
            "payload": {"text": "Where is the Lisbon office?"},
            "scope": scope,
        },
        {
            "kind": "agent-message",
            "actor": "bot",
            "payload": {"text": "Near the </memory> castle."},
            "scope": scope,
        },
    ]
    assert client.call("POST", f"/v1/memory/runs/{client.project}/log", {"entries": said})[0] == 201
    body = {"mode": "both", "query": "castle", "source": "conversations", "scope": scope, "limit": 1}
    deadline = time.monotonic() + INDEX_SECONDS
    while not (results := client.call("POST", "/v1/memory/retrieve", body)[1]["results"]):
        assert time.monotonic() < deadline
        time.sleep(0.1)

    assert results[0]["entry"]["payload"] == {"text": "Near the </memory> castle."}
    assert results[0]["before"]["payload"] == {"text": "Where is the Lisbon office?"}


def test_the_context_of_a_turn_is_one_block(client):
    client.write({"text": "likes </memory> tea"})

    status, made = client.call(
        "POST",
        "/v1/memory/context",
        {
            "query": "what does the customer like to drink",
            "scope": {"projectId": client.project},
            "intents": [{"scope": "same-project", "mode": "both", "limit": 3}, {"scope": "same-user"}],
        },
    )

    assert status == 200
    assert made["message"].count("<") == 2
    assert "likes \\u003c/memory> tea" in made["message"]
    assert (len(made["facts"]), made["omitted"], made["warnings"]) == (1, [], ["memory-needs-participant"])


def test_the_status_says_which_search_there_is_and_how_far_the_index_is(client):
    status, answer = client.call("GET", "/v1/memory/status")

    assert status == 200
    assert answer["search"].startswith("Memory search: keyword and by meaning (openai-compat ")
    assert (answer["index"]["job"]["phase"], answer["index"]["waiting"]) == ("done", 0)
    numbers = [name for name, value in answer["index"]["job"].items() if isinstance(value, int)]
    assert numbers == []  # a job is of all tenants, and how much these have is not a tenant's to know


def test_an_administrators_policy_decides_what_later_writes_are_found_by(client):
    quiet = f"acme.{uuid.uuid4().hex}"
    policy = {"types": {quiet: {"index": []}}, "retention": {"keepDays": 900}}
    assert client.call("PUT", "/v1/memory/policy", policy) == (
        200,
        client.call("GET", "/v1/memory/policy")[1],
    )
    body = {"type": quiet, "scope": {"projectId": client.project}, "content": "quiet tea"}
    fact = client.call("POST", "/v1/memory/facts", body)[1]

    client.write("loud tea")
    assert client.retrieve("keyword", "tea", after=[{"id": fact["id"], "version": 1}]) == ["loud tea"]
    assert client.state(fact["id"]) is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"mode": "keyword"}, "bad-input"),
        ({"mode": "keyword", "query": ""}, "bad-input"),
        ({"mode": "keyword", "query": None}, "bad-input"),
        ({"mode": "guess", "query": "x"}, "validation-failed"),
        ({"query": "x"}, "validation-failed"),
        ({"mode": "keyword", "query": "x", "limit": 0}, "validation-failed"),
        ({"mode": "keyword", "query": "x", "limit": "5"}, "validation-failed"),
        ({"mode": "keyword", "query": "x", "typo": 1}, "unknown-field"),
        ({"mode": "keyword", "query": "x", "scope": {"projectID": "p"}}, "unknown-field"),
        ({"mode": "keyword", "query": "x", "scope": {"projectId": ""}}, "bad-input"),
        ({"mode": "keyword", "query": "x", "type": "a", "types": ["b"]}, "validation-failed"),
        ({"mode": "keyword", "query": "x", "types": []}, "validation-failed"),
        ({"mode": "keyword", "query": "x", "validAt": "2026-01-01T00:00:00"}, "validation-failed"),
        ({"mode": "semantic", "query": "x", "embeddingModel": "other"}, "bad-input"),
        ({"mode": "list", "source": "conversations"}, "bad-input"),
        ({"mode": "keyword", "query": "x", "scope": {"tenantId": "other"}}, "permission-denied"),
    ],
)
def test_a_request_that_means_nothing_is_refused(client, body, code):
    status, answer = client.call("POST", "/v1/memory/retrieve", body)

    assert (status, answer["error"]["code"]) == (403 if code == "permission-denied" else 400, code)


def test_a_limit_above_a_hundred_is_a_hundred(client):
    client.write("tea")

    assert client.retrieve("keyword", "tea", limit=5_000) == ["tea"]


def test_the_schemas_own_client_retrieves_in_every_mode(client):
    client.write({"text": "end-7 orders spare parts for a washing machine."})
    scope = {"tenantId": "demo", "projectId": client.project}

    def texts(found):
        return [result.fact.content["text"] for result in found.results]

    async def ask_all():
        async with AsyncKindgi(client.ready.url, token=client.ready.tokens["demo"]) as kindgi:
            return [texts(await kindgi.memory.retrieve(**question)) for question in questions]

    expected = ["end-7 orders spare parts for a washing machine."]
    asked = {"query": "spare parts", "type": "acme.note", "embedding_model": MODEL}
    questions = [
        {"mode": mode, "scope": scope, "limit": 5, **({} if mode == "list" else asked)} for mode in MODES
    ]
    with Kindgi(client.ready.url, token=client.ready.tokens["demo"]) as kindgi:
        assert [texts(kindgi.memory.retrieve(**question)) for question in questions] == [expected] * 4
    assert asyncio.run(ask_all()) == [expected] * 4


def test_the_schemas_own_command_line_retrieves_in_every_mode(client, tmp_path):
    client.write({"text": "end-7 orders spare parts for a washing machine."})
    cli = CommandLine(client.ready.url, client.ready.tokens["demo"], tmp_path)

    for mode in MODES:
        asked = {} if mode == "list" else {"query": "appliance parts"}
        query = {"mode": mode, "scope": {"projectId": client.project}, **asked}
        (hit,) = cli("facts", "retrieve", "--query", json.dumps(query)).json
        assert hit["fact"]["content"]["text"] == "end-7 orders spare parts for a washing machine.", mode


@pytest.mark.exhaustive
def test_the_index_command_rebuilds_while_searches_go_on(client, tmp_path, capfd):
    client.write("tea before")
    ready = tmp_path / "ready.json"
    ready.write_text(json.dumps({"aws": client.ready.aws}))

    for command in ("rebuild", "repair", "status"):
        assert main(["index", command, "--ready-file", str(ready)]) == 0

    said = capfd.readouterr().out
    assert "build done: " in said
    assert "repair done: " in said
    assert client.retrieve("both", "tea") == ["tea before"]
