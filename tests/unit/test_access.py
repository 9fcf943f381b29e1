"""The access rules against a model written apart from them, and against each other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.access_model import Grants, Json, grants, may_read, may_write, palettes, scopes

from factbook.domain.access.listing import listing_plan
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.access.rules import can_read, can_write
from factbook.domain.facts.fact import Attribution, Fact
from factbook.domain.facts.gate import Look, can_see, shown_filter
from factbook.domain.filters import Fields, evaluate
from factbook.domain.log import gate as log_gate
from factbook.domain.scope import Scope

EXAMPLES, SCOPES_EACH = 250, 40
ENOUGH = 10_000
LOOK = Look("2026-01-01T00:00:00.000Z")
_seen = {"cases": 0, "readable": 0, "writable": 0}


def principal_of(who: Grants, tenant: str = "t") -> Principal:
    actor = Actor(kind="service", id="svc") if who.user is None else Actor(kind="user", id=who.user)
    return Principal(tenant, actor, who.admin, who.reads, who.writes, who.reads_orgs, who.administers_orgs)


def fact_in(scope: Scope, **fields: Any) -> Fact:
    return Fact(
        id="f",
        type="note",
        scope=scope,
        version=1,
        revision_id="f:1",
        created_at="2026-01-01T00:00:00.000Z",
        updated_at="2026-01-01T00:00:00.000Z",
        attributed_to=Attribution(kind="user", id="ann"),
        **fields,
    )


def document(fact: Fact) -> Fields:
    """The fields of the fact's search document that a visibility filter looks at."""
    stated = fact.scope.to_json()
    named = {f"s_{key.removesuffix('Id').lower()}": name for key, name in stated.items() if key != "tenantId"}
    agent = {} if fact.agent_id is None else {"agent": fact.agent_id}
    return {"tenant": fact.scope.tenant_id, "container": fact.scope.container, **named, **agent}


@st.composite
def situations(draw: st.DrawFn) -> tuple[Grants, list[Json]]:
    palette = draw(palettes)
    return draw(grants(palette)), draw(st.lists(scopes(palette), min_size=SCOPES_EACH, max_size=SCOPES_EACH))


@settings(max_examples=EXAMPLES)
@given(situation=situations())
def test_every_rule_says_what_the_model_says(situation: tuple[Grants, list[Json]]) -> None:
    who, places = situation
    principal = principal_of(who)
    everything = listing_plan(principal, {}).containers
    shown, heard = shown_filter(principal, LOOK), log_gate.shown_filter(principal)
    for place in places:
        scope = Scope(tenantId="t", **place)
        readable = may_read(who, place)
        assert can_read(principal, scope) is readable, place
        assert can_write(principal, scope) is may_write(who, place), place
        assert can_see(principal, fact_in(scope), LOOK) is readable, place
        assert evaluate(shown, document(fact_in(scope))) is readable, place
        assert log_gate.can_see(principal, scope, "r") is readable, place
        assert evaluate(heard, document(fact_in(scope))) is readable, place
        if readable:
            assert everything is None or scope.container in everything, place
        _seen["cases"] += 1
        _seen["readable"] += readable and not who.admin
        _seen["writable"] += may_write(who, place) and not who.admin


def test_enough_cases_were_tried_and_both_answers_came_up() -> None:
    assert _seen["cases"] >= ENOUGH
    assert ENOUGH // 10 < _seen["readable"] < _seen["cases"]
    assert ENOUGH // 20 < _seen["writable"] < _seen["readable"]


@settings(max_examples=60)
@given(data=st.data())
def test_a_plan_for_part_of_a_scope_still_holds_every_readable_fact_with_that_part(
    data: st.DataObject,
) -> None:
    palette = data.draw(palettes)
    who, place = data.draw(grants(palette)), data.draw(scopes(palette))
    part = data.draw(st.sets(st.sampled_from(sorted(place)))) if place else set()
    containers = listing_plan(principal_of(who), {key: place[key] for key in part}).containers
    scope = Scope(tenantId="t", **place)
    if may_read(who, place) and containers is not None:
        assert scope.container in containers


@settings(max_examples=60)
@given(data=st.data())
def test_another_tenant_reads_and_writes_nothing(data: st.DataObject) -> None:
    palette = data.draw(palettes)
    who, place = data.draw(grants(palette)), data.draw(scopes(palette))
    tenants = st.sampled_from(["t", "T", "t|", "t|p", "t%7Cp", "t ", "ｔ"])
    mine, theirs = data.draw(tenants), data.draw(tenants)
    principal, scope = principal_of(who, mine), Scope(tenantId=theirs, **place)
    if mine != theirs:
        assert not can_read(principal, scope)
        assert not can_write(principal, scope)
        assert not evaluate(shown_filter(principal, LOOK), document(fact_in(scope)))
        assert not log_gate.can_see(principal, scope, "r")
        assert not evaluate(log_gate.shown_filter(principal), document(fact_in(scope)))


@settings(max_examples=60)
@given(data=st.data())
def test_no_plan_is_larger_than_what_the_principal_holds(data: st.DataObject) -> None:
    palette = data.draw(palettes)
    who = data.draw(grants(palette))
    containers = listing_plan(principal_of(who), data.draw(scopes(palette))).containers
    held = len(who.reads | who.writes) + len(who.writes) + len(who.reads_orgs | who.administers_orgs)
    assert containers is None or len(set(containers)) == len(containers) <= 2 + held


@pytest.mark.parametrize("own", [None, "helper", "other"])
def test_an_agent_sees_memories_of_its_own_definition_only(own: str | None) -> None:
    agent = Principal("t", Actor(kind="agent", id="a"), writes_projects=frozenset(["p"]), agent_id=own)
    person = Principal("t", Actor(kind="user", id="a"), writes_projects=frozenset(["p"]))
    for memory_of in (None, "helper"):
        fact = fact_in(Scope(tenantId="t", projectId="p", participantId="x"), agent_id=memory_of)
        seen = memory_of is None or memory_of == own
        assert can_see(agent, fact, LOOK) is seen
        assert evaluate(shown_filter(agent, LOOK), document(fact)) is seen
        assert can_see(person, fact, LOOK)
        assert evaluate(shown_filter(person, LOOK), document(fact))
