"""Sixteen processes remember at the ceiling, on a store that is as atomic as DynamoDB."""

from collections.abc import Callable

import pytest
from support.emulators import Aws
from support.fakes import FakeClock
from support.memory_writers import Round, crowd, operation, person, said
from support.principals import principal

from factbook.domain import times
from factbook.domain.facts.fact import Fact
from factbook.domain.policy.policies import Ceilings, Policy
from factbook.usecases.facts.changes import delete_fact
from factbook.usecases.memories import remembering, reviewing, standing
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.reviewing import Decided

WRITERS, EACH, CEILING = 16, 3, 12
START = "2026-01-01T00:00:00.000Z"


class Room:
    """What the parent sees of the memories of ann with copilot, and does to them."""

    def __init__(self, aws: Aws, tenant: str) -> None:
        self.clock = FakeClock(START)
        services = aws.services(self.clock)
        services.policies.put_policy(tenant, Policy(ceilings=Ceilings(memories_per_agent=CEILING)))
        self.ports: MemoryPorts = services.memories
        self.tenant, self.ann, self.boss = tenant, person(tenant), principal(tenant, "boss", admin=True)

    def there(self) -> list[Fact]:
        return list(standing.standing_set(self.ports, self.ann, "copilot", None).facts)

    def delete(self, fact: Fact) -> None:
        delete_fact(self.ports.facts, self.ann, operation(), fact.id)

    def reject(self, fact: Fact) -> None:
        reviewing.reject(self.ports, self.boss, operation(), Decided(fact.id))


@pytest.mark.exhaustive
def test_the_ceiling_is_passed_by_no_more_than_write_at_once_and_every_later_one_is_refused(
    ministack: Aws, tenant: str
) -> None:
    room = Room(ministack, tenant)
    for number in range(CEILING - 1):
        remembering.remember(room.ports, room.ann, operation(), said(tenant, f"first-{number}"))

    with crowd(ministack, tenant, WRITERS, EACH) as processes:

        def passed(name: str) -> int:
            """How many landed in a round; each of the others was told that there is no room, and nothing else."""
            before = len(room.there())
            answers = processes.remember(Round(room.clock.instant, name))
            landed = sum(each.count("ok") for each in answers)
            assert len(room.there()) == before + landed
            for each in answers:
                assert each == sorted(each, reverse=True), "who was refused once is refused from then on"
            return landed

        def freed(name: str, free: Callable[[Fact], None]) -> None:
            """All places past the ceiling are freed, and then one more."""
            living = room.there()
            for fact in living[CEILING:]:
                free(fact)
            assert passed(f"{name}, full") == 0
            free(living[0])
            assert 1 <= passed(name) <= WRITERS

        assert 1 <= passed("at once") <= WRITERS
        assert passed("later") == 0
        remembering.remember(room.ports, room.ann, operation(), said(tenant, "first-0"))  # needs no place

        freed("deleted", room.delete)
        freed("rejected", room.reject)

        end = times.add(START, days=1)
        room.clock.instant = times.add(end, milliseconds=-1)
        assert passed("before the end") == 0
        room.clock.instant = end
        assert room.there() == []
        landed = passed("at the end")
        assert CEILING <= landed < CEILING + WRITERS
