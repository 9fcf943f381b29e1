"""Who sees which facts, against the model: no leak and no gap by list, id, version, asOf, revisions or download."""

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.access_model import Grants, Json, grants, may_read, may_write, palettes, scopes
from support.fakes import FakeClock, fake_memory, fake_services
from support.principals import TenantService, principal
from support.visibility import (
    EVERY_ROAD,
    FACTS,
    Ask,
    Kept,
    expected_by_id,
    filter_query,
    seen_by_id,
    token_request,
    walk,
)

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.errors import NotFound
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.transitions import close, open_fact
from factbook.domain.scope import Scope
from factbook.ports.facts.store import FactStore, Head
from factbook.usecases.facts import listing, reading
from factbook.usecases.merging import NEWEST
from factbook_local.testing import Ready, running

LARGE = "x" * 70_000

_cases = {"fakes": 0}


@st.composite
def situations(draw: st.DrawFn, facts: int) -> tuple[Grants, list[Json], Json]:
    palette = draw(palettes)
    places = draw(st.lists(scopes(palette), min_size=facts, max_size=facts))
    wanted = draw(st.sampled_from([{}, places[0], *({key: places[-1][key]} for key in places[-1])]))
    return draw(grants(palette)), places, wanted


def check(ask: Ask, who: Grants, kept: list[Kept], wanted: Json, now: str) -> None:
    """Every road to every fact, and three walks: of all, of a filter, and as of before the deletions."""
    visible = {fact.id for fact in kept if fact.seen_among_others(readable=may_read(who, fact.place))}
    current = {fact.id for fact in kept if not fact.deleted}
    matching = {fact.id for fact in kept if wanted.items() <= fact.place.items()}
    assert set(walk(ask, {"limit": 15})) == visible & current
    assert set(walk(ask, {"limit": 100} | filter_query(wanted))) == visible & current & matching
    assert set(walk(ask, {"limit": 100, "asOf": now})) == visible
    for fact in kept:
        expected = expected_by_id(fact, readable=may_read(who, fact.place), admin=who.admin)
        assert seen_by_id(ask, fact) == expected, fact


def put_aside(facts: FactStore, head: Head, number: int) -> tuple[bool, bool]:
    """Every seventh fact waits in review, every eleventh is erased; which of both this one is."""
    waits, erased = number % 7 == 3, number % 11 == 5
    fact = head.fact.model_copy(update={"review": "pending"}) if waits else head.fact
    if erased:
        fact = close(fact, "user:admin", fact.updated_at, "erased")
    if waits or erased:
        assert facts.amend(head, Head(fact, head.edition + 1, head.marks)) is None
    return waits, erased


# -- on fakes, without the handlers: many cases


class Rules:
    """The use cases over the fakes of one tenant."""

    def __init__(self, places: list[Json]) -> None:
        self.clock = FakeClock()
        self.memory = fake_memory(self.clock)
        self.before = self.clock.now()
        self.kept = [self._keep(number, place) for number, place in enumerate(places)]

    def _keep(self, number: int, place: Json) -> Kept:
        writer = principal("t", "admin", admin=True)
        fact_id, large = f"f{number:04d}", number % 5 == 0
        payload = Payload(
            text=None if large else "1",
            content_hash="",
            size=1,
            content_ref=f"blob://s3/b/{fact_id}" if large else None,
        )
        scope = Scope(tenantId="t", **place)
        fact = open_fact(fact_id, "note", scope, FactChanges(), payload, writer, self.before)
        head = Head(fact)
        assert self.memory.facts.create(head) is None
        if fact.content_ref is not None:
            self.memory.blobs.put(fact.content_ref, b"1")
        waits, erased = put_aside(self.memory.facts, head, number)
        if number % 4 == 0 and not erased:
            head = self.memory.facts.heads("t", [fact_id])[fact_id]
            gone = close(head.fact, "user:admin", times.add(self.before, seconds=1), "deleted")
            assert self.memory.facts.amend(head, Head(gone, head.edition + 1)) is None
        return Kept(fact_id, place, large, number % 4 == 0 or erased, self.before, waits, erased)

    def asker(self, who: Grants) -> Ask:
        holder = principal(
            "t",
            who.user or "svc",
            "service" if who.user is None else "user",
            admin=who.admin,
            reads=who.reads,
            writes=who.writes,
            reads_orgs=who.reads_orgs,
            administers_orgs=who.administers_orgs,
        )

        def ask(path: str, query: Json) -> tuple[int, Any]:
            try:
                return 200, self._answer(holder, path.removeprefix(FACTS), query)
            except NotFound as error:
                return 404, {"error": {"code": error.code, "details": error.details}}

        return ask

    def _answer(self, holder: Principal, path: str, query: Json) -> Any:
        _, fact_id, road = (*path.split("/"), "", "")[:3]
        if not fact_id:
            wanted = json.loads(query.get("scope", "{}"))
            asked = listing.Query(scope=wanted, as_of=query.get("asOf"))
            page = listing.list_facts(self.memory, holder, asked, query["limit"], query["cursor"] or NEWEST)
            data = [fact.to_json() for fact in page.facts]
            return {"data": data, "hasMore": page.position is not None, "nextCursor": page.position}
        if road == "revisions":
            return reading.list_revisions(self.memory, holder, fact_id)
        if road == "content":
            return reading.get_content_url(self.memory, holder, fact_id, query["version"])
        return reading.get_fact(self.memory, holder, fact_id, query.get("version"), query.get("asOf"))


@settings(max_examples=300)
@given(situation=situations(facts=34))
def test_the_rules_show_each_principal_exactly_what_the_model_lets_it_read(
    situation: tuple[Grants, list[Json], Json],
) -> None:
    who, places, wanted = situation
    here = Rules(places)
    check(here.asker(who), who, here.kept, wanted, here.before)
    _cases["fakes"] += len(here.kept)


def test_ten_thousand_cases_were_tried_on_fakes() -> None:
    assert _cases["fakes"] >= 10_000


# -- on fakes, through the handlers


class InProcess:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.service = TenantService(fake_services(self.clock), "t")

    def keep(self, places: list[Json]) -> tuple[list[Kept], str]:
        return keep(self.service, places, self.clock)

    def asker(self, who: Grants) -> Ask:
        made = self.service.admin.call("POST", "/v1/access/tokens", token_request(who))
        assert made.status == 201, made.text
        caller = self.service.admin.as_(made.json["token"])

        def ask(path: str, query: Json) -> tuple[int, Any]:
            reply = caller.call("GET", path, query=query)
            return reply.status, reply.json if reply.text else None

        return ask


def keep(service: TenantService, places: list[Json], clock: FakeClock) -> tuple[list[Kept], str]:
    """Facts in these scopes, every fifth large and every fourth deleted since the instant answered."""
    admin, store = service.admin, service.services.memory.facts
    items = [
        {"type": "note", "scope": place, "content": LARGE if number % 5 == 0 else number}
        for number, place in enumerate(places)
    ]
    results = admin.call("POST", f"{FACTS}/batch", {"items": items}).json["results"]
    before = clock.now()
    clock.advance(seconds=1)
    kept = []
    for number, (result, place) in enumerate(zip(results, places, strict=True)):
        fact_id = result["fact"]["id"]
        waits, erased = put_aside(store, store.heads(service.tenant, [fact_id])[fact_id], number)
        deleted = number % 4 == 0 or erased
        kept.append(Kept(fact_id, place, number % 5 == 0, deleted, before, waits, erased))
    for fact in kept:
        if fact.deleted and not fact.erased:
            assert admin.call("DELETE", f"{FACTS}/{fact.id}").status == 200
    return kept, before


@settings(max_examples=25)
@given(situation=situations(facts=20))
def test_the_api_shows_each_principal_exactly_what_the_model_lets_it_read(
    situation: tuple[Grants, list[Json], Json],
) -> None:
    who, places, wanted = situation
    here = InProcess()
    kept, before = here.keep(places)
    check(here.asker(who), who, kept, wanted, before)


@settings(max_examples=40)
@given(situation=situations(facts=12))
def test_the_api_takes_from_each_principal_exactly_what_the_model_lets_it_write(
    situation: tuple[Grants, list[Json], Json],
) -> None:
    who, places, _ = situation
    here = InProcess()
    kept, _ = here.keep(places)
    made = here.service.admin.call("POST", "/v1/access/tokens", token_request(who))
    caller = here.service.admin.as_(made.json["token"])
    for fact in kept:
        readable, writable = may_read(who, fact.place), may_write(who, fact.place)
        created = caller.call("POST", FACTS, {"type": "n", "scope": fact.place, "content": 1}).status
        assert created == (201 if writable else 403), fact.place
        changes = [("POST", "/supersede", {"content": 1}), ("POST", "/verify", {}), ("DELETE", "", None)]
        for method, suffix, body in changes:
            status = caller.call(method, f"{FACTS}/{fact.id}{suffix}", body).status
            hidden = fact.waits and not who.admin  # the administrator wrote it
            if fact.deleted or not readable or hidden:
                assert status == 404, fact.place
            elif not writable or (suffix == "/verify" and who.user is None):
                assert status == 403, fact.place
            else:
                assert status == 200, fact.place


# -- over HTTP


class OverHttp:
    """A tenant of the running service, asked over its socket; what was kept in it stays."""

    def __init__(self, service: Ready) -> None:
        self.url = service.url
        self.local = threading.local()
        self.connections: list[http.client.HTTPConnection] = []
        self.pool = ThreadPoolExecutor(4)
        ((self.tenant, self.admin),) = list(service.tokens.items())[:1]
        self.kept: list[Kept] = []

    def send(self, method: str, path: str, token: str, body: Any = None) -> tuple[int, Any]:
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
            self.connections.append(self.local.connection)
        text = None if body is None else json.dumps(body)
        self.local.connection.request(method, path, text, {"Authorization": f"Bearer {token}"})
        answer = self.local.connection.getresponse()
        received = answer.read()
        return answer.status, json.loads(received) if received else None

    def keep(self, places: list[Json]) -> list[Kept]:
        items = [
            {"type": "note", "scope": place, "content": LARGE if number % 5 == 0 else number}
            for number, place in enumerate(places)
        ]
        status, answer = self.send("POST", f"{FACTS}/batch", self.admin, {"items": items})
        assert status == 200
        written = [result["fact"] for result in answer["results"]]
        before = max(fact["createdAt"] for fact in written)
        added = [
            Kept(fact["id"], place, number % 5 == 0, number % 4 == 0, before)
            for number, (fact, place) in enumerate(zip(written, places, strict=True))
        ]
        for fact in added:
            if fact.deleted:
                assert self.send("DELETE", f"{FACTS}/{fact.id}", self.admin)[0] == 200
        self.kept += added
        return added

    def asker(self, who: Grants) -> Ask:
        status, made = self.send("POST", "/v1/access/tokens", self.admin, token_request(who))
        assert status == 201

        def ask(path: str, query: Json) -> tuple[int, Any]:
            return self.send("GET", f"{path}?{urlencode(query)}", made["token"])

        return ask


@pytest.fixture(scope="session")
def over_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverHttp]:
    """A service of its own: what others write into a shared one would be found as well."""
    with running(tmp_path_factory.mktemp("visibility"), ["demo"]) as ready:
        asked = OverHttp(ready)
        yield asked
        asked.pool.shutdown()
        for connection in asked.connections:
            connection.close()


@pytest.mark.exhaustive
def test_the_service_shows_each_principal_exactly_what_the_model_lets_it_read(over_http: OverHttp) -> None:
    @settings(max_examples=26, phases=[Phase.generate])
    @given(situation=situations(facts=12))
    def shows_what_the_model_lets_it_read(situation: tuple[Grants, list[Json], Json]) -> None:
        compare(over_http, *situation)

    shows_what_the_model_lets_it_read()
    assert len(over_http.kept) >= 300


def compare(over_http: OverHttp, who: Grants, places: list[Json], wanted: Json) -> None:
    """What a principal finds on every road is what the model lets it read."""
    added = over_http.keep(places)
    ask = over_http.asker(who)
    readable = {fact.id for fact in over_http.kept if may_read(who, fact.place)}
    current = {fact.id for fact in over_http.kept if not fact.deleted}
    matching = {fact.id for fact in over_http.kept if wanted.items() <= fact.place.items()}
    assert set(walk(ask, {"limit": 100})) == readable & current
    assert set(walk(ask, {"limit": 100} | filter_query(wanted))) == readable & current & matching
    by = EVERY_ROAD - {"version"}  # the same look-up as content's, which asks for a version
    roads = over_http.pool.map(lambda fact: seen_by_id(ask, fact, by), added)
    for fact, seen in zip(added, roads, strict=True):
        expected = expected_by_id(fact, readable=fact.id in readable, admin=who.admin)
        assert seen == {road: expected[road] for road in by}, fact.place
