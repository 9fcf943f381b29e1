"""Rounds of the schedule over all tenants, on an emulator that nothing else writes to."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.emulators import Aws
from support.mirrors import FACTS, Mirrors, mirrors
from support.sdk_calls import recorded


@pytest.fixture
def world(moto: Aws, tenant: str) -> Iterator[Mirrors]:
    with mirrors(moto, tenant) as made:
        yield made
        for fact in made.admin.call("GET", FACTS, query={"limit": 100}).json["data"]:
            made.admin.call("DELETE", f"{FACTS}/{fact['id']}")


def stale(world: Mirrors) -> None:
    world.clock.advance(seconds=61)


def test_a_round_refreshes_what_is_due_of_all_tenants_and_the_next_one_finds_nothing(world: Mirrors) -> None:
    facts = [world.mirror(f"/{number}", "old", strategy="background")["id"] for number in range(3)]
    for number in range(3):
        world.says(f"/{number}", number)
    stale(world)

    assert world.tick() == {"queued": 3}
    assert world.work() == []
    assert [world.read(fact_id).json["content"] for fact_id in facts] == [0, 1, 2]
    assert world.tick() == {"queued": 0}
    assert len(world.server.requests) == 3


def test_a_round_with_nothing_due_is_eighty_queries_of_no_rows_and_two_puts(world: Mirrors) -> None:
    world.tick()
    world.clock.advance(minutes=1)
    with recorded(world.services._dynamodb) as calls:
        world.tick()
    own = [call for call in calls.of("Query") if call.params.get("IndexName") == "due"]
    assert len(own) == 80
    assert [call.params["Item"]["pk"]["S"] for call in calls.of("PutItem")] == ["job|sweep", "job|sweep"]


def test_a_round_reads_little_more_than_what_is_due(world: Mirrors) -> None:
    for number in range(30):
        world.mirror(f"/{number}", strategy="background", ttl=60 if number < 20 else 10**6)
    stale(world)
    with recorded(world.services._dynamodb) as calls:
        world.tick()
    rows: list[Any] = [call.answer["ScannedCount"] for call in calls.of("Query")]
    assert sum(rows) == 20, "however many there are that are not due"
