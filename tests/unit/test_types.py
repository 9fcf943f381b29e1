"""Lists by prefix and the types in use, over the locked fake: exactly what the caller may list, and what that costs."""

import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.access_model import Grants, Json, grants, may_read, palettes, scopes

from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import StorageUnavailable
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.type_order import LOWEST
from factbook.ports.deadline import Deadline
from factbook.usecases.facts import listing, types
from factbook.usecases.facts.listing import Query, list_facts
from factbook.usecases.facts.types import list_types
from factbook.usecases.merging import NEWEST, THREADS

from .test_listing import START, WRITER, World, principal_of

KINDS = ["acme", "acme.note", "acme.note.old", "acmé", "other", "a b", "!", "z", "\U0010ffff", "a\U0010ffffx"]
ROWS_OF_A_PAGE = 200


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Grants, Json]:
    palette = draw(palettes)
    world = World()
    for place in draw(st.lists(scopes(palette), max_size=40)):
        kind = draw(st.sampled_from(KINDS))
        fields = draw(st.sampled_from([{}, {}, {"review": "pending"}, {"expires_at": START}]))
        world.write(place, kind, **fields)
        if fields:
            world.written.pop()
            world.written.append(({"userId": "nobody"}, kind, ""))
    wanted = draw(st.sampled_from([{}, {}, *(place for place, _, name in world.written[:3] if name)]))
    return world, draw(grants(palette)), wanted


def walked(world: World, who: Principal, wanted: Json, limit: int) -> list[str]:
    found: list[str] = []
    position: str | None = LOWEST
    while position is not None:
        before, read = position, world.store.rows_read
        page = list_types(world.memory, who, wanted, limit, position)
        assert len(page.types) <= limit
        assert world.store.rows_read - read <= types.ROWS
        position = page.position
        assert position is None or position > before, "a walk goes on"
        found += page.types
    return found


@settings(max_examples=150)
@given(drawn=worlds(), limit=st.integers(1, 9), rows=st.sampled_from([20, 1000]))
def test_the_types_are_those_of_facts_the_caller_may_list_each_once_by_name(
    drawn: tuple[World, Grants, Json], limit: int, rows: int
) -> None:
    world, who, wanted = drawn
    expected = {
        kind
        for place, kind, fact_id in world.written
        if fact_id and may_read(who, place) and wanted.items() <= place.items()
    }
    holder = principal_of(who)
    partitions = 4 * len(listing.partitions(world.memory, holder, wanted))
    with patch.object(types, "ROWS", max(rows, partitions)):
        assert walked(world, holder, wanted, limit) == sorted(expected)


class SlowStore:
    """The world's store, each of whose calls takes two seconds of a clock that nothing else moves, those of a pool's threads
    together; as a client of the service it begins none when the time is over.
    """

    def __init__(self, world: World, seconds: float, *, refuses: bool = True) -> None:
        self._store, self.now, self.begun = world.store, 0.0, list[float]()
        self._lock, self._refuses = threading.Lock(), refuses
        self.deadline = Deadline(seconds, lambda: self.now)
        self.memory = replace(world.memory, facts=self)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name == "shards":
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            if self._refuses:
                self.deadline.require()
            together = 1 if threading.current_thread() is threading.main_thread() else THREADS
            with self._lock:
                self.begun.append(self.now)
                self.now += 2 / together
            return found(*arguments, **named)

        return call


TOLD = {
    "types": lambda memory, who, deadline: list_types(memory, who, {}, 100, deadline=deadline),
    "a prefix": lambda memory, who, deadline: list_facts(
        memory, who, Query(type_prefix="acme."), 100, deadline=deadline
    ),
    "a list": lambda memory, who, deadline: list_facts(memory, who, Query(), 100, deadline=deadline),
    "as of an instant": lambda memory, who, deadline: list_facts(
        memory, who, Query(as_of="2099-01-01T00:00:00.000Z"), 100, deadline=deadline
    ),
}


@pytest.mark.parametrize("what", TOLD)
@pytest.mark.parametrize("projects", [1, 10, 25, 50])
def test_no_call_is_begun_when_the_time_is_over_however_many_types_and_partitions_there_are(
    what: str, projects: int
) -> None:
    world = World()
    for number in range(130):
        world.write({"projectId": f"p{number % projects}"}, f"acme.t{number:03d}")
        for hidden in range(4):
            world.write({"projectId": f"p{number % projects}"}, f"acme.a{hidden}", review="pending")
    writes = frozenset(f"p{number}" for number in range(projects))
    who = Principal("t", Actor(kind="service", id="app"), writes_projects=writes)
    slow = SlowStore(world, 16, refuses=False)
    with suppress(StorageUnavailable):
        TOLD[what](slow.memory, who, slow.deadline)
    assert sum(at >= 16 for at in slow.begun) <= THREADS


@pytest.mark.parametrize("seconds", [4, 6, 9])
def test_types_are_told_as_far_as_there_was_time_and_the_walk_misses_none(seconds: float) -> None:
    world = World()
    names = [f"acme.t{number:03d}" for number in range(130)]
    for name in names:
        world.write({"projectId": "p"}, name)
    found, pages, position = list[str](), 0, LOWEST
    while position is not None:
        slow = SlowStore(world, seconds)
        page = list_types(slow.memory, WRITER, {}, 100, position, slow.deadline)
        found, pages, position = found + page.types, pages + 1, page.position
    assert found == names
    assert pages > 2


def test_a_list_as_of_an_instant_is_as_long_as_there_was_time_to_read_revisions_and_misses_none() -> None:
    world = World()
    ids = [world.write({"projectId": "p"}, "acme") for _ in range(40)]
    for _ in range(9):
        instant = world.clock.advance(milliseconds=5)
        for fact_id in ids:
            world.supersede(fact_id)
    query = Query(as_of=times.add(instant, milliseconds=-20))
    whole = list_facts(world.memory, WRITER, query, 100).facts
    found, pages, position = list[Fact](), 0, NEWEST
    while position is not None:
        slow = SlowStore(world, 6)
        page = list_facts(slow.memory, WRITER, query, 100, position, deadline=slow.deadline)
        found, pages, position = found + page.facts, pages + 1, page.position
    assert found == whole
    assert len(whole) == len(ids)
    assert pages > 1


@settings(max_examples=150)
@given(
    drawn=worlds(),
    prefix=st.sampled_from(["a", "acme", "acme.", "acm", "z", "!", "none"]),
    limits=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    most=st.sampled_from([0, 6, 200]),
    past=st.booleans(),
)
def test_a_list_by_prefix_is_the_list_of_those_types_however_it_is_read(
    drawn: tuple[World, Grants, Json], prefix: str, limits: list[int], most: int, past: bool
) -> None:
    world, who, wanted = drawn
    world.clock.advance(seconds=1)
    as_of = world.clock.now() if past else None
    holder = principal_of(who)
    everything = world.walk(holder, Query(scope=wanted, as_of=as_of), [100])
    with patch.object(listing, "PREFIX_ROWS", most):
        found = world.walk(holder, Query(scope=wanted, as_of=as_of, type_prefix=prefix), limits)
    assert found == [fact for fact in everything if fact.type.startswith(prefix)]


@settings(max_examples=40)
@given(
    data=st.data(), steps=st.lists(st.sampled_from([*KINDS[:3], None]), max_size=12), indexed=st.booleans()
)
def test_a_list_as_of_an_instant_finds_a_fact_by_the_type_it_had_then(
    data: st.DataObject, steps: list[str | None], indexed: bool
) -> None:
    """Remembering again may say another type; None deletes."""
    world = World()
    facts = [world.write({"projectId": "p"}, kind, agent_id="helper") for kind in KINDS[:2]]
    instants = [world.clock.now()]
    for kind in steps:
        world.clock.advance(seconds=1)
        fact_id = data.draw(st.sampled_from(facts))
        if kind is None:
            world.delete(fact_id)
            facts.remove(fact_id)
            facts.append(world.write({"projectId": "p"}, KINDS[0], agent_id="helper"))
        else:
            world.supersede(fact_id, kind)
        instants.append(world.clock.now())
    world.clock.advance(seconds=1)
    object.__setattr__(world.memory, "by_type", lambda: indexed)

    for as_of in [None, *instants]:
        everything = world.walk(WRITER, Query(as_of=as_of), [100])
        for query in (
            *(Query((kind,), as_of=as_of) for kind in KINDS[:3]),
            Query(type_prefix="acme.", as_of=as_of),
        ):
            assert world.walk(WRITER, query, [1]) == [fact for fact in everything if query.wants(fact.type)]


@settings(max_examples=60)
@given(
    drawn=worlds(),
    chosen=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4, unique=True),
    most=st.sampled_from([1, 200]),
    indexed=st.booleans(),
)
def test_a_list_of_several_types_is_the_list_of_those_types(
    drawn: tuple[World, Grants, Json], chosen: list[str], most: int, indexed: bool
) -> None:
    world, who, wanted = drawn
    holder = principal_of(who)
    everything = world.walk(holder, Query(scope=wanted), [100])
    object.__setattr__(world.memory, "by_type", lambda: indexed)
    with patch.object(listing, "MOST_SOURCES", most):
        found = world.walk(holder, Query(tuple(chosen), wanted), [7])
    assert found == [fact for fact in everything if fact.type in chosen]


def test_an_agent_does_not_learn_the_types_of_another_agents_memories() -> None:
    world = World()
    world.write({}, "mine", agent_id="helper")
    world.write({}, "theirs", agent_id="other")
    world.write({}, "everyones")
    helper = Principal("t", Actor(kind="agent", id="a"), agent_id="helper")
    assert walked(world, helper, {}, 10) == ["everyones", "mine"]
    assert [fact.type for fact in world.walk(helper, Query(), [10])] == ["everyones", "mine"]


def test_a_type_whose_first_facts_are_hidden_is_named_for_the_one_that_is_not() -> None:
    world = World()
    for _ in range(300):
        world.write({"projectId": "p"}, "mixed", review="pending")
    world.write({"projectId": "p"}, "mixed")
    world.write({"projectId": "p"}, "zebra")
    assert walked(world, WRITER, {}, 10) == ["mixed", "zebra"]


def test_types_are_not_named_while_some_facts_may_be_missing_from_their_index() -> None:
    world = World()
    object.__setattr__(world.memory, "by_type", lambda: False)
    with pytest.raises(StorageUnavailable, match="earlier version"):
        list_types(world.memory, WRITER, {}, 10)


@pytest.fixture(scope="module")
def crowded() -> World:
    """10,000 facts of one project, of which each 1,000th is rare, and each 100th of the types with a prefix."""
    world = World()
    for number in range(10_000):
        world.clock.instant = times.add(START, milliseconds=number)
        kind = "rare" if number % 1_000 == 0 else f"some.{number % 7}" if number % 100 == 1 else "noise"
        world.write({"projectId": "p"}, kind)
    return world


@pytest.mark.parametrize(
    "who",
    [WRITER, Principal("t", Actor(kind="user", id="ann"), writes_projects=frozenset({"p"}))],
    ids=["an administrator", "a member"],
)
@pytest.mark.parametrize("query", [Query(("rare",)), Query(("noise",)), Query(type_prefix="some.")])
def test_a_page_by_type_reads_what_it_returns_and_never_what_the_project_holds(
    crowded: World, who: Principal, query: Query
) -> None:
    crowded.store.rows_read = crowded.store.queries = 0
    page = list_facts(crowded.memory, who, query, 25)
    pages = 1
    found = page.facts
    while page.position is not None and len(found) < 25:
        page = list_facts(crowded.memory, who, query, 25 - len(found), page.position)
        found += page.facts
        pages += 1
    assert len(found) == (10 if query.types == ("rare",) else 25)
    assert pages <= 2
    assert crowded.store.rows_read <= ROWS_OF_A_PAGE


def test_all_types_of_a_crowded_project_are_told_for_a_few_rows(crowded: World) -> None:
    crowded.store.rows_read = 0
    found = walked(crowded, WRITER, {"projectId": "p"}, 25)
    assert found == ["noise", "rare", *(f"some.{number}" for number in range(7))]
    assert crowded.store.rows_read <= 10 * 8 * 2
