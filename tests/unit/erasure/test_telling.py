"""The schedule tells the worker of what is due and was not taken, all in turn, however many there are."""

from collections import Counter
from dataclasses import replace

import pytest
from support.erasing import ErasureWorld, X
from support.replays import FakeErasures
from support.search_world import admin

from factbook.ports.erasure.records import Erasure
from factbook.ports.erasure.replays import Replay
from factbook.usecases.erasure import telling
from factbook.usecases.erasure.telling import in_turn, tell_again
from factbook_search.sqlite_index import SqliteIndex


@pytest.fixture
def world() -> ErasureWorld:
    return ErasureWorld(SqliteIndex(":memory:"))


def waiting(world: ErasureWorld, tenant: str, count: int) -> None:
    at = world.clock.now()
    for number in range(count):
        new = Erasure(f"{number:04d}", tenant, "participant", X, admin(tenant).name, at)
        world.records.create(new, at)


def test_what_is_due_is_told_of_whatever_becomes_of_what_was_told_before(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "MOST_LOOKED_AT", 10)
    waiting(world, "a-great-one", 95)
    waiting(world, "z-small-one", 1)
    world.clock.advance(seconds=31)
    for _ in range(10):
        told = tell_again(world.erasing_ports(), FakeErasures())
        assert told.due <= 10
    assert len({(tenant, name) for tenant, name, _ in world.queue.sent}) == 96
    assert Counter(world.queue.sent).most_common(1)[0][1] == 1
    tell_again(world.erasing_ports(), FakeErasures())
    assert world.queue.sent[96:] == world.queue.sent[:10], "and from the beginning again"


def test_of_many_that_are_due_tenants_come_in_turn(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "MOST_TOLD", 4)
    waiting(world, "a", 50)
    waiting(world, "b", 2)
    world.clock.advance(seconds=31)
    assert tell_again(world.erasing_ports(), FakeErasures()) == telling.Told(52, 4, 0)
    assert [(tenant, name) for tenant, name, _ in world.queue.sent] == [
        ("a", "0000"), ("b", "0000"), ("a", "0001"), ("b", "0001"),
    ]  # fmt: skip


def test_what_was_just_taken_is_not_told_of_and_a_round_of_all_keeps_nothing(world: ErasureWorld) -> None:
    waiting(world, "a", 2)
    world.clock.advance(seconds=31)
    now = world.clock.now()
    assert world.records.take("a", "0000", now, world.clock.now().replace("2026", "2027"))
    assert tell_again(world.erasing_ports(), FakeErasures()) == telling.Told(1, 1, 0)
    assert world.jobs._kept == {}


def test_replays_of_all_tenants_come_in_turn_as_well(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "MOST_TOLD", 4)
    replays = FakeErasures()
    for number in range(10):
        replays.keep(Replay(f"t{number}", "r", world.clock.now(), ()))
    for _ in range(3):
        tell_again(world.erasing_ports(), replays)
    assert world.queue.replays == [f"t{number}" for number in range(10)]


def test_another_round_at_the_same_moment_is_no_harm(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "MOST_LOOKED_AT", 1)
    waiting(world, "a", 3)
    world.clock.advance(seconds=31)
    tell_again(world.erasing_ports(), FakeErasures())
    job = world.jobs.job(telling.JOB)
    assert job is not None
    keep = world.jobs.keep
    monkeypatch.setattr(world.jobs, "keep", lambda mine: keep(replace(job, step=job.step + 1)) and keep(mine))
    tell_again(world.erasing_ports(), FakeErasures())
    monkeypatch.undo()
    for _ in range(4):
        tell_again(world.erasing_ports(), FakeErasures())
    assert {name for _, name, _ in world.queue.sent} == {"0000", "0001", "0002"}


def test_in_turn_keeps_the_order_of_each_tenant() -> None:
    due = [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", "1"), ("c", "2")]
    assert list(in_turn(due)) == [("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("c", "2"), ("a", "3")]
