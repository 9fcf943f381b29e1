"""The gates against a model written apart from them, and each against the filter that says the same to an index."""

import itertools
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.access_model import Grants, Json, grants, may_read, palettes, scopes
from support.log_fakes import message_in
from support.principals import principal

from factbook.domain import times
from factbook.domain.access.owners import participant_in
from factbook.domain.access.principals import Principal
from factbook.domain.facts.fact import Attribution, Fact
from factbook.domain.facts.gate import Look, can_see, may_pass, shown_filter
from factbook.domain.filters import evaluate
from factbook.domain.log import gate as log_gate
from factbook.domain.retrieval.messages import message_fields
from factbook.domain.retrieval.searchable import fact_fields, searchable
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Row

NOW = "2026-01-01T00:00:00.000Z"
AROUND = [times.add(NOW, milliseconds=ms) for ms in (-1, 0, 1)]
AGENTS = [None, "helper", "other"]
KINDS = ["user", "service", "agent"]
EXAMPLES, FACTS_EACH = 150, 30
WAYS = [(way, past) for way in ("found", "recalled", "by-id", "write") for past in (False, True)]
REACHES = [None, "user", "account-proposed", "account", "account-rejected"]
_answers: dict[tuple[str, bool], set[bool]] = {way: set() for way in WAYS}


def heads(palette: list[str]) -> st.SearchStrategy[tuple[Json, Fact]]:
    """A fact's scope and its head: of any reach, current or closed for any reason, waiting or not. One number names one
    state.
    """
    writers = [Attribution(kind=kind, id=name) for kind in KINDS for name in (*palette, "svc")]
    writers.append(Attribution(kind="agent", id="helper"))
    ends = [None, "superseded", "deleted", "erased", "expired"]
    choices = [writers, ends, [None, "pending"], AGENTS, [None, *AROUND], REACHES]

    def head(place: Json, number: int) -> tuple[Json, Fact]:
        picked: list[Any] = []
        for values in choices:
            number, choice = divmod(number, len(values))
            picked.append(values[choice])
        writer, end, review, agent, expires_at, reach = picked
        fact = Fact(
            id="f",
            type="note",
            scope=Scope(tenantId="t", **place),
            version=1,
            revision_id="f:1",
            created_at=AROUND[0],
            updated_at=AROUND[0],
            attributed_to=writer,
            review=review,
            agent_id=agent,
            owner=participant_in(place) or (f"user:{place['userId']}" if "userId" in place else None),
            reach=reach,
            expires_at=expires_at,
            invalidated_at=None if end is None else AROUND[0],
            invalidation_reason=end,
        )
        return place, fact

    states = math.prod(len(values) for values in choices)
    return st.builds(head, scopes(palette), st.integers(0, states - 1))


@st.composite
def situations(draw: st.DrawFn) -> tuple[Grants, Principal, list[tuple[Json, Fact]]]:
    palette = draw(palettes)
    who = draw(grants(palette))
    kind = "user" if who.user is not None else draw(st.sampled_from(["service", "agent"]))
    holder = principal(
        "t",
        who.user or "svc",
        kind,
        admin=who.admin,
        reads=who.reads,
        writes=who.writes,
        reads_orgs=who.reads_orgs,
        administers_orgs=who.administers_orgs,
        agent_id=draw(st.sampled_from(AGENTS)),
    )
    return who, holder, draw(st.lists(heads(palette), min_size=FACTS_EACH, max_size=FACTS_EACH))


def for_whom(
    who: Grants, holder: Principal, place: Json, fact: Fact, wanted: str | None, person: str | None = None
) -> bool:
    """Whether a memory reaches a principal, said again."""
    agents = [agent for agent in (holder.agent_id, wanted) if agent is not None]
    bound = holder.agent_id is not None or holder.actor.kind == "agent"
    if any(agent != fact.agent_id for agent in agents) or (bound and not agents):
        return False
    if "userId" in place:
        owner = place["userId"] == who.user
    else:
        owner = "participantId" in place and (who.admin or place["projectId"] in who.writes)
    if fact.reach == "account":
        return owner or who.admin
    if fact.reach == "account-proposed" and "userId" not in place:
        owner = owner and (place["projectId"] in who.writes or fact.owner == person)
    return owner and fact.reach != "account-rejected"


def model(
    who: Grants,
    holder: Principal,
    place: Json,
    fact: Fact,
    way: str,
    past: bool,
    wanted: str | None = None,
    person: str | None = None,
) -> bool:
    """The rule of the design, said again."""
    if not may_read(who, place):
        return False
    if holder.actor.kind == "agent" and fact.agent_id not in (None, holder.agent_id):
        return False
    if fact.invalidation_reason == "erased" or (fact.expires_at is not None and fact.expires_at <= NOW):
        return False
    if fact.invalidated_at is not None and not past:
        return False
    if way == "recalled":
        if fact.agent_id is not None and not for_whom(who, holder, place, fact, wanted, person):
            return False
    elif fact.reach == "account-rejected" and not who.admin:
        return False
    if fact.review == "pending":
        own = f"{fact.attributed_to.kind}:{fact.attributed_to.id}" == holder.name
        mine = fact.model_copy(update={"reach": "user"})
        remembered = fact.agent_id == fact.attributed_to.id and fact.attributed_to.kind == "agent"
        own = own or (remembered and for_whom(who, holder, place, mine, None))
        return {"by-id": who.admin, "write": who.admin or own}.get(way, False)
    return True


@settings(max_examples=EXAMPLES)
@given(situation=situations())
def test_the_gate_says_what_the_model_says_and_its_filter_what_the_gate_says(situation: Any) -> None:
    who, holder, kept = situation
    for place, fact in kept:
        for way, past in WAYS:
            shown = can_see(holder, fact, Look(NOW, way, past))  # type: ignore[arg-type]
            assert shown is model(who, holder, place, fact, way, past), (place, fact, way, past)
            _answers[way, past].add(shown)
        document = {"tenant": "t", "id": fact.id, **fact_fields(fact)}
        for wanted, person in itertools.product(AGENTS, (None, fact.owner, "participant:elsewhere/x")):
            look = Look(NOW, "recalled", agent=wanted, person=person)
            found = can_see(holder, fact, look)
            assert found is model(who, holder, place, fact, "recalled", False, wanted, person)
            proposed = searchable(fact) and evaluate(shown_filter(holder, look), document)
            assert proposed is found, (place, fact)


@settings(max_examples=40)
@given(situation=situations())
def test_a_row_of_a_list_never_hides_what_the_gate_would_show(situation: Any) -> None:
    _, holder, kept = situation
    for _, fact in kept:
        for past in (False, True):
            look = Look(NOW, past=past)
            passes = may_pass(holder, row_of(fact), look)
            assert passes or not can_see(holder, fact, look)


def row_of(fact: Fact) -> Row:
    return Row(
        "",
        fact.id,
        fact.type,
        fact.scope.to_json(),
        fact.expires_at,
        pending_review=fact.review is not None,
        agent_id=fact.agent_id,
    )


def test_both_answers_came_up_for_every_way_to_look() -> None:
    assert all(answers == {True, False} for answers in _answers.values())


@settings(max_examples=100)
@given(data=st.data())
def test_the_gate_of_the_log_and_its_filter_say_what_the_model_says(data: st.DataObject) -> None:
    palette = data.draw(palettes)
    who = data.draw(grants(palette))
    holder = principal(
        "t",
        who.user or "svc",
        "service" if who.user is None else "user",
        admin=who.admin,
        reads=who.reads,
        writes=who.writes,
        reads_orgs=who.reads_orgs,
        administers_orgs=who.administers_orgs,
    )
    rule = log_gate.shown_filter(holder)
    for place in data.draw(st.lists(scopes(palette), min_size=20, max_size=20)):
        scope = Scope(tenantId="t", **place)
        readable = may_read(who, place)
        for erased_at in (None, NOW):
            assert log_gate.can_see(holder, scope, "r", erased_at) is readable
            assert log_gate.can_see(holder, scope, "r", erased_at, found=True) is (
                readable and erased_at is None
            )
        assert evaluate(rule, {"tenant": "t", "id": "e", **message_fields(message_in(scope))}) is readable
