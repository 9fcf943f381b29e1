"""The engine of long work: bounded pieces, resumed wherever an invocation ended, and two runners that notice each other."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes import FakeClock
from support.search_world import FakeJobs
from support.struck import Blow, Blows, Death, Struck

from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.jobs import DONE, Job
from factbook.ports.walks import Stop, WalkPage
from factbook.usecases import jobs

RECORDS = list(range(23))
PAGE = 5
PIECES = 7


class Sweep:
    """A job over some numbers: it doubles each into `done`, then counts them into `total`."""

    def __init__(self, store: FakeJobs | None = None, weight: int = 1, most: int = PAGE) -> None:
        self.store = store or FakeJobs()
        self.ports = jobs.JobPorts(self.store, FakeClock())
        self.done: dict[int, int] = {}
        self.total = 0
        self.pieces: list[list[int]] = []
        self._weight, self._most = weight, most

    def phases(self) -> dict[str, jobs.Phase]:
        return {"double": self._double, "count": self._count}

    def start(self) -> Job | None:
        return jobs.start(self.ports, Job("sweep", "doubling", "double", "", "", about={"of": "numbers"}))

    def work(self, deadline: Deadline = NEVER, blows: Blows | None = None) -> Job:
        job = self.store.job("sweep")
        assert job is not None
        store: Any = self.store if blows is None else Struck(self.store, blows)
        return jobs.work(jobs.JobPorts(store, self.ports.clock), job, self.phases(), deadline)

    def _double(self, job: Job, _: Deadline) -> Iterator[Job]:
        start = int(job.cursor or 0)
        stops = [Stop(number, str(number + 1)) for number in RECORDS[start : start + 2 * PAGE]]
        following = str(start + 2 * PAGE) if start + 2 * PAGE < len(RECORDS) else None
        page = WalkPage(stops, following)
        for numbers, cursor in jobs.portions(page, lambda _: self._weight, self._most):
            self.pieces.append(numbers)
            self.done |= {number: 2 * number for number in numbers}
            job = job.at(cursor, records=len(numbers))
            yield job if cursor else job.turned("count")

    def _count(self, job: Job, _: Deadline) -> Iterator[Job]:
        self.total = sum(self.done.values())
        yield job.turned(DONE)


def test_a_job_does_all_of_its_work_and_keeps_what_it_counted() -> None:
    sweep = Sweep()
    sweep.start()
    job = sweep.work()

    assert (job.phase, dict(job.counters), dict(job.about)) == (
        DONE,
        {"records": len(RECORDS)},
        {"of": "numbers"},
    )
    assert sweep.total == 2 * sum(RECORDS)
    assert sweep.store.job("sweep") == job


def cases() -> Iterator[tuple[int, Blow]]:
    """Every call of the store while the job is worked on, under every blow."""
    probe = Sweep()
    probe.start()
    blows = Blows()
    probe.work(blows=blows)
    return itertools.product(range(len(blows.calls)), Blow)


@pytest.mark.parametrize(("at", "blow"), list(cases()), ids=str)
def test_whatever_stops_a_job_at_any_call_it_ends_as_one_that_nothing_stopped(at: int, blow: Blow) -> None:
    sweep = Sweep()
    sweep.start()
    with pytest.raises((Death, StorageUnavailable)):
        sweep.work(blows=Blows(blow, at))
    job = sweep.work()

    assert (job.phase, job.counters["records"]) == (DONE, len(RECORDS))
    assert sweep.total == 2 * sum(RECORDS)
    repeated = sum(map(len, sweep.pieces)) - len(RECORDS)
    assert 0 <= repeated <= PAGE  # at most one piece is done twice


@pytest.mark.parametrize("place", range(PIECES))
def test_an_answer_that_is_lost_when_a_step_was_kept_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """The SDK tries again by itself, and finds the job of its first try."""
    sweep = Sweep()
    sweep.start()
    keep, steps = sweep.store.keep, iter(range(100))

    def keep_twice(job: Job) -> bool:
        if next(steps) == place:
            keep(job)
        return keep(job)

    monkeypatch.setattr(sweep.store, "keep", keep_twice)
    assert sweep.work().phase == DONE
    assert sum(map(len, sweep.pieces)) == len(RECORDS)


def test_the_slower_of_two_runners_stops_and_says_where_the_other_is() -> None:
    first = Sweep()
    first.start()
    behind = first.store.job("sweep")
    assert behind is not None
    second = Sweep(first.store)
    assert second.work().phase == DONE

    job = jobs.work(first.ports, behind, first.phases(), NEVER)

    assert job.phase == DONE
    assert [len(piece) for piece in first.pieces] == [PAGE]


def test_only_one_of_two_that_start_at_once_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = Sweep()
    twin = Sweep(sweep.store)
    with monkeypatch.context() as patch:
        patch.setattr(sweep.store, "job", lambda *_: None)
        assert sweep.start() is not None
        twin.ports.clock.advance(seconds=5)
        assert twin.start() is None


def test_a_new_job_takes_the_place_of_the_last_and_stops_its_runner() -> None:
    sweep = Sweep()
    sweep.start()
    old = sweep.store.job("sweep")
    assert old is not None
    sweep.ports.clock.advance(seconds=1)
    new = sweep.start()

    assert new is not None
    assert new.step == old.step + 1
    assert jobs.work(sweep.ports, old, sweep.phases(), NEVER) == new


def test_a_job_stops_after_the_piece_during_which_its_time_ran_out() -> None:
    sweep = Sweep()
    sweep.start()
    ticks = iter(range(100))
    job = sweep.work(Deadline(4, elapsed=lambda: next(ticks)))

    assert (job.phase, job.counters["records"]) == ("double", len(sweep.done))
    assert PAGE <= len(sweep.done) < len(RECORDS)
    assert sweep.store.job("sweep") == job
    assert sweep.work().phase == DONE


def test_no_work_begins_when_there_is_no_time() -> None:
    sweep = Sweep()
    sweep.start()

    assert sweep.work(Deadline(0)).phase == "double"
    assert sweep.pieces == []


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 20))
def test_portions_hold_every_record_once_in_order_and_are_bounded(weights: list[int], most: int) -> None:
    stops = [Stop((place, weight), str(place)) for place, weight in enumerate(weights)]
    found = list(jobs.portions(WalkPage(stops, "next"), lambda record: record[1], most))

    assert [record for records, _ in found for record in records] == [stop.record for stop in stops]
    assert all(sum(weight for _, weight in records) <= most or len(records) == 1 for records, _ in found)
    assert [cursor for _, cursor in found] == [*(str(records[-1][0]) for records, _ in found[:-1]), "next"]
