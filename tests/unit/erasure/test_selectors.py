"""Whom an erasure names, against the rule said again in JSON; the gates and their filters follow it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.access_model import Json, palettes, scopes
from support.log_fakes import message_in
from support.principals import principal

from factbook.domain.access.erasing import NOTHING_ERASED, Erasing, Selector
from factbook.domain.access.owners import owner_of
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Attribution, Fact, Subject
from factbook.domain.filters import evaluate
from factbook.domain.log import gate as log_gate
from factbook.domain.log.sealing import key_name
from factbook.domain.retrieval.messages import message_fields
from factbook.domain.retrieval.searchable import fact_fields
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head, Row

NOW, EARLIER = "2026-01-01T00:00:00.000Z", "2025-01-01T00:00:00.000Z"
KINDS = ["fact", "participant", "external", "user", "conversation"]
ADMIN = principal("t", "boss", admin=True)
PLACES = {"user": "userId", "participant": "participantId", "conversation": "threadId"}


def named(selector: Selector, fact_id: str, place: Json, owner: str | None, about: set[str]) -> bool:
    """The rule of the design: scope, owner or a subject of any revision name the person."""
    if selector.kind == "fact":
        return fact_id == selector.id
    if selector.project is not None and place.get("projectId") != selector.project:
        return False
    if selector.kind in PLACES and place.get(PLACES[selector.kind]) == selector.id:
        return True
    return f"{selector.kind}:{selector.id}" in {*about, owner}


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Selector], list[tuple[Json, Fact, set[str], set[str]]]]:
    """Erasures in force, and facts: each with its scope, the subjects of its last revision and of all of them."""
    palette = draw(palettes)
    names = st.sampled_from(palette)
    persons = st.sets(st.tuples(st.sampled_from(["participant", "user", "external"]), names), max_size=2)
    kept = []
    for place in draw(st.lists(scopes(palette), min_size=15, max_size=15)):
        last, before = draw(persons), draw(persons)
        fact = Fact(
            id=draw(names),
            type="note",
            scope=Scope(tenantId="t", **place),
            version=1,
            revision_id="f:1",
            created_at=NOW,
            updated_at=NOW,
            attributed_to=Attribution(kind="user", id="bob"),
            owner=draw(st.sampled_from([None, *(f"user:{each}" for each in palette)])),
            subjects=[Subject(kind=kind, id=name) for kind, name in sorted(last)] or None,
        )
        own, ever = ({f"{kind}:{name}" for kind, name in some} for some in (last, last | before))
        kept.append((place, fact, own, ever))
    wanted = st.builds(Selector, st.sampled_from(KINDS), names)
    selectors = draw(st.lists(wanted, min_size=1, max_size=4))
    narrowed = [
        Selector(each.kind, each.id, draw(st.sampled_from([None, *palette])))
        if each.kind not in ("fact", "conversation")
        else each
        for each in selectors
    ]
    return narrowed, kept


_answers: set[bool] = set()


@settings(max_examples=40)
@given(situation=situations())
def test_an_erasure_names_what_the_model_says_and_the_gate_hides_that_alone(situation: Any) -> None:
    selectors, kept = situation
    erasing = Erasing.of((each, NOW) for each in selectors)
    look = gate.Look(NOW, "recalled", erasing=erasing)
    for place, fact, own, ever in kept:
        head = Head(fact, life=1, subjects=tuple(sorted(ever)))
        reached = [named(each, fact.id, place, fact.owner, ever) for each in selectors]
        assert [each.names(fact.id, fact.scope, fact.owner, ever) for each in selectors] == reached
        assert gate.can_see(ADMIN, head.fact, look) is not any(reached)
        assert gate.shown(ADMIN, head.fact, fact, look) == (None if any(reached) else head.fact)
        _answers.add(any(reached))

        known = any(named(each, fact.id, place, fact.owner, own) for each in selectors)
        document = {"tenant": "t", "id": fact.id, **fact_fields(fact)}
        assert evaluate(gate.shown_filter(ADMIN, look), document) is not known
        row = Row("o", fact.id, fact.type, fact.scope.to_json(), None, pending_review=False, owner=fact.owner)
        assert gate.may_pass(ADMIN, row, look) or any(reached)


def test_both_answers_came_up() -> None:
    assert _answers == {True, False}


@settings(max_examples=40)
@given(situation=situations())
def test_an_entry_is_named_by_its_scope_alone_and_then_it_is_sealed(situation: Any) -> None:
    selectors, kept = situation
    erasing = Erasing.of((each, NOW) for each in selectors)
    rule = log_gate.shown_filter(ADMIN, erasing)
    for place, fact, _, _ in kept:
        reached = any(named(each, "", place, None, set()) for each in selectors)
        assert erasing.of_scope(fact.scope) == (NOW if reached else None)
        assert not reached or key_name(fact.scope) is not None, "its words go with a key"
        found = evaluate(rule, {"tenant": "t", "id": "r:0:n", **message_fields(message_in(fact.scope))})
        assert found is not reached


def test_of_two_erasures_of_one_person_the_first_says_since_when() -> None:
    ann = Selector("user", "ann")
    scope = Scope(tenantId="t", userId="ann")
    assert Erasing.of([(ann, NOW), (ann, EARLIER)]).of_scope(scope) == EARLIER
    assert NOTHING_ERASED.of_scope(scope) is None


def test_a_project_narrows_an_erasure_to_what_stands_in_it() -> None:
    here, there = (Scope(tenantId="t", projectId=name, participantId="x") for name in ("p", "q"))
    narrowed, whole = Selector("participant", "x", "p"), Selector("participant", "x")
    assert [narrowed.names_scope(each) for each in (here, there)] == [True, False]
    assert [whole.names_scope(each) for each in (here, there)] == [True, True]
    owner = "participant:p/x"
    assert narrowed.names("f", here, owner)
    assert not narrowed.names("f", Scope(tenantId="t"), subjects=["participant:x"]), (
        "nobody knows of which project"
    )
    assert whole.names("f", Scope(tenantId="t"), subjects=["participant:x"])


def test_a_selector_says_itself_as_a_request_does() -> None:
    assert Selector("fact", "f").to_json() == {"factId": "f"}
    assert Selector("conversation", "c").to_json() == {"conversationId": "c"}
    assert Selector("external", "e").to_json() == {"subject": {"kind": "external", "id": "e"}}
    person = {"subject": {"kind": "participant", "id": "x"}, "projectId": "p"}
    assert Selector("participant", "x", "p").to_json() == person


@pytest.mark.parametrize("project", ["p", "p/a", "p%", "p%2Fa", "/"])
def test_an_owner_names_its_participant_whatever_the_project_is_called(project: str) -> None:
    owner = owner_of(Scope(tenantId="t", projectId=project, participantId="b/c"))
    somewhere = Scope(tenantId="t", projectId=project)
    assert Selector("participant", "b/c").names("f", somewhere, owner)
    assert Selector("participant", "b/c", project).names("f", somewhere, owner)
    for other in ("c", "a/b/c", "b"):
        assert not Selector("participant", other).names("f", somewhere, owner)
