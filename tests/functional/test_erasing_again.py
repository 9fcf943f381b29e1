"""Erasures that begin again: a replay takes nothing of later, and no turn that is under way undoes a fresh beginning."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.erasing import ADMIN, IN_PROJECT, TOKEN, ErasureWorld, X, fill, scope
from support.principals import principal
from support.search_world import WordEmbedder

from factbook.domain.access.erasing import Selector
from factbook.domain.errors import ErasureInProgress, FactNotFound, MemoryFull, Throttled
from factbook.domain.facts.fact import FactChanges, Retention, Subject
from factbook.domain.memories.statements import Statement
from factbook.ports.erasure.records import Erasure
from factbook.ports.jobs import Job
from factbook.usecases.erasure import requesting, working
from factbook.usecases.facts import keyed, payloads, reading
from factbook.usecases.facts.payloads import Content
from factbook.usecases.memories.remembering import remember
from factbook.usecases.memories.reviewing import Decided, confirm
from factbook_search.sqlite_index import SqliteIndex

BOB = principal("t1", "bob", writes=["p"])
LATER = "okapi"


@pytest.fixture
def world(tmp_path: Path) -> ErasureWorld:
    made = ErasureWorld(SqliteIndex(tmp_path / "index.sqlite"), WordEmbedder())
    made.start()
    return made


def replayed(world: ErasureWorld, erasure: Erasure) -> Erasure:
    """The same, run again as a replay runs it."""
    now = world.clock.now()
    before = world.records.kept["t1", erasure.id]
    again = replace(before, selector=X, status="pending", phase="seed", counts={}, replayed_at=now)
    requesting.run_again(world.erasing_ports(), again)
    return world.work(again)


def later(world: ErasureWorld) -> None:
    """A day later; the clocks of the log and of the facts are two."""
    world.clock.advance(days=1)
    world.log_clock.instant = world.clock.now().replace("Z", "000Z")


def test_a_replay_leaves_what_was_said_later_in_the_search_index(world: ErasureWorld) -> None:
    fill(world)
    erasure = world.erase(X)
    later(world)
    in_thread = IN_PROJECT | {"threadId": "th"}
    world.say(ADMIN, "run-x", ("ann", f"{LATER} in the former run"), scope=in_thread)
    world.say(ADMIN, "run-x2", ("ann", f"{LATER} in a new run"), scope=IN_PROJECT)
    found = world.recalled(ADMIN, LATER)
    assert len(found) == 2

    done = replayed(world, erasure)

    assert world.recalled(ADMIN, LATER) == found
    assert world.recalled(ADMIN, TOKEN) == []
    assert (done.status, done.counts["messages"]) == ("completed", 1)


def test_a_replay_sends_nothing_to_review_that_was_derived_from_what_was_said_later(
    world: ErasureWorld,
) -> None:
    fill(world)
    erasure = world.erase(X)
    later(world)
    (said,) = world.say(ADMIN, "run-x2", ("ann", LATER), scope=IN_PROJECT)
    derived = world.write(ADMIN, "derived from later words", causedByLogId=[said.id]).fact

    done = replayed(world, erasure)

    assert reading.get_fact(world.memory, principal("t1", "bob", "service"), derived.id).review is None
    assert done.counts["derived"] == 1, "the one of before, which waits already"


def test_a_replay_undoes_no_decision_on_what_was_derived(world: ErasureWorld) -> None:
    made = fill(world)
    erasure = world.erase(X)
    confirm(world.memories, ADMIN, world.operation(), Decided(made["derived"]))
    later(world)
    replayed(world, erasure)
    assert reading.get_fact(world.memory, ADMIN, made["derived"]).review is None


def test_a_replay_leaves_uploads_of_later(world: ErasureWorld) -> None:
    fill(world)
    erasure = world.erase(X)
    later(world)
    ref, _ = payloads.grant_upload(world.memory, "t1", "f-new", 5, "0" * 64, scope=scope(**IN_PROJECT))
    world.blobs.upload(ref, b"later")
    world.blobs.stored_at[ref] = world.clock.now()

    done = replayed(world, erasure)

    assert ref in world.blobs.bodies
    assert done.counts["uploads"] == 0


def test_a_beginning_anew_is_not_undone_by_the_turn_that_was_under_way(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed with force while a worker is at its last phase, an erasure begins again, and the answer is a record."""
    fill(world)
    erasure = world.ask(X)
    world.turn(erasure)
    answers: list[Erasure] = []
    end = working._PHASES["end"]

    def resumed_meanwhile(turn: object, job: Job, deadline: object) -> Iterator[Job]:
        if not answers:
            ports = world.erasing_ports()
            answers.append(requesting.resume_erasure(ports, ADMIN, world.operation(), erasure.id, force=True))
        yield from end(turn, job, deadline)  # type: ignore[arg-type]

    monkeypatch.setitem(working._PHASES, "end", resumed_meanwhile)  # type: ignore[arg-type]
    world.turn(erasure)
    (answer,) = answers
    assert (answer.status, answer.phase) == ("pending", "seed")
    kept = world.records.kept["t1", erasure.id]
    assert (kept.status, kept.phase) == ("pending", "seed")
    assert world.work(erasure).status == "completed"


def until(world: ErasureWorld, erasure: Erasure, phase: str) -> None:
    """Work on it until its job has come to that phase, and no further."""
    keep = world.jobs.keep

    def stop(job: Job) -> bool:
        kept = keep(job)
        if job.phase == phase:
            world.jobs.keep = keep  # type: ignore[method-assign]
            raise Throttled
        return kept

    world.jobs.keep = stop  # type: ignore[method-assign]
    for _ in range(3):
        world.turn(erasure)
        if world.jobs.keep == keep:
            return
    raise AssertionError("it did not come to that phase")


KEY = keyed.Key(scope(), "t", "k")
ABOUT_X = FactChanges(subjects=[Subject(kind="participant", id="x")])


def write_key(world: ErasureWorld, text: str, changes: FactChanges = FactChanges()) -> keyed.Written:  # noqa: B008 - frozen
    operation = world.operation()
    return keyed.write_keyed_fact(
        world.memory, ADMIN, operation, KEY, changes, Content(text), may_supersede=True
    )


def test_a_key_whose_fact_is_erased_takes_no_write_about_others_before_the_end(world: ErasureWorld) -> None:
    """Whom the tombstone was about it does not say any more, and a new life would take its place before it is counted."""
    write_key(world, TOKEN, ABOUT_X)
    erasure = world.ask(X)
    until(world, erasure, "keys")
    with pytest.raises(ErasureInProgress):
        write_key(world, "about nobody")
    done = world.work(erasure)
    assert (done.status, done.counts["facts"], done.counts["revisions"]) == ("completed", 1, 1)
    assert write_key(world, "about nobody").fact.version == 1
    assert write_key(world, "more").fact.version == 2


def test_a_new_life_over_an_expired_fact_that_is_erased_begins_after_the_end_alone(
    world: ErasureWorld,
) -> None:
    """What is erased of an id are the revisions and payloads of all its lives."""
    write_key(world, TOKEN, FactChanges(subjects=ABOUT_X.subjects, retention=Retention(keepDays=1)))
    later(world)
    erasure = world.ask(X)
    until(world, erasure, "facts")
    with pytest.raises(ErasureInProgress):
        write_key(world, "about nobody")
    assert world.work(erasure).counts["facts"] == 1
    assert write_key(world, "about nobody").created


def test_one_that_ends_while_it_is_resumed_is_answered_as_it_is(world: ErasureWorld) -> None:
    fill(world)
    erasure = world.ask(X)
    world.turn(erasure)
    ports = world.erasing_ports()
    stale = world.records.kept["t1", erasure.id]
    done = world.work(erasure)
    assert not world.records.put_in_force(stale, world.clock.now()), "it is another by now"
    reads = iter([stale])

    class Stale:
        def __getattr__(self, name: str) -> object:
            return getattr(world.records, name)

        def erasure(self, tenant: str, erasure_id: str) -> Erasure | None:
            return next(reads, None) or world.records.erasure(tenant, erasure_id)

    ports = replace(ports, records=Stale())  # type: ignore[arg-type]
    assert requesting.resume_erasure(ports, ADMIN, world.operation(), erasure.id, force=True) == done
    assert world.records.kept["t1", erasure.id] == done


def test_replays_wait_while_very_many_erasures_are_in_force(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    erasure = world.erase(X)
    monkeypatch.setattr(requesting, "MOST_IN_FORCE", 1)
    world.ask(Selector("external", "a"))
    with pytest.raises(Throttled):
        replayed(world, erasure)
    assert world.records.kept["t1", erasure.id] == erasure


def test_a_record_does_not_tell_by_a_digest_whom_it_was_about(world: ErasureWorld) -> None:
    """Who asked twice for the same has two records that nobody can match with a guess of the request."""
    from factbook.ports.operations import Operation

    made = [
        requesting.request_erasure(world.erasing_ports(), ADMIN, Operation(key, "the same body"), X)
        for key in ("one", "two")
    ]
    assert made[0].made_by != made[1].made_by


@pytest.mark.parametrize("full", [False, True])
def test_no_answer_to_a_remembering_names_a_memory_that_is_being_erased(
    world: ErasureWorld, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stated(key: str) -> Statement:
        return Statement("copilot", scope(**IN_PROJECT), "participant:p/x", "m", "a text", key=key)

    first = remember(world.memories, BOB, world.operation(), stated("home-town")).fact
    remember(world.memories, BOB, world.operation(), stated("home-street"))
    world.ask(Selector("fact", first.id))
    with pytest.raises(FactNotFound):
        reading.get_fact(world.memory, BOB, first.id)
    if full:
        limits = world.memory.policy("t1").limits.model_copy(update={"memories_per_agent": 1})
        policy = world.memory.policy("t1").model_copy(update={"ceilings": limits})
        memories = replace(world.memories, facts=replace(world.memory, policy=lambda _: policy))
        with pytest.raises(MemoryFull) as refused:
            remember(memories, BOB, world.operation(), stated("home-towns"))
        assert [each["key"] for each in refused.value.details["memories"]] == ["home-street"]
    else:
        assert (
            "home-town" not in remember(world.memories, BOB, world.operation(), stated("home-towns")).similar
        )
