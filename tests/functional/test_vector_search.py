"""Search by meaning alone, in DynamoDB's own vector index: what callers see of it, and what the functions ask for."""

import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support import emulators
from support.emulators import Aws
from support.gateway import ROOT, Gateway, load_app
from support.permissions import CallRecorder, grants_of
from support.principals import issue, principal
from support.search_world import WordEmbedder, World, admin
from support.tables import REGION, make_vectors_table

from factbook.adapters.retrieval import generations
from factbook.adapters.retrieval.dynamodb_index import DynamoIndex
from factbook.domain.errors import SearchUnavailable, SemanticUnavailable, Unsupported
from factbook.domain.filters import AllOf
from factbook.ports.retrieval.index import EmbeddingSpace, Leg, VectorLeg
from factbook.settings import BUILT_IN_MODEL
from factbook.usecases.retrieval.context import Intent, Turn, build_context
from factbook.usecases.retrieval.indexing import index_heads
from factbook.wiring.services import Services
from factbook_local.template import Template
from factbook_local.testing import running

ADMIN = admin("t-vectors")
ANN = principal("t-vectors", "ann", writes=("p",))
SIZE = 64


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with emulators.ministack() as made:
        yield made


@pytest.fixture
def world(aws: Aws) -> Iterator[World]:
    client = aws.client("dynamodb")
    table = make_vectors_table(client, SIZE)
    made = World(DynamoIndex(client, table, SIZE), WordEmbedder(dimensions=SIZE))
    made.start()
    made.engine = replace(made.engine, by_words=False)
    first: list[Leg] = [
        VectorLeg((1.0,) * SIZE, AllOf(), 1)
    ]  # a strict client asks for the table's schema once
    made.index.search("nobody", first, timeout=60)
    yield made
    client.delete_table(TableName=table)


def test_what_means_the_same_is_found_within_what_the_caller_may_read(world: World) -> None:
    world.write(ADMIN, "a kitten", scope={"projectId": "p"})
    world.write(ADMIN, "a kitten elsewhere", scope={"projectId": "q"})
    world.write(ADMIN, "share prices")
    world.write(ANN, "my kitten", scope={"userId": "ann"})

    assert set(world.words(ANN, "feline", "semantic")[:2]) == {"a kitten", "my kitten"}
    assert "a kitten elsewhere" not in world.words(ANN, "feline", "semantic")
    assert set(world.words(ADMIN, "feline", "semantic")) >= {"a kitten", "a kitten elsewhere"}
    assert world.words(ANN, "feline", "semantic", scope={"userId": "ann"}) == ["my kitten"]


def test_a_fact_that_changed_or_went_is_found_as_it_is(world: World) -> None:
    head = world.write(ADMIN, "a kitten")
    world.supersede(head, ADMIN, "share prices")
    assert world.words(ADMIN, "feline", "semantic") == ["share prices"]
    assert world.find(ADMIN, "feline", "semantic").facts[0][1] < 0.5
    world.delete(head, ADMIN)
    assert world.words(ADMIN, "feline", "semantic") == []


def test_a_search_by_words_is_unsupported_and_both_goes_on_by_meaning_and_says_so(world: World) -> None:
    world.write(ADMIN, "a kitten")

    with pytest.raises(Unsupported, match="by meaning alone"):
        world.find(ADMIN, "kitten", "keyword")
    both = world.find(ADMIN, "feline", "both")
    assert [(fact.content_text, score) for fact, score in both.facts] == [('"a kitten"', 1 / 61)]
    assert both.degraded == "no-keyword-index"
    assert world.words(ADMIN, mode="list") == ["a kitten"]


@pytest.mark.parametrize("mode", ["semantic", "both"])
def test_without_a_vector_there_is_nothing_to_go_on_with(world: World, mode: str) -> None:
    world.write(ADMIN, "a kitten")
    assert world.embedder is not None
    world.embedder.down = True
    with pytest.raises(SearchUnavailable):
        world.find(ADMIN, "feline", mode)
    world.engine = replace(world.engine, spaces=None)
    with pytest.raises(SemanticUnavailable):
        world.find(ADMIN, "feline", mode)


def test_an_intent_that_names_no_mode_looks_by_meaning(world: World) -> None:
    world.write(ADMIN, "a kitten")
    made = build_context(world.memory, world.engine, ADMIN, Turn("feline", (Intent(),)))
    assert ("a kitten" in made.rendered.message, made.degraded) == (True, None)
    named = build_context(world.memory, world.engine, ADMIN, Turn("feline", (Intent(mode="both"),)))
    assert named.degraded == "no-keyword-index"


def test_an_answer_that_may_lack_some_says_so_and_one_that_cannot_does_not(world: World) -> None:
    heads = [world.write(ADMIN, f"kitten {n}", deliver=False) for n in range(120)]
    world.deliver(*heads)
    far = world.write(ADMIN, "something else entirely", fact_type="acme.rare")

    assert world.find(ADMIN, "kitten", "semantic", limit=50).degraded is None
    assert world.find(ADMIN, "kitten", "semantic", trust=("verified",)).degraded == "neighbours-cut"
    rare = world.find(ADMIN, "kitten", "semantic", types=("acme.rare",))
    assert ([fact.id for fact, _ in rare.facts], rare.degraded) == ([far.fact.id], None)
    many = world.find(ADMIN, "kitten", "semantic", types=("acme.rare", "acme.other"))
    assert many.degraded == "neighbours-cut"  # two types are no `=`


def test_conversations_are_found_by_meaning_with_what_stands_beside(world: World) -> None:
    world.say(ADMIN, "run-1", ("ann", "we got a kitten"), ("bob", "share prices fell"))
    assert world.recalled(ADMIN, "feline", "semantic")[0] == "we got a kitten"


def test_another_model_is_another_generation_that_is_searched_when_it_is_whole(world: World) -> None:
    world.write(ADMIN, "a kitten")
    before = world.space
    assert world.embedder is not None
    world.embedder.model = "other"
    world.start()
    world.engine = replace(world.engine, by_words=False)
    assert before != world.space
    assert [info.space and info.space.model for info in world.index.indexes()] == ["other"]
    assert world.words(ADMIN, "feline", "semantic") == ["a kitten"]


def test_the_functions_ask_for_what_their_roles_allow(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retrieve and read with recorded clients, the index function's part through its services."""
    monkeypatch.setattr(generations, "LATE_SECONDS", 0)  # no writer is late: what was dropped goes at once
    table = make_vectors_table(aws.client("dynamodb"), 512)
    settings = replace(
        aws.settings, vectors_table=table, vector_dimensions="512", memory_embeddings="built-in"
    )
    chosen = {"Search": "dynamodb", "VectorDimensions": "512", "Embeddings": "built-in"}
    template = Template(ROOT / "template.yaml", PSEUDO, chosen)
    recorders = {name: CallRecorder(aws.client, settings) for name in ("read", "retrieve", "index")}
    wired = {name: Services(settings, None, each.client) for name, each in recorders.items()}
    index = wired["index"].searching.index
    space = wired["index"].searching.indexing.spaces
    assert space is not None
    index.activate(index.create(EmbeddingSpace(BUILT_IN_MODEL, 512)).name)
    index.drop(index.create(EmbeddingSpace(BUILT_IN_MODEL, 512)).name)

    plain = aws.services()
    gateway = Gateway(plain, issue(plain, principal("t-roles", "root", admin=True)))
    gateway.apps["retrieve"] = load_app("retrieve")
    for name in ("read", "retrieve"):
        gateway.apps[name].services = lambda name=name: wired[name]  # type: ignore[method-assign, misc]
    fact = gateway.call("POST", "/v1/memory/facts", {"type": "t", "content": "a kitten"}).json
    _deliver(wired["index"], "t-roles", fact["id"])
    shown = gateway.call("GET", f"/v1/memory/facts/{fact['id']}", query={"include": "indexState"})
    assert shown.json["indexState"] == "indexed"
    asked = {"mode": "semantic", "query": "a cat", "after": [{"id": fact["id"], "version": 1}]}
    found = gateway.call("POST", "/v1/memory/retrieve", asked)
    assert [each["fact"]["id"] for each in found.json["results"]] == [fact["id"]]

    for name, recorder in recorders.items():
        grants = grants_of(template, f"{name.capitalize()}Function")
        missing = [
            a for a in recorder.seen if "Vectors" in a.resource and not any(g.allows(a) for g in grants)
        ]
        assert missing == [], name
        needed = {a.action for a in recorder.seen if "Vectors" in a.resource}
        assert needed == {g.action for g in grants if g.resource.startswith("VectorsTable")} - _NEVER[name]


PSEUDO = {
    "AWS::Region": REGION,
    "AWS::AccountId": "000000000000",
    "AWS::Partition": "aws",
    "AWS::StackName": "factbook",
    "AWS::URLSuffix": "amazonaws.com",
}
_NEVER: dict[str, set[str]] = {
    "read": set(),
    "retrieve": set(),
    "index": {
        "dynamodb:BatchGetItem",
        "dynamodb:BatchWriteItem",
    },  # a repair's, and a generation's that held some
}


def _deliver(services: Services, tenant: str, fact_id: str) -> None:
    heads = services.memory.facts.heads(tenant, [fact_id])
    assert index_heads(services.searching.indexing, heads.values()).again == set()


@pytest.mark.exhaustive
def test_a_local_service_searches_by_meaning_alone_and_says_so(tmp_path: Any) -> None:
    chosen = ("Search=dynamodb", "VectorDimensions=512", "Embeddings=built-in")
    parameters = [word for each in chosen for word in ("--parameter", each)]
    with running(tmp_path, arguments=parameters) as ready:

        def call(path: str, body: Any = None) -> Any:
            headers = {"Authorization": f"Bearer {ready.tokens['demo']}"}
            data = None if body is None else json.dumps(body).encode()
            with urllib.request.urlopen(
                urllib.request.Request(ready.url + path, data, headers), timeout=60
            ) as answer:
                return json.load(answer)

        assert call("/v1/memory/status")["search"].startswith("Memory search: by meaning alone (built-in ")
        call("/v1/memory/facts", {"type": "note", "scope": {}, "content": "The kitten sleeps on the sofa"})
        deadline = time.monotonic() + 60
        query = {"mode": "semantic", "query": "where does the cat nap?"}
        while not (found := call("/v1/memory/retrieve", query)["results"]):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        assert found[0]["fact"]["content"] == "The kitten sleeps on the sofa"
