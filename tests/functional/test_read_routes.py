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
from support.exporting import export_ports
from support.fakes import FakeMemories, fake_services
from support.gateway import Gateway
from support.log_fakes import FakeCheckpoints, FakeTree
from support.principals import issue, principal
from support.search_world import WordEmbedder, World

from factbook.domain import times
from factbook.domain.access.erasing import Erasing, Selector
from factbook.domain.access.principals import Principal
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.log import gate as log_gate
from factbook.domain.log.notes import NoteKey
from factbook.domain.memories.statements import Statement
from factbook.domain.policy.policies import Policy
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope
from factbook.ports.log.checkpoints import DirtyRun
from factbook.usecases.facts.holds import hold_fact, release_fact
from factbook.usecases.log.checkpoints import CheckpointPorts, checkpoint_all, mark_runs
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.remembering import remember
from factbook_local.openapi import load_apps

ADMIN = principal("t1", "ann", admin=True)
WRITER = principal("t1", "bob", writes=["x", "y"])
TYPE, WORD, SAID = "acme.planted", "zebra", "giraffe"
KEY, PLACE = "striped", {"projectId": "x"}
EVE, ERASED_AT = {"kind": "external", "id": "eve"}, "2026-05-05T05:05:05.005Z"
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
    world: World

    def erase(self, *selectors: Selector) -> None:
        """Put these erasures in force."""
        self.world.erasing = Erasing.of((each, ERASED_AT) for each in selectors)

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

    def exports(self, *, entry: bool = False) -> bool:
        """Whether an administrator's export has the fact, or the entry."""
        reply = self.administrator.call("GET", "/v1/memory/export")
        assert reply.status == 200, reply.text
        lines = list(map(json.loads, reply.text.splitlines()))
        assert lines.pop() == {"page": {"hasMore": False}}
        if entry:
            texts = [json.loads(line["entry"]["text"]) for line in lines if "entry" in line]
            return self.entry in {text["id"] for text in texts}
        named = [line[kind]["fact"]["id"] for line in lines for kind in ("fact", "revision") if kind in line]
        return self.fact in named

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
        """The entry follows, in its thread, a message that is found."""
        found = self.retrieve("keyword", "opening", source="conversations")["results"]
        return any(each.get("after", {}).get("id") == self.entry for each in found)

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
    "GET /v1/memory/export": {"export": lambda here: here.exports()},
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
    "GET /v1/memory/export": {"export": lambda here: here.exports(entry=True)},
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
    "POST /v1/memory/refresh/sweep",
    "POST /v1/memory/erasures",
    "GET /v1/memory/erasures",
    "GET /v1/memory/erasures/{id}",
    "POST /v1/memory/erasures/{id}/resume",
    "GET /v1/memory/erasures/{id}/receipt",
    "GET /v1/memory/erasures/export",
    "POST /v1/memory/erasures/replay",
}
"""Routes that show no fact and no entry of a caller: salted hashes, settings, who calls, how many are due, what was erased."""

CHANGES: dict[str, Callable[[Planted], Any]] = {
    "POST /v1/memory/facts": lambda here: here.post(
        "facts", type=TYPE, scope=PLACE, key=KEY, content=1, onExisting="supersede"
    ),
    "POST /v1/memory/facts/{id}/supersede": lambda here: here.post(f"facts/{here.fact}/supersede", content=1),
    "POST /v1/memory/facts/{id}/verify": lambda here: here.post(f"facts/{here.fact}/verify"),
    "POST /v1/memory/facts/{id}/hold": lambda here: here.post(f"facts/{here.fact}/hold", reason="x"),
    "POST /v1/memory/facts/{id}/release": lambda here: here.post(f"facts/{here.fact}/release", reason="x"),
    "POST /v1/memory/facts/{id}/refresh": lambda here: here.post(f"facts/{here.fact}/refresh"),
    "POST /v1/memory/facts/{id}/confirm": lambda here: here.post(f"facts/{here.memory}/confirm"),
    "POST /v1/memory/facts/{id}/reject": lambda here: here.post(f"facts/{here.memory}/reject"),
    "DELETE /v1/memory/facts/{id}": lambda here: here.gateway.call("DELETE", f"/v1/memory/facts/{here.fact}"),
    "POST /v1/memory/blobs": lambda here: here.post("blobs", size=1, sha256="0" * 64, factId=here.fact),
}


@pytest.fixture(scope="module")
def apps() -> dict[str, Any]:
    return {app.name: app for app in load_apps()}


@pytest.fixture
def world(new_world: Any) -> World:
    made: World = new_world(embedder=WordEmbedder())
    made.start()
    return made


@pytest.fixture(params=[ADMIN, WRITER], ids=["an administrator", "a writer"])
def caller(request: pytest.FixtureRequest) -> Principal:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def here(world: World, caller: Principal, apps: dict[str, Any]) -> Planted:
    return plant(world, caller, apps)


def plant(world: World, caller: Principal, apps: dict[str, Any]) -> Planted:
    services = fake_services(world.clock)
    tree, published = FakeTree(), FakeCheckpoints()
    services.__dict__ |= {
        "memory": world.memory,
        "memories": MemoryPorts(world.memory, FakeMemories(world.facts)),
        "policies": world.policies,
        "logs": SimpleNamespace(
            store=world.log, vault=world.vault, tree=tree, published=published, log=world.log_writer
        ),
        "portability": SimpleNamespace(exporting=export_ports(world, tree)),
        "sources": SimpleNamespace(refreshing=SimpleNamespace(facts=world.memory)),
        "searching": SimpleNamespace(
            engine=world.engine, recall=world.recall, index=world.index, backlog=world.backlog
        ),
    }
    gateway = Gateway(services, issue(services, caller))
    gateway.apps = apps
    for app in apps.values():
        app.services = lambda: services

    first = world.write(ADMIN, f"{WORD} " * 12_000, TYPE, scope=PLACE, key=KEY, subjects=[EVE])
    fact = world.supersede(first, ADMIN, f"{WORD} again " * 6_000, subjects=[])
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
        world,
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
    reads = {route.key for app in apps.values() if app.name != "write" for route in app} - set(CHANGES)
    assert reads == set(FACT_ROADS) | set(ENTRY_ROADS) | NEITHER
    changing = [*apps["write"], *apps["refresh"]]
    changes = {route.key for route in changing if "/facts/{id}" in route.key}
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


def test_an_erasure_in_force_hides_what_it_names_on_every_road(here: Planted) -> None:
    """One fact by a subject of a revision that has none any more, one by its id, a memory by its owner."""
    here.erase(Selector("external", "eve"), Selector("fact", here.unheard), Selector("participant", "end-7"))
    assert [road for road, shown in seen(here, FACT_ROADS).items() if shown] == []

    here.erase(Selector("external", "someone-else"), Selector("participant", "end-7", "y"))
    assert [road for road, shown in seen(here, FACT_ROADS).items() if not shown] == []


def test_what_is_being_erased_takes_no_write_and_counts_as_found_for_one(here: Planted) -> None:
    here.erase(Selector("external", "eve"), Selector("participant", "end-7", "x"))
    administers = here.gateway.call("GET", "/v1/identity/whoami").json["tenantAdmin"]
    for name, change in CHANGES.items():
        refused = change(here)
        if name.endswith(("confirm", "reject", "hold", "release")) and not administers:
            assert (refused.status, refused.code) == (403, "permission-denied")  # the order of checks
            continue
        named = here.memory if name.endswith(("confirm", "reject")) else here.fact
        assert (refused.status, refused.code) == (409, "erasure-in-progress"), name
        assert refused.json["error"]["details"] == {"factId": named}, name


def test_nobody_writes_about_or_for_whom_is_being_erased(here: Planted) -> None:
    here.erase(
        Selector("external", "eve"), Selector("participant", "end-7"), Selector("conversation", "talk")
    )
    about = {"type": "acme.note", "scope": PLACE, "content": 1}
    stated = {"agent": {"id": "copilot"}, "scope": PERSON, "type": TYPE, "text": "They like tea."}
    message = {"entries": [{"kind": "user-message", "payload": "hello"}]}
    refused = [
        here.post("facts", **about, subjects=[EVE]),
        here.post("facts", **about | {"scope": PERSON}),
        here.post("facts", **about | {"scope": PERSON}, key="a"),
        here.post(f"facts/{here.caused}/supersede", content=1, subjects=[EVE]),
        here.post("remember", **stated),
        here.post("blobs", size=1, sha256="0" * 64, type=TYPE, scope=PERSON, key="a"),
        here.post("blobs", size=1, sha256="0" * 64, scope=PERSON),
        here.post("runs/hidden/log", **message),
    ]
    assert [(reply.status, reply.code) for reply in refused] == [(409, "erasure-in-progress")] * len(refused)
    (item,) = here.post("facts/batch", items=[about | {"subjects": [EVE]}]).json["results"]
    assert (item["status"], item["error"]["code"]) == (409, "erasure-in-progress")
    assert here.post("facts", **about).status == 201, "others go on"


def test_an_erasure_in_force_hides_the_words_of_the_log_on_every_road(here: Planted) -> None:
    """By its place an entry is shown without them, and without what could open them; a search finds nothing."""
    here.erase(Selector("conversation", "talk"))
    run, entry = here.get("runs/hidden/log").json["data"], here.get(f"log/{here.entry}").json
    messages = here.get("threads/talk/messages").json["data"]
    assert [each["id"] for each in (*run, entry, messages[-1])] == [here.entry] * 3
    for each in (*run, entry, *messages):
        assert (each.get("payload"), each["payloadErasedAt"]) == (None, ERASED_AT)

    (stored,) = here.get("runs/hidden/log", form="stored").json["data"]
    assert set(json.loads(stored["canonical"])["payload"]) == {"alg", "ct", "gen", "iv"}
    assert here.get("runs/hidden/log/verify").json["holds"] is True
    (proven,) = here.get("runs/hidden/log/proof", sequence=0).json["entries"]
    assert proven == stored

    (cause,) = (
        node for node in here.get(f"facts/{here.caused}/provenance").json["nodes"] if node["id"] == here.entry
    )
    assert cause["payloadErasedAt"] == ERASED_AT
    assert not here.hears()
    assert here.retrieve("keyword", "opening", source="conversations")["results"] == []


def test_what_comes_to_name_a_cause_that_is_being_erased_waits_and_says_why(here: Planted) -> None:
    about = {"type": "acme.note", "scope": PLACE, "content": 1}
    other = here.post("facts", **about).json["id"]
    derived = about | {"causedByLogId": [here.entry]}
    assert "review" not in here.post("facts", **derived).json
    here.erase(Selector("conversation", "talk"))
    (item,) = here.post("facts/batch", items=[derived]).json["results"]
    late = [
        here.post("facts", **derived).json,
        here.post("facts", **derived, key="late").json,
        item["fact"],
        here.post(f"facts/{other}/supersede", content=2, causedByLogId=[here.entry]).json,
    ]
    for fact in late:
        assert fact["review"] == "pending"
        there = here.world.facts.head("t1", fact["id"])
        assert there is not None
        assert there.fact.review_why == ("derived-from-erased",)
    assert "review" not in here.post("facts", **about).json


def test_a_write_that_is_replayed_while_its_fact_is_erased_answers_nothing_of_it(here: Planted) -> None:
    body = {"type": "acme.note", "scope": PLACE, "content": "once", "subjects": [EVE]}
    path = "/v1/memory/facts"
    assert here.gateway.call("POST", path, body, key="again").status == 201
    here.erase(Selector("external", "eve"))
    refused = here.gateway.call("POST", path, body, key="again")
    assert (refused.status, refused.code) == (409, "erasure-in-progress")
    assert "once" not in refused.text


# -- retention: every road at the very instant

OF_OTHERS = {
    "after": "unheard",
    "standing set": "memory",
    "block that begins with the standing set": "memory",
    "reviews": "memory",
}
"""The roads that show another fact than the planted one, and which."""


def roads_of(here: Planted, fact: str) -> dict[str, Road]:
    """The roads that show this fact. The type is in use until the last of them has ended, which is the memory."""
    roads = {name: road for named in FACT_ROADS.values() for name, road in named.items()}
    shows = {name: OF_OTHERS.get(name, "memory" if name.startswith("type") else "fact") for name in roads}
    return {name: road for name, road in roads.items() if getattr(here, shows[name]) == fact}


def shown_on(here: Planted, roads: dict[str, Road]) -> set[str]:
    return {name for name, road in roads.items() if road(here)}


@pytest.fixture
def limited(world: World, caller: Principal, apps: dict[str, Any]) -> Planted:
    """All that is planted is kept for thirty days: the facts by the policy, the memory by its window."""
    world.policies.put_policy("t1", Policy(retention=KeepLimits(keep_days=30)))
    return plant(world, caller, apps)


def ends(world: World, here: Planted) -> list[tuple[str, str]]:
    """The planted facts, each with its end, the first to end first."""
    heads = world.facts.heads("t1", [here.fact, here.unheard, here.memory])
    found = [(head.fact.expires_at or "", fact_id) for fact_id, head in heads.items()]
    assert len({at for at, _ in found}) == 3
    return [(fact_id, at) for at, fact_id in sorted(found)]


def test_a_fact_is_shown_until_its_end_and_from_that_instant_on_no_road(
    world: World, limited: Planted
) -> None:
    walked: set[str] = set()
    for fact, end in ends(world, limited):
        roads = roads_of(limited, fact)
        walked |= roads.keys()
        world.clock.instant = times.add(end, milliseconds=-1)
        assert shown_on(limited, roads) == roads.keys()
        world.clock.instant = end
        assert shown_on(limited, roads) == set()
    assert walked == seen(limited, FACT_ROADS).keys()
    for route, change in CHANGES.items():
        if route != "POST /v1/memory/facts":  # begins a new life of the key
            refused = change(limited)
            assert (refused.status, refused.code) == (404, "fact-not-found")


def test_a_held_fact_is_shown_past_its_end_and_once_it_is_released_on_no_road(
    world: World, limited: Planted
) -> None:
    facts = [fact for fact, _ in ends(world, limited)]
    for fact in facts:
        hold_fact(world.memory, ADMIN, world.operation(), fact, "Case 7")
        if fact != limited.unheard:
            world.deliver(*world.facts.heads("t1", [fact]).values())
    world.clock.advance(days=5_000)
    for fact in facts:
        assert shown_on(limited, roads_of(limited, fact)) == roads_of(limited, fact).keys()
    for fact in facts:
        release_fact(world.memory, ADMIN, world.operation(), fact, "Case 7")
    for _ in range(2):  # whether the index has heard of the release makes no difference
        assert [name for name, shown in seen(limited, FACT_ROADS).items() if shown] == []
        world.deliver(*world.facts.heads("t1", facts).values())


def test_reading_on_every_road_extends_nothing(world: World, limited: Planted) -> None:
    before = ends(world, limited)
    world.clock.advance(days=29)
    assert all(seen(limited, FACT_ROADS).values())
    assert ends(world, limited) == before
