"""The index follows the tables: faults, catching up, builds, repairs, and no order of events that brings a fact back."""

import contextlib
import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.search_world import WordEmbedder, World, admin
from support.struck import Blow, Blows, Death, Struck

from factbook.api.retrieval import events
from factbook.domain.errors import SearchUnavailable, StorageUnavailable
from factbook.domain.policy.policies import Policy, TypePolicy
from factbook.domain.retrieval.documents import FORMAT
from factbook.domain.retrieval.searchable import index_version
from factbook.ports.deadline import Deadline
from factbook.ports.retrieval.embeddings import EmbeddingsUnavailable
from factbook.ports.retrieval.index import Refused
from factbook.usecases.retrieval import index_jobs, indexing
from factbook.usecases.retrieval.index_state import index_progress, index_state
from factbook_search.sqlite_index import SqliteIndex

ADMIN = admin()


@pytest.fixture
def world(new_world):
    made = new_world(embedder=WordEmbedder())
    made.start()
    return made


def _state(world, head):
    world.settle()
    found = index_state(world.index, world.backlog, world.policies, head.fact)
    return None if found is None else (found.state, found.problem)


def test_facts_written_while_the_embedder_is_down_are_found_by_words_and_later_by_meaning(world):
    world.embedder.down = True
    head = world.write(ADMIN, "a kitten")

    assert world.words(ADMIN, "kitten") == ["a kitten"]
    assert _state(world, head) == ("pending", "embedding")
    assert index_progress(world.jobs, world.backlog, None).waiting == 1

    world.embedder.down = False
    assert index_jobs.catch_up(world.ports, Deadline(60)) == 1
    assert world.words(ADMIN, "feline", "semantic") == ["a kitten"]
    assert _state(world, head) == ("indexed", None)
    assert index_progress(world.jobs, world.backlog, None).waiting == 0


def test_a_vector_of_another_size_is_never_kept_and_its_fact_waits_visibly(world):
    world.embedder.broken = True
    head = world.write(ADMIN, "a kitten")

    assert _state(world, head) == ("pending", "embedding")
    assert index_jobs.catch_up(world.ports, Deadline(60)) == 1
    assert _state(world, head) == ("pending", "embedding")


def test_one_text_the_embedder_refuses_does_not_hold_up_the_others(world):
    world.embedder.refused = "poison"
    heads = [world.write(ADMIN, text, deliver=False) for text in ("a kitten", "poison", "a feline")]

    assert world.deliver(*heads) == set()
    assert [_state(world, head)[0] for head in heads] == ["indexed", "failed", "indexed"]


def test_a_refused_text_is_final_and_visible_until_its_fact_changes(world):
    world.embedder.refused = "poison"
    head = world.write(ADMIN, "poison in words")

    assert _state(world, head) == ("failed", "embedding-refused")
    assert index_progress(world.jobs, world.backlog, None).waiting == 0
    calls = world.embedder.calls
    assert index_jobs.catch_up(world.ports, Deadline(60)) == 0
    assert index_jobs.repair(world.ports, Deadline(60)).counters["changed"] == 0
    assert world.embedder.calls == calls
    assert world.words(ADMIN, "poison") == ["poison in words"]
    assert _state(world, world.supersede(head, ADMIN, "a kitten")) == ("indexed", None)


def test_a_long_text_of_which_a_part_is_refused_is_found_by_its_other_parts(world):
    world.embedder.refused = "poison"
    head = world.write(ADMIN, {"text": "kitten " * 700 + "poison " + "tea " * 50})

    assert _state(world, head) == ("failed", "embedding-refused")
    assert len(world.find(ADMIN, "feline", "semantic").facts) == 1


def test_a_tenant_whose_records_cannot_be_embedded_does_not_keep_anothers_waiting(world):
    other = admin("t0"), admin("t2")
    world.embedder.down = True
    for number in range(150):
        world.write(ADMIN, f"stuck {number}")
    heads = [world.write(who, "a kitten") for who in other for _ in range(3)]
    assert {_state(world, head) for head in heads} == {("pending", "embedding")}

    world.embedder.down, world.embedder.stuck = False, "stuck"
    index_jobs.catch_up(world.ports, Deadline(60))

    assert {_state(world, head) for head in heads} == {("indexed", None)}
    assert index_progress(world.jobs, world.backlog, "t1").waiting == 150
    assert index_progress(world.jobs, world.backlog, "t2").waiting == 0
    world.embedder.stuck = ""
    index_jobs.catch_up(world.ports, Deadline(60))
    assert index_progress(world.jobs, world.backlog, None).waiting == 0


def test_one_tenants_store_ends_no_other_tenants_catching_up(world, monkeypatch):
    world.embedder.down = True
    heads = [world.write(admin(tenant), "a kitten") for tenant in ("t1", "t2", "t3")]
    world.embedder.down = False
    heads_of = world.facts.heads

    def struck(tenant, ids):
        if tenant == "t2":
            raise StorageUnavailable
        return heads_of(tenant, ids)

    with monkeypatch.context() as patch:
        patch.setattr(world.facts, "heads", struck)
        index_jobs.catch_up(world.ports, Deadline(60))
    assert [_state(world, head)[0] for head in heads] == ["indexed", "pending", "indexed"]


class Refused403(Exception):
    """What the SDK raises for a payload or key that a role may not read: nothing of ours."""


@pytest.mark.parametrize("error", [StorageUnavailable, Refused403])
def test_a_payload_that_cannot_be_read_waits_and_holds_nobody_up(world, monkeypatch, error):
    large = world.write(ADMIN, {"text": "walrus " + "x " * 50_000}, deliver=False)
    small = world.write(admin("t2"), "tea", deliver=False)

    def unreadable(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(type(world.indexing.blobs), "read", unreadable)
        assert world.deliver(large, small) == set()
        assert index_jobs.rebuild(world.ports, Deadline(60)).phase == "done"
        world.restart()
        index_jobs.catch_up(world.ports, Deadline(60))
    assert (_state(world, large), _state(world, small)) == (("pending", "payload"), ("indexed", None))
    assert world.words(admin("t2"), "tea") == ["tea"]

    index_jobs.catch_up(world.ports, Deadline(60))
    assert _state(world, large) == ("indexed", None)


def test_large_payloads_are_read_in_bounded_portions_and_each_is_kept(world, monkeypatch):
    for number in range(8):
        world.write(ADMIN, {"text": f"walrus{number} " + "x " * 36_000}, deliver=False)
    monkeypatch.setattr(index_jobs, "PORTION_BYTES", 180_000)
    monkeypatch.setattr(indexing, "PORTION_BYTES", 180_000)
    read, at_once, bodies = [0], [], world.blobs.bodies

    def reading(_, ref):
        read[0] += len(bodies[ref])
        return bodies[ref]

    keep = world.jobs.keep

    def keeping(job):
        at_once.append(read[0])
        read[0] = 0
        return keep(job)

    monkeypatch.setattr(type(world.indexing.blobs), "read", reading)
    monkeypatch.setattr(world.jobs, "keep", keeping)
    assert index_jobs.repair(world.ports, Deadline(60)).counters["changed"] == 8
    assert sum(at_once) > 8 * 70_000
    assert max(at_once) <= 180_000


def test_a_batch_stops_at_its_deadline_and_goes_on_with_what_is_left(world, monkeypatch):
    heads = [
        world.write(ADMIN, {"text": f"walrus{number} " + "x " * 36_000}, deliver=False) for number in range(4)
    ]
    monkeypatch.setattr(indexing, "PORTION_BYTES", 100_000)
    ticks = itertools.count()
    outcome = indexing.index_heads(world.indexing, heads, Deadline(3, elapsed=lambda: next(ticks)))

    left = [head for head in heads if ("t1", head.fact.id) in outcome.again]
    assert 0 < len(left) < 4
    assert left == heads[-len(left) :]  # in order, so that a stream goes on behind what is done
    assert world.deliver(*left) == set()
    assert len(world.find(ADMIN, "x").facts) == 4


def test_an_index_that_is_down_holds_the_batch_back_and_catches_up_to_an_equal_state(world, monkeypatch):
    heads = [world.write(ADMIN, f"tea {number}", deliver=False) for number in range(3)]

    def down(*_, **__):
        raise SearchUnavailable("down")

    with monkeypatch.context() as patch:
        patch.setattr(world.index, "apply", down)
        with pytest.raises(SearchUnavailable):
            world.deliver(*heads)
    assert world.words(ADMIN, "tea") == []
    world.deliver(*heads)
    assert sorted(world.words(ADMIN, "tea")) == ["tea 0", "tea 1", "tea 2"]


def test_a_lost_index_is_not_made_up_by_a_write_but_built_again_whole(world):
    heads = [world.write(ADMIN, f"tea {number}") for number in range(3)]
    world.index.drop(world.index.indexes()[0].name)
    world.restart()

    with pytest.raises(SearchUnavailable):
        world.deliver(heads[0])
    assert world.index.indexes() == []
    with pytest.raises(SearchUnavailable):
        world.find(ADMIN, "tea")

    world.start()
    assert sorted(world.words(ADMIN, "tea", "both")) == ["tea 0", "tea 1", "tea 2"]
    assert world.space.dimensions == world.embedder.dimensions


def test_what_no_index_can_hold_goes_to_the_dead_letters_with_its_key_and_reason(world, monkeypatch):
    apply = world.index.apply
    monkeypatch.setattr(
        world.index,
        "apply",
        lambda changes, index: [
            Refused(changes[0], "mapping", retry=False),
            *apply(changes[1:], index=index),
        ],
    )
    poison, fine = (world.write(ADMIN, text, deliver=False) for text in ("poison", "fine"))

    assert world.deliver(poison, fine) == set()
    assert world.dead_letters.sent == [(f"t1|{poison.fact.id}", "mapping")]
    assert _state(world, poison) == ("failed", "refused")
    assert world.words(ADMIN, "fine") == ["fine"]


def test_a_change_the_index_wants_later_is_the_only_one_tried_again(world, monkeypatch):
    later, fine = (world.write(ADMIN, text, deliver=False) for text in ("later", "fine"))
    apply = world.index.apply
    with monkeypatch.context() as patch:
        patch.setattr(
            world.index,
            "apply",
            lambda changes, index: [
                Refused(changes[0], "busy", retry=True),
                *apply(changes[1:], index=index),
            ],
        )
        assert world.deliver(later, fine) == {("t1", later.fact.id)}
    assert world.dead_letters.sent == []
    world.deliver(later)
    assert world.words(ADMIN, "later") == ["later"]


def test_large_payloads_are_searchable_up_to_ten_megabytes_and_say_so_beyond(world):
    small = world.write(ADMIN, {"text": "walrus " + "x " * 50_000})
    assert small.fact.content_ref is not None
    assert len(world.find(ADMIN, "walrus").facts) == 1

    huge = replace(small, edition=2, fact=small.fact.model_copy(update={"size": 10 * 1024 * 1024 + 1}))
    world.deliver(huge)
    assert _state(world, huge) == ("failed", "too-large")

    binary = world.write(ADMIN, {"text": "y" * 70_000})
    world.blobs.bodies[binary.fact.content_ref] = b"\xff\xfe\x00"
    world.deliver(binary)
    assert _state(world, binary) == ("failed", "not-text")


def test_a_text_that_takes_too_long_is_found_by_its_beginning_and_says_so(world, monkeypatch):
    monkeypatch.setattr(indexing, "TEXT_SECONDS", 0.0)
    monkeypatch.setattr(indexing, "LEAST_SECONDS", 0.0)
    head = world.write(ADMIN, {"text": "walrus " + "x " * 5_000 + "heron"})

    assert _state(world, head) == ("failed", "too-slow")
    assert len(world.find(ADMIN, "walrus").facts) == 1
    assert world.find(ADMIN, "heron").facts == []
    assert index_progress(world.jobs, world.backlog, None).waiting == 0
    assert index_jobs.repair(world.ports, Deadline(60)).counters["changed"] == 0


@pytest.mark.parametrize(("hung", "asked"), [(0.0, 1), (60.0, 3)])
def test_a_store_that_hung_is_not_asked_again_by_the_same_batch(world, monkeypatch, hung, asked):
    monkeypatch.setattr(indexing, "HUNG_SECONDS", hung)
    heads = [world.write(ADMIN, {"text": "x " * 50_000}, deliver=False) for _ in range(3)]
    calls = []

    def hangs(_, ref):
        calls.append(ref)
        raise StorageUnavailable

    monkeypatch.setattr(type(world.indexing.blobs), "read", hangs)
    assert world.deliver(*heads) == set()
    assert len(calls) == asked
    assert {_state(world, head) for head in heads} == {("pending", "payload")}


def test_drafts_that_there_is_no_time_for_are_put_off(world):
    ticks = itertools.count()
    heads = [world.write(ADMIN, f"tea {number}", deliver=False) for number in range(5)]
    outcome = indexing.index_heads(world.indexing, heads, Deadline(3, elapsed=lambda: next(ticks)))
    assert outcome.late == outcome.again
    assert 0 < len(outcome.late) < 5


def test_facts_written_before_embeddings_were_turned_on_are_embedded_in_the_background(new_world):
    world = new_world()
    world.start()
    for number in range(250):
        world.write(ADMIN, f"a kitten {number}")
    world.embedder = WordEmbedder()
    world.restart()

    job = index_jobs.run_jobs(world.ports, Deadline(60))
    world.restart()

    assert (job.phase, job.counters["records"], job.counters["changed"]) == ("done", 250, 250)
    assert len(world.find(ADMIN, "feline", "semantic", limit=100).facts) == 100
    assert len(world.index.indexes()) == 1


def test_a_new_model_is_built_beside_the_old_one_which_answers_until_the_swap(world):
    for number in range(5):
        world.write(ADMIN, f"a kitten {number}")
    old = world.space
    world.embedder = WordEmbedder("larger", dimensions=96)
    world.restart()
    job = index_jobs.run_jobs(world.ports, Deadline(0))
    assert (job.phase, world.space) == ("settle", old)

    written_meanwhile = world.write(ADMIN, "a feline")
    assert world.words(ADMIN, "feline") == ["a feline"]

    job = index_jobs.run_jobs(world.ports, Deadline(60))
    world.restart()
    assert job.phase == "done"
    assert (world.space.model, world.space.dimensions) == ("larger", 96)
    assert len(world.find(ADMIN, "feline", "semantic", limit=10).facts) == 6
    index_jobs.catch_up(
        world.ports, Deadline(60)
    )  # the former model was not served any more for what was written meanwhile
    assert _state(world, written_meanwhile) == ("indexed", None)
    assert len(world.index.indexes()) == 1


def test_an_index_of_another_format_answers_until_a_new_one_is_whole(world, monkeypatch):
    for number in range(5):
        world.write(ADMIN, f"a kitten {number}")
    old = world.index.indexes()
    monkeypatch.setattr(f"{type(world.index).__module__}.FORMAT", FORMAT + 1)

    assert index_jobs.run_jobs(world.ports, Deadline(0)).phase == "settle"
    world.write(ADMIN, "a kitten that came meanwhile")
    assert len(world.words(ADMIN, "kitten", limit=10)) == 6
    assert {info.current: info in old for info in world.index.indexes()} == {False: False, True: False}

    assert index_jobs.run_jobs(world.ports, Deadline(60)).phase == "done"
    world.restart()
    assert len(world.words(ADMIN, "kitten", limit=10)) == 6
    assert [info.name for info in world.index.indexes()] != [info.name for info in old]
    assert index_jobs.run_jobs(world.ports, Deadline(60)).kind == "build"
    assert len(world.index.indexes()) == 1


@pytest.mark.parametrize("crash_after", range(1, 8))
def test_a_build_resumes_from_its_last_page_wherever_it_was_stopped(new_world, crash_after):
    world = new_world()
    world.start()
    for number in range(250):
        world.write(ADMIN, f"kitten {number}")
    world.embedder = WordEmbedder()
    world.restart()
    steps = itertools.count(1)
    keep = world.jobs.keep

    class Crash(Exception):
        pass

    def keep_or_crash(job):
        if next(steps) == crash_after:
            raise Crash
        return keep(job)

    world.jobs.keep = keep_or_crash
    with pytest.raises(Crash):
        index_jobs.run_jobs(world.ports, Deadline(60))
    world.jobs.keep = keep
    world.restart()

    assert index_jobs.run_jobs(world.ports, Deadline(60)).phase == "done"
    world.restart()
    page = world.index.walk(limit=1000)
    assert [(entry.live, entry.embedded) for entry in page.entries] == [(True, True)] * 250
    assert len(world.index.indexes()) == 1


def test_a_first_build_takes_writes_from_its_first_moment(new_world, monkeypatch):
    monkeypatch.setattr(index_jobs, "PAGE", 5)
    world = new_world(embedder=WordEmbedder())
    heads = [world.write(ADMIN, f"kitten {number}", deliver=False) for number in range(20)]
    ticks = itertools.count()
    job = index_jobs.run_jobs(world.ports, Deadline(4, elapsed=lambda: next(ticks)))
    assert (job.phase, 0 < job.counters["records"] < 20) == ("facts", True)

    first = min(heads, key=lambda head: head.fact.id)  # the walk is past it
    changed = world.supersede(first, ADMIN, "a changed kitten", deliver=False)
    late = world.write(ADMIN, "a late kitten", deliver=False)
    assert indexing.index_heads(world.indexing, [changed, late]).again == set()
    with pytest.raises(SearchUnavailable):
        world.find(ADMIN, "kitten")

    assert index_jobs.run_jobs(world.ports, Deadline(60)).phase == "done"
    world.restart()
    found = world.words(ADMIN, "kitten", limit=100)
    assert {"a changed kitten", "a late kitten"} <= set(found)
    assert len(found) == 21


@pytest.mark.parametrize("blow", Blow)
@pytest.mark.parametrize("kind", ["build", "repair"])
def test_whatever_stops_a_job_at_any_call_of_its_store_it_ends_alike(new_world, monkeypatch, kind, blow):
    monkeypatch.setattr(index_jobs, "PAGE", 5)
    at = 0
    while True:
        world = new_world()
        world.start()
        heads = [world.write(ADMIN, f"kitten {number}", deliver=False) for number in range(12)]
        if kind == "build":
            world.embedder = WordEmbedder()
            world.restart()
        blows = Blows(blow, at)
        run = index_jobs.run_jobs if kind == "build" else index_jobs.repair
        with contextlib.suppress(Death, StorageUnavailable):
            run(replace(world.ports, jobs=Struck(world.jobs, blows)), Deadline(60))
        world.restart()
        assert run(world.ports, Deadline(60)).phase == "done"
        world.restart()
        world.settle()
        entries = world.index.walk(limit=100).entries
        assert {entry.id for entry in entries if entry.live} == {head.fact.id for head in heads}
        assert len(world.index.indexes()) == 1
        if at >= len(blows.calls):
            break
        at += 3


def test_a_repair_that_was_asked_for_starts_by_itself_once(world):
    lost = world.write(ADMIN, "tea unheard", deliver=False)
    assert index_jobs.run_jobs(world.ports, Deadline(60)).kind == "build"
    assert world.words(ADMIN, "tea") == []

    index_jobs.ask_for_repair(world.jobs, world.clock)
    world.clock.advance(seconds=1)
    job = index_jobs.run_jobs(world.ports, Deadline(60))

    assert (job.kind, job.phase, job.counters["changed"]) == ("repair", "done", 1)
    assert world.words(ADMIN, "tea") == ["tea unheard"]
    assert _state(world, lost) == ("indexed", None)
    assert index_jobs.run_jobs(world.ports, Deadline(60)).step == job.step


def test_a_repair_asked_for_while_one_runs_follows_it(world):
    running = index_jobs.repair(world.ports, Deadline(0))
    world.clock.advance(seconds=1)
    index_jobs.ask_for_repair(world.jobs, world.clock)
    world.clock.advance(seconds=1)

    first = index_jobs.run_jobs(world.ports, Deadline(60))
    second = index_jobs.run_jobs(world.ports, Deadline(60))

    assert first.started_at == running.started_at < second.started_at
    assert [first.phase, second.phase] == ["done", "done"]


def test_a_build_whose_index_was_dropped_meanwhile_starts_again(world):
    world.write(ADMIN, "tea")
    world.embedder = WordEmbedder("larger", dimensions=96)
    world.restart()
    job = index_jobs.run_jobs(world.ports, Deadline(0))
    world.index.drop(job.about["index"])

    again = index_jobs.run_jobs(world.ports, Deadline(60))
    world.restart()
    assert (again.phase, again.about != job.about, world.space.model) == ("done", True, "larger")
    assert world.words(ADMIN, "tea", "semantic") == ["tea"]


def test_a_first_index_is_of_words_while_the_embedder_is_down_and_then_of_both(new_world):
    world = new_world(embedder=WordEmbedder())
    world.write(ADMIN, "a kitten", deliver=False)
    world.embedder.down = True

    world.start()
    assert (world.space, world.words(ADMIN, "kitten")) == (None, ["a kitten"])
    with pytest.raises(EmbeddingsUnavailable):
        world.start()  # the one in use goes on serving
    assert (world.words(ADMIN, "kitten"), len(world.index.indexes())) == (["a kitten"], 1)

    world.embedder.down = False
    world.start()
    assert world.space is not None
    assert world.words(ADMIN, "feline", "semantic") == ["a kitten"]


@pytest.mark.parametrize("command", [index_jobs.run_jobs, index_jobs.rebuild])
def test_another_models_index_waits_for_an_embedder_that_is_down(world, command):
    world.embedder = WordEmbedder("larger", dimensions=96)
    world.embedder.down = True
    world.restart()
    before = world.index.indexes()

    with pytest.raises(EmbeddingsUnavailable):
        command(world.ports, Deadline(60))
    assert world.index.indexes() == before


def test_a_repair_brings_what_is_missing_and_removes_what_is_gone(world):
    kept = world.write(ADMIN, "tea kept")
    world.write(ADMIN, "tea unheard", deliver=False)
    changed = world.write(ADMIN, "tea changed")
    world.supersede(changed, ADMIN, "coffee", deliver=False)
    deleted = world.write(ADMIN, "tea deleted")
    world.delete(deleted, ADMIN, deliver=False)
    expired = world.write(ADMIN, "tea expired")
    world.facts.remove("t1", expired.fact.id)

    job = index_jobs.repair(world.ports, Deadline(60))
    world.index.refresh()

    assert (job.kind, job.phase, job.counters["changed"]) == ("repair", "done", 4)
    entries = {entry.id: entry for entry in world.index.walk(limit=100).entries}
    assert {key for key, entry in entries.items() if entry.live} == {
        head.fact.id for head in world.facts._heads.values() if head.fact.current
    }
    assert entries[kept.fact.id].version == index_version(kept.fact, kept.edition)
    assert index_jobs.repair(world.ports, Deadline(60)).counters["changed"] == 0


@pytest.mark.parametrize("meaning", [True, False])
def test_a_repair_of_what_is_in_order_changes_nothing(new_world, monkeypatch, meaning):
    monkeypatch.setattr(indexing, "MAX_PASSAGES", 2)
    world = new_world(embedder=WordEmbedder() if meaning else None)
    world.policies.put_policy(
        "t1",
        Policy(types={"acme.words": TypePolicy(index=["keyword"]), "acme.quiet": TypePolicy(index=[])}),
    )
    world.start()
    for fact_type in ("acme.note", "acme.words", "acme.quiet"):
        world.write(ADMIN, "tea", fact_type)
    world.write(ADMIN, "a word " * 2_000)  # its last chunks have no vectors
    world.delete(world.write(ADMIN, "tea deleted"), ADMIN)
    world.say(ADMIN, "r1", ("ana", "more tea?"))

    job = index_jobs.repair(world.ports, Deadline(60))

    assert (job.phase, job.counters["records"], job.counters["changed"]) == ("done", 6, 0)


def test_a_policy_holds_for_what_is_written_from_then_on_until_a_build_applies_it_to_all(world):
    world.write(ADMIN, "tea before")
    world.policies.put_policy("t1", Policy(types={"acme.note": TypePolicy(index=[])}))
    world.write(ADMIN, "tea meanwhile")
    assert index_jobs.repair(world.ports, Deadline(60)).counters["changed"] == 0
    assert world.words(ADMIN, "tea") == ["tea before"]
    world.policies.put_policy("t1", Policy())
    assert index_jobs.repair(world.ports, Deadline(60)).counters["changed"] == 0
    assert world.words(ADMIN, "tea") == ["tea before"]
    index_jobs.rebuild(world.ports, Deadline(60))
    world.restart()
    assert sorted(world.words(ADMIN, "tea")) == ["tea before", "tea meanwhile"]


def test_two_runners_of_one_job_do_not_undo_each_other(world):
    first = index_jobs.repair(world.ports, Deadline(0))
    second = index_jobs.repair(world.ports, Deadline(60))

    assert (first.phase, second.phase) == ("facts", "done")
    assert world.jobs.keep(replace(first, step=first.step + 1)) is False


EVENTS = st.lists(st.sampled_from(["supersede", "delete", "expire", "verify"]), max_size=4)


@settings(max_examples=25)
@given(st.lists(EVENTS, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_no_history_order_or_duplicate_brings_a_fact_back(tmp_path_factory, histories, chance):
    world = World(SqliteIndex(tmp_path_factory.mktemp("world") / "index.sqlite"))
    world.start()
    states = [state for history in histories for state in _live_through(world, history)]
    deliveries = states + chance.choices(states, k=len(states))
    chance.shuffle(deliveries)

    for kind, head in deliveries:
        _deliver(world, kind, head)
        _assert_only_current_facts(world)
    assert sorted(world.words(ADMIN, "tea", limit=100)) == sorted(_current(world))


@pytest.mark.parametrize(
    "history", [*itertools.product(["supersede", "delete", "verify"], repeat=2), ("expire",)]
)
def test_every_order_of_a_facts_events_ends_in_the_same_state(new_world, history):
    world = new_world()
    world.start()
    states = _live_through(world, list(history))

    for number, order in enumerate(itertools.permutations(states)):
        name = world.index.create(None).name
        world.index.activate(name)
        for kind, head in order:
            _deliver(world, kind, head)
            _assert_only_current_facts(world)
        assert sorted(world.words(ADMIN, "tea", limit=100)) == sorted(_current(world)), (number, order)
        world.index.drop(name)


def test_an_old_copy_of_the_index_shows_nothing_that_is_gone(new_world):
    world = new_world()
    world.start()
    heads = [world.write(ADMIN, f"tea {number}") for number in range(6)]
    world.delete(heads[0], ADMIN, deliver=False)
    world.supersede(heads[1], ADMIN, "coffee", deliver=False)
    world.facts.remove("t1", heads[2].fact.id)

    assert sorted(world.words(ADMIN, "tea")) == ["tea 3", "tea 4", "tea 5"]
    index_jobs.repair(world.ports, Deadline(60))
    world.index.refresh()
    assert sorted(world.words(ADMIN, "tea coffee")) == ["coffee", "tea 3", "tea 4", "tea 5"]


def _live_through(world, history):
    """One fact's life; every state of its head as the stream tells it."""
    head = world.write(ADMIN, "tea 1", deliver=False)
    states = [("put", head)]
    for number, event in enumerate(history, start=2):
        if not head.fact.current:
            break
        if event == "supersede":
            head = world.supersede(head, ADMIN, f"tea {number}", deliver=False)
        elif event == "verify":
            head = world.verify(head, ADMIN, deliver=False)
        elif event == "delete":
            head = world.delete(head, ADMIN, deliver=False)
        else:
            world.facts.remove("t1", head.fact.id)
            return [*states, ("gone", head)]
        states.append(("put", head))
    return states


def _deliver(world, kind, head):
    if kind == "put":
        world.deliver(head)
    else:
        indexing.forget(world.indexing, "t1", head.fact.id, index_version(head.fact, head.edition))


def _current(world):
    return [head.fact.content_text.strip('"') for head in world.facts._heads.values() if head.fact.current]


def _assert_only_current_facts(world):
    current = {head.fact.revision_id for head in world.facts._heads.values() if head.fact.current}
    for fact, _ in world.find(ADMIN, "tea", limit=100).facts:
        assert fact.revision_id in current


def test_texts_are_embedded_for_no_longer_than_the_invocation_lasts(new_world):
    """One batch may be sixty-four slow requests: who ends it in the middle has the same records sent for ever."""
    world = new_world(embedder=WordEmbedder())
    world.start()
    head = world.write(admin(), "a note", deliver=False)
    world.embedder.waited_for.clear()

    indexing.index_heads(world.indexing, [head], Deadline(30.0))
    indexing.index_heads(world.indexing, [head])

    bounded, unbounded = world.embedder.waited_for
    assert indexing.EMBEDDING_SECONDS < bounded <= 30 + indexing.EMBEDDING_SECONDS
    assert unbounded is None
    assert indexing.EMBEDDING_SECONDS < events.RESERVE_SECONDS
