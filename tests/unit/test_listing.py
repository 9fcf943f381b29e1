"""Pages of a list over the locked fake: everything visible once, nothing else, whatever the mix and the limits."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.access_model import Grants, Json, grants, may_read, palettes, scopes
from support.fakes import FakeClock, FakeFacts, fake_memory

from factbook.domain import times
from factbook.domain.access.listing import listing_plan
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import Fact, FactChanges, Payload
from factbook.domain.facts.transitions import close, open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head, Row
from factbook.usecases.facts import listing
from factbook.usecases.facts.listing import Query, list_facts
from factbook.usecases.merging import NEWEST

START = "2026-01-01T00:00:00.000Z"
WRITER = Principal("t", Actor(kind="user", id="writer"), admin=True)


def principal_of(who: Grants) -> Principal:
    actor = Actor(kind="service", id="svc") if who.user is None else Actor(kind="user", id=who.user)
    return Principal("t", actor, who.admin, who.reads, who.writes, who.reads_orgs, who.administers_orgs)


class World:
    """Facts written one after another; `kept` are what was written, as JSON scopes beside their facts."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.memory = fake_memory(self.clock)
        self.store: FakeFacts = self.memory.facts
        self.written: list[tuple[Json, str, str]] = []

    def write(self, place: Json, kind: str = "note", text: str = "1", **fields: Any) -> str:
        # Several facts share a millisecond: their order then is the id's.
        now = self.clock.advance(milliseconds=len(self.written) % 2)
        fact_id = f"f{len(self.written):04d}"
        payload = Payload(text=text, content_hash="", size=len(text))
        fact = open_fact(fact_id, kind, Scope(tenantId="t", **place), FactChanges(), payload, WRITER, now)
        assert self.store.create(Head(fact.model_copy(update=fields))) is None
        self.written.append((place, kind, fact_id))
        return fact_id

    def supersede(self, fact_id: str, kind: str | None = None) -> None:
        """The next revision, of another type where one is named."""
        head = self._head(fact_id)
        payload = Payload(text="2", content_hash="", size=1)
        closed, following = supersede(head.fact, FactChanges(), payload, WRITER, self.clock.now())
        following = following.model_copy(update={"type": kind or head.fact.type})
        assert self.store.advance(head, closed, Head(following, head.edition + 1)) is None

    def delete(self, fact_id: str) -> None:
        head = self._head(fact_id)
        gone = close(head.fact, "user:writer", self.clock.now(), "deleted")
        assert self.store.amend(head, Head(gone, head.edition + 1)) is None

    def walk(self, who: Principal, query: Query, limits: list[int]) -> list[Fact]:
        """Every page to the end, the limits in turn; checks what every page promises."""
        found: list[Fact] = []
        position: str | None = NEWEST
        turn = 0
        while position is not None:
            limit = limits[turn % len(limits)]
            before, read = position, self.store.rows_read
            page = list_facts(self.memory, who, query, limit, position)
            assert len(page.facts) <= limit
            assert self.store.rows_read - read <= listing.ROWS
            position = page.position
            assert position is None or position < before, "a walk goes on"
            found += page.facts
            turn += 1
        return found

    def _head(self, fact_id: str) -> Head:
        head = self.store.head("t", fact_id)
        assert head is not None
        return head


def order(fact: Fact) -> str:
    return f"{fact.created_at}|{fact.id}"


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Grants, Json]:
    palette = draw(palettes)
    world = World()
    for place in draw(st.lists(scopes(palette), max_size=60)):
        kind = "note" if len(world.written) % 3 else "other"
        world.write(place, kind)
    wanted = draw(st.sampled_from([{}, {}, *(place for place, _, _ in world.written[:3])]))
    return world, draw(grants(palette)), wanted


@settings(max_examples=150)
@given(
    drawn=worlds(),
    kind=st.sampled_from([None, None, "note", "other", "none"]),
    limits=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    rows=st.sampled_from([20, 40, 1000]),
)
def test_a_walk_returns_each_visible_fact_once_newest_first_and_nothing_else(
    drawn: tuple[World, Grants, Json], kind: str | None, limits: list[int], rows: int
) -> None:
    world, who, wanted = drawn
    expected = {
        fact_id
        for place, written, fact_id in world.written
        if may_read(who, place) and kind in (None, written) and wanted.items() <= place.items()
    }
    sources = 4 * len(listing_plan(principal_of(who), wanted).containers or (1, 1))
    with patch.object(
        listing, "ROWS", max(rows, sources)
    ):  # a budget may run out, but not before all were asked
        found = world.walk(principal_of(who), Query(() if kind is None else (kind,), wanted), limits)
    assert [order(fact) for fact in found] == sorted(map(order, found), reverse=True)
    assert len(found) == len(expected)
    assert {fact.id for fact in found} == expected


@settings(max_examples=60)
@given(
    steps=st.lists(st.tuples(st.sampled_from("wwsdx"), st.integers(0, 30)), min_size=1, max_size=40),
    at=st.integers(0, 40),
    limit=st.integers(1, 10),
)
def test_a_list_as_of_an_instant_is_the_list_of_that_instant(
    steps: list[tuple[str, int]], at: int, limit: int
) -> None:
    world = World()
    pictures: list[tuple[str, dict[str, str | None]]] = []
    for step, pick in steps:
        world.clock.advance(milliseconds=5)
        current = [fact.id for fact in world.walk(WRITER, Query(), [100])]
        if step == "w" or not current:
            world.write({})
        elif step == "s":
            world.supersede(current[pick % len(current)])
        elif step == "d":
            world.delete(current[pick % len(current)])
        world.clock.advance(milliseconds=5)
        pictures.append(
            (world.clock.now(), {fact.id: fact.content_text for fact in world.walk(WRITER, Query(), [100])})
        )
    instant, picture = pictures[at % len(pictures)]
    found = world.walk(WRITER, Query(as_of=instant), [limit])
    assert len(found) == len(picture)
    assert {fact.id: fact.content_text for fact in found} == picture


def test_a_filter_that_keeps_nothing_gives_empty_pages_that_say_there_is_more() -> None:
    world = World()
    for _ in range(3000):
        world.write({}, "noise")
    oldest = "f0000"
    world.store.remove("t", oldest)
    world.clock.instant = times.add(START, milliseconds=-1)
    world.written[0] = ({}, "note", world.write({}, "note"))
    pages = []
    position: str | None = NEWEST
    while position is not None:
        world.store.rows_read = 0
        page = list_facts(world.memory, WRITER, Query(("note",)), 10, position)
        pages.append((len(page.facts), world.store.rows_read))
        position = page.position
    assert [count for count, _ in pages] == [0] * (len(pages) - 1) + [1]
    assert all(rows <= 1000 for _, rows in pages)
    assert len(pages) <= 5


def test_a_busy_container_does_not_keep_a_walk_from_going_on() -> None:
    world = World()
    projects = [f"p{number}" for number in range(95)]
    reader = Principal("t", Actor(kind="user", id="ann"), reads_projects=frozenset(projects))
    for project in projects:
        for _ in range(4):
            world.write({"projectId": project}, "note")
    for _ in range(500):
        world.write({}, "noise")
    pages = 0
    position: str | None = NEWEST
    found = []
    while position is not None:
        page = list_facts(world.memory, reader, Query(("note",)), 25, position)
        position = page.position
        found += page.facts
        pages += 1
    assert len(found) == 95 * 4
    assert pages <= 2 + 95 * 4 // 25 * 2


def test_a_fact_deleted_while_its_page_is_read_is_listed_once_as_of_before() -> None:
    world = World()
    fact_id = world.write({})

    instant = world.clock.now()
    world.clock.advance(seconds=1)
    world.delete(fact_id)
    both_seen = []
    real = world.store.rows

    def twice(*args: Any, closed: bool = False, **kwargs: Any) -> tuple[list[Row], bool]:
        rows, more = real(*args, closed=True, **kwargs)
        both_seen.append(len(rows))
        return rows, more

    with patch.object(world.store, "rows", twice):  # open and closed partitions both still show the row
        page = list_facts(world.memory, WRITER, Query(as_of=instant), 10)
    assert sum(both_seen) == 2
    assert [fact.id for fact in page.facts] == [fact_id]


def test_a_page_ends_before_it_grows_too_large_and_the_next_goes_on() -> None:
    world = World()
    for _ in range(100):
        world.write({}, text='"' + "x" * 64_000 + '"')
    found, sizes = [], []
    position: str | None = NEWEST
    while position is not None:
        page = list_facts(world.memory, WRITER, Query(), 100, position)
        sizes.append(sum(len(fact.content_text or "") for fact in page.facts))
        found += page.facts
        position = page.position
    assert len(sizes) == 2
    assert max(sizes) <= 4 * 2**20
    assert [fact.id for fact in found] == [f"f{number:04d}" for number in reversed(range(100))]


@pytest.mark.parametrize(
    ("kind", "name", "inherit", "kept"),
    [
        ("tenant", None, True, {"tenant", "session", "org", "project", "user", "thread"}),
        ("tenant", None, False, {"tenant", "session"}),
        ("org", "o", True, {"org", "project"}),
        ("org", "o", False, {"org"}),
        ("project", "p", True, {"project", "thread"}),
        ("project", "p", False, {"project"}),
    ],
)
def test_a_container_kind_keeps_what_names_it_and_may_leave_out_what_is_narrower(
    kind: str, name: str | None, inherit: bool, kept: set[str]
) -> None:
    world = World()
    places: dict[str, Json] = {
        "tenant": {},
        "session": {"sessionId": "s"},
        "org": {"orgId": "o"},
        "project": {"orgId": "o", "projectId": "p"},
        "user": {"userId": "u"},
        "thread": {"projectId": "p", "threadId": "x"},
    }
    ids = {world.write(place): label for label, place in places.items()}
    wanted = {} if name is None else {f"{kind}Id": name}
    query = Query(scope=wanted, nothing_narrower_than=None if inherit else kind)
    found = world.walk(WRITER, query, [10])
    assert {ids[fact.id] for fact in found} == kept
