"""Facts of the former format: each is rewritten once, resumably, and nothing else is."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from support.fakes import FakeClock, FakeFacts
from support.search_world import FakeJobs

from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import BadInput, Throttled
from factbook.domain.facts.fact import FactChanges, Payload, Subject
from factbook.domain.facts.transitions import open_fact, supersede
from factbook.domain.scope import Scope
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head, Mark
from factbook.ports.flaws import NotStorable
from factbook.ports.walks import Stop, WalkPage
from factbook.usecases.facts.upgrading import UpgradePorts, is_upgraded, upgrade_facts

NOW = "2026-01-01T00:00:00.000Z"
WRITER = Principal("t", Actor(kind="user", id="ann"), admin=True)
TEXT = Payload(text="1", content_hash="", size=1)


class Walk:
    """FactWalk over the fake's heads, by id, a few at a time."""

    def __init__(self, facts: FakeFacts) -> None:
        self.facts = facts
        self.pages = 0

    def heads(self, tenant: str | None, after: str | None, limit: int) -> WalkPage[Head]:
        self.pages += 1
        ids = sorted(key for _, key in self.facts._heads if after is None or key > after)[:3]
        heads = self.facts.heads("t", ids)
        return WalkPage([Stop(heads[each], each) for each in ids], ids[-1] if len(ids) == 3 else None)


def about(*people: str) -> FactChanges:
    return FactChanges(subjects=[Subject(kind="external", id=each) for each in people])


def former(facts: FakeFacts, fact_id: str, *subjects: str) -> Head:
    """A fact as an earlier version wrote it, with a revision about each subject."""
    fact = open_fact(fact_id, "note", Scope(tenantId="t"), about(*subjects[:1]), TEXT, WRITER, NOW)
    head = Head(fact)
    assert facts.create(head) is None
    for each in subjects[1:]:
        closed, following = supersede(head.fact, about(each), TEXT, WRITER, NOW)
        after = head.followed_by(following, Mark("k" * 12, "b" * 12, following.version))
        assert facts.advance(head, closed, after) is None
        head = after
    return head


@pytest.fixture
def ports() -> UpgradePorts:
    facts = FakeFacts()
    return UpgradePorts(facts, Walk(facts), FakeJobs(), FakeClock())


def test_every_former_head_learns_whom_its_revisions_are_about_and_others_stay(ports: UpgradePorts) -> None:
    facts: Any = ports.facts
    heads = [former(facts, f"f{number}", "ann", "bob", f"c{number}") for number in range(7)]
    fresh = Head.first(replace_id(heads[0], "new"), Mark("k" * 12, "b" * 12, 1))
    facts.create(fresh)
    assert not is_upgraded(ports.jobs)

    job = upgrade_facts(ports, NEVER)

    assert is_upgraded(ports.jobs)
    assert job is not None
    assert job.counters["changed"] == 7
    for number, head in enumerate(heads):
        now = facts.head("t", head.fact.id)
        assert now == replace(
            head,
            edition=head.edition + 1,
            subjects=("external:ann", "external:bob", f"external:c{number}"),
        )
    assert facts.head("t", "new") == fresh


def replace_id(head: Head, fact_id: str) -> Any:
    return head.fact.model_copy(update={"id": fact_id, "version": 1, "revision_id": f"{fact_id}:1"})


def test_a_walk_that_found_some_is_followed_by_one_that_finds_none(ports: UpgradePorts) -> None:
    walk: Any = ports.walk
    upgrade_facts(ports, NEVER)
    assert walk.pages == 1, "nothing is there: nothing is looked for twice"
    upgrade_facts(ports, NEVER)
    assert walk.pages == 1, "done is done"


def test_it_goes_on_where_it_was_interrupted(ports: UpgradePorts) -> None:
    facts: Any = ports.facts
    for number in range(7):
        former(facts, f"f{number}", "ann")
    rounds = 0
    while not is_upgraded(ports.jobs):
        upgrade_facts(ports, Deadline(1.5, count().__next__))
        rounds += 1
    assert rounds > 3
    assert all(head.edition == 2 for head in facts._heads.values())


def test_a_fact_that_is_changed_meanwhile_keeps_the_change(ports: UpgradePorts) -> None:
    facts: Any = ports.facts
    head = former(facts, "f0", "ann")
    amend, changed = facts.amend, []

    def raced(before: Head, after: Head) -> Head | None:
        if not changed:
            closed, following = supersede(head.fact, about("zoe"), TEXT, WRITER, NOW)
            changed.append(head.followed_by(following, Mark("k" * 12, "b" * 12, 2)))
            assert facts.advance(head, closed, changed[0]) is None
        return amend(before, after)

    facts.amend = raced
    upgrade_facts(ports, NEVER)
    now = facts.head("t", "f0")
    assert now.fact.to_json() == changed[0].fact.to_json()  # and now it knows whom all its revisions name
    assert now.subjects == ("external:ann", "external:zoe")


def test_a_store_that_is_too_busy_ends_the_turn_and_not_the_job(ports: UpgradePorts) -> None:
    facts: Any = ports.facts
    former(facts, "f0", "ann")
    amend = facts.amend

    def throttled(*_: Head) -> Head | None:
        raise Throttled

    facts.amend = throttled
    with pytest.raises(Throttled):
        upgrade_facts(ports, NEVER)
    facts.amend = amend
    upgrade_facts(ports, NEVER)
    assert is_upgraded(ports.jobs)
    assert facts.head("t", "f0").subjects == ("external:ann",)


def test_a_fact_that_cannot_be_brought_up_is_set_aside_and_keeps_no_other(ports: UpgradePorts) -> None:
    facts: Any = ports.facts
    for number in range(7):
        former(facts, f"f{number}", "ann", "bob")
    revisions, amend = facts.revisions, facts.amend

    def unreadable(head: Head, below: int, budget: int) -> Any:
        if head.fact.id == "f1":
            raise BadInput("not JSON")
        return revisions(head, below, budget)

    def too_large(before: Head, after: Head) -> Head | None:
        if before.fact.id == "f2":
            raise NotStorable
        return amend(before, after)

    facts.revisions, facts.amend = unreadable, too_large
    aside: list[str] = []

    job = upgrade_facts(ports, NEVER, aside.append)

    assert is_upgraded(ports.jobs)
    assert job is not None
    assert (job.counters["changed"], job.counters["setAside"]) == (5, 2)
    assert set(aside) == {"f1", "f2"}
    assert facts.head("t", "f1").edition > 2, "it was written anew, and so into the indexes"
    assert [key for (_, key), head in facts._heads.items() if head.subjects is None] == ["f1", "f2"]


def test_a_fact_whose_history_takes_more_than_a_turn_is_set_aside_by_a_turn_of_its_own(
    ports: UpgradePorts,
) -> None:
    facts: Any = ports.facts
    for number in range(3):
        former(facts, f"f{number}", "ann", "bob")
    revisions, now = facts.revisions, [0]

    def slow(head: Head, below: int, budget: int) -> Any:
        now[0] += 30 if head.fact.id == "f0" else 9 if head.fact.id == "f1" else 0
        found, more = revisions(head, below, budget)
        return (found, True) if head.fact.id == "f1" else (found, more)

    facts.revisions = slow
    aside: list[str] = []
    upgrade_facts(ports, Deadline(40, lambda: now[0]), aside.append)
    assert not aside, "it began late in this turn"
    for _ in range(6):
        upgrade_facts(ports, Deadline(40, lambda: now[0]), aside.append)
    assert set(aside) == {"f1"}
    assert facts.head("t", "f0").subjects is not None
    assert facts.head("t", "f2").subjects is not None
    assert is_upgraded(ports.jobs)
