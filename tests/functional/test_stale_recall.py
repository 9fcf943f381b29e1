"""Stale facts in searches, lists for a model and memory blocks: marked, queued, refused where a fresh answer is needed."""

import json
from dataclasses import replace

import pytest
from support.search_world import admin
from support.source_world import SourceWorld

from factbook.domain.errors import BadInput, SourceUnavailable
from factbook.domain.facts.freshness import RefreshState
from factbook.domain.retrieval.rendering import BLOCK_CLOSING, BLOCK_OPENING
from factbook.usecases.retrieval.context import Intent, Turn, build_context

ADMIN = admin()
SOURCE = {
    "kind": "http-api",
    "uri": "https://h/",
    "freshness": {"ttlSeconds": 60},
    "refresh": {"strategy": "on-read"},
}


@pytest.fixture
def world(new_world):
    made = new_world()
    made.start()
    made.met = []
    made.memory = replace(made.memory, met_stale=lambda facts: made.met.extend(fact.id for fact in facts))
    return made


@pytest.fixture
def two(world):
    """A fact that is stale by now, and one that mirrors nothing."""
    stale = world.write(ADMIN, "tea at five", source=SOURCE)
    plain = world.write(ADMIN, "tea at four")
    world.clock.advance(minutes=2)
    return stale, plain


@pytest.mark.parametrize("mode", ["keyword", "list"])
def test_a_search_marks_what_is_stale_and_has_it_refreshed_behind_it(world, two, mode):
    stale, plain = two
    found = {fact.id: (fact.stale, fact.stale_reason) for fact, _ in world.find(ADMIN, "tea", mode).facts}

    assert found == {stale.fact.id: (True, "ttl-passed"), plain.fact.id: (None, None)}
    assert world.met == [stale.fact.id]


@pytest.mark.parametrize("mode", ["keyword", "list"])
def test_one_stale_result_suffices_to_refuse_who_needs_a_fresh_answer(world, two, mode):
    with pytest.raises(SourceUnavailable) as refused:
        world.find(ADMIN, "tea", mode, require_fresh=True)
    assert refused.value.details["factId"] == two[0].fact.id
    assert world.met == [two[0].fact.id], "and it is refreshed all the same"
    assert len(world.find(ADMIN, "four", "keyword", require_fresh=True).facts) == 1


def test_messages_have_no_freshness(world):
    with pytest.raises(BadInput):
        world.recalled(ADMIN, "tea", require_fresh=True)


def test_a_fact_whose_source_agreed_is_found_before_and_after_the_stream_tells_of_it(world, two):
    head = world.facts.head("t1", two[0].fact.id)
    seen = head.fact.source.model_copy(
        update={
            "freshness": head.fact.source.freshness.model_copy(update={"last_verified_at": world.clock.now()})
        }
    )
    agreed = head.rechecked(head.fact.model_copy(update={"source": seen}), RefreshState())
    assert world.facts.amend(head, agreed) is None

    for _ in range(2):
        found = {fact.id: fact.stale for fact, _ in world.find(ADMIN, "five").facts}
        assert found == {head.fact.id: None}
        world.deliver(agreed)


def test_a_block_says_which_facts_are_stale(world, two):
    turn = Turn("tea", (Intent(mode="keyword"),))
    message = build_context(world.memory, world.engine, ADMIN, turn).rendered.message
    said = json.loads(message.removeprefix(BLOCK_OPENING).removesuffix(BLOCK_CLOSING))

    by_id = {each["id"]: each for each in said}
    assert by_id[two[0].fact.id]["stale"] is True
    assert list(by_id[two[0].fact.id])[-1] == "stale"
    assert "stale" not in by_id[two[1].fact.id]
    assert world.met == [two[0].fact.id]


def test_a_write_answers_that_its_fact_is_stale():
    world = SourceWorld()
    fact_id = world.mirror(ttlSeconds=60, lastVerifiedAt=world.clock.now())
    world.clock.advance(minutes=2)

    assert world.supersede(fact_id, "a person's word").stale_reason == "ttl-passed"
