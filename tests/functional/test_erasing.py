"""Erase persons, conversations and facts, over fakes and the real search index: what goes, what stays, what is counted."""

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.erasing import (
    ADMIN,
    IN_PROJECT,
    LARGE,
    TOKEN,
    ErasureWorld,
    FakeErasing,
    X,
    everything,
    fill,
    hits,
    scope,
)
from support.principals import principal
from support.search_world import WordEmbedder, admin

from factbook.domain.access import filters
from factbook.domain.access.erasing import Selector
from factbook.domain.errors import (
    ErasureInProgress,
    FactNotFound,
    FactUnreadable,
    IdempotencyMismatch,
    LegalHold,
    NotFound,
    PermissionDenied,
    Throttled,
)
from factbook.domain.facts.fact import FactChanges
from factbook.domain.memories.statements import Statement
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.erasure.records import COUNTED
from factbook.ports.operations import Operation
from factbook.ports.walks import WalkPage
from factbook.usecases.erasure import requesting
from factbook.usecases.erasure.ports import ErasurePorts
from factbook.usecases.erasure.trying import try_erasure
from factbook.usecases.erasure.working import work_on_erasure
from factbook.usecases.facts import changes, holds, keyed, payloads, reading
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.reading import read_run
from factbook.usecases.memories.remembering import remember
from factbook.usecases.memories.reviewing import Decided, confirm, list_reviews, reject
from factbook_search.sqlite_index import SqliteIndex

ANN = principal("t1", "ann")


@pytest.fixture
def world(tmp_path: Path) -> ErasureWorld:
    made = ErasureWorld(SqliteIndex(tmp_path / "index.sqlite"), WordEmbedder())
    made.start()
    return made


def short() -> Deadline:
    """Time for a few pieces: it passes at the tenth look at it."""
    return Deadline(10, itertools.count().__next__)


def test_a_person_is_gone_from_every_store_and_what_went_is_counted(world: ErasureWorld) -> None:
    made = fill(world)
    others = world.facts.head("t1", made["other"])
    assert hits(world) > 0
    erasure = world.erase(X)

    assert (erasure.status, erasure.phase, erasure.last_error) == ("completed", "done", None)
    assert erasure.selector is None
    assert erasure.counts == {
        "facts": 5,
        "revisions": 7,
        "blobs": 2,
        "uploads": 0,
        "documents": 5,
        "messages": 1,
        "keys": 1,
        "derived": 1,
    }
    assert set(erasure.counts) == set(COUNTED)
    assert TOKEN not in everything(world)
    assert hits(world) == 0
    assert world.facts.head("t1", made["other"]) == others
    for head in made["own"]:
        tombstone = world.facts.head("t1", head.fact.id)
        assert tombstone is not None
        assert (tombstone.fact.invalidation_reason, tombstone.subjects) == ("erased", ())
        assert tombstone.fact.key is None
        with pytest.raises(FactNotFound):
            reading.get_fact(world.memory, ADMIN, head.fact.id, version=1)
    (entry,) = read_run(world.log, world.vault, ADMIN, "run-x", 0, 10).data
    assert (entry.get("payload"), entry["payloadErasedAt"]) == (None, erasure.created_at)


def test_while_it_goes_on_nothing_is_shown_and_nothing_is_gone_before_all_writes_have_ended(
    world: ErasureWorld,
) -> None:
    made = fill(world)
    before = len(world.facts._revisions), len(world.blobs.bodies)
    erasure = world.ask(X)
    assert world.slept == [2.0], "the answer comes when every process knows of it"
    world.turn(erasure)
    kept = world.records.kept["t1", erasure.id]
    assert (kept.status, kept.phase, kept.attempts) == ("running", "settle", 1)
    assert (len(world.facts._revisions), len(world.blobs.bodies)) == before
    assert hits(world) == 0
    (_, _, first), (_, _, second) = world.queue.sent
    assert first == 0
    assert second == 63, "trust, the longest write or cached key, and what clocks may differ"
    with pytest.raises(ErasureInProgress):
        world.write(ADMIN, "more", scope=IN_PROJECT)
    with pytest.raises(FactNotFound):
        reading.get_fact(world.memory, ADMIN, made["own"][0].fact.id)


def test_what_the_index_proposes_past_its_filter_is_not_shown(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filter names so many kinds and projects and no more, as an index takes a bounded number of conditions."""
    fill(world)
    talk = {"projectId": "p", "threadId": "talk"}
    world.say(ADMIN, "c", ("ann", f"{TOKEN} 1"), ("bot", f"{TOKEN} 2"), scope=talk)
    found = hits(world)
    monkeypatch.setattr(filters, "MOST_GROUPS", 0)
    assert hits(world) == found > 2

    world.ask(X)
    world.ask(Selector("conversation", "talk"))
    assert hits(world) == 0


def test_what_was_derived_waits_in_review_and_says_why(world: ErasureWorld) -> None:
    made = fill(world)
    world.erase(X)
    head = world.facts.head("t1", made["derived"])
    assert head is not None
    assert (head.fact.review, head.fact.review_why, head.fact.version) == (
        "pending",
        ("derived-from-erased",),
        1,
    )
    (review,) = list_reviews(world.memories, ADMIN, "open", 10).reviews
    assert (review.fact.id, list(review.why)) == (made["derived"], ["derived-from-erased"])
    with pytest.raises(FactNotFound):
        reading.get_fact(world.memory, principal("t1", "bob", "service"), made["derived"])


def test_a_derived_fact_under_hold_waits_as_well_and_is_decided_on_when_it_is_released(
    world: ErasureWorld,
) -> None:
    made = fill(world)
    holds.hold_fact(world.memory, ADMIN, world.operation(), made["derived"], "a case")
    erasure = world.erase(X)
    head = world.facts.head("t1", made["derived"])
    assert head is not None
    assert (head.fact.review, head.fact.held, head.fact.version) == ("pending", True, 1)
    assert (erasure.counts["derived"], erasure.warnings) == (1, ())
    with pytest.raises(LegalHold):
        confirm(world.memories, ADMIN, world.operation(), Decided(made["derived"]))
    released = holds.release_fact(world.memory, ADMIN, world.operation(), made["derived"], "closed")
    assert released.review == "pending"
    assert confirm(world.memories, ADMIN, world.operation(), Decided(made["derived"])).review is None


def test_what_was_derived_waits_though_another_erasure_that_fails_reached_it(world: ErasureWorld) -> None:
    made = fill(world)
    another = world.ask(Selector("fact", made["derived"]))
    world.turn(another)
    assert world.erase(X).counts["derived"] == 1
    late = world.records.force.pop(("t1", another.id))
    holds.hold_fact(world.memory, ADMIN, world.operation(), made["derived"], "a case")
    world.records.force["t1", another.id] = late
    assert world.work(another).last_error == "legal-hold"
    with pytest.raises(FactNotFound):
        reading.get_fact(world.memory, ANN, made["derived"])


@pytest.mark.parametrize("decide", ["confirm", "reject", "delete"])
def test_begun_again_it_counts_what_it_had_set_aside_and_undoes_no_decision(
    world: ErasureWorld, decide: str
) -> None:
    made = fill(world)
    erasure = world.ask(X)
    for _ in range(30):
        world.turn(erasure, short())
        if world.records.kept["t1", erasure.id].counts["derived"]:
            break
    doing = {"confirm": confirm, "reject": reject}
    if decide in doing:
        doing[decide](world.memories, ADMIN, world.operation(), Decided(made["derived"]))
    else:
        changes.delete_fact(world.memory, ADMIN, world.operation(), made["derived"])
    before = world.facts.head("t1", made["derived"])
    requesting.resume_erasure(world.erasing_ports(), ADMIN, world.operation(), erasure.id, force=True)
    assert world.work(erasure).counts["derived"] == 1
    assert world.facts.head("t1", made["derived"]) == before


def test_a_held_fact_in_the_selection_withdraws_everything(world: ErasureWorld) -> None:
    made = fill(world)
    held = made["own"][0].fact.id
    holds.hold_fact(world.memory, ADMIN, world.operation(), held, "a case")
    before = everything(world)
    with pytest.raises(LegalHold) as refused:
        world.ask(X)
    assert refused.value.details == {"factIds": [held]}
    assert everything(world) == before
    assert not world.records.force
    assert not world.queue.sent
    holds.release_fact(world.memory, ADMIN, world.operation(), held, "closed")
    assert world.erase(X).status == "completed"


def test_a_hold_that_came_in_between_fails_it_before_anything_is_gone(world: ErasureWorld) -> None:
    """A write that began before the erasure, and that put what it wrote under hold."""
    fill(world)
    erasure = world.ask(X)
    world.turn(erasure)
    late = world.records.force.pop(("t1", erasure.id))
    head = world.write(ADMIN, TOKEN, scope=IN_PROJECT, retention={"legalHold": True})
    world.records.force["t1", erasure.id] = late
    revisions = dict(world.facts._revisions)
    failed = world.work(erasure)
    assert (failed.status, failed.last_error) == ("failed", "legal-hold")
    assert failed.selector == X, "it can be resumed"
    assert world.facts._revisions == revisions
    assert not world.records.force
    assert reading.get_fact(world.memory, ADMIN, head.fact.id).version == 1

    with pytest.raises(LegalHold):
        requesting.resume_erasure(world.erasing_ports(), ADMIN, world.operation(), erasure.id)
    assert world.records.kept["t1", erasure.id].status == "failed"
    holds.release_fact(world.memory, ADMIN, world.operation(), head.fact.id, "closed")
    resumed = requesting.resume_erasure(world.erasing_ports(), ADMIN, world.operation(), erasure.id)
    assert resumed.status == "pending"
    assert world.work(resumed).status == "completed"
    assert TOKEN not in everything(world)


def test_a_held_fact_that_no_index_shows_stays_and_once_it_is_released_the_rest_goes_and_is_counted(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table's index of held facts may lag; the head is read before it would go."""
    made = fill(world)
    held = made["own"][1]
    holds.hold_fact(world.memory, ADMIN, world.operation(), held.fact.id, "a case")
    before = world.facts.head("t1", held.fact.id)
    with monkeypatch.context() as lagging:
        lagging.setattr(FakeErasing, "held", lambda *_: WalkPage([], None))
        failed = world.erase(X)
    assert (failed.status, failed.last_error, failed.selector) == ("failed", "legal-hold", X)
    assert world.facts.head("t1", held.fact.id) == before
    assert reading.get_fact(world.memory, ADMIN, held.fact.id).content_hash == held.fact.content_hash
    assert len(world.blobs.bodies) >= 2

    holds.release_fact(world.memory, ADMIN, world.operation(), held.fact.id, "closed")
    requesting.resume_erasure(world.erasing_ports(), ADMIN, world.operation(), failed.id)
    done = world.work(failed)
    assert (done.status, done.counts["facts"], done.counts["revisions"]) == ("completed", 5, 7)
    assert TOKEN not in everything(world)


def test_a_conversation_takes_its_facts_its_key_and_its_messages(world: ErasureWorld) -> None:
    fact = world.write(ADMIN, TOKEN, scope={"projectId": "p", "threadId": "th"})
    for run in ("a", "b"):
        world.say(
            ADMIN,
            run,
            ("ann", f"{TOKEN} 1"),
            ("bot", f"{TOKEN} 2"),
            scope={"projectId": "p", "threadId": "th"},
        )
    world.say(ADMIN, "c", ("ann", "other"), scope={"projectId": "p", "threadId": "other"})
    erasure = world.erase(Selector("conversation", "th"))
    assert (erasure.counts["facts"], erasure.counts["messages"], erasure.counts["keys"]) == (1, 4, 1)
    assert hits(world) == 0
    assert reading.list_revisions  # the fact's history is gone with it
    with pytest.raises(FactNotFound):
        reading.list_revisions(world.memory, ADMIN, fact.fact.id)
    assert world.recalled(ADMIN, "other") == ["other"]


def test_one_fact_goes_and_no_walk_is_made(world: ErasureWorld) -> None:
    fact = world.write(ADMIN, TOKEN)
    others = [world.write(ADMIN, f"other {number}") for number in range(5)]
    before = world.facts.heads_read
    erasure = world.erase(Selector("fact", fact.fact.id))
    assert (erasure.counts["facts"], erasure.counts["keys"]) == (1, 0)
    assert world.facts.heads_read - before < 10
    assert TOKEN not in everything(world)
    assert all(reading.get_fact(world.memory, ADMIN, head.fact.id) for head in others)


def test_a_fact_that_is_not_there_is_not_found_and_a_person_may_have_nothing(world: ErasureWorld) -> None:
    fact = world.write(ADMIN, TOKEN)
    world.erase(Selector("fact", fact.fact.id))
    for name in (fact.fact.id, "00000000-0000-8000-8000-000000000000"):
        with pytest.raises(FactNotFound):
            world.ask(Selector("fact", name))
    nobody = world.erase(Selector("external", "nobody"))
    assert (nobody.status, set(nobody.counts.values())) == ("completed", {0})


@pytest.mark.parametrize("share", [0, 1, 2, 4])
def test_a_head_of_the_tenant_is_read_once_and_once_more_if_it_goes_or_waits(
    world: ErasureWorld, share: int
) -> None:
    """Two reads for each fact of the tenant are never passed, not by a person whose all of them are."""
    (said,) = world.say(ADMIN, "run-x", ("ann", "words"), scope=IN_PROJECT)
    for number in range(240):
        hers, derived = number % 4 < share, number % 8 == 7
        more: dict[str, Any] = {"scope": IN_PROJECT} if hers else {}
        if derived and not hers:
            more["causedByLogId"] = [said.id]
        world.write(ADMIN, f"note {number}", deliver=False, **more)
    before = world.facts.heads_read
    done = world.erase(X)
    again = done.counts["facts"] + done.counts["derived"]
    assert done.counts["facts"] == 240 * share // 4
    assert done.counts["derived"] == (0 if share == 4 else 30)
    assert world.facts.heads_read - before == 240 + again <= 2 * 240


def test_what_is_written_meanwhile_about_her_words_waits_though_the_walk_was_past_it(
    world: ErasureWorld,
) -> None:
    """A new fact, and a revision that comes to name her entry; what named it before is the walk's to judge."""
    made = fill(world)
    other = world.write(ADMIN, "a fact of before")
    erasure = world.ask(X)
    while (job := world.jobs.job(f"erasure-{erasure.id}", "t1")) is None or job.phase != "tally":
        world.turn(erasure, short())
    late = world.write(ADMIN, "late", causedByLogId=[made["said"]])
    other = world.supersede(other, ADMIN, "now derived", causedByLogId=[made["said"]])
    spared = world.write(ADMIN, "of others' words", causedByLogId=["run-y:0:0123456789abcdef"])
    done = world.work(erasure)

    for head in (late, other):
        there = world.facts.head("t1", head.fact.id)
        assert there is not None
        assert (there.fact.review, there.fact.review_why) == ("pending", ("derived-from-erased",))
        with pytest.raises(FactNotFound):
            reading.get_fact(world.memory, principal("t1", "bob", "service"), head.fact.id)
        assert confirm(world.memories, ADMIN, world.operation(), Decided(head.fact.id)).review is None
    assert spared.fact.review is None
    assert done.counts["derived"] == 1, "the one that the walk met"


def test_a_rewriting_by_an_administrator_meanwhile_is_not_undone(world: ErasureWorld) -> None:
    made = fill(world)
    erasure = world.ask(X)
    while not world.records.kept["t1", erasure.id].counts.get("derived"):
        world.turn(erasure, short())
    rewritten = changes.supersede_fact(
        world.memory, ADMIN, world.operation(), made["derived"], FactChanges(), Content("without her")
    )
    assert rewritten.review is None
    assert world.work(erasure).status == "completed"
    assert reading.get_fact(world.memory, ANN, made["derived"]).content_text == '"without her"'


def unreadable(world: ErasureWorld, *fact_ids: str) -> ErasurePorts:
    """The ports of an erasure in a tenant of which these heads were edited past being read."""
    facts = world.facts

    class Damaged:
        def __getattr__(self, name: str) -> Any:
            return getattr(facts, name)

        def head(self, tenant: str, fact_id: str) -> Any:
            return self.heads(tenant, [fact_id]).get(fact_id)

        def heads(self, tenant: str, ids: Sequence[str]) -> Any:
            if set(ids) & set(fact_ids):
                raise ValueError("no JSON")
            return facts.heads(tenant, ids)

    world.damaged = frozenset(fact_ids)
    ports = world.erasing_ports()
    return replace(ports, facts=replace(ports.facts, facts=Damaged()))


def test_a_fact_that_cannot_be_read_is_refused_by_its_id_and_nothing_of_it_is_lost(
    world: ErasureWorld,
) -> None:
    fact = world.write(ADMIN, TOKEN).fact
    selector, before = Selector("fact", fact.id), everything(world)
    ports = unreadable(world, fact.id)
    for ask in (
        lambda: try_erasure(ports, ADMIN, selector, NEVER),
        lambda: requesting.request_erasure(ports, ADMIN, world.operation(), selector),
    ):
        with pytest.raises(FactUnreadable) as refused:
            ask()
        assert refused.value.details == {"factId": fact.id}
    assert (everything(world), dict(world.records.force)) == (before, {})


def test_a_fact_that_cannot_be_read_any_more_waits_to_be_mended_and_then_goes(world: ErasureWorld) -> None:
    fact = world.write(ADMIN, TOKEN).fact
    erasure = world.ask(Selector("fact", fact.id))
    world.turn(erasure)
    ports = unreadable(world, fact.id)
    for _ in range(3):
        world.clock.instant = world.records.due["t1", erasure.id]
        work_on_erasure(ports, "t1", erasure.id, NEVER)
        kept = world.records.kept["t1", erasure.id]
        assert (kept.status, kept.last_error) == ("running", "fact-unreadable")
    assert TOKEN in everything(world)
    assert world.work(erasure).counts["facts"] == 1
    assert TOKEN not in everything(world)


def test_a_held_fact_that_cannot_be_read_stops_no_erasure_and_stays(world: ErasureWorld) -> None:
    made = fill(world)
    held = world.write(ADMIN, "another's", scope=IN_PROJECT, retention={"legalHold": True})
    ports = unreadable(world, held.fact.id)
    erasure = requesting.request_erasure(ports, ADMIN, world.operation(), X)
    while not (kept := world.records.kept["t1", erasure.id]).ended:
        world.clock.instant = world.records.due["t1", erasure.id]
        work_on_erasure(ports, "t1", erasure.id, NEVER)
    assert (kept.status, kept.counts["facts"]) == ("completed", 5)
    (warning,) = kept.warnings
    assert warning.startswith("unreadable: 1 ")
    assert world.facts.head("t1", held.fact.id) == held
    assert world.facts.head("t1", made["other"]) is not None


def test_an_upload_of_a_fact_that_cannot_be_read_stays(world: ErasureWorld) -> None:
    fact = world.write(ADMIN, "words", scope=IN_PROJECT).fact
    payloads.store_payload(world.memory, "t1", fact.id, Content(LARGE), scope(**IN_PROJECT))
    objects = dict(world.blobs.bodies)
    ports = unreadable(world, fact.id)
    assert try_erasure(ports, ADMIN, X, NEVER).counts["uploads"] == 0
    erasure = requesting.request_erasure(ports, ADMIN, world.operation(), X)
    while not (kept := world.records.kept["t1", erasure.id]).ended:
        world.clock.instant = world.records.due["t1", erasure.id]
        work_on_erasure(ports, "t1", erasure.id, NEVER)
    assert (kept.status, kept.counts["uploads"]) == ("completed", 0)
    assert world.blobs.bodies == objects


def test_facts_that_cannot_be_read_are_warned_of_in_the_record_and_in_the_statement(
    world: ErasureWorld,
) -> None:
    fill(world)
    for number in range(230):
        world.write(ADMIN, f"note {number}", deliver=False)
    world.damaged = frozenset(
        world.write(ADMIN, TOKEN, scope=IN_PROJECT, deliver=False).fact.id for _ in range(3)
    )
    assert not try_erasure(world.erasing_ports(), ADMIN, X, NEVER).complete
    erasure = world.ask(X)
    for _ in range(20):
        world.turn(erasure, short())
    requesting.resume_erasure(world.erasing_ports(), ADMIN, world.operation(), erasure.id, force=True)
    done = world.work(erasure)
    assert done.counts["facts"] == 5
    (warning,) = done.warnings
    assert warning.startswith("unreadable: 3 facts of the tenant cannot be read")
    (entry,) = read_run(world.log, world.vault, ADMIN, "_erasures", 0, 10).data
    assert entry["payload"]["warnings"] == [warning]

    world.damaged = frozenset()
    again = world.erase(X)
    assert (again.counts["facts"], again.warnings) == (3, ())
    assert TOKEN not in everything(world)


def test_an_upload_that_comes_after_the_end_is_named_by_nothing_and_stays_pending(
    world: ErasureWorld,
) -> None:
    sent = TOKEN.encode()
    digest = hashlib.sha256(sent).hexdigest()
    ref, _ = payloads.grant_upload(world.memory, "t1", "f1", len(sent), digest, scope=scope(**IN_PROJECT))
    done = world.erase(X)
    world.blobs.upload(ref, sent)
    assert done.counts["uploads"] == 0
    assert ref in world.blobs.pending
    assert world.facts.head("t1", "f1") is None
    (entry,) = read_run(world.log, world.vault, ADMIN, "_erasures", 0, 10).data
    assert "late-uploads" in entry["payload"]["notClaimed"]


def test_an_upload_that_no_fact_came_to_name_goes_with_whom_it_is_of(world: ErasureWorld) -> None:
    sent = TOKEN.encode()
    asked = {"size": len(sent), "sha256": hashlib.sha256(sent).hexdigest()}

    def uploaded(name: str, fact_id: str) -> str:
        place = scope(projectId="p", participantId=name)
        ref, _ = payloads.grant_upload(world.memory, "t1", fact_id, **asked, scope=place)
        world.blobs.upload(ref, sent)
        return ref

    mine, anothers = uploaded("x", "f1"), uploaded("y", "f2")
    named = uploaded("x", "f3")
    content = Content(given=False, ref=named)
    where = scope(projectId="p")  # its writer put it elsewhere after all
    changes.write_fact(world.memory, ADMIN, world.operation(), "t", where, changes.FactChanges(), content)
    erasure = world.erase(X)
    assert erasure.counts["uploads"] == 1
    assert (mine in world.blobs.bodies, anothers in world.blobs.bodies, named in world.blobs.bodies) == (
        False,
        True,
        True,
    )


def test_the_payload_of_a_write_that_died_goes_as_well(world: ErasureWorld) -> None:
    content = Content(LARGE)
    payloads.store_payload(world.memory, "t1", "f1", content, scope(**IN_PROJECT))
    payloads.store_payload(world.memory, "t1", "f2", content, scope(projectId="p", participantId="y"))
    assert world.erase(X).counts["uploads"] == 1
    (left,) = world.blobs.bodies
    assert "/f2/" in left


def test_a_retry_of_what_made_an_erased_fact_brings_nothing_back_and_a_new_write_begins_a_life(
    world: ErasureWorld,
) -> None:
    key = keyed.Key(scope(**IN_PROJECT), "t", "k")
    first = Operation("first", "body")

    def write(operation: Operation, text: str) -> keyed.Written:
        return keyed.write_keyed_fact(
            world.memory, ADMIN, operation, key, changes.FactChanges(), Content(text), may_supersede=True
        )

    def create(operation: Operation) -> Any:
        return changes.write_fact(
            world.memory, ADMIN, operation, "t", key.scope, changes.FactChanges(), Content(TOKEN)
        )

    stated = Statement("copilot", scope(**IN_PROJECT), "participant:p/x", "m", TOKEN, key="m")

    def state(operation: Operation, statement: Statement = stated) -> Any:
        return remember(world.memories, ADMIN, operation, statement)

    write(first, TOKEN)
    create(Operation("plain", "body"))
    state(Operation("stated", "body"))
    world.erase(X)
    retries: list[Callable[[], Any]] = [
        lambda: write(first, TOKEN),
        lambda: create(Operation("plain", "body")),
        lambda: state(Operation("stated", "body")),
    ]
    for retry in retries:
        with pytest.raises(FactNotFound):
            retry()
    assert TOKEN not in everything(world)

    again = write(Operation("second", "body"), "new words")
    assert (again.created, again.fact.version) == (True, 1)
    assert write(Operation("third", "body"), "more").fact.version == 2
    with pytest.raises(FactNotFound):
        write(first, TOKEN)  # still known, whatever was written since
    assert state(Operation("later", "body"), Statement(**{**vars(stated), "text": "new"})).created
    assert reading.list_revisions(world.memory, ADMIN, again.fact.id)[0][-1].version == 1


def test_a_request_is_remembered_by_its_key(world: ErasureWorld) -> None:
    fill(world)
    ports, asked = world.erasing_ports(), Operation("once", "body")
    first = requesting.request_erasure(ports, ADMIN, asked, X)
    again = requesting.request_erasure(ports, ADMIN, asked, X)
    assert first.id == again.id
    assert len(world.records.kept) == 1
    with pytest.raises(IdempotencyMismatch):
        requesting.request_erasure(ports, ADMIN, Operation("once", "another"), X)
    done = world.work(first)
    assert requesting.request_erasure(ports, ADMIN, asked, X) == done


def test_only_administrators_have_to_do_with_erasures(world: ErasureWorld) -> None:
    ports = world.erasing_ports()
    erasure = world.ask(X)
    tries: list[Callable[[], Any]] = [
        lambda: requesting.request_erasure(ports, ANN, world.operation(), Selector("user", "ann")),
        lambda: requesting.get_erasure(ports, ANN, erasure.id),
        lambda: requesting.list_erasures(ports, ANN, None, 10),
        lambda: requesting.resume_erasure(ports, ANN, world.operation(), erasure.id),
    ]
    for attempt in tries:
        with pytest.raises(PermissionDenied):
            attempt()
    with pytest.raises(NotFound):
        requesting.get_erasure(ports, admin("t2"), erasure.id)
    assert requesting.list_erasures(ports, admin("t2"), None, 10) == ([], None)


def test_so_many_may_be_in_force_and_no_more(world: ErasureWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requesting, "MOST_IN_FORCE", 2)
    for name in ("a", "b"):
        world.ask(Selector("external", name))
    with pytest.raises(Throttled):
        world.ask(Selector("external", "c"))


def test_so_many_of_one_person_may_be_in_force_and_no_more(
    world: ErasureWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requesting, "MOST_IN_FORCE", 2)
    for _ in range(2):
        world.ask(X)
    with pytest.raises(Throttled):
        world.ask(X)


def test_resume_wakes_what_goes_on_and_with_force_it_begins_again(world: ErasureWorld) -> None:
    fill(world)
    ports, erasure = world.erasing_ports(), world.ask(X)
    world.turn(erasure)
    assert requesting.resume_erasure(ports, ADMIN, world.operation(), erasure.id).status == "running"
    assert world.queue.sent[-1] == ("t1", erasure.id, 0.0)
    assert requesting.resume_erasure(ports, ADMIN, world.operation(), erasure.id, force=True).phase == "seed"
    done = world.work(erasure)
    assert (done.status, done.counts["facts"], done.counts["keys"]) == ("completed", 5, 1)
    assert requesting.resume_erasure(ports, ADMIN, world.operation(), erasure.id, force=True) == done


def test_begun_again_in_the_middle_it_counts_what_was_erased_before(world: ErasureWorld) -> None:
    fill(world)
    erasure = world.ask(X)
    for _ in range(30):
        world.turn(erasure, short())
        if world.records.kept["t1", erasure.id].phase == "erase":
            break
    world.turn(erasure, short())
    requesting.resume_erasure(world.erasing_ports(), ADMIN, world.operation(), erasure.id, force=True)
    done = world.work(erasure)
    assert (done.counts["facts"], done.counts["revisions"], done.counts["blobs"]) == (5, 7, 2)
    assert (done.counts["keys"], done.counts["derived"]) == (1, 1)


def test_the_confirmed_text_beside_a_proposal_goes_with_it(world: ErasureWorld) -> None:
    bob = principal("t1", "bob", writes=["p"])

    def stated(text: str) -> Statement:
        return Statement(
            "copilot", scope(**IN_PROJECT), "participant:p/x", "m", text, key="m", about="account"
        )

    fact = remember(world.memories, bob, world.operation(), stated(f"{TOKEN} one")).fact
    confirm(world.memories, ADMIN, world.operation(), Decided(fact.id))
    remember(world.memories, bob, world.operation(), stated(f"{TOKEN} two"))
    head = world.facts.head("t1", fact.id)
    assert head is not None
    assert head.confirmed is not None
    world.deliver(head, head.confirmed)
    assert hits(world) > 0
    world.erase(X)
    head = world.facts.head("t1", fact.id)
    assert head is not None
    assert head.confirmed is None
    assert TOKEN not in everything(world)
    assert hits(world) == 0


def test_two_erasures_that_reach_the_same_fact_both_end_and_it_is_counted_once(world: ErasureWorld) -> None:
    world.write(ADMIN, TOKEN, scope=IN_PROJECT, subjects=[{"kind": "external", "id": "eve"}])
    both = [world.ask(X), world.ask(Selector("external", "eve"))]
    for _ in range(100):
        for erasure in both:
            world.turn(erasure, short())
    done = [world.work(each) for each in both]
    assert [each.status for each in done] == ["completed"] * 2
    assert sum(each.counts["facts"] for each in done) == 1


def test_without_a_search_index_everything_else_goes(world: ErasureWorld) -> None:
    fill(world)
    erasure = world.ask(X)
    from factbook.usecases.erasure.working import work_on_erasure

    ports = world.erasing_ports(searched=False)
    for _ in range(3):
        world.clock.instant = max(world.clock.instant, world.records.due.get(("t1", erasure.id), ""))
        work_on_erasure(ports, "t1", erasure.id, Deadline(60))
    done = world.records.kept["t1", erasure.id]
    assert (done.status, done.counts["documents"], done.counts["messages"]) == ("completed", 0, 0)
    assert TOKEN not in everything(world)


def test_a_search_index_that_is_down_holds_back_the_end_alone(world: ErasureWorld) -> None:
    fill(world)
    erasure = world.ask(X)
    index, world.index = world.index, SqliteIndex(":memory:")  # nothing in it can be found: none is there
    down = world.index

    def refuse(*_: Any, **__: Any) -> Any:
        from factbook.domain.errors import SearchUnavailable

        raise SearchUnavailable("down")

    down.indexes = refuse  # type: ignore[method-assign]
    for _ in range(5):
        world.turn(erasure)
    kept = world.records.kept["t1", erasure.id]
    assert (kept.status, kept.last_error, kept.phase) == ("running", "search-unavailable", "erase")
    assert TOKEN not in everything(world)
    world.index = index
    done = world.work(erasure)
    assert (done.status, done.last_error, done.counts["facts"]) == ("completed", None, 5)
    assert hits(world) == 0


def test_a_tenant_is_erased_in_turns_that_keep_what_they_have_done(world: ErasureWorld) -> None:
    """A deadline that has passed already: a turn does one bounded piece."""
    fill(world)
    for number in range(230):
        world.write(ADMIN, f"{TOKEN} {number}", scope=IN_PROJECT, deliver=False)
    erasure = world.ask(X)
    turns = 0
    while not world.records.kept["t1", erasure.id].ended and turns < 100:
        world.turn(erasure, short())
        turns += 1
    done = world.records.kept["t1", erasure.id]
    assert turns > 5
    assert (done.status, done.attempts, done.counts["facts"]) == ("completed", turns, 235)
    assert TOKEN not in everything(world)


def test_the_statement_is_of_what_was_done_and_names_nobody(world: ErasureWorld) -> None:
    fill(world)
    erasure = world.erase(X)
    (entry,) = read_run(world.log, world.vault, ADMIN, "_erasures", 0, 10).data
    assert entry["id"] == erasure.entry_id
    assert entry["payload"]["counts"] == erasure.counts
    assert erasure.matchable
    assert '"x"' not in json.dumps(entry["payload"])
