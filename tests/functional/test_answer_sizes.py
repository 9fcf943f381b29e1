"""Nothing answers more than can be sent: an answer is JSON inside JSON, and every quote and backslash counts again."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.fakes import fake_services
from support.gateway import Reply
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import LogService
from support.principals import principal
from support.search_world import World, admin

from factbook.adapters.aes_gcm import AesGcm
from factbook.api.app import Answer, App, Call
from factbook.domain import wire
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import FactChanges
from factbook.domain.scope import Scope
from factbook.ports.access.stores import Token
from factbook.ports.operations import Operation
from factbook.usecases.access import tokens
from factbook.usecases.facts import changes as facts
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.sealing import Vault
from factbook.usecases.provenance.tracing import trace_provenance
from factbook.usecases.retrieval.context import Intent, Turn, build_context
from factbook.usecases.retrieval.recall import recall_messages
from factbook.usecases.retrieval.retrieve import Question, retrieve_facts

FOUR_MEGABYTES = 4 * 1024 * 1024
SPIKY = '"\\' * 60_000
"""As JSON text 240 KB, and twice that where it is quoted again: the worst an entry can be."""


def on_the_wire(text: str) -> int:
    """What a body takes when the runtime puts it into its own JSON."""
    return len(json.dumps(text, ensure_ascii=False).encode())


@pytest.fixture(scope="module")
def spiky(ministack: Aws, tmp_path_factory: pytest.TempPathFactory) -> LogService:
    """A checkpointed run, one conversation of another, of 25 entries each of the worst kind."""
    house = LogService(ministack, tmp_path_factory.mktemp("spiky"))
    for _ in range(25):
        house.append("plain", SPIKY)
        house.append("sealed", SPIKY, kind="user-message", scope={"projectId": "p", "threadId": "t"})
    house.checkpoint()
    return house


def walk(house: LogService, path: str, **query: Any) -> list[Reply]:
    pages: list[Reply] = []
    cursor: dict[str, str] = {}
    while True:
        reply = house.admin.call("GET", path, query={**query, **cursor})
        assert reply.status == 200, reply.text
        assert on_the_wire(reply.text) < FOUR_MEGABYTES
        pages.append(reply)
        if not reply.json["hasMore"]:
            return pages
        cursor = {"cursor": reply.json["nextCursor"]}


def post(house: LogService, path: str, body: Any) -> Reply:
    """As a gateway hands on a body that is no text to it: four bytes for three, whatever they are."""
    return house.admin.call(
        "POST", path, raw=base64.b64encode(json.dumps(body).encode()).decode(), base64=True
    )


@pytest.mark.parametrize("run", ["plain", "sealed"])
@pytest.mark.parametrize("form", ["plain", "stored"])
def test_a_run_full_of_quotes_is_walked_once_in_pages_that_can_be_sent(
    spiky: LogService, run: str, form: str
) -> None:
    pages = walk(spiky, f"/v1/memory/runs/{run}/log", form=form, limit=100)
    assert [entry["sequence"] for page in pages for entry in page.json["data"]] == list(range(25))


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_conversation_full_of_quotes_is_walked_once_in_pages_that_can_be_sent(
    spiky: LogService, order: str
) -> None:
    pages = walk(spiky, "/v1/memory/threads/t/messages", order=order, limit=100)
    found = [entry["sequence"] for page in pages for entry in page.json["data"]]
    assert found == sorted(range(25), reverse=order == "desc")


def test_a_proof_over_entries_full_of_quotes_can_be_sent_and_goes_on_where_it_ended(
    spiky: LogService,
) -> None:
    proof = spiky.admin.call("GET", "/v1/memory/runs/plain/log/proof", query={"sequence": 0})
    assert proof.status == 200
    assert on_the_wire(proof.text) < FOUR_MEGABYTES
    assert proof.json["hasMore"]
    assert 1 <= len(proof.json["entries"]) < 25


def test_a_tenant_full_of_quotes_can_be_exported(spiky: LogService, tmp_path: Path) -> None:
    verdict = spiky.audit()
    assert verdict.code == 0, verdict
    assert spiky.verify("plain").code == 0


def test_a_batch_whose_answer_could_not_be_sent_is_refused_before_it_is_written(spiky: LogService) -> None:
    body = {"entries": [{"kind": "tool-call", "payload": SPIKY}] * 15}
    assert len(json.dumps(body)) < FOUR_MEGABYTES
    reply = post(spiky, "/v1/memory/runs/refused/log", body)
    assert (reply.status, reply.code) == (413, "request-too-large")
    assert spiky.admin.call("GET", "/v1/memory/runs/refused/log").status == 404
    plain = {"entries": [{"kind": "tool-call", "payload": "x" * 240_000}] * 15}
    taken = spiky.admin.call("POST", "/v1/memory/runs/taken/log", plain)
    assert taken.status == 201
    assert on_the_wire(taken.text) < FOUR_MEGABYTES


def test_a_batch_of_facts_whose_other_fields_fill_an_answer_is_answered_shorter(spiky: LogService) -> None:
    spiky_id = '"' * 250
    source = {
        "kind": "http-api",
        "uri": '"' * 4096,
        "freshness": {"etag": '"' * 1024, "sourceVersion": '"' * 1024},
        "refresh": {"strategy": "manual"},
    }
    subjects = [{"kind": "external", "id": f"{number:03d}{spiky_id}"} for number in range(20)]
    body = {
        "items": [{"type": "note", "content": n, "source": source, "subjects": subjects} for n in range(100)]
    }
    assert len(json.dumps(body)) < FOUR_MEGABYTES
    reply = post(spiky, "/v1/memory/facts/batch", body)
    assert on_the_wire(reply.text) < FOUR_MEGABYTES
    results = reply.json["results"]
    assert [result["status"] for result in results] == [201] * 100
    whole = [result["fact"] for result in results if "source" in result["fact"]]
    assert 0 < len(whole) < 100
    last = spiky.admin.call("GET", f"/v1/memory/facts/{results[-1]['fact']['id']}").json
    assert (last["source"], last["subjects"]) == (source, subjects)


def test_recalled_messages_with_their_neighbours_can_be_sent(new_world: Any) -> None:
    world: World = new_world()
    world.start()
    for number in range(16):
        run = [("ana", f"tea {number}"), ("bot", SPIKY), ("ana", SPIKY)]
        world.say(admin(), f"r{number}", *run, scope={"projectId": "x"}, deliver=False)
        world.hear(*world_entries(world, f"r{number}"))
    found, degraded = recall_messages(world.recall, admin(), Question("keyword", "tea", limit=20))
    shown = [
        {"entry": each.entry.to_json(), "after": each.after.to_json() if each.after else None}
        for each in found
    ]
    assert 0 < len(found) < 16
    assert degraded == "answer-full"
    assert on_the_wire(json.dumps({"results": shown})) < FOUR_MEGABYTES


def world_entries(world: World, run: str) -> list[Any]:
    from factbook.usecases.log.entries import open_entry

    return [open_entry(world.vault, entry) for entry in world.log.entries("t1", run, 0, 1)[0]]


def test_the_memory_of_a_turn_can_be_sent_and_names_what_it_left_out(new_world: Any) -> None:
    world: World = new_world()
    world.start()
    for kind in ("a", "b"):
        for _ in range(60):
            world.write(admin(), '"\\' * 16_000, f"acme.{kind}", deliver=False)
    intents = tuple(Intent((f"acme.{kind}",), "tenant", "list", 100) for kind in ("a", "b"))
    made = build_context(world.memory, world.engine, admin(), Turn("", intents))
    assert made.rendered.used
    assert made.rendered.omitted
    assert made.degraded == "answer-full"
    assert on_the_wire(json.dumps(made.rendered.message, ensure_ascii=False)) < FOUR_MEGABYTES


@pytest.mark.parametrize("mode", ["list", "keyword"])
def test_a_search_that_finds_more_than_an_answer_holds_says_so(new_world: Any, mode: Any) -> None:
    world: World = new_world()
    world.start()
    for number in range(40):
        world.write(admin(), "tea " + '"\\' * 16_000, "acme.large" if number else "acme.small")

    def found(kind: str) -> tuple[int, str | None]:
        answer = retrieve_facts(
            world.memory, world.engine, admin(), Question(mode, "tea", limit=100, types=(kind,))
        )
        return len(answer.facts), answer.degraded

    assert found("acme.small") == (1, None)
    count, degraded = found("acme.large")
    assert 0 < count < 39
    assert degraded == "answer-full"


def test_tokens_of_many_long_names_come_in_pages_that_can_be_sent() -> None:
    services = fake_services()
    caller = principal("t", "root", admin=True)
    names = frozenset('"' * 250 + f"{number:03d}" for number in range(95))
    for number in range(100):
        holder = Principal("t", Actor(kind="service", id="s"), reads_projects=names)
        token = Token(f"{number:03d}", "h", holder, services.clock.now(), "user:root")
        assert services.access.create_token(token)
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page, after = tokens.list_tokens(services.access, caller, after, 100)
        shown = json.dumps([sorted(token.principal.reads_projects) for token in page])
        assert on_the_wire(shown) < FOUR_MEGABYTES
        seen += [token.id for token in page]
    assert seen == [f"{number:03d}" for number in range(100)]


def test_a_provenance_of_many_long_causes_can_be_sent_and_says_that_it_is_cut() -> None:
    memory, who = fake_services().memory, principal("t", "ann", admin=True)
    causes = FactChanges(causedByLogId=[f"{number:02d}" + '"' * 500 for number in range(90)])
    fact = facts.write_fact(memory, who, Operation("0", "b"), "note", Scope(tenantId="t"), causes, Content(0))
    for number in range(1, 110):
        facts.supersede_fact(
            memory, who, Operation(str(number), "b"), fact.id, FactChanges(), Content(number)
        )
    graph = trace_provenance(memory, FakeLog(), Vault(FakeKeys(), FakeWrapper(), AesGcm()), who, fact.id)
    assert graph["truncated"]
    assert on_the_wire(json.dumps(graph)) < FOUR_MEGABYTES


def test_an_answer_that_nobody_sized_is_an_error_of_ours_in_our_form() -> None:
    app = App("probe", fake_services)

    @app.route("GET /big", "Too large", public=True)
    def big(_: Call) -> Answer:
        return Answer(200, {"data": '"' * 3_000_000})

    event = {"routeKey": "GET /big", "requestContext": {"requestId": "r1"}}
    answer = app(event)
    assert answer["statusCode"] == 500
    error = json.loads(answer["body"])["error"]
    assert (error["code"], error["requestId"]) == ("internal-error", "r1")
    assert "larger than can be sent" in error["message"]


def test_a_size_is_what_the_runtime_makes_of_a_body() -> None:
    for value in ("", "é😀", '"\\', "\n\u2028\x00\x7f", {"a": [1.0, None, '"']}, SPIKY):
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert wire.text_bytes(body) == on_the_wire(body) - 2
