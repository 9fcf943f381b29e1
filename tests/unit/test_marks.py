"""Runs whose mark was lost are marked again, whatever stops the walk that looks for them."""

from contextlib import suppress

import pytest
from support.fakes import FakeClock
from support.log_fakes import FakeRuns
from support.search_world import FakeJobs
from support.struck import Blow, Blows, Death, Struck

from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.jobs import DONE, Job
from factbook.ports.log.checkpoints import DirtyRun
from factbook.usecases.log import marks
from factbook.usecases.log.checkpoints import checkpoint_all
from factbook.usecases.log.marks import MarkPorts, sweep_marks

from .test_checkpoints import TENANT, Deployment

OTHER = "other"


class World(Deployment):
    """Checkpointed runs; of some that grew since, and of some that are new, the marks are lost."""

    def __init__(self, blows: Blows | None = None) -> None:
        super().__init__()
        self.clock, self.jobs = FakeClock(), FakeJobs()
        for number in range(12):
            self.append(f"run-{number:02d}", 1 + number % 3)
        self.append("run", 2, OTHER)
        checkpoint_all(self.work())
        for number in (1, 5, 6):
            self.append(f"run-{number:02d}", 2)
        self.append("new-1")
        self.append("new-2", 3)
        self.append("new", 1, OTHER)
        self.tree._dirty.clear()
        blows = blows or Blows()
        ports = (FakeRuns(self.log), self.log, self.tree, self.jobs)
        self.ports = MarkPorts(*(Struck(port, blows) for port in ports), self.clock)  # type: ignore[arg-type]

    def sweep(self, deadline: Deadline = NEVER) -> Job:
        job = sweep_marks(self.ports, deadline)
        assert job is not None
        return job

    @property
    def marked(self) -> set[DirtyRun]:
        return set(self.tree._dirty.values())


LOST = {
    DirtyRun(TENANT, "run-01", 3),
    DirtyRun(TENANT, "run-05", 4),
    DirtyRun(TENANT, "run-06", 2),
    DirtyRun(TENANT, "new-1", 0),
    DirtyRun(TENANT, "new-2", 2),
    DirtyRun(OTHER, "new", 0),
}


def test_exactly_the_runs_that_grew_past_their_leaf_are_marked_and_then_checkpointed() -> None:
    world = World()
    job = world.sweep()
    assert world.marked == LOST
    assert (job.phase, dict(job.counters)) == (DONE, {"runs": 16, "marked": 6})
    checkpoint_all(world.work())
    world.assert_one_history()
    assert world.marked == set()
    for run in LOST:
        leaf = world.tree.last_leaf(run.tenant, run.run_id)
        assert leaf is not None
        assert leaf.sequence == run.sequence
    world.clock.advance(days=7)
    assert world.sweep().counters["marked"] == 0


@pytest.mark.parametrize("blow", Blow)
def test_whatever_stops_the_walk_it_goes_on_and_ends_alike(
    monkeypatch: pytest.MonkeyPatch, blow: Blow
) -> None:
    monkeypatch.setattr(marks, "RUNS", 5)
    calm = Blows()
    World(calm).sweep()
    for at in range(len(calm.calls)):
        world = World(Blows(blow, at))
        for _ in range(3):
            with suppress(Death, StorageUnavailable):
                world.sweep()
        assert world.marked == LOST, calm.calls[at]
        assert world.sweep().phase == DONE


def test_it_begins_once_a_week() -> None:
    world = World()
    first = world.sweep().started_at
    world.clock.advance(days=6, hours=23)
    assert world.sweep().started_at == first
    world.clock.advance(hours=1)
    assert world.sweep().started_at == world.clock.now()


def test_it_stops_at_its_deadline_and_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "RUNS", 2)
    world = World()
    time = iter(range(1_000))
    turns = 1
    while world.sweep(Deadline(4, lambda: float(next(time)))).phase != DONE:
        turns += 1
    assert world.marked == LOST
    assert turns > 3


def test_a_run_that_a_pass_has_taken_meanwhile_is_marked_for_nothing_and_cleared() -> None:
    world = World()
    world.sweep()
    checkpoint_all(world.work())
    sizes = {tenant: world.tree.edge(tenant).size for tenant in (TENANT, OTHER)}
    for run in LOST:
        world.tree.mark_dirty(run)  # by a walk that had looked before the pass
    checkpoint_all(world.work())
    assert world.marked == set()
    assert {tenant: world.tree.edge(tenant).size for tenant in sizes} == sizes


def test_a_run_that_was_emptied_or_cut_past_the_service_ends_no_walk() -> None:
    world = World()
    for key in [key for key in world.log._entries if key[1] in ("run-02", "new-2") and key[2] > 0]:
        del world.log._entries[key]
    world.sweep()
    assert world.marked == (LOST - {DirtyRun(TENANT, "new-2", 2)}) | {DirtyRun(TENANT, "new-2", 0)}
