"""One gate for facts and one for log entries: a clause planted in it is obeyed on every road the API has.

Each route that reads is in a table below; a new one that is not fails the first test.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.fakes import FakeMemories, fake_services
from support.gateway import Gateway
from support.log_fakes import FakeCheckpoints, FakeTree
from support.principals import issue, principal
from support.search_world import WordEmbedder, World

from factbook.domain.access.principals import Principal
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.log import gate as log_gate
from factbook.domain.log.notes import NoteKey
from factbook.domain.memories.statements import Statement
from factbook.domain.scope import Scope
from factbook.ports.log.checkpoints import DirtyRun
from factbook.usecases.log.checkpoints import CheckpointPorts, checkpoint_all, mark_runs
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.remembering import remember
from factbook_local.openapi import load_apps

ADMIN = principal("t1", "ann", admin=True)
WRITER = principal("t1", "bob", writes=["x", "y"])
TYPE, WORD, SAID = "acme.planted", "zebra", "giraffe"
KEY, PLACE = "striped", {"projectId": "x"}
PERSON = {"projectId": "x", "participantId": "end-7"}
SHOWN, HIDDEN = (
    {"projectId": "y", "threadId": "talk", "sessionId": session} for session in ("shown", "hidden")
)
"""Two sessions of one conversation: a message of one is the neighbour of a message of the other."""


class Signer:
    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        self.key = NoteKey("factbook.test", self._private.public_key().public_bytes_raw())

    def sign(self, text: bytes) -> bytes:
        return self._private.sign(text)


@dataclass
class Planted:
    """A service over a world of search, with a fact of type TYPE and a run of project y, and one caller of it."""

    gateway: Gateway
    fact: str
    before: str
    unheard: str
    entry: str
    caused: str
    memory: str
    administrator: Gateway

    def get(self, path: str, **query: Any) -> Any:
        return self.gateway.call("GET", f"/v1/memory/{path}", query=query)

    def post(self, path: str, **body: Any) -> Any:
        return self.gateway.call("POST", f"/v1/memory/{path}", body)

    def retrieve(self, mode: str, query: str, **asked: Any) -> Any:
        words = {} if mode == "list" else {"query": query}
        reply = self.post("retrieve", mode=mode, **words, **asked)
        assert reply.status == 200, reply.text
        return reply.json

    def lists(self, **query: Any) -> bool:
        reply = self.get("facts", **query)
        assert reply.status == 200, reply.text
        return self.fact in {fact["id"] for fact in reply.json["data"]}

    def names_type(self, **query: Any) -> bool:
        reply = self.get("types", **query)
        assert reply.status == 200, reply.text
        return {"type": TYPE} in reply.json["data"]

    def finds(self, mode: str, **asked: Any) -> bool:
        return self.fact in {each["fact"]["id"] for each in self.retrieve(mode, WORD, **asked)["results"]}

    def stands(self) -> bool:
        reply = self.get("agents/copilot/memories", scope=json.dumps(PERSON))
        assert reply.status == 200, reply.text
        return self.memory in {fact["id"] for fact in reply.json["data"]}

    def stands_in_a_block(self) -> bool:
        asked = {"query": "nothing", "agent": "copilot", "scope": PERSON, "intents": [{"mode": "keyword"}]}
        reply = self.post("context", **asked)
        assert reply.status == 200, reply.text
        return self.memory in {fact["id"] for fact in reply.json["facts"]}

    def is_reviewed(self) -> bool:
        reply = self.administrator.call("GET", "/v1/memory/reviews")
        assert reply.status == 200, reply.text
        return self.memory in {review["fact"]["id"] for review in reply.json["data"]}

    def waits(self) -> bool:
        asked = [{"id": self.unheard, "version": 1}]
        return self.retrieve("keyword", "nothing", after=asked).get("degraded") == "index-behind"

    def renders(self, mode: str) -> bool:
        reply = self.post("context", query=WORD, intents=[{"mode": mode}])
        assert reply.status == 200, reply.text
        return self.fact in {fact["id"] for fact in reply.json["facts"]}

    def answers(self, path: str, **query: Any) -> bool:
        return self._answered(self.get(path, **query))

    def _answered(self, reply: Any) -> bool:
        assert reply.status in (200, 307, 404), reply.text
        assert reply.status != 404 or reply.code in ("fact-not-found", "not-found")
        return bool(reply.status != 404)

    def hears(self) -> bool:
        found = self.retrieve("keyword", SAID, source="conversations")["results"]
        return self.entry in {each["entry"]["id"] for each in found}

    def hears_beside(self) -> bool:
        """The entry follows, in its thread, the message that is found."""
        (found,) = self.retrieve("keyword", "opening", source="conversations")["results"]
        return bool(found.get("after", {}).get("id") == self.entry)

    def lists_messages(self) -> bool:
        reply = self.get("threads/talk/messages")
        assert reply.status == 200, reply.text
        return self.entry in {each["id"] for each in reply.json["data"]}

    def lists_run(self, **query: Any) -> bool:
        reply = self.get("runs", **query)
        assert reply.status == 200, reply.text
        return "hidden" in {run["runId"] for run in reply.json["data"]}

    def traces(self) -> bool:
        reply = self.get(f"facts/{self.caused}/provenance")
        (cause,) = (node for node in reply.json["nodes"] if node["id"] == self.entry)
        return bool(cause["node"] == "log-entry")


Road = Callable[[Planted], bool]
"""Whether the planted fact, or the planted entry, is shown on this road."""

FACT_ROADS: dict[str, dict[str, Road]] = {
    "GET /v1/memory/facts": {
        "list": lambda here: here.lists(),
        "list by type": lambda here: here.lists(type=TYPE),
        "list by prefix": lambda here: here.lists(typePrefix="acme."),
        "list by scope": lambda here: here.lists(scope=json.dumps({"projectId": "x"})),
        "list as of": lambda here: here.lists(asOf=here.before),
    },
    "GET /v1/memory/types": {
        "type": lambda here: here.names_type(),
        "type in a scope": lambda here: here.names_type(scope=json.dumps({"projectId": "x"})),
    },
    "GET /v1/memory/facts/{id}": {
        "get": lambda here: here.answers(f"facts/{here.fact}"),
        "version": lambda here: here.answers(f"facts/{here.fact}", version=1),
        "as of": lambda here: here.answers(f"facts/{here.fact}", asOf=here.before),
        "version as of": lambda here: here.answers(f"facts/{here.fact}", version=1, asOf=here.before),
        "index state": lambda here: here.answers(f"facts/{here.fact}", include="indexState"),
    },
    "GET /v1/memory/facts/by-key": {
        "by key": lambda here: here.answers("facts/by-key", type=TYPE, scope=json.dumps(PLACE), key=KEY),
    },
    "GET /v1/memory/facts/{id}/revisions": {
        "revisions": lambda here: here.answers(f"facts/{here.fact}/revisions"),
    },
    "GET /v1/memory/facts/{id}/content": {
        "content": lambda here: here.answers(f"facts/{here.fact}/content"),
        "content of a version": lambda here: here.answers(f"facts/{here.fact}/content", version=1),
    },
    "GET /v1/memory/facts/{id}/provenance": {
        "provenance": lambda here: here.answers(f"facts/{here.fact}/provenance"),
    },
    "POST /v1/memory/retrieve": {
        "list, retrieved": lambda here: here.finds("list"),
        "keyword": lambda here: here.finds("keyword"),
        "keyword by prefix": lambda here: here.finds("keyword", typePrefix="acme."),
        "semantic": lambda here: here.finds("semantic"),
        "both": lambda here: here.finds("both"),
        "after": lambda here: here.waits(),
    },
    "POST /v1/memory/context": {
        "block by words and meaning": lambda here: here.renders("both"),
        "block by list": lambda here: here.renders("list"),
        "block that begins with the standing set": lambda here: here.stands_in_a_block(),
    },
    "GET /v1/memory/agents/{agentId}/memories": {"standing set": lambda here: here.stands()},
    "GET /v1/memory/reviews": {"reviews": lambda here: here.is_reviewed()},
}
ENTRY_ROADS: dict[str, dict[str, Road]] = {
    "GET /v1/memory/runs": {
        "list of runs": lambda here: here.lists_run(),
        "list of runs in a scope": lambda here: here.lists_run(scope=json.dumps({"projectId": "y"})),
    },
    "GET /v1/memory/runs/{runId}/log": {
        "run": lambda here: here.answers("runs/hidden/log"),
        "run as stored": lambda here: here.answers("runs/hidden/log", form="stored"),
    },
    "GET /v1/memory/runs/{runId}/log/verify": {
        "verification": lambda here: here.answers("runs/hidden/log/verify"),
    },
    "GET /v1/memory/runs/{runId}/log/proof": {
        "proof": lambda here: here.answers("runs/hidden/log/proof", sequence=0),
    },
    "GET /v1/memory/log/{logId}": {"by id": lambda here: here.answers(f"log/{here.entry}")},
    "GET /v1/memory/threads/{threadId}/messages": {"thread": lambda here: here.lists_messages()},
    "GET /v1/memory/facts/{id}/provenance": {"cause": lambda here: here.traces()},
    "POST /v1/memory/retrieve": {
        "hit": lambda here: here.hears(),
        "neighbour": lambda here: here.hears_beside(),
    },
}
NEITHER = {
    "GET /health",
    "GET /v1/identity/whoami",
    "GET /v1/memory/status",
    "GET /v1/access/tokens",
    "GET /v1/memory/policy",
    "GET /v1/memory/checkpoints",
    "GET /v1/memory/checkpoints/latest",
    "GET /v1/memory/checkpoints/leaves",
}
"""Routes that show no fact and no entry: salted hashes, settings, who calls."""

CHANGES: dict[str, Callable[[Planted], Any]] = {
    "POST /v1/memory/facts": lambda here: here.post(
        "facts", type=TYPE, scope=PLACE, key=KEY, content=1, onExisting="supersede"
    ),
    "POST /v1/memory/facts/{id}/supersede": lambda here: here.post(f"facts/{here.fact}/supersede", content=1),
    "POST /v1/memory/facts/{id}/verify": lambda here: here.post(f"facts/{here.fact}/verify"),
    "POST /v1/memory/facts/{id}/confirm": lambda here: here.post(f"facts/{here.memory}/confirm"),
    "POST /v1/memory/facts/{id}/reject": lambda here: here.post(f"facts/{here.memory}/reject"),
    "DELETE /v1/memory/facts/{id}": lambda here: here.gateway.call("DELETE", f"/v1/memory/facts/{here.fact}"),
    "POST /v1/memory/blobs": lambda here: here.post("blobs", size=1, sha256="0" * 64, factId=here.fact),
}


@pytest.fixture(scope="module")
def apps() -> dict[str, Any]:
    return {app.name: app for app in load_apps()}


@pytest.fixture(params=[ADMIN, WRITER], ids=["an administrator", "a writer"])
def here(request: pytest.FixtureRequest, new_world: Any, apps: dict[str, Any]) -> Planted:
    world = new_world(embedder=WordEmbedder())
    world.start()
    return plant(world, request.param, apps)


def plant(world: World, caller: Principal, apps: dict[str, Any]) -> Planted:
    services = fake_services(world.clock)
    tree, published = FakeTree(), FakeCheckpoints()
    services.__dict__ |= {
        "memory": world.memory,
        "memories": MemoryPorts(world.memory, FakeMemories(world.facts)),
        "policies": world.policies,
        "logs": SimpleNamespace(store=world.log, vault=world.vault, tree=tree, published=published),
        "searching": SimpleNamespace(
            engine=world.engine, recall=world.recall, index=world.index, backlog=world.backlog
        ),
    }
    gateway = Gateway(services, issue(services, caller))
    gateway.apps = apps
    for app in apps.values():
        app.services = lambda: services

    first = world.write(ADMIN, f"{WORD} " * 12_000, TYPE, scope=PLACE, key=KEY)
    fact = world.supersede(first, ADMIN, f"{WORD} again " * 6_000)
    unheard = world.write(ADMIN, "unheard", TYPE, scope={"projectId": "x"}, deliver=False)
    world.say(ADMIN, "shown", ("ana", "an opening"), scope=SHOWN)
    (entry,) = world.say(ADMIN, "hidden", ("bot", f"a {SAID}"), scope=HIDDEN)
    caused = world.write(ADMIN, "caused", scope={"projectId": "x"}, causedByLogId=[entry.id])
    stated = Statement(
        "copilot",
        Scope(tenant_id="t1", **PERSON),
        "participant:x/end-7",
        TYPE,
        "They like tea.",
        about="account",
    )
    memory = remember(services.memories, WRITER, world.operation(), stated).fact
    mark_runs(tree, [DirtyRun("t1", "shown", 0), DirtyRun("t1", "hidden", 0)])
    checkpoint_all(CheckpointPorts(world.log, tree, published, Signer(), world.log_clock))
    before = first.fact.created_at
    return Planted(
        gateway,
        fact.fact.id,
        before,
        unheard.fact.id,
        entry.id,
        caused.fact.id,
        memory.id,
        gateway.as_(issue(services, ADMIN)),
    )


def plant_in_the_gate_of_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of type TYPE is shown."""
    real = gate.can_see

    def planted(who: Principal, head: Fact, look: gate.Look) -> bool:
        return real(who, head, look) and head.type != TYPE

    monkeypatch.setattr(gate, "can_see", planted)


def plant_in_the_gate_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the session `hidden` is shown."""
    real = log_gate.can_see

    def planted(who: Principal, scope: Scope, *rest: Any, **more: Any) -> bool:
        return real(who, scope, *rest, **more) and scope.session_id != "hidden"

    monkeypatch.setattr(log_gate, "can_see", planted)


def seen(here: Planted, roads: dict[str, dict[str, Road]]) -> dict[str, bool]:
    return {name: road(here) for named in roads.values() for name, road in named.items()}


def test_every_route_that_reads_is_held_to_a_gate_here_or_shows_nothing_of_the_memory(
    apps: dict[str, Any],
) -> None:
    reads = {route.key for app in apps.values() if app.name != "write" for route in app}
    assert reads == set(FACT_ROADS) | set(ENTRY_ROADS) | NEITHER
    changes = {route.key for route in apps["write"] if "/facts/{id}" in route.key}
    assert changes | {"POST /v1/memory/blobs", "POST /v1/memory/facts"} == set(CHANGES)


def test_a_clause_in_the_gate_of_facts_hides_a_fact_on_every_road(
    here: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [road for road, shown in seen(here, FACT_ROADS).items() if not shown] == []
    with monkeypatch.context() as patch:
        plant_in_the_gate_of_facts(patch)
        assert [road for road, shown in seen(here, FACT_ROADS).items() if shown] == []
        for change in CHANGES.values():
            refused = change(here)
            assert (refused.status, refused.code) == (404, "fact-not-found")
    assert [road for road, shown in seen(here, FACT_ROADS).items() if not shown] == []


def test_a_clause_in_the_gate_of_the_log_hides_an_entry_on_every_road(
    here: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [road for road, shown in seen(here, ENTRY_ROADS).items() if not shown] == []
    with monkeypatch.context() as patch:
        plant_in_the_gate_of_the_log(patch)
        assert [road for road, shown in seen(here, ENTRY_ROADS).items() if shown] == []
    assert [road for road, shown in seen(here, ENTRY_ROADS).items() if not shown] == []
