"""Replaying a ledger: whom it is about is found again by keyed hashes alone, once, wherever the walk was cut short."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.replays import ASKED, MADE, RESTORED, TENANT, Restored
from support.search_world import FakeWalk
from support.struck import Blow, Blows, Death

from factbook.domain import times
from factbook.domain.access.erasing import Selector
from factbook.domain.erasure.ledger import new_keys
from factbook.domain.errors import IdempotencyMismatch, StorageUnavailable
from factbook.ports.deadline import Deadline
from factbook.ports.erasure.records import Erasure
from factbook.ports.facts.store import Head
from factbook.ports.walks import WalkPage
from factbook.usecases.erasure import replaying
from factbook.usecases.erasure.outcomes import LOOKING, REASONS, Outcome
from factbook.usecases.erasure.reaching import Reach
from factbook.usecases.erasure.replaying import replay_ledger, work_on_replays

ANN = Selector("external", "ann")
BOB = Selector("user", "bob")
LATER = "2026-02-15T00:00:00.000Z"


@pytest.fixture
def restored() -> Restored:
    return Restored()


def test_a_person_that_a_restore_brought_back_is_erased_again_and_the_lost_record_is_there_again(
    restored: Restored,
) -> None:
    restored.fact("f1", about=["ann"])
    restored.fact("f2", about=["cid"])
    ledger = restored.replay(restored.entry("e1", ANN))

    outcome = replay_ledger(restored.ports(), ledger)

    assert outcome == Outcome(replayed=["e1"])
    (again,) = restored.again
    assert (again.id, again.selector, again.status, again.phase) == ("e1", ANN, "pending", "seed")
    assert (again.created_at, again.requested_by, again.replayed_at) == (ASKED, "user:admin", RESTORED)
    assert (again.completed_at, again.counts, again.warnings) == (None, {}, ())
    assert restored.store.kept["e1"].matchable


@pytest.mark.parametrize(
    "selector",
    [
        Selector("fact", "f1"),
        Selector("participant", "ann"),
        Selector("participant", "ann", "p"),
        Selector("user", "u"),
        Selector("user", "owner"),
        Selector("external", "ann"),
        Selector("external", "ann", "p"),
        Selector("conversation", "t"),
    ],
)
def test_every_kind_of_selector_is_found_by_its_hash(restored: Restored, selector: Selector) -> None:
    scope = {"projectId": "p", "participantId": "ann", "threadId": "t", "userId": "u"}
    restored.fact("f1", about=["ann"], owner="user:owner", **scope)

    replay_ledger(restored.ports(), restored.replay(restored.entry("e1", selector)))

    assert [each.selector for each in restored.again] == [selector]


@pytest.mark.parametrize(
    "selector",
    [
        Selector("fact", "f2"),
        Selector("participant", "ann", "q"),
        Selector("user", "ann"),
        Selector("external", "p"),
    ],
)
def test_nobody_else_is_found(restored: Restored, selector: Selector) -> None:
    restored.fact("f1", about=["ann"], projectId="p", participantId="ann")
    restored.key(project="p", participant="ann")

    outcome = replay_ledger(restored.ports(), restored.replay(restored.entry("e1", selector)))

    assert restored.again == []
    assert outcome.unmatched == [("e1", "nothing-matched")]


def test_what_began_after_the_erasure_was_asked_for_is_left_alone(restored: Restored) -> None:
    restored.fact("new", about=["ann"], at=LATER)
    restored.fact("known-of", about=["ann"], at=times.add(ASKED, seconds=3))
    restored.fact("old", about=["bob"])

    outcome = replay_ledger(restored.ports(), restored.replay(restored.entry("e1", ANN)))

    assert (outcome.unmatched, restored.again) == ([("e1", "nothing-matched")], [])


@pytest.mark.parametrize("late", ["fact", "key"])
def test_what_a_process_wrote_that_did_not_know_yet_is_found_again(restored: Restored, late: str) -> None:
    """In the two seconds before the answer; the erasure reached it, so a restore of later instants brings it back."""
    began = times.add(ASKED, seconds=2)
    if late == "fact":
        restored.fact("late", about=["ann"], at=began)
    else:
        restored.key(1, began.replace("Z", "999Z"), user="bob")
    selector = ANN if late == "fact" else BOB

    assert replay_ledger(restored.ports(), restored.replay(restored.entry("e1", selector))).replayed == ["e1"]

    (again,) = restored.again
    reach = Reach.of(replace(again, selector=selector))
    assert reach.began_in_time(began)
    assert not reach.began_in_time(times.add(ASKED, seconds=3))


def test_a_ledger_that_says_that_it_was_asked_for_in_the_future_takes_nothing_of_after_now(
    restored: Restored,
) -> None:
    ledger = restored.replay(restored.entry("e1", ANN, created_at="2030-01-01T00:00:00.000Z"))
    restored.clock.advance(seconds=1)
    restored.fact("meanwhile", about=["ann"], at=restored.clock.now())

    assert replay_ledger(restored.ports(), ledger).replayed == []


def test_whoever_is_named_by_sealed_entries_alone_is_found_by_their_keys(restored: Restored) -> None:
    restored.key(project="p", participant="ann", thread="t1")
    restored.key(user="bob")
    ledger = restored.replay(
        restored.entry("e1", Selector("participant", "ann", "p")),
        restored.entry("e2", Selector("conversation", "t1")),
        restored.entry("e3", Selector("user", "cid")),
    )

    outcome = replay_ledger(restored.ports(), ledger)

    assert (outcome.replayed, outcome.unmatched) == (["e1", "e2"], [("e3", "nothing-matched")])


def test_a_key_that_began_after_the_erasure_was_asked_for_is_left_alone(restored: Restored) -> None:
    restored.key(2, LATER, user="bob")
    ledger = restored.replay(restored.entry("e1", BOB))
    assert replay_ledger(restored.ports(), ledger).unmatched == [("e1", "nothing-matched")]
    restored.key(1, MADE, user="bob")

    assert replay_ledger(restored.ports(), replace(ledger, id="r2")).replayed == ["e1"]


def test_a_key_that_is_destroyed_and_a_fact_that_is_a_tombstone_bring_nobody_back(restored: Restored) -> None:
    restored.key(user="bob")
    (key,) = restored.keys.walk(TENANT)
    restored.keys.destroy(key, ASKED)
    restored.fact("f1", userId="bob")
    head = restored.facts.head(TENANT, "f1")
    assert head is not None
    gone = head.fact.model_copy(update={"invalidated_at": ASKED, "invalidation_reason": "erased"})
    assert restored.facts.amend(head, replace(head, fact=gone, edition=2)) is None

    outcome = replay_ledger(restored.ports(), restored.replay(restored.entry("e1", BOB)))

    assert outcome.unmatched == [("e1", "nothing-matched")]


def test_what_nothing_matches_is_put_back_as_done_as_it_was(restored: Restored) -> None:
    ledger = restored.replay(
        restored.entry("e1", ANN), restored.entry("e2", BOB, status="running", completed_at=None)
    )

    outcome = replay_ledger(restored.ports(), ledger)

    assert outcome.restored == ["e1", "e2"]
    assert outcome.unmatched == [("e1", "nothing-matched"), ("e2", "nothing-matched")]
    first, second = restored.store.kept["e1"], restored.store.kept["e2"]
    assert (first.status, first.phase, first.completed_at) == (
        "completed",
        "done",
        "2026-02-01T00:01:00.000Z",
    )
    assert (second.status, second.completed_at) == ("completed", RESTORED)
    assert first.warnings == (f"nothing-matched: {REASONS['nothing-matched']}",)


def test_a_record_that_was_not_lost_stays_as_it_is_and_is_not_told_as_put_back(restored: Restored) -> None:
    kept = Erasure("e1", TENANT, "external", None, "user:admin", ASKED, "completed", "done", {"facts": 3})
    restored.store.kept["e1"] = kept

    outcome = replay_ledger(restored.ports(), restored.replay(restored.entry("e1", ANN)))

    assert restored.store.kept["e1"] == kept
    assert outcome == Outcome(unmatched=[("e1", "nothing-matched")])


def test_what_cannot_be_looked_for_is_told_with_its_reason_and_put_back_with_it(restored: Restored) -> None:
    restored.fact("f1", about=["ann"])
    other = Restored(secrets=new_keys("k9"))
    ledger = restored.replay(
        restored.entry("e1", ANN, selector_hmac=None),
        restored.entry("e2", ANN, key_id=None),
        other.entry("e3", ANN),
        restored.entry("e4", ANN, status="failed", completed_at=None),
        restored.entry("e5", ANN, key_id="k9", status="running", completed_at=None),
    )

    outcome = replay_ledger(restored.ports(), ledger)

    reasons = ["no-keyed-hash", "no-keyed-hash", "unknown-key", "failed", "unknown-key"]
    assert [reason for _, reason in outcome.unmatched] == reasons
    assert (outcome.replayed, outcome.restored, restored.again) == ([], [], [])
    kept = [restored.store.kept[f"e{number}"] for number in range(1, 6)]
    assert [each.status for each in kept] == ["completed", "completed", "completed", "failed", "failed"]
    assert [each.warnings[0].partition(":")[0] for each in kept] == reasons
    assert kept[4].last_error == "unknown-key"


def test_once_the_key_is_there_the_same_ledger_finds_whom_it_is_about(restored: Restored) -> None:
    restored.fact("f1", about=["ann"])
    other = Restored(secrets=new_keys("k9"))
    entry = other.entry("e1", ANN)
    replay_ledger(restored.ports(), restored.replay(entry))
    restored.secrets |= {"k9": other.secrets["k9"]}

    outcome = replay_ledger(restored.ports(), restored.replay(entry, replay_id="r2"))

    assert outcome.replayed == ["e1"]
    assert restored.store.kept["e1"].status == "pending"


def test_a_hash_under_the_wrong_kind_finds_nobody(restored: Restored) -> None:
    """A ledger that was edited: its kind is not what was hashed."""
    restored.fact("f1", about=["ann"])
    entry = restored.entry("e1", ANN, selector_kind="user")

    assert replay_ledger(restored.ports(), restored.replay(entry)).replayed == []


def running(restored: Restored) -> Erasure:
    """One whose walk over the facts is over."""
    keyed = restored.ledger().hash_of(TENANT, ANN)
    assert keyed is not None
    working = Erasure("e1", TENANT, "external", ANN, "user:admin", ASKED, "running", "erase")
    working = replace(working, counts={"facts": 3}, selector_hmac=keyed.hmac, key_id=keyed.key_id)
    restored.store.kept["e1"] = working
    return working


def test_an_erasure_that_is_under_way_begins_again_for_what_a_restore_brought_back(
    restored: Restored,
) -> None:
    restored.fact("f1", about=["ann"])
    working = running(restored)
    ledger = restored.replay(restored.entry("e1", ANN, status="running"))

    for _ in range(2):
        assert replay_ledger(restored.ports(), ledger) == Outcome(replayed=["e1"])

    (again,) = restored.again
    assert (again.status, again.phase, again.counts) == ("pending", "seed", {})
    assert again.replayed_at is None, "it is in force since it was asked for: all of it is reached"
    assert (again.requested_by, again.replayed_by) == (working.requested_by, None)


def test_an_erasure_that_is_under_way_and_meets_nothing_is_left_to_its_worker(restored: Restored) -> None:
    working = running(restored)
    replay = restored.replay(restored.entry("e1", ANN, status="running"))

    assert replay_ledger(restored.ports(), replay) == Outcome(replayed=["e1"])
    assert restored.store.kept["e1"] == working


def test_an_erasure_that_is_under_way_is_not_told_of_before_the_walk_is_over(restored: Restored) -> None:
    for number in range(250):
        restored.fact(f"f{number:03d}", about=["cid" if number < 249 else "ann"])
    running(restored)
    replay = restored.replay(restored.entry("e1", ANN, status="running"))

    some = replay_ledger(restored.ports(), replay, Deadline(3, iter(range(100)).__next__))

    assert (some.replayed, some.unmatched) == ([], [("e1", "still-looking")])
    assert replay_ledger(restored.ports(), replay).replayed == ["e1"]
    assert len(restored.again) == 1


def test_where_facts_cannot_be_read_no_ledger_is_told_that_nothing_matched(restored: Restored) -> None:
    restored.fact("f1", about=["ann"])
    restored.walk = FakeWalk(restored.facts, frozenset({"f1"}))
    ended, begun = restored.entry("e1", ANN), restored.entry("e2", BOB, status="running", completed_at=None)

    outcome = replay_ledger(restored.ports(), restored.replay(ended, begun))

    assert outcome == Outcome(restored=["e1", "e2"], unmatched=[("e1", "unreadable"), ("e2", "unreadable")])
    kept = restored.store.kept
    assert (kept["e1"].status, kept["e2"].status, kept["e2"].last_error) == (
        "completed",
        "failed",
        "unreadable",
    )
    assert kept["e1"].warnings == (f"unreadable: {REASONS['unreadable']}",)


def test_who_replays_is_told_and_who_asked_for_it_is_what_the_ledger_says(restored: Restored) -> None:
    restored.fact("f1", about=["ann"])
    forged = [
        restored.entry(name, whom, requested_by="user:the-head") for name, whom in (("e1", ANN), ("e2", BOB))
    ]

    replay_ledger(restored.ports(), restored.replay(*forged))

    found, lost = (restored.store.kept[each] for each in ("e1", "e2"))
    assert (found.requested_by, found.replayed_by) == ("user:the-head", "user:operator")
    assert (lost.requested_by, lost.replayed_by) == ("user:the-head", "user:operator")


def test_one_that_failed_at_a_hold_is_told_so(restored: Restored) -> None:
    restored.fact("f1", about=["ann"])
    ledger = restored.replay(restored.entry("e1", ANN))
    replay_ledger(restored.ports(), ledger)
    record = restored.store.kept["e1"]
    restored.store.kept["e1"] = replace(record, status="failed", last_error="legal-hold")

    assert replay_ledger(restored.ports(), ledger).unmatched == [("e1", "legal-hold")]


def test_the_same_ledger_again_runs_nothing_twice_while_it_is_under_way_and_finds_nothing_after(
    restored: Restored,
) -> None:
    restored.fact("f1", about=["ann"])
    entry = restored.entry("e1", ANN)
    first = replay_ledger(restored.ports(), restored.replay(entry))

    again = replay_ledger(restored.ports(), restored.replay(entry, replay_id="r2"))

    assert first.replayed == again.replayed == ["e1"]
    assert len(restored.again) == 1
    restored.store.kept["e1"] = replace(restored.store.kept["e1"], status="completed", selector=None)
    restored.facts.remove(TENANT, "f1")
    restored.clock.advance(hours=1)
    third = replay_ledger(restored.ports(), restored.replay(entry, replay_id="r3"))
    assert third == Outcome(unmatched=[("e1", "nothing-matched")])


def test_where_very_many_are_in_force_the_rest_waits_for_them(restored: Restored) -> None:
    for number in range(4):
        restored.fact(f"f{number}", about=[f"p{number}"])
    restored.room = 3
    entries = [restored.entry(f"e{number}", Selector("external", f"p{number}")) for number in range(4)]

    outcome = replay_ledger(restored.ports(), restored.replay(*entries))

    assert (len(outcome.replayed), [reason for _, reason in outcome.unmatched]) == (3, ["still-looking"])
    restored.room = 4
    assert work_on_replays(restored.ports(), TENANT) is False
    assert len(restored.again) == 4


def test_every_process_knows_what_is_in_force_before_the_answer(restored: Restored) -> None:
    replay_ledger(restored.ports(), restored.replay(restored.entry("e1", ANN)))
    assert restored.settled == 0
    restored.fact("f1", about=["ann"])
    replay_ledger(restored.ports(), restored.replay(restored.entry("e1", ANN), replay_id="r2"))
    assert restored.settled == 1


def test_another_ledger_under_the_same_key_is_refused_and_not_looked_for(restored: Restored) -> None:
    restored.fact("f1", about=["ann"])
    replay_ledger(restored.ports(), restored.replay(restored.entry("e1", BOB)))
    with pytest.raises(IdempotencyMismatch):
        replay_ledger(restored.ports(), restored.replay(restored.entry("e1", ANN)))
    assert restored.again == []


def test_two_erasures_of_one_person_are_both_run_again(restored: Restored) -> None:
    restored.fact("f1", about=["ann"])
    ledger = restored.replay(restored.entry("e1", ANN), restored.entry("e2", ANN, created_at=LATER))

    assert replay_ledger(restored.ports(), ledger).replayed == ["e1", "e2"]


class SlowWalk:
    """A walk whose time is over after some pages."""

    def __init__(self, restored: Restored, pages: int) -> None:
        self.walk = FakeWalk(restored.facts)
        self.left = pages

    def heads(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[Head]:
        self.left -= 1
        return self.walk.heads(tenant, after, limit)


def test_a_walk_that_does_not_fit_a_request_says_so_and_the_worker_ends_it(
    restored: Restored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PAGE", 2)
    for number in range(9):
        restored.fact(f"f{number}", about=["zoe" if number else "ann", "bob" if number == 8 else "cid"])
    walk = SlowWalk(restored, 2)
    restored.walk = walk
    ledger = restored.replay(
        restored.entry("e1", ANN),
        restored.entry("e2", Selector("external", "bob")),
        restored.entry("e3", BOB),
    )

    outcome = replay_ledger(restored.ports(), ledger, Deadline(1, lambda: float(walk.left <= 0)))

    assert outcome.replayed == ["e1"]
    assert outcome.restored == ["e2", "e3"]
    assert outcome.unmatched == [("e2", "still-looking"), ("e3", "still-looking")]
    assert restored.woken == [TENANT]
    waiting = restored.store.kept["e3"]
    assert (waiting.status, waiting.phase, waiting.warnings) == ("running", "seed", (LOOKING,))
    assert restored.store.tenants(None, 10)[0] == [TENANT]

    assert work_on_replays(restored.ports(), TENANT) is False

    assert [each.id for each in restored.again] == ["e1", "e2"]
    assert replay_ledger(restored.ports(), ledger) == Outcome(
        ["e1", "e2"], ["e3"], [("e3", "nothing-matched")]
    )
    assert restored.store.kept["e3"].status == "completed"
    assert LOOKING not in restored.store.kept["e2"].warnings
    assert restored.store.tenants(None, 10)[0] == []
    assert restored.woken == [TENANT], "who asks again wakes nobody"


def test_a_ledger_that_comes_while_another_is_looked_up_gets_a_walk_of_its_own(
    restored: Restored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts that the walk has passed are not looked at for it otherwise."""
    monkeypatch.setattr(replaying, "PAGE", 1)
    restored.fact("f0", about=["ann"])
    restored.fact("f1", about=["cid"])
    walk = SlowWalk(restored, 1)
    restored.walk = walk
    replay_ledger(
        restored.ports(),
        restored.replay(restored.entry("e1", BOB)),
        Deadline(1, lambda: float(walk.left <= 0)),
    )
    restored.walk = None
    restored.clock.advance(seconds=1)

    outcome = replay_ledger(restored.ports(), restored.replay(restored.entry("e2", ANN), replay_id="r2"))

    assert outcome.replayed == ["e2"]
    assert restored.store.waiting(TENANT) == []


def calls() -> Iterator[tuple[int, Blow]]:
    """Every call of a port while a ledger is replayed, under every blow."""
    probe = Blows()
    replay_ledger(world().ports(probe), world_ledger(world()))
    assert len(probe.calls) > 20
    for at in range(len(probe.calls)):
        for blow in Blow:
            yield at, blow


SECRETS = new_keys("k1")


def world() -> Restored:
    restored = Restored(secrets=SECRETS)
    restored.fact("f1", about=["ann"])
    restored.fact("f2", userId="bob")
    restored.key(user="bob")
    return restored


def world_ledger(restored: Restored) -> Any:
    return restored.replay(
        restored.entry("e1", ANN),
        restored.entry("e2", BOB),
        restored.entry("e3", Selector("user", "cid")),
        restored.entry("e4", ANN, key_id="k9"),
    )


@pytest.mark.parametrize(("at", "blow"), list(calls()))
def test_wherever_a_replay_fails_or_dies_the_next_try_ends_it_the_same(at: int, blow: Blow) -> None:
    restored = world()
    ledger = world_ledger(restored)
    with pytest.raises((Death, StorageUnavailable)):
        replay_ledger(restored.ports(Blows(blow, at)), ledger)

    work_on_replays(restored.ports(), TENANT)
    outcome = replay_ledger(restored.ports(), ledger)

    assert outcome == Outcome(["e1", "e2"], ["e3"], [("e3", "nothing-matched"), ("e4", "unknown-key")])
    assert sorted(each.id for each in restored.again) == ["e1", "e2"]
    assert restored.store.waiting(TENANT) == []
    assert all(LOOKING not in each.warnings for each in restored.store.kept.values())


def test_reads_grow_with_the_facts_alone_and_not_with_the_ledger(restored: Restored) -> None:
    for number in range(250):
        restored.fact(f"f{number:03d}", about=[f"person {number % 7}"], at=MADE)
    few, many = Blows(), Blows()
    replay_ledger(restored.ports(few), restored.replay(restored.entry("e", BOB)))
    entries = [restored.entry(f"e{number}", Selector("user", f"u{number}")) for number in range(40)]
    replay_ledger(restored.ports(many), restored.replay(*entries, replay_id="r2"))

    assert few.calls.count("FakeWalk.heads") == many.calls.count("FakeWalk.heads") == 3
    assert many.calls.count("FakeErasures.several") == 1, (
        "records are read for the answer, and for what matches"
    )


@pytest.mark.parametrize("changed", ["person", "time"])
def test_a_ledger_that_gives_an_erasures_id_to_another_one_reaches_nobody(
    restored: Restored, changed: str
) -> None:
    """Else its statement would name one person by the hash, and count what went of somebody else."""
    restored.fact("f1", about=["ann"])
    done = replay_ledger(restored.ports(), restored.replay(restored.entry("e1", BOB)))
    assert done.restored == ["e1"]
    before = restored.store.kept["e1"]
    forged = restored.entry("e1", ANN)
    if changed == "time":
        forged = restored.entry("e1", BOB, created_at=LATER)
        restored.fact("f2", owner="user:bob")

    outcome = replay_ledger(restored.ports(), restored.replay(forged, replay_id="r2"))

    assert (outcome.replayed, outcome.unmatched) == ([], [("e1", "another-erasure")])
    assert restored.again == []
    assert restored.store.kept["e1"] == before
