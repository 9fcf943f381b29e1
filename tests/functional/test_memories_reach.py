"""Who sees a memory, on every route that reads, in each reach, in review and beside a proposal; and what time does to it."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.fakes import FakeMemories
from support.log_fakes import FakeLog
from support.principals import principal
from support.search_world import World

from factbook.domain import times
from factbook.domain.access.owners import owner_of
from factbook.domain.access.principals import Principal
from factbook.domain.errors import FactbookError, NotFound
from factbook.domain.facts.fact import Fact, FactChanges, Retention
from factbook.domain.facts.gate import Look
from factbook.domain.facts.transitions import with_expiry
from factbook.domain.facts.type_order import LOWEST
from factbook.domain.memories.statements import Statement
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.usecases.facts import changes, listing, reading
from factbook.usecases.facts.payloads import Content
from factbook.usecases.facts.types import list_types
from factbook.usecases.memories import remembering, reviewing, standing
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.reviewing import Decided
from factbook.usecases.merging import NEWEST
from factbook.usecases.provenance.tracing import trace_provenance
from factbook.usecases.retrieval.context import Intent, Turn, build_context

TENANT = "t1"
USER = Scope(tenant_id=TENANT, user_id="ann")
PARTICIPANT = Scope(tenant_id=TENANT, project_id="p", participant_id="x")
WHO: dict[str, Principal] = {
    "ann": principal(TENANT, "ann"),
    "ann with the agent": principal(TENANT, "ann", agent_id="copilot"),
    "ann with another agent": principal(TENANT, "ann", agent_id="other"),
    "bea": principal(TENANT, "bea"),
    "the agent, which writes p": principal(TENANT, "copilot", "agent", writes=["p"], agent_id="copilot"),
    "another agent, which writes p": principal(TENANT, "other", "agent", writes=["p"], agent_id="other"),
    "a service that writes p": principal(TENANT, "app", "service", writes=["p"]),
    "a service that reads p": principal(TENANT, "app2", "service", reads=["p"]),
    "bea, who writes p": principal(TENANT, "bea", writes=["p"]),
    "an administrator": principal(TENANT, "boss", admin=True),
    "an administrator with the agent": principal(TENANT, "boss", admin=True, agent_id="copilot"),
    "an administrator with another agent": principal(TENANT, "boss", admin=True, agent_id="other"),
}
REACHES = [None, "user", "account-proposed", "account", "account-rejected"]


class Memories:
    """A world of search with memories in it."""

    def __init__(self, world: World) -> None:
        world.start()
        self.world = world
        self.ports = MemoryPorts(world.memory, FakeMemories(world.facts))

    def remember(self, text: str, scope: Scope = USER, **said: Any) -> Fact:
        who = WHO["ann"] if scope.user_id else WHO["a service that writes p"]
        said = {"type": "memory"} | said
        statement = Statement(agent_id="copilot", scope=scope, owner=owner_of(scope), text=text, **said)
        done = remembering.remember(self.ports, who, self.world.operation(), statement)
        self.deliver(done.fact.id)
        self.world.clock.advance(milliseconds=10)
        return done.fact

    def decide(self, decide: Callable[..., Fact], fact: Fact) -> Fact:
        decided = decide(self.ports, WHO["an administrator"], self.world.operation(), Decided(fact.id))
        self.deliver(fact.id)
        self.world.clock.advance(milliseconds=10)
        return decided

    def deliver(self, fact_id: str) -> None:
        """What the streams would bring of the head, and of the text beside it: gone or there."""
        from factbook.usecases.retrieval import indexing

        (head,) = self.world.facts.heads(TENANT, [fact_id]).values()
        beside = f"{fact_id}/confirmed"
        there = self.world.index.lookup(TENANT, [beside]).get(beside)
        self.world.deliver(*indexing.with_confirmed([head]))
        if head.confirmed is None and there is not None:
            indexing.forget(self.world.indexing, TENANT, beside, there.version)
        self.world.index.refresh()

    def state(self, fact: Fact, **fields: Any) -> Fact:
        """The memory as another writer would have left it."""
        (head,) = self.world.facts.heads(TENANT, [fact.id]).values()
        changed = replace(head, fact=head.fact.model_copy(update=fields), edition=head.edition + 1)
        assert self.world.facts.amend(head, changed) is None
        self.deliver(fact.id)
        return changed.fact

    def seen(self, who: Principal, agent: str | None, scope: Scope = USER) -> dict[str, list[str]]:
        """Route → the texts of all facts that it shows."""
        memory, engine = self.world.memory, self.world.engine
        return {
            "list": _texts(listing.list_facts(memory, who, listing.Query(), 100).facts),
            **{
                f"retrieve {mode}": _texts(
                    fact
                    for fact, _ in self.world.find(
                        who, "" if mode == "list" else "words", mode, agent=agent
                    ).facts
                )
                for mode in ("list", "keyword")
            },
            "context": sorted(
                item.content_text or ""
                for item in build_context(
                    memory, engine, who, Turn("words", (Intent(mode="keyword"),), agent=agent)
                ).rendered.used
            ),
            "retrieve of the person": _texts(
                fact for fact, _ in self.world.find(who, "", "list", agent=agent, scope=named(scope)).facts
            ),
            "context with the person": sorted(
                item.content_text or ""
                for item in build_context(
                    memory,
                    engine,
                    who,
                    Turn("words", (Intent(mode="keyword"),), scope=named(scope), agent=agent),
                ).rendered.used
            ),
            "standing": self.standing(who, agent or "copilot", scope),
        }

    def standing(self, who: Principal, agent: str, scope: Scope) -> list[str]:
        try:
            remembering.require_own_agent(who, agent)
            own = standing.own_scope(who)
            named = scope if scope.participant_id or own == scope else None
            return _texts(standing.standing_set(self.ports, who, agent, named).facts)
        except FactbookError:
            return []

    def by_id(self, who: Principal, fact_id: str) -> dict[str, bool]:
        memory = self.world.memory
        roads: dict[str, Callable[[], object]] = {
            "get": lambda: reading.get_fact(memory, who, fact_id),
            "version": lambda: reading.get_fact(memory, who, fact_id, version=1),
            "revisions": lambda: reading.list_revisions(memory, who, fact_id),
            "provenance": lambda: trace_provenance(memory, FakeLog(), self.world.vault, who, fact_id),
        }
        return {road: _answers(ask) for road, ask in roads.items()}


def named(scope: Scope) -> dict[str, str]:
    return {key: value for key, value in scope.to_json().items() if key != "tenantId"}


def _texts(facts: Any) -> list[str]:
    return sorted(fact.content_text for fact in facts)


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except NotFound:
        return False
    return True


@pytest.fixture
def memories(new_world: Callable[..., World]) -> Memories:
    return Memories(new_world())


# -- the table of docs/memories.md


def acts(who: Principal, scope: Scope) -> bool:
    return who.user_id == scope.user_id if scope.user_id else who.admin or "p" in who.writes_projects


def expected(
    who: Principal, agent: str | None, scope: Scope, reach: str | None, waits: bool
) -> dict[str, bool]:
    """The reference model: who sees one memory of the agent `copilot`, by road."""
    own = acts(who, scope)
    same_agent = who.agent_id in (None, "copilot")
    reached = (own and reach != "account-rejected") or (who.admin and reach == "account")
    in_conversation = reached and not waits and same_agent and agent in (None, "copilot")
    proposed_by_many = reach == "account-proposed" and who.admin and scope is PARTICIPANT
    ours = who.actor.kind != "agent" or same_agent
    known = ours and (who.admin or (own and reach != "account-rejected"))
    return {
        "in conversation": in_conversation,
        "recalled": in_conversation and not proposed_by_many,
        "list": known and not waits,
        "by id": known and (who.admin or not waits),
    }


@pytest.mark.parametrize("scope", [USER, PARTICIPANT], ids=["a user's", "a participant's"])
@pytest.mark.parametrize("waits", [False, True], ids=["", "in review"])
@pytest.mark.parametrize("reach", REACHES)
def test_a_memory_is_seen_by_whom_it_is_for_on_every_route(
    memories: Memories, scope: Scope, reach: str | None, waits: bool
) -> None:
    fact = memories.remember("words to find", scope)
    review = "pending" if waits else None
    text = memories.state(fact, reach=reach, review=review).content_text
    for (name, who), agent in itertools.product(WHO.items(), (None, "copilot", "other")):
        wanted = expected(who, agent, scope, reach, waits)
        seen = memories.seen(who, agent, scope)
        got = {road: text in texts for road, texts in seen.items()}
        assert all(texts in ([], [text]) for texts in seen.values()), "once, at most"
        standing_agent = agent or "copilot"
        assert got == {
            "list": wanted["list"],
            "retrieve list": wanted["recalled"],
            "retrieve keyword": wanted["recalled"],
            "context": wanted["recalled"],
            "retrieve of the person": wanted["in conversation"],
            "context with the person": wanted["in conversation"],
            "standing": wanted["in conversation"] and standing_agent == "copilot",
        }, (name, agent)
        assert set(memories.by_id(who, fact.id).values()) == {wanted["by id"]}, name


# -- the confirmed text beside a proposal


def proposal_over_confirmed(memories: Memories, scope: Scope = USER, days: int = 30) -> Fact:
    fact = memories.remember("words confirmed", scope, key="k", about="account")
    memories.decide(reviewing.confirm, fact)
    return memories.remember("words proposed", scope, key="k", keep_days=days)


def recalled(memories: Memories, who: str) -> set[tuple[str, ...]]:
    seen = memories.seen(WHO[who], "copilot")
    return {tuple(texts) for road, texts in seen.items() if road != "list"}


OLD, NEW = ('{"text":"words confirmed"}',), ('{"text":"words proposed"}',)


def test_others_read_on_what_was_confirmed_and_its_owner_what_is_proposed(memories: Memories) -> None:
    fact = proposal_over_confirmed(memories)

    assert recalled(memories, "ann") == {NEW}
    assert recalled(memories, "an administrator") == {OLD}
    assert recalled(memories, "bea") == {()}
    assert memories.world.memory.facts.head(TENANT, fact.id).confirmed is not None
    assert (
        reading.get_fact(memories.world.memory, WHO["an administrator"], fact.id).reach == "account-proposed"
    )


def test_a_confirmed_participants_text_is_read_on_by_administrators(memories: Memories) -> None:
    proposal_over_confirmed(memories, PARTICIPANT)
    writer, boss = WHO["a service that writes p"], WHO["an administrator"]

    assert memories.standing(writer, "copilot", PARTICIPANT) == list(NEW)
    assert _texts(fact for fact, _ in memories.world.find(writer, "words").facts) == list(NEW)
    assert _texts(standing.standing_set(memories.ports, boss, "copilot", None).facts) == list(OLD)


def test_an_administrator_is_shown_a_participants_proposal_in_that_persons_conversation_alone(
    memories: Memories,
) -> None:
    proposal_over_confirmed(memories, PARTICIPANT)
    boss = WHO["an administrator"]
    another = Scope(tenant_id=TENANT, project_id="p", participant_id="y")

    def texts(scope: Scope | None) -> tuple[str, ...]:
        turn = Turn("words", (Intent(mode="keyword"),), scope=named(scope) if scope else {}, agent="copilot")
        first = standing.standing_of_turn(memories.ports, boss, "copilot", turn.scope)
        block = build_context(memories.world.memory, memories.world.engine, boss, turn, first)
        return tuple(str(item.content_text) for item in block.rendered.used)

    assert texts(PARTICIPANT) == NEW
    assert texts(another) == OLD
    assert texts(None) == OLD


def test_in_anothers_conversation_an_administrators_own_proposal_is_the_text_that_was_confirmed(
    memories: Memories,
) -> None:
    proposal_over_confirmed(memories, PARTICIPANT)
    writer = principal(TENANT, "boss", admin=True, writes=["p"])
    another = Scope(tenant_id=TENANT, project_id="p", participant_id="y")

    assert memories.standing(writer, "copilot", PARTICIPANT) == list(NEW)
    assert memories.standing(writer, "copilot", another) == list(OLD)


@pytest.mark.parametrize(
    ("decide", "after"), [(reviewing.confirm, NEW), (reviewing.reject, OLD)], ids=["confirmed", "rejected"]
)
def test_after_a_decision_everybody_reads_one_text(
    memories: Memories, decide: Callable[..., Fact], after: tuple[str, ...]
) -> None:
    decided = memories.decide(decide, proposal_over_confirmed(memories))

    assert decided.reach == "account"
    for who in ("ann", "an administrator"):
        assert recalled(memories, who) == {after}
    assert memories.world.facts.head(TENANT, decided.id).confirmed is None


def test_past_its_window_a_proposal_gives_way_before_anything_was_written(memories: Memories) -> None:
    fact = proposal_over_confirmed(memories, days=1)
    instant = fact.expires_at or ""
    memories.world.clock.instant = times.add(instant, milliseconds=-1)
    assert recalled(memories, "ann") == {NEW}
    memories.world.clock.instant = instant

    for who in ("ann", "an administrator"):
        assert recalled(memories, who) == {OLD}
        memory = memories.world.memory
        now = reading.get_fact(memory, WHO[who], fact.id)
        assert (now.version, now.reach, now.confirmed_by) == (4, "account", "user:boss")
        assert now.updated_at == instant
        revisions, _ = reading.list_revisions(memory, WHO[who], fact.id)
        assert [each.version for each in revisions] == [4, 3, 2, 1]
        assert revisions[1].invalidation_reason == "expired"
        assert reading.get_fact(memory, WHO[who], fact.id, version=3) == revisions[1]
        before = times.add(instant, milliseconds=-1)
        assert reading.get_fact(memory, WHO[who], fact.id, as_of=before).version == 3
        (own,) = standing.standing_set(memories.ports, WHO[who], "copilot", None).facts
        assert own == now, "the next revision, in everybody's standing set"


def test_the_next_write_stores_what_was_read_all_along(memories: Memories) -> None:
    fact = proposal_over_confirmed(memories, days=1)
    memories.world.clock.instant = times.add(fact.expires_at or "", hours=1)
    memory, boss = memories.world.memory, WHO["an administrator"]
    unstored, _ = reading.list_revisions(memory, boss, fact.id)

    changes.verify_fact(memory, boss, memories.world.operation(), fact.id, 4)
    memories.deliver(fact.id)

    revisions, _ = reading.list_revisions(memory, boss, fact.id)
    assert [each.version for each in revisions] == [5, 4, 3, 2, 1]
    assert revisions[2:] == unstored[1:]
    assert revisions[1].content_text == unstored[0].content_text
    for who in ("ann", "an administrator"):
        assert recalled(memories, who) == {OLD}


def test_a_confirmed_text_that_has_run_out_stands_beside_nothing(memories: Memories) -> None:
    fact = memories.remember("words confirmed", key="k", about="account")
    memories.decide(reviewing.confirm, fact)
    memory, boss, ann = memories.world.memory, WHO["an administrator"], WHO["ann"]
    limited = FactChanges(retention=Retention(keep_days=10))
    kept = changes.supersede_fact(
        memory, boss, memories.world.operation(), fact.id, limited, Content(given=False)
    )
    memories.remember("words proposed", key="k")
    assert reviewing.list_reviews(memories.ports, boss, "open", 10).reviews[0].replaces is not None

    memories.world.clock.instant = kept.expires_at or ""

    assert recalled(memories, "an administrator") == {()}
    (review,) = reviewing.list_reviews(memories.ports, boss, "open", 10).reviews
    assert review.replaces is None
    assert memories.remember("words of ann's own", key="k", about="user").reach == "user"
    memories.remember("words proposed", key="k", about="account")
    assert memories.decide(reviewing.reject, fact).reach == "account-rejected"
    memories.remember("words proposed again", key="k", about="account")
    assert (
        changes.delete_fact(memory, ann, memories.world.operation(), fact.id).invalidation_reason == "deleted"
    )


def test_a_first_proposal_and_a_personal_memory_end_with_their_window(memories: Memories) -> None:
    fact = memories.remember("words proposed", key="k", about="account", keep_days=1)
    memories.world.clock.instant = fact.expires_at or ""

    assert recalled(memories, "ann") == {()}
    assert not any(memories.by_id(WHO["an administrator"], fact.id).values())
    again = memories.remember("words proposed", key="k", about="account")
    assert (again.id, again.version) == (fact.id, 1)


def test_a_memory_of_before_reaches_reads_as_its_owners(memories: Memories) -> None:
    fact = memories.remember("words")
    old = memories.state(fact, reach=None)

    assert recalled(memories, "ann") == {(old.content_text,)}
    assert recalled(memories, "an administrator") == {()}


@pytest.mark.parametrize("indexed", [True, False], ids=["", "before the indexes by type are whole"])
@pytest.mark.parametrize("waits", [False, True], ids=["", "in review"])
@pytest.mark.parametrize("scope", [USER, PARTICIPANT], ids=["a user's", "a participant's"])
def test_a_list_by_type_is_the_list_of_all_while_a_proposal_of_another_type_waits(
    memories: Memories, scope: Scope, waits: bool, indexed: bool
) -> None:
    fact = memories.remember("words confirmed", scope, key="k", about="account", type="a.confirmed")
    memories.decide(reviewing.confirm, fact)
    memories.remember("words proposed", scope, key="k", type="b.proposed")
    memories.state(fact, review="pending" if waits else None)
    memories.remember("words beside", scope, key="other", type="a.confirmed")
    memory = memories.world.memory
    object.__setattr__(memory, "by_type", lambda: indexed)
    proposed: set[bool] = set()

    for name, who in WHO.items():
        for look in (
            memory.look(TENANT),
            memory.look(TENANT, "recalled"),
            memory.look(TENANT, "recalled", agent="copilot"),
        ):
            everything = walked(memories, who, listing.Query(), look)
            assert len({each.id for each in everything}) == len(everything), "each once"
            proposed.add(any(each.type == "b.proposed" for each in everything))
            for query in (
                *(listing.Query((each,)) for each in ("a.confirmed", "b.proposed", "c")),
                listing.Query(("a.confirmed", "b.proposed")),
                *(listing.Query(type_prefix=each) for each in ("", "a", "b.", "c")),
            ):
                wanted = [each for each in everything if query.wants(each.type)]
                assert walked(memories, who, query, look) == wanted, (name, query)
        if indexed:
            listed = walked(memories, who, listing.Query(), memory.look(TENANT))
            assert types_of(memories, who) == sorted({each.type for each in listed}), name
    assert proposed == ({False} if waits else {False, True})


def walked(memories: Memories, who: Principal, query: listing.Query, look: Look) -> list[Fact]:
    found: list[Fact] = []
    position: str | None = NEWEST
    while position is not None:
        page = listing.list_facts(memories.world.memory, who, query, 1, position, look)
        found, position = found + page.facts, page.position
    return found


def types_of(memories: Memories, who: Principal) -> list[str]:
    found: list[str] = []
    position: str | None = LOWEST
    while position is not None:
        page = list_types(memories.world.memory, who, {}, 1, position)
        found, position = found + page.types, page.position
    return found


def test_a_rebuilt_index_has_the_text_beside_a_proposal_too(memories: Memories) -> None:
    from factbook.ports.deadline import Deadline
    from factbook.usecases.retrieval import index_jobs

    proposal_over_confirmed(memories)
    index_jobs.rebuild(memories.world.ports, Deadline(60))
    memories.world.restart()
    index_jobs.repair(memories.world.ports, Deadline(60))

    assert recalled(memories, "ann") == {NEW}
    assert recalled(memories, "an administrator") == {OLD}


def test_the_standing_set_comes_first_in_a_block_and_nothing_twice(memories: Memories) -> None:
    memories.world.write(principal(TENANT, "boss", admin=True), "words of all")
    memories.remember("words of ann")
    ann = WHO["ann"]
    turn = Turn("words", (Intent(mode="keyword"),), agent="copilot")
    first = standing.standing_of_turn(memories.ports, ann, "copilot", {})
    made = build_context(memories.world.memory, memories.world.engine, ann, turn, first)

    assert [item.content_text for item in made.rendered.used] == ['{"text":"words of ann"}', '"words of all"']
    small = build_context(
        memories.world.memory, memories.world.engine, ann, replace(turn, max_tokens=230), first
    )
    assert [item.content_text for item in small.rendered.used] == ['{"text":"words of ann"}']
    nobody = build_context(
        memories.world.memory,
        memories.world.engine,
        WHO["a service that writes p"],
        turn,
        standing.standing_of_turn(memories.ports, WHO["a service that writes p"], "copilot", {}),
    )
    assert nobody.warnings == ("memory-needs-participant",)


def test_what_ran_out_frees_its_place_at_its_instant(memories: Memories) -> None:
    from factbook.domain.errors import MemoryFull
    from factbook.domain.policy.policies import Ceilings, Policy

    memories.world.policies.put_policy(TENANT, Policy(ceilings=Ceilings(memories_per_agent=1)))
    fact = memories.remember("one", key="one", keep_days=1)
    memories.world.clock.instant = times.add(fact.expires_at or "", milliseconds=-1)
    with pytest.raises(MemoryFull):
        memories.remember("two", key="two")
    memories.world.clock.instant = fact.expires_at or ""
    two = memories.remember("two", key="two", about="account")
    with pytest.raises(MemoryFull):
        memories.remember("three", key="three")
    memories.decide(reviewing.reject, two)
    memories.remember("three", key="three")


def test_a_hold_keeps_a_memory_as_it_is(memories: Memories) -> None:
    from factbook.domain.errors import LegalHold

    fact = memories.remember("one", key="one")
    held = with_expiry(fact.model_copy(update={"retention": Retention(legal_hold=True)}), None)
    memories.state(fact, retention=held.retention, expires_at=None)
    for change in (
        lambda: memories.remember("two", key="one"),
        lambda: memories.remember("one", key="one"),
    ):
        with pytest.raises(LegalHold):
            change()


def test_heads_keep_the_text_beside_them_through_every_further_proposal(memories: Memories) -> None:
    fact = proposal_over_confirmed(memories)
    memories.remember("words proposed again", key="k")
    memories.remember("words proposed again", key="k")

    head = memories.world.facts.head(TENANT, fact.id)
    assert isinstance(head, Head)
    assert head.confirmed is not None
    assert head.confirmed.fact.content_text == OLD[0]
    assert recalled(memories, "an administrator") == {OLD}
