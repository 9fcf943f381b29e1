"""Refreshing by hand: who may, what they are told; and what an operator does with dead letters."""

from dataclasses import replace
from typing import Any

import pytest
from support.principals import principal
from support.source_world import ADMIN, SourceWorld

from factbook.domain.errors import (
    FactNotFound,
    PermissionDenied,
    RefreshHandlerMissing,
    SourceRefused,
    SourceUnavailable,
)
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.sources import handlers as asking
from factbook.ports.sources.stores import DeadLetter, Letter, Wanted
from factbook.usecases.facts import changes
from factbook.usecases.sources.by_hand import ByHand, refresh_by_hand
from factbook.usecases.sources.hosts import PLACES
from factbook.usecases.sources.letters import list_letters, send_again
from factbook.usecases.sources.refreshing import lease_of

WRITER = principal("acme", "wim", writes=("p",))
READER = principal("acme", "rea", reads=("p",))
STRANGER = principal("acme", "sam")


@pytest.fixture
def world() -> SourceWorld:
    return SourceWorld()


def by_hand(world: SourceWorld, fact_id: str, who: Any = ADMIN) -> ByHand:
    return refresh_by_hand(world.ports, who, fact_id, NEVER)


def test_who_may_write_a_fact_may_refresh_it(world: SourceWorld) -> None:
    fact_id = world.mirror(scope={"projectId": "p"}, strategy="manual")

    with pytest.raises(FactNotFound):
        by_hand(world, fact_id, STRANGER)
    with pytest.raises(PermissionDenied):
        by_hand(world, fact_id, READER)
    assert world.handlers.asked == 0
    done = by_hand(world, fact_id, WRITER)
    assert (done.outcome, done.fact.content_text, done.fact.stale) == ("changed", '"new"', None)
    assert by_hand(world, fact_id, WRITER).outcome == "unchanged"


def test_a_fact_without_a_source_has_nothing_to_ask(world: SourceWorld) -> None:
    fact_id = world.mirror()
    world.change(fact_id, source=None)

    with pytest.raises(RefreshHandlerMissing):
        by_hand(world, fact_id)


@pytest.mark.parametrize(
    ("says", "error", "reason"),
    [
        (asking.SourceRefused("the address is private"), SourceRefused, "the address is private"),
        (asking.SourceUnavailable("the source answers 500"), SourceUnavailable, "the source answers 500"),
        (asking.HandlerMissing(), RefreshHandlerMissing, None),
    ],
)
def test_a_failure_is_told_with_its_reason_and_no_content(
    world: SourceWorld, says: Exception, error: type[Exception], reason: str | None
) -> None:
    fact_id = world.mirror("a secret")
    world.source().says = says

    with pytest.raises(error) as refused:
        by_hand(world, fact_id)
    details = getattr(refused.value, "details", {})
    assert (details["factId"], details.get("reason")) == (fact_id, reason)
    assert getattr(refused.value, "retry_after", 8) == 8
    assert "a secret" not in str(refused.value)
    assert (reason or "'http'") in str(refused.value), "an exception shows its message alone"


def test_a_kind_without_a_handler_of_its_own_is_told_to_name_a_function(world: SourceWorld) -> None:
    fact_id = world.mirror()
    source = world.head(fact_id).fact.source
    assert source is not None
    world.change(fact_id, source=source.model_copy(update={"kind": "external-db"}))
    world.source().says = asking.HandlerMissing()

    with pytest.raises(RefreshHandlerMissing, match="lambda:<name>"):
        by_hand(world, fact_id)


def test_a_refresh_that_is_under_way_is_waited_for_and_then_done_by_hand_as_well(world: SourceWorld) -> None:
    fact_id = world.mirror()
    assert world.leases.take(lease_of("acme", fact_id), "another", 1)

    assert by_hand(world, fact_id).outcome == "changed"


def test_a_refresh_that_takes_too_long_is_503(world: SourceWorld) -> None:
    fact_id = world.mirror()
    assert world.leases.take(lease_of("acme", fact_id), "another", 3600)
    looks = iter(range(10**6))
    deadline = Deadline(8, elapsed=lambda: float(next(looks)))
    world.ports = replace(world.ports, pause=lambda _: None)

    with pytest.raises(SourceUnavailable):
        refresh_by_hand(world.ports, ADMIN, fact_id, deadline)


def full(world: SourceWorld, seconds: float) -> None:
    for place in range(PLACES):
        assert world.leases.take(("place", "source.example", str(place)), "others", seconds)


def test_a_place_at_a_host_that_is_full_is_waited_for(world: SourceWorld) -> None:
    fact_id = world.mirror()
    full(world, 1)

    assert by_hand(world, fact_id).outcome == "changed"


def test_a_host_that_stays_full_is_not_asked_and_that_is_said(world: SourceWorld) -> None:
    fact_id = world.mirror()
    full(world, 3600)
    looks = iter(range(10**6))
    world.ports = replace(world.ports, pause=lambda _: None)

    with pytest.raises(SourceUnavailable, match="As many ask") as refused:
        refresh_by_hand(world.ports, ADMIN, fact_id, Deadline(16, elapsed=lambda: float(next(looks))))
    assert (refused.value.retry_after, refused.value.details) == (2, {"factId": fact_id})
    assert world.handlers.asked == 0
    assert lease_of("acme", fact_id) not in world.leases.taken


def test_what_waits_for_a_person_is_not_shown_to_who_had_it_fetched(world: SourceWorld) -> None:
    scribe = principal("acme", "scribe", "agent", writes=("p",))
    ports = replace(world.memory, reads_like_instruction=lambda _: True)
    fact_id = world.mirror(who=scribe, scope={"projectId": "p"})
    world.ports = replace(world.ports, facts=ports)

    done = by_hand(world, fact_id, WRITER)
    assert (done.outcome, done.fact.review, done.fact.content_text) == ("changed", "pending", None)


def test_a_fact_that_is_deleted_meanwhile_is_not_found(world: SourceWorld) -> None:
    fact_id = world.mirror()
    world.source().during = lambda: changes.delete_fact(world.memory, ADMIN, world.operation(), fact_id)

    with pytest.raises(FactNotFound):
        by_hand(world, fact_id)


# -- dead letters


def letters(world: SourceWorld, count: int) -> list[str]:
    facts = [world.mirror() for _ in range(count)]
    for fact_id in facts:
        world.letters.send(
            DeadLetter("acme", fact_id, "http-api", "h", "source-refused", "no", 1, world.clock.now())
        )
    return facts


def test_letters_are_sent_again_each_once_and_tried_whatever_is_known_of_them(world: SourceWorld) -> None:
    facts = letters(world, 23)

    assert send_again(world.letters, world.queue, NEVER) == (23, 0)
    assert world.queue.sent == [Wanted("acme", fact_id, "resend") for fact_id in facts]
    assert world.letters.letters == []


def test_a_letter_that_could_not_be_queued_stays(world: SourceWorld) -> None:
    letters(world, 3)
    world.queue.room = 2

    with pytest.raises(Exception, match="store"):
        send_again(world.letters, world.queue, NEVER)
    assert (len(world.queue.sent), len(world.letters.letters)) == (2, 1)


def test_a_letter_of_another_kind_is_counted_and_stays(world: SourceWorld) -> None:
    class Strange:
        given = False

        def receive(self, hidden_seconds: int) -> list[Letter]:
            found = (
                [] if self.given else [Letter("1", "", {}), Letter("2", "", {"tenant": 7, "factId": None})]
            )
            self.given = True
            return found

    strange: Any = Strange()
    assert send_again(strange, world.queue, NEVER) == (0, 2)
    assert world.queue.sent == []


def test_letters_are_shown_and_stay(world: SourceWorld) -> None:
    facts = letters(world, 4)

    shown = list_letters(world.letters, NEVER)
    assert [letter["factId"] for letter in shown] == facts
    assert len(world.letters.letters) == 4
