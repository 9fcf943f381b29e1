"""A sweep queues what is due: the most urgent first, in bounded pieces, and nothing twice or never."""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from support.fakes import FakeClock
from support.search_world import FakeJobs
from support.source_world import FakeQueue, SortedDue, SourceWorld
from support.struck import Blow, Blows, Death, Struck

from factbook.domain import times
from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.jobs import DONE, Job
from factbook.ports.sources.stores import Wanted
from factbook.usecases.sources.sweeping import SHARD_ROWS, SWEEP, SweepPorts, Swept, sweep, sweep_tenant
from factbook.usecases.sources.working import work_off

NOON = "2026-01-01T12:00:00.000Z"


def ago(**delta: float) -> str:
    return times.add(NOON, **{name: -value for name, value in delta.items()})


class Bench:
    def __init__(self, rows: Sequence[tuple[int, str, str, str]]) -> None:
        self.clock, self.jobs = FakeClock(NOON), FakeJobs()
        self.due, self.queue = SortedDue(rows), FakeQueue()
        self.ports = SweepPorts(self.due, self.queue, self.jobs, self.clock)

    def sweep(self, deadline: Deadline = NEVER) -> str:
        job = sweep(self.ports, deadline)
        assert job is not None
        return job.phase

    def sweep_struck(self, blows: Blows) -> None:
        """Its calls of the job's store and of the queue are struck."""
        jobs: Any = Struck(self.jobs, blows)
        queue: Any = Struck(self.queue, blows)
        sweep(replace(self.ports, jobs=jobs, queue=queue), NEVER)

    @property
    def queued(self) -> list[str]:
        return [wanted.fact_id for wanted in self.queue.sent]


def some(due: int, later: int = 0, tenants: int = 3) -> list[tuple[int, str, str, str]]:
    """Facts that are due, each at a time of its own, and others that are not yet."""
    drawn = random.Random(7)
    rows = []
    for number in range(due + later):
        when = ago(seconds=number + 1) if number < due else times.add(NOON, seconds=number + 1)
        rows.append((drawn.randrange(10), when, f"t{drawn.randrange(tenants)}", f"f{number}"))
    return rows


def test_a_round_queues_all_that_is_due_once_the_most_urgent_first_and_then_the_longest_due() -> None:
    rows = some(3_000, later=500, tenants=1)
    bench = Bench(rows)

    assert bench.sweep() == DONE
    expected = sorted((row for row in rows if row[1] <= NOON), key=lambda row: (-row[0], row[1]))
    assert bench.queued == [row[3] for row in expected]
    assert {wanted.why for wanted in bench.queue.sent} == {"due"}


def test_reads_grow_with_what_is_due_and_not_with_what_there_is() -> None:
    few, many = Bench(some(1_000)), Bench(some(1_000, later=30_000))

    for bench in (few, many):
        assert bench.sweep() == DONE
    assert (many.due.rows_read, many.due.queries) == (few.due.rows_read, few.due.queries)
    assert many.due.rows_read <= 2 * 1_000
    empty = Bench(some(0, later=30_000))
    empty.sweep()
    assert (empty.due.rows_read, empty.due.queries, empty.queued) == (0, 80, [])


@pytest.mark.parametrize("blow", list(Blow))
def test_a_sweep_that_is_killed_anywhere_goes_on_and_skips_nothing_and_repeats_a_page_at_most(
    blow: Blow,
) -> None:
    rows = some(1_000)
    plain = Bench(rows)
    blows = Blows()
    plain.sweep_struck(blows)
    page = 8 * SHARD_ROWS

    for step in range(len(blows.calls)):
        bench = Bench(rows)
        with suppress(Death, StorageUnavailable):
            bench.sweep_struck(Blows(blow, step))
        job = bench.jobs.job(SWEEP)
        if job is None or job.phase != DONE:
            bench.sweep()
        counts = Counter(bench.queued)
        assert len(counts) == 1_000, f"skipped after {blows.calls[step]}"
        assert sum(counts.values()) - 1_000 <= page
        assert set(counts.values()) <= {1, 2}


def test_what_was_sent_twice_is_refreshed_once() -> None:
    world = SourceWorld()
    facts = [world.mirror(host=f"h{number}.example", ttlSeconds=60) for number in range(120)]
    world.clock.advance(seconds=61)
    wanted = [Wanted("acme", fact_id, "due") for fact_id in facts]

    outcomes = Counter(work_off(world.ports, world.queue, [*wanted, *wanted], NEVER).brought)

    assert world.handlers.asked == len(facts)
    again = [each for each in world.queue.sent if each.deferred]
    assert outcomes["changed"] == len(facts)
    assert outcomes["not-wanted"] + len(again) == len(facts)


def test_a_pass_ends_at_its_deadline_and_the_next_one_goes_on() -> None:
    bench = Bench(some(4_000))
    passes = 1
    while bench.sweep(deadline_after(3)) != DONE:
        passes += 1
    assert passes > 3
    assert sorted(bench.queued) == sorted(row[3] for row in some(4_000))


def deadline_after(looks: int) -> Deadline:
    """One that has passed when it was looked at so often."""
    ticks = iter(range(10**6))
    return Deadline(looks, elapsed=lambda: float(next(ticks)))


def test_a_full_queue_takes_no_more_so_that_what_is_urgent_does_not_wait_behind_the_rest() -> None:
    bench = Bench(some(12_000))

    assert bench.sweep() == "due"
    assert 10_000 <= len(bench.queue.sent) < 10_500
    reads = bench.due.rows_read
    assert bench.sweep() == "due"
    assert bench.due.rows_read == reads
    first = len(bench.queue.sent)
    done, bench.queue.sent = bench.queue.sent, []
    assert bench.sweep() == DONE
    assert first + len(bench.queue.sent) == 12_000
    assert not {wanted.fact_id for wanted in done} & set(bench.queued)


def test_what_becomes_due_meanwhile_and_is_more_urgent_does_not_wait_for_the_end_of_a_long_round() -> None:
    rows = [(0, ago(hours=1, seconds=-number / 10), "t0", f"f{number}") for number in range(25_000)]
    urgent = [(9, times.add(NOON, seconds=number), "t1", f"u{number}") for number in range(1, 31)]
    bench = Bench([*rows, *urgent])
    assert bench.sweep() == "due"
    bench.clock.advance(minutes=1)
    done, bench.queue.sent = bench.queue.sent, []

    assert bench.sweep() == "due"

    assert bench.queued[:30] == [row[3] for row in urgent]
    assert not {wanted.fact_id for wanted in done} & set(bench.queued), "and the round goes on where it was"


def test_what_is_urgent_leaves_room_to_the_rest_so_that_nothing_waits_for_ever() -> None:
    rows = [(9, ago(hours=1, seconds=-number / 10), "large", f"l{number}") for number in range(25_000)]
    rows += [(0, ago(minutes=1), "small", f"s{number}") for number in range(100)]
    bench = Bench(rows)

    assert bench.sweep() == "due"
    assert [wanted.tenant for wanted in bench.queue.sent].count("small") == 100
    rounds = 1
    while bench.sweep() != DONE:
        bench.queue.sent.clear()
        rounds += 1
    assert rounds < 10
    assert bench.due.rows_read <= 2 * len(rows)


def test_a_round_of_a_former_release_is_begun_anew() -> None:
    bench = Bench(some(20))
    about = {"until": NOON, "since": "", "whole": NOON}
    assert bench.jobs.keep(
        Job(SWEEP, "round", "due", NOON, NOON, cursor='[7, ""]', counters={"queued": 3}, about=about)
    )

    assert bench.sweep() == DONE
    assert len(bench.queued) == 20


def test_messages_that_wait_for_a_place_at_their_host_keep_nobody_else_waiting() -> None:
    bench = Bench(some(100))
    bench.queue.send([Wanted("large", f"l{number}", "due", 5) for number in range(10_000)], 60)

    assert bench.sweep() == DONE
    assert len(bench.queued) == 10_100


def test_the_next_round_begins_where_the_last_one_ended_and_now_and_then_at_the_beginning() -> None:
    bench = Bench(some(500))
    bench.sweep()
    lost = len(bench.queue.sent)
    bench.queue.sent.clear()

    bench.clock.advance(minutes=1)
    bench.sweep()
    assert len(bench.queued) == 60, (
        "those of the minute before the last round's end, which may have been unseen"
    )
    bench.queue.sent.clear()
    bench.clock.advance(minutes=15)
    bench.sweep()
    assert len(bench.queued) == lost, "whatever was lost on the way"


def test_tenants_take_turns_within_a_page() -> None:
    rows = [(5, ago(hours=2, seconds=-number), "large", f"l{number}") for number in range(300)]
    rows += [(5, ago(hours=1, seconds=-number), "small", f"s{number}") for number in range(5)]
    bench = Bench(rows)

    bench.sweep()
    small = [place for place, wanted in enumerate(bench.queue.sent) if wanted.tenant == "small"]
    assert len(small) == 5
    assert small[-1] < 300, "the small one's last is not the last of all"


def test_of_two_passes_at_once_the_slower_one_stops() -> None:
    bench = Bench(some(2_000))
    other = replace(bench.ports, queue=FakeQueue())
    first = bench.queue.send

    def overtaken(wanted: Sequence[Wanted], delay: int = 0) -> None:
        first(wanted, delay)
        bench.queue.send = first  # type: ignore[method-assign]
        sweep(other, NEVER)

    bench.queue.send = overtaken  # type: ignore[method-assign]
    bench.sweep()

    assert len(bench.queue.sent) <= 8 * SHARD_ROWS
    assert {each.fact_id for each in [*bench.queue.sent, *other.queue.sent]} == {  # type: ignore[attr-defined]
        row[3] for row in some(2_000)
    }


def test_an_administrator_s_sweep_queues_the_tenant_s_own_and_tells_of_nobody_else_s() -> None:
    bench = Bench(some(900, later=100))
    own = [row[3] for row in some(900) if row[2] == "t1"]

    assert sweep_tenant(bench.ports, "t1", NEVER) == Swept(NOON, len(own), more=False)
    assert sorted(bench.queued) == sorted(own)
    assert sweep_tenant(bench.ports, "nobody", NEVER) == Swept(NOON, 0, more=False)
    assert sweep_tenant(bench.ports, "t1", deadline_after(2)).more is True
    assert bench.jobs.job(SWEEP) is None, "the schedule's round is its own"


def test_one_dead_host_among_a_thousand_keeps_nobody_waiting() -> None:
    world = SourceWorld()
    dead = [world.mirror(host="dead.example", priority=9, ttlSeconds=0) for _ in range(40)]
    long_ago = {"ttlSeconds": 3600, "lastVerifiedAt": "2025-12-31T00:00:00Z"}
    well = [world.mirror(host=f"h{number}.example", **long_ago) for number in range(999)]
    world.source("dead.example").says = TimeoutError()
    world.clock.advance(seconds=1)
    ports = SweepPorts(world.due, world.queue, FakeJobs(), world.clock)

    asks = []
    for _ in range(6):
        sweep(ports, NEVER)
        wanted, world.queue.sent = world.queue.sent, []
        for at in range(0, len(wanted), 10):
            work_off(world.ports, world.queue, wanted[at : at + 10], NEVER)
            world.clock.advance(milliseconds=300)
        asks.append(len(world.source("dead.example").asked))
        world.clock.advance(minutes=1)

    assert all(world.head(fact_id).fact.content_text == '"new"' for fact_id in well)
    assert asks[0] <= 14, "a batch was under way when the circuit opened"
    assert asks[-1] <= asks[0] + 6, "a probe for each time that it was half open"
    assert [fact_id for fact_id in dead if world.fact(fact_id).stale_reason != "source-unavailable"] == []


def test_what_finds_no_place_at_its_host_is_put_off_and_waits_longer_each_time() -> None:
    world = SourceWorld()
    fact_id = world.mirror(ttlSeconds=0)
    world.clock.advance(seconds=1)
    for place in range(5):
        assert world.leases.take(("place", "source.example", str(place)), "others", 3600)

    wanted = Wanted("acme", fact_id, "due")
    for _ in range(30):
        assert work_off(world.ports, world.queue, [wanted], NEVER).brought == ["no-place"]
        if not world.queue.sent:
            break
        wanted = world.queue.sent.pop()
    assert wanted.deferred == 8
    assert sum(world.queue.delays) < 15 * 60, "the message is gone before a round finds the fact again"
    assert world.queue.delays[-1] > world.queue.delays[0]


def test_one_fact_s_trouble_with_the_store_is_sent_again_and_the_others_are_done() -> None:
    world = SourceWorld()
    facts = [world.mirror(host=f"h{number}.example", ttlSeconds=0) for number in range(3)]
    world.clock.advance(seconds=1)

    wanted = [Wanted("acme", each, "due") for each in facts]
    deadline = Deadline(0, elapsed=lambda: 0.0)
    assert work_off(world.ports, world.queue, wanted, deadline).brought == [None] * 3, "no time to begin"
    assert work_off(world.ports, world.queue, wanted, NEVER).brought == ["changed"] * 3
