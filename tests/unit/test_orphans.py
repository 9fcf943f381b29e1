"""The walk of what facts left behind: when it begins, what it does about trouble, and what stops it where."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from support.fakes import FakeBlobs, FakeClock
from support.search_world import FakeJobs
from support.struck import Blow, Blows, Death, Struck

from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.walks import Life
from factbook.ports.jobs import DONE
from factbook.ports.walks import Stop, WalkPage
from factbook.usecases.facts import orphans
from factbook.usecases.facts.orphans import ORPHANS, OrphanPorts, sweep_orphans

ENOUGH = Deadline(60, lambda: 0.0)


@dataclass
class FakeLeft:
    """Orphans and Remains: lives without a head, the payloads of a bucket by reference, and which of them facts name."""

    blobs: FakeBlobs
    lost: list[Life] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    poison: set[Any] = field(default_factory=set)

    def lives(self, after: str | None, limit: int) -> WalkPage[Life]:
        return _page(sorted(self.lost, key=lambda life: life.id), lambda life: life.id, after, 7)

    def payloads(self, before: str, after: str | None, limit: int) -> WalkPage[str]:
        page = _page(sorted(self.blobs.bodies), str, after, 7)
        return replace(page, stops=[stop for stop in page.stops if not self.named(stop.record)])

    def named(self, ref: str) -> bool:
        return ref in self.kept

    def remove_life(self, life: Life, deadline: Deadline = NEVER) -> None:
        deadline.require()
        if life in self.poison:
            raise StorageUnavailable
        with suppress(ValueError):
            self.lost.remove(life)


def _page(records: list[Any], name: Any, after: str | None, limit: int) -> WalkPage[Any]:
    found = [record for record in records if after is None or name(record) > after]
    stops = [Stop(record, name(record)) for record in found[:limit]]
    return WalkPage(stops, stops[-1].cursor if len(found) > limit else None)


class World:
    def __init__(self, blows: Blows | None = None) -> None:
        self.clock, self.jobs, self.blobs = FakeClock(), FakeJobs(), FakeBlobs()
        self.left = FakeLeft(self.blobs, [Life("t", f"f{n:02d}", "then", None) for n in range(25)])
        for number in range(25):
            ref = f"blob://{number:02d}"
            self.blobs.put(ref, b"x")
            self.blobs.claim(ref)
            if number % 3 == 0:
                self.left.kept.add(ref)
        blows = blows or Blows()
        self.ports = OrphanPorts(
            Struck(self.left, blows),
            Struck(self.left, blows),
            Struck(self.blobs, blows),
            Struck(self.jobs, blows),
            self.clock,
            lambda _: None,
        )

    def sweep(self, deadline: Deadline = ENOUGH) -> Any:
        return sweep_orphans(self.ports, deadline)

    @property
    def is_clean(self) -> bool:
        return not self.left.lost and self.blobs.pending == set(self.blobs.bodies) - self.left.kept


def test_what_no_head_and_no_fact_stands_for_goes_and_all_else_stays() -> None:
    world = World()
    job = world.sweep()
    assert world.is_clean
    assert (job.phase, dict(job.counters)) == (DONE, {"lives": 25, "payloads": 16, "failed": 0})
    assert len(world.blobs.bodies) == 25, "the bucket removes what is pending"


@pytest.mark.parametrize("blow", Blow)
def test_whatever_stops_it_where_it_goes_on_and_ends_alike(blow: Blow) -> None:
    calm = Blows()
    World(calm).sweep()
    for at in range(len(calm.calls)):
        blows = Blows(blow, at)
        world = World(blows)
        for _ in range(3):
            with suppress(Death, StorageUnavailable):
                world.sweep()
        assert not (world.blobs.pending & world.left.kept), "what a fact names is never let go"
        world.clock.advance(days=2)  # one whose record failed is asked for again
        for _ in range(2):
            with suppress(Death, StorageUnavailable):
                world.sweep()
        assert world.is_clean, blows.calls[at]


def test_one_life_that_cannot_be_removed_holds_up_no_other_and_is_tried_the_next_day() -> None:
    world = World()
    bad = world.left.lost[3]
    world.left.poison.add(bad)
    assert world.sweep().counters["failed"] == 1
    assert world.left.lost == [bad]
    assert world.blobs.pending == set(world.blobs.bodies) - world.left.kept

    world.left.poison.clear()
    world.clock.advance(hours=23)
    world.sweep()
    assert world.left.lost == [bad]
    world.clock.advance(hours=1)
    world.sweep()
    assert world.is_clean


def test_it_begins_once_a_month_and_a_day_after_the_last_one_when_somebody_asked() -> None:
    world = World()
    started = [world.sweep().started_at]

    def begun(**later: float) -> bool:
        world.clock.advance(**later)
        started.append(world.sweep().started_at)
        return started[-1] != started[-2]

    assert not begun(days=29)
    assert begun(days=1)
    world.clock.advance(minutes=1)
    world.jobs.ask(ORPHANS, world.clock.now())
    assert not begun(hours=23)
    assert begun(hours=1)
    assert not begun(days=2), "once for what was asked"


def test_it_stops_at_its_deadline_and_goes_on_where_it_was() -> None:
    world = World()
    time = iter(range(10_000))
    turns = 0
    while not world.is_clean:
        before = len(world.left.lost) + len(world.blobs.pending ^ set(world.blobs.bodies))
        job = world.sweep(Deadline(14, lambda: float(next(time))))
        turns += 1
        assert job.counters["failed"] == 0, "want of time is no failure"
        assert turns < 100, before
    assert turns > 3


def test_a_payload_that_is_named_while_it_is_let_go_stays() -> None:
    world = World()
    unclaim = world.blobs.unclaim

    def named_meanwhile(ref: str) -> None:
        world.left.kept.add(ref)
        unclaim(ref)

    world.blobs.unclaim = named_meanwhile  # type: ignore[method-assign]
    world.sweep()
    assert world.blobs.pending == set()


def test_a_page_is_followed_by_a_pause_for_those_who_read_beside_it() -> None:
    world = World()
    pauses: list[float] = []
    world.ports = replace(world.ports, sleep=pauses.append)
    world.sweep()
    assert set(pauses) == {orphans.PAUSE_SECONDS}
    assert len(pauses) == 8
