"""A setting that cannot be used stops the part that needs it and no other, and is said in the status and the log."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import ROOT, Reply, load_app
from support.principals import TenantService

from factbook.ports.retrieval.index import EmbeddingSpace
from factbook.settings import Settings

OPENAI = {
    "memory_embeddings": "openai",
    "memory_embeddings_url": "http://127.0.0.1:9/v1",
    "memory_embeddings_model": "m",
}
TRUE = {"memory_embeddings": "true"}
ALONE = {"memory_embeddings": "openai-compat"}
STATUS, FACTS, RETRIEVE = "/v1/memory/status", "/v1/memory/facts", "/v1/memory/retrieve"
CONTEXT = "/v1/memory/context"


@pytest.fixture
def members(moto: Aws, tenant: str, tmp_path: Path) -> TenantService:
    made = moto.services()
    made.settings = replace(moto.settings, search_sqlite=str(tmp_path / "index.sqlite"))
    members = TenantService(made, tenant)
    retrieve = load_app("retrieve")
    retrieve.services = lambda: made
    members.admin.apps["retrieve"] = retrieve
    return members


def index(members: TenantService, event: dict[str, Any]) -> dict[str, Any]:
    """What the index function answers."""
    spec = importlib.util.spec_from_file_location("index_app", ROOT / "functions" / "index" / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.lambda_handler.services = lambda: members.services
    answer: dict[str, Any] = module.lambda_handler(event)
    return answer


def give(members: TenantService, **settings: str) -> None:
    members.services.settings = replace(members.services.settings, **settings)


def found(reply: Reply) -> list[str]:
    assert reply.status == 200, reply.text
    return [each["fact"]["content"] for each in reply.json["results"]]


def test_an_issuer_that_cannot_be_used_leaves_those_with_api_tokens_and_is_said(
    members: TenantService,
) -> None:
    issuer = {"oidc_issuer": "https://id.example.com", "oidc_audience": "https://memory.example.com"}
    give(members, **issuer, oidc_claims='{"tenannt": "tid"}')
    problem = members.services.settings.sign_on_problem
    caller = members.admin
    assert caller.call("POST", FACTS, {"type": "note", "content": "tea"}).status == 201
    assert problem in caller.call("GET", STATUS).json["problems"]
    assert "tenannt" not in problem

    caller.token = "aaa.bbb.ccc"
    refused = caller.call("GET", FACTS)
    assert (refused.status, refused.code) == (503, "storage-unavailable")
    assert refused.json["error"]["message"] == problem


@pytest.mark.parametrize("wrong", [TRUE, OPENAI, ALONE], ids=["true", "openai", "without URL and model"])
def test_embeddings_that_cannot_be_used_leave_lists_words_and_writes(
    members: TenantService, wrong: dict[str, str]
) -> None:
    give(members, **wrong)
    problem = members.services.settings.embeddings_problem
    caller = members.admin
    assert caller.call("POST", FACTS, {"type": "note", "content": "tea at four"}).status == 201
    assert index(members, {"factbook": "reconcile"})["problem"] == problem

    assert found(caller.call("POST", RETRIEVE, {"mode": "list"})) == ["tea at four"]
    assert found(caller.call("POST", RETRIEVE, {"mode": "keyword", "query": "tea"})) == ["tea at four"]
    both = caller.call("POST", RETRIEVE, {"mode": "both", "query": "tea"})
    assert (found(both), both.json["degraded"]) == (["tea at four"], "no-embeddings")
    semantic = caller.call("POST", RETRIEVE, {"mode": "semantic", "query": "tea"})
    assert (semantic.status, semantic.code) == (422, "semantic-unavailable")
    turn = {"query": "tea", "intents": [{"types": ["note"], "scope": "tenant"}]}
    assert "tea at four" in caller.call("POST", CONTEXT, turn).json["message"]

    status = caller.call("GET", STATUS).json
    assert status["problems"] == [problem]
    assert status["search"] == f"Memory search: keyword ({problem})"


def test_vectors_wait_until_the_setting_is_mended(members: TenantService) -> None:
    give(members, **OPENAI)
    searching = members.services.searching
    made = searching.index.create(EmbeddingSpace("m", 8))
    searching.index.activate(made.name)
    fact = members.admin.call("POST", FACTS, {"type": "note", "content": "tea"}).json

    index(members, {"factbook": "reconcile"})

    assert [each.name for each in searching.index.indexes()] == [
        made.name
    ]  # no index without vectors takes its place
    note = searching.backlog.of(members.tenant, fact["id"])
    assert note is not None
    assert note.trouble == "embedding"


@pytest.mark.parametrize("wrong", [{"opensearch_url": "localhost:9200"}, {"opensearch_engine": "nmslib"}])
def test_a_search_that_cannot_be_used_leaves_facts_and_the_log(
    members: TenantService, wrong: dict[str, str]
) -> None:
    give(members, **wrong)
    problem = members.services.settings.search_problem
    caller = members.admin
    made = caller.call("POST", FACTS, {"type": "note", "content": "tea"})
    assert made.status == 201
    assert caller.call("GET", f"{FACTS}/{made.json['id']}").status == 200
    entries = {"entries": [{"kind": "tool-call", "payload": {}}]}
    assert caller.call("POST", "/v1/memory/runs/r1/log", entries).status == 201
    refused = caller.call("POST", RETRIEVE, {"mode": "keyword", "query": "tea"})
    assert (refused.status, refused.code, refused.json["error"]["message"]) == (
        503,
        "search-unavailable",
        problem,
    )
    assert index(members, {"factbook": "reconcile"})["problem"] == problem
    status = caller.call("GET", STATUS).json
    assert (status["problems"], status["search"]) == ([problem], f"Memory search: none ({problem})")


def test_a_status_without_problems_names_none(members: TenantService) -> None:
    assert "problems" not in members.admin.call("GET", STATUS).json


def test_a_deployment_without_a_search_says_that_there_is_none(members: TenantService) -> None:
    give(members, search_sqlite="")
    status = members.admin.call("GET", STATUS).json
    assert status["search"] == "Memory search: none (OPENSEARCH_URL names a search index)"


def test_a_process_says_once_in_its_log_what_it_cannot_use() -> None:
    code = "from factbook.wiring.services import services; assert services() is services()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MEMORY_EMBEDDINGS": "s3cr3t"},
    )
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["level"], line["message"]) == ("ERROR", "settings cannot be used")
    assert line["problems"] == Settings(memory_embeddings="s3cr3t").problems
    assert "s3cr3t" not in done.stdout + done.stderr
