"""An invocation that one slow source keeps: what else is queued is refreshed meanwhile."""

import threading
from collections.abc import Sequence

import pytest
from support.source_world import SourceUnavailable, SourceWorld

from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.sources.stores import Taken, Wanted
from factbook.usecases import tally
from factbook.usecases.sources.working import REFRESH_SECONDS, THREADS, UNTAKEN, Worked, work_off

LONGEST = 30.0
"""Seconds until a test fails in which nobody answers."""


class Beside:
    """A message at hand whose source is silent until it is told to answer, and facts that are queued."""

    def __init__(self, queued: int) -> None:
        self.world = SourceWorld()
        self.slow = self.world.mirror(host="slow.example", ttlSeconds=0)
        self.others = [self.world.mirror(host=f"h{number}.example", ttlSeconds=0) for number in range(queued)]
        self.world.clock.advance(seconds=1)
        self.world.queue.send([Wanted("acme", each, "due") for each in self.others])
        self.answers = threading.Event()
        self.world.source("slow.example").during = lambda: self.answers.wait(LONGEST)

    def work(self, deadline: Deadline = NEVER) -> Worked:
        return work_off(self.world.ports, self.world.queue, [Wanted("acme", self.slow, "due")], deadline)

    def answer_after(self, asks: int) -> None:
        """The slow source answers once the others were asked so often."""
        left = iter(range(asks - 1, -1, -1))

        def asked() -> None:
            if next(left, 0) == 0:
                self.answers.set()

        for number in range(len(self.others)):
            self.world.source(f"h{number}.example").during = asked


def test_who_waits_for_a_slow_source_refreshes_what_else_is_queued() -> None:
    beside = Beside(queued=3 * THREADS)
    beside.answer_after(3 * THREADS)
    beside.world.source("slow.example").says = SourceUnavailable("the source did not answer in time")

    worked = beside.work()
    assert beside.answers.is_set(), "the others were not kept waiting"
    assert worked == Worked(["failed"], ["changed"] * 3 * THREADS)
    assert (beside.world.queue.sent, beside.world.queue.taken) == ([], {})


def test_no_more_are_taken_than_there_are_threads_free() -> None:
    beside, asked = Beside(queued=2 * THREADS), []
    take = beside.world.queue.take

    def noted(most: int) -> list[Taken]:
        asked.append(most)
        return take(most)

    beside.world.queue.take = noted  # type: ignore[method-assign]
    beside.answer_after(2 * THREADS)
    beside.work()
    assert asked[0] == THREADS - 1
    assert all(1 <= most < THREADS for most in asked[:2])


def test_what_nothing_is_known_of_stays_in_the_queue_and_what_was_put_off_does_not() -> None:
    beside = Beside(queued=2)
    unknown, busy = beside.others
    world, take = beside.world, beside.world.leases.take

    def taken(what: Sequence[str], owner: str, seconds: float) -> bool:
        if unknown in what:
            raise StorageUnavailable
        return busy not in what and take(what, owner, seconds)

    world.leases.take = taken  # type: ignore[method-assign]
    send = world.queue.send

    def sent(wanted: Sequence[Wanted], delay: int = 0) -> None:
        send(wanted, delay)
        beside.answers.set()

    world.queue.send = sent  # type: ignore[method-assign]
    worked = beside.work()
    assert sorted(worked.besides, key=str) == [None, "busy"]
    assert [each.fact_id for each in world.queue.taken.values()] == [unknown]
    assert [(each.fact_id, each.deferred) for each in world.queue.sent] == [(busy, 1)]


def test_what_refreshes_count_is_the_invocations() -> None:
    beside = Beside(queued=1)
    remove, take = beside.world.queue.remove, beside.world.leases.take

    def counted(what: Sequence[str], owner: str, seconds: float) -> bool:
        if what[0] == "lease":
            tally.count("Replays")
        return take(what, owner, seconds)

    def removed(taken: Taken) -> None:
        remove(taken)
        beside.answers.set()

    beside.world.leases.take = counted  # type: ignore[method-assign]
    beside.world.queue.remove = removed  # type: ignore[method-assign]
    with tally.counting() as sums:
        beside.work()
    assert sums["Replays"] == 2, "of the message at hand and of the one besides"


def test_a_message_that_cannot_be_removed_is_done_all_the_same() -> None:
    beside = Beside(queued=1)

    def remove(_: Taken) -> None:
        beside.answers.set()
        raise StorageUnavailable

    beside.world.queue.remove = remove  # type: ignore[method-assign]
    assert beside.work() == Worked(["changed"], ["changed"])
    assert [fact_id for fact_id, _ in beside.world.unforeseen] == beside.others


def test_a_queue_from_which_nothing_may_be_taken_leaves_what_is_at_hand_alone() -> None:
    beside, refused = Beside(queued=1), PermissionError("AccessDenied")

    def take(_: int) -> list[Taken]:
        beside.answers.set()
        raise refused

    beside.world.queue.take = take  # type: ignore[method-assign]
    assert beside.work() == Worked(["changed"], [])
    assert beside.world.unforeseen == [(UNTAKEN, refused)], "an operator hears of it, once"


@pytest.mark.parametrize("why", ["the queue does not answer", "too little time is left"])
def test_nothing_more_is_begun(why: str) -> None:
    beside = Beside(queued=1)
    waiting = threading.Timer(1.0, beside.answers.set)
    waiting.start()
    beside.world.queue.broken = why == "the queue does not answer"
    deadline = NEVER if beside.world.queue.broken else Deadline(REFRESH_SECONDS)

    assert beside.work(deadline) == Worked(["changed"], [])
    assert len(beside.world.queue.sent) == 1
    waiting.join()
