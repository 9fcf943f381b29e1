"""How a write of a fact lands, whatever its rule is: once, on the head it decided on, and without leaving anything."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from support.fakes import FakeBlobs, FakeClock, FakeFacts, fake_memory
from support.principals import principal

from factbook.domain.errors import FactNotFound, IdempotencyMismatch, StorageUnavailable, Throttled
from factbook.domain.facts.fact import Fact, FactChanges
from factbook.domain.facts.transitions import close, open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import (
    ATTEMPTS,
    Advance,
    Amend,
    Create,
    Decide,
    Decision,
    FactChange,
    require_open,
)
from factbook.usecases.facts.payloads import Content

ADMIN = principal("t", "ann", admin=True)
SMALL, LARGE = Content(1), Content("x" * 70_000)
SAID = FactChanges()


class Bench:
    """One fact id in a store, and rules that write it."""

    def __init__(self) -> None:
        self.facts, self.blobs = FakeFacts(), FakeBlobs()
        made = fake_memory(FakeClock())
        self.ports = replace(made, facts=self.facts, blobs=self.blobs)

    def change(self, key: str = "key", body: str = "body") -> FactChange:
        return FactChange(self.ports, ADMIN, Operation(key, body), "f")

    def create(self, key: str = "create") -> Fact:
        change = self.change(key)
        return change.run(self.create_or_supersede(change), expect_new=True)

    def create_or_supersede(self, change: FactChange, content: Content = SMALL) -> Decide:
        def decide(head: Head | None, now: str) -> Decision:
            payload = change.payload(content)
            if head is None:
                scope = Scope(tenantId="t")
                return Create(open_fact("f", "note", scope, SAID, payload, ADMIN, now))
            return Advance(head, *supersede(head.fact, SAID, payload, ADMIN, now))

        return decide

    def supersede(self, change: FactChange, content: Content = LARGE) -> Decide:
        def decide(head: Head | None, now: str) -> Decision:
            head = require_open(self.ports, ADMIN, "f", head)
            return Advance(head, *supersede(head.fact, SAID, change.payload(content), ADMIN, now))

        return decide

    def delete(self, head: Head | None, now: str) -> Decision:
        head = require_open(self.ports, ADMIN, "f", head)
        return Amend(head, close(head.fact, ADMIN.name, now, "deleted"))

    def note_a_reason(self, head: Head | None, now: str) -> Decision:
        head = require_open(self.ports, ADMIN, "f", head)
        return Amend(head, head.fact.model_copy(update={"decided_because": "so"}))

    @property
    def head(self) -> Head:
        head = self.facts.head("t", "f")
        assert head is not None
        return head


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nothing waits; how long it would have."""
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


def test_a_write_of_what_is_most_likely_new_reads_nothing_and_decides_on_what_it_meets(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.facts, "head", lambda *_: pytest.fail("a read"))
    assert bench.create("first").version == 1
    assert bench.create("second").version == 2
    assert bench.create("second").version == 2


def test_writers_of_one_id_at_once_create_it_once_and_leave_no_gap(bench: Bench) -> None:
    count = 6
    start = threading.Barrier(count)

    def write(number: int) -> int:
        start.wait()
        return bench.create(f"writer {number}").version

    with ThreadPoolExecutor(count) as pool:
        assert sorted(pool.map(write, range(count))) == list(range(1, count + 1))
    assert [fact.version for fact in bench.facts.revisions(bench.head, 99, 10**6)[0]] == list(
        range(count - 1, 0, -1)
    )


def test_a_change_in_place_makes_no_revision_and_is_recognised_when_it_comes_again(bench: Bench) -> None:
    bench.create()
    for _ in range(2):
        assert bench.change("reason").run(bench.note_a_reason).decided_because == "so"
    assert (bench.head.fact.version, bench.head.edition) == (1, 2)


def test_a_deletion_that_comes_again_answers_the_closed_revision_and_a_creation_the_open_one(
    bench: Bench,
) -> None:
    created = bench.create()
    gone = bench.change("delete").run(bench.delete)
    assert not gone.current
    assert bench.change("delete").run(bench.delete) == gone
    assert bench.create() == created
    with pytest.raises(FactNotFound):
        bench.change("delete once more").run(bench.delete)


def test_a_mark_with_another_body_is_refused_before_the_rule_is_asked(bench: Bench) -> None:
    bench.create()

    def never(head: Head | None, now: str) -> Decision:
        raise AssertionError("the rule was asked")

    with pytest.raises(IdempotencyMismatch):
        bench.change("create", "another body").run(never)


def lose(bench: Bench, monkeypatch: pytest.MonkeyPatch, instead: Any) -> None:
    """The next commit of a revision finds that something else came first."""
    advance = bench.facts.advance

    def lost(before: Head, closed: Fact, after: Head) -> Head | None:
        monkeypatch.setattr(bench.facts, "advance", advance)
        instead()
        return advance(before, closed, after)

    monkeypatch.setattr(bench.facts, "advance", lost)


def test_a_payload_is_stored_once_over_all_tries(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.create()
    lose(bench, monkeypatch, lambda: bench.create("another"))
    change = bench.change()
    landed = change.run(bench.supersede(change))
    assert landed.version == 3
    assert set(bench.blobs.bodies) == {landed.content_ref}


def test_what_a_refused_write_stored_is_removed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.create()
    lose(bench, monkeypatch, lambda: bench.change("delete").run(bench.delete))
    change = bench.change()
    with pytest.raises(FactNotFound):
        change.run(bench.supersede(change))
    assert bench.blobs.bodies == {}


def test_what_a_twin_stored_is_removed_and_what_the_first_try_stored_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.create()
    first = bench.change()
    lose(bench, monkeypatch, lambda: first.run(bench.supersede(first)))
    twin = bench.change()
    answer = twin.run(bench.supersede(twin))
    assert answer.version == 2
    assert set(bench.blobs.bodies) == {answer.content_ref}


def test_a_lost_reply_keeps_what_its_first_try_stored(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.create()
    advance = bench.facts.advance

    def unsure(before: Head, closed: Fact, after: Head) -> Head | None:
        advance(before, closed, after)
        raise Contended

    monkeypatch.setattr(bench.facts, "advance", unsure)
    change = bench.change()
    answer = change.run(bench.supersede(change))
    assert (answer.version, bench.head.fact.version) == (2, 2)
    assert set(bench.blobs.bodies) == {answer.content_ref}


def test_a_write_gives_up_after_its_tries_with_a_pause_between_each_two(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    bench.create()
    tries: list[Head] = []

    def contended(before: Head, after: Head) -> Head | None:
        tries.append(after)
        raise Contended

    monkeypatch.setattr(bench.facts, "amend", contended)
    with pytest.raises(Throttled):
        bench.change().run(bench.note_a_reason)
    assert (len(tries), len(pauses)) == (ATTEMPTS, ATTEMPTS - 1)


@pytest.mark.parametrize("step", ["claim", "discard"])
def test_nothing_that_a_payload_meets_after_its_write_was_decided_changes_the_answer(
    bench: Bench, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Exception] = []
    bench.ports = replace(bench.ports, unsettled=told.append)
    unforeseen = RuntimeError("a code that no table knows")

    def fail(*_: Any) -> None:
        raise unforeseen

    bench.create()
    monkeypatch.setattr(bench.blobs, step, fail)
    first, second = (bench.change() for _ in range(2))

    assert first.run(bench.supersede(first)).version == 2
    if step == "discard":  # a twin that stored the same once more before it saw that the first had landed
        second.payload(LARGE)
        assert second.run(bench.supersede(second)).version == 2
    assert told == [unforeseen]


def test_a_write_that_keeps_meeting_others_gives_up_at_its_deadline(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.create()
    time = [0.0]
    tries: list[float] = []

    def meet(*_: Any) -> None:
        tries.append(time[0])
        time[0] += 6.0
        raise Contended

    monkeypatch.setattr(bench.facts, "advance", meet)
    operation = Operation("key", "body", deadline=Deadline(16.0, lambda: time[0]))
    change = FactChange(bench.ports, ADMIN, operation, "f")

    with pytest.raises(Throttled):
        change.run(bench.supersede(change, SMALL))
    assert tries == [0.0, 6.0, 12.0]


def test_past_its_deadline_a_write_stores_nothing_and_commits_nothing(bench: Bench) -> None:
    late = Deadline(0.0)
    for content in (SMALL, LARGE):
        change = FactChange(bench.ports, ADMIN, Operation("key", "body", deadline=late), "f")
        with pytest.raises(StorageUnavailable):
            change.run(bench.create_or_supersede(change, content), expect_new=True)
    assert bench.blobs.bodies == {}
    assert bench.facts.head("t", "f") is None


def test_a_write_that_commits_at_the_last_moment_answers_and_leaves_its_payload_to_be_claimed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.create()
    time = [0.0]
    advance = bench.facts.advance

    def slowly(*asked: Any) -> Head | None:
        time[0] += 17.0
        return advance(*asked)

    monkeypatch.setattr(bench.facts, "advance", slowly)
    operation = Operation("key", "body", deadline=Deadline(16.0, lambda: time[0]))
    change = FactChange(bench.ports, ADMIN, operation, "f")

    fact = change.run(bench.supersede(change))
    assert bench.blobs.pending == {fact.content_ref}
