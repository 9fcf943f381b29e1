"""The confirmed text beside a proposal is never lost and never doubled: each step fails, or the process dies there."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from support.fakes import FakeClock, FakeMemories, fake_memory
from support.principals import principal
from support.struck import Blow, Blows, Death, Struck

from factbook.domain import times
from factbook.domain.errors import FactNotFound, StorageUnavailable
from factbook.domain.memories.statements import Statement
from factbook.domain.scope import Scope
from factbook.ports.operations import Operation
from factbook.usecases.facts import changes, reading
from factbook.usecases.memories import remembering, reviewing, standing
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.reviewing import Decided

ANN, BOSS = principal("t", "ann"), principal("t", "boss", admin=True)
OTHER = principal("t", "other", admin=True)
OLD, NEW = '{"text":"confirmed"}', '{"text":"proposed"}'


def said(text: str) -> Statement:
    scope = Scope(tenant_id="t", user_id="ann")
    return Statement("copilot", scope, "user:ann", "memory", text, key="k", about="account")


class Desk:
    """A confirmed memory with a proposal over it, and every call of the store behind blows."""

    def __init__(self, blows: Blows) -> None:
        self.clock = FakeClock()
        calm = fake_memory(self.clock)
        self.calm = MemoryPorts(calm, FakeMemories(calm.facts))  # type: ignore[arg-type]
        self.struck = MemoryPorts(
            replace(calm, facts=Struck(calm.facts, blows)),
            Struck(self.calm.index, blows),  # type: ignore[arg-type]
        )
        self._operations = 0
        first = remembering.remember(self.calm, ANN, self.operation(), said("confirmed")).fact
        self.id = first.id
        self.clock.advance(seconds=1)
        reviewing.confirm(self.calm, BOSS, self.operation(), Decided(self.id))
        self.clock.advance(seconds=1)
        remembering.remember(self.calm, ANN, self.operation(), said("proposed"))
        self.clock.advance(seconds=1)

    def operation(self) -> Operation:
        self._operations += 1
        return Operation(f"{self._operations:032d}", "body")

    def texts(self, who: Any) -> list[str | None]:
        return [fact.content_text for fact in standing.standing_set(self.calm, who, "copilot", None).facts]

    def versions(self) -> list[int]:
        with suppress(FactNotFound):
            found, _ = reading.list_revisions(self.calm.facts, BOSS, self.id)
            return [fact.version for fact in found]
        return []


STEPS: dict[str, tuple[Callable[[Desk, Operation], Any], str | None]] = {
    "confirmed": (lambda desk, op: reviewing.confirm(desk.struck, BOSS, op, Decided(desk.id)), NEW),
    "rejected": (lambda desk, op: reviewing.reject(desk.struck, BOSS, op, Decided(desk.id)), OLD),
    "deleted": (lambda desk, op: changes.delete_fact(desk.struck.facts, BOSS, op, desk.id), None),
    "verified by an administrator past its window": (
        lambda desk, op: changes.verify_fact(desk.struck.facts, BOSS, op, desk.id),
        OLD,
    ),
    "proposed again past its window": (
        lambda desk, op: remembering.remember(desk.struck, ANN, op, said("proposed")),
        OLD,
    ),
}


def struck_everywhere(step: str) -> int:
    blows = Blows()
    desk = Desk(blows)
    _let_time_pass(desk, step)
    STEPS[step][0](desk, desk.operation())
    return len(blows.calls)


def _let_time_pass(desk: Desk, step: str) -> None:
    if step.endswith("past its window"):
        desk.clock.advance(days=40)


@pytest.mark.parametrize("blow", Blow)
@pytest.mark.parametrize("step", STEPS)
def test_others_read_one_text_through_every_blow_and_a_retry_completes_it(step: str, blow: Blow) -> None:
    change, after = STEPS[step]
    for at in range(struck_everywhere(step)):
        blows = Blows(blow, at)
        desk = Desk(blows)
        _let_time_pass(desk, step)
        operation = desk.operation()
        with suppress(Death, StorageUnavailable):
            change(desk, operation)

        wanted = [after] if after is not None else []
        assert desk.texts(OTHER) in ([OLD], wanted), blows.calls
        assert len(desk.texts(ANN)) <= 1
        assert desk.versions() == list(range(len(desk.versions()), 0, -1))

        blows.at = -1
        desk.clock.advance(seconds=1)
        with suppress(FactNotFound):  # a deletion that landed
            change(desk, operation)
        assert desk.texts(OTHER) == wanted
        assert desk.versions() == list(range(len(desk.versions()), 0, -1))


def test_at_the_very_instant_its_window_ends_one_text_is_left() -> None:
    desk = Desk(Blows())
    head = desk.calm.facts.facts.head("t", desk.id)
    assert head is not None
    end = head.fact.expires_at or ""
    for instant, own in ((times.add(end, milliseconds=-1), NEW), (end, OLD)):
        desk.clock.instant = instant
        assert desk.texts(ANN) == [own]
        assert desk.texts(OTHER) == [OLD]
