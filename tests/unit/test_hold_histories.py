"""Random histories of one fact, its holds and its end, against a model of a few lines; and what the run of holds tells of them."""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.fakes import FakeClock, FakeFacts, fake_memory, logged_changes
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import principal

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.errors import FactNotFound, LegalHold
from factbook.domain.facts.fact import Fact, FactChanges, Retention
from factbook.domain.own_runs import HOLDS_RUN
from factbook.domain.scope import Scope
from factbook.ports.operations import Operation
from factbook.usecases.facts import changes, holds, keyed, reading
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.log.entries import open_entry
from factbook.usecases.log.sealing import Vault

ADMIN = principal("t", "ann", admin=True)
KEY = keyed.Key(Scope(tenantId="t"), "note", "k")
START = "2026-01-01T00:00:00.000Z"
STEPS = 60


@dataclass
class Model:
    """What a key's fact ought to be. Time is in hours; `days`: how long it is kept from its first write, None for good."""

    version: int = 0
    written_at: int = 0
    days: int | None = None
    is_held: bool = False
    is_deleted: bool = False

    def is_over(self, hour: int) -> bool:
        ran_out = self.days is not None and hour >= self.written_at + 24 * self.days
        return self.version == 0 or (ran_out and not self.is_held)

    def is_current(self, hour: int) -> bool:
        return not self.is_over(hour) and not self.is_deleted


class History:
    """A keyed fact over fakes, and the model beside it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = FakeClock(START)
        self.facts, log = FakeFacts(), FakeLog()
        vault = Vault(FakeKeys(), FakeWrapper(), AesGcm())
        self.log = LogWriter(log, vault, StandingClock(), pause=lambda _: None)
        joint = logged_changes(self.facts, self.log)
        self.ports = replace(fake_memory(self.clock, self.facts), commit_with_entry=joint.commit)
        self.model, self.hour = Model(), 0
        self.told: list[tuple[str, int]] = []
        self._operations = 0

    def operation(self) -> Operation:
        self._operations += 1
        return Operation(f"{self._operations:032d}", "body")

    def step(self) -> None:
        action = self.rng.choice(
            [
                "write",
                "write",
                "supersede",
                "keep",
                "verify",
                "delete",
                "hold",
                "hold",
                "release",
                "wait",
                "wait",
            ]
        )
        self._pass(1)  # so that no two writes are of one instant
        getattr(self, f"_{action}")()
        self._look()

    def _look(self) -> None:
        """The fact is shown as the model has it, and the log tells what was done."""
        if self.model.is_current(self.hour):
            fact = reading.get_fact(self.ports, ADMIN, KEY.fact_id)
            assert (fact.version, fact.held) == (self.model.version, self.model.is_held)
            assert len(reading.list_revisions(self.ports, ADMIN, KEY.fact_id)[0]) == self.model.version
        else:
            with pytest.raises(FactNotFound):
                reading.get_fact(self.ports, ADMIN, KEY.fact_id)
        entries = self.log.store.entries("t", HOLDS_RUN, 0, 1_000)[0]
        payloads = [open_entry(self.log.vault, entry).payload for entry in entries]
        assert [(each["action"], each["version"]) for each in payloads] == self.told

    def _allowed(self, change: Any) -> Fact | None:
        """Do what the model allows; what it does not is refused as it says."""
        if not self.model.is_current(self.hour):
            with pytest.raises(FactNotFound):
                change()
            return None
        if self.model.is_held:
            with pytest.raises(LegalHold):
                change()
            return None
        fact: Fact = change()
        return fact

    def _write(self) -> None:
        days = self.rng.choice([None, 1, 5, 30])
        retention = None if days is None else Retention(keep_days=days)

        def write() -> Fact:
            said, content = FactChanges(retention=retention), Content(self._operations)
            to = (self.ports, ADMIN, self.operation(), KEY)
            return keyed.write_keyed_fact(*to, said, content, may_supersede=True).fact

        if self.model.is_over(self.hour):
            assert write().version == 1
            self.model = Model(1, self.hour, days)
        elif self.model.is_deleted:
            assert write().version == self.model.version + 1
            self.model = Model(self.model.version + 1, self.hour, days)
        else:
            self._change(write, days)

    def _supersede(self) -> None:
        self._change(lambda: self._superseded(None), None)

    def _keep(self) -> None:
        days = self.rng.choice([40, 400])
        self._change(lambda: self._superseded(days), days)

    def _superseded(self, days: int | None) -> Fact:
        said = FactChanges(retention=None if days is None else Retention(keep_days=days))
        content = Content(self._operations)
        return changes.supersede_fact(self.ports, ADMIN, self.operation(), KEY.fact_id, said, content)

    def _verify(self) -> None:
        self._change(lambda: changes.verify_fact(self.ports, ADMIN, self.operation(), KEY.fact_id), None)

    def _change(self, change: Any, days: int | None) -> None:
        """A revision; limits that would have run out already are left to the tests of requests."""
        kept = self.model.days if days is None else days
        following = replace(self.model, version=self.model.version + 1, days=kept)
        if self.model.is_held or not following.is_over(self.hour):
            self.model = self.model if self._allowed(change) is None else following

    def _delete(self) -> None:
        to = (self.ports, ADMIN, self.operation(), KEY.fact_id)
        if self._allowed(lambda: changes.delete_fact(*to)) is not None:
            self.model = replace(self.model, is_deleted=True)

    def _hold(self) -> None:
        self._held(holds.hold_fact, is_held=True)

    def _release(self) -> None:
        self._held(holds.release_fact, is_held=False)

    def _held(self, change: Any, *, is_held: bool) -> None:
        to = (self.ports, ADMIN, self.operation(), KEY.fact_id, "Case 7")
        if not self.model.is_current(self.hour):
            with pytest.raises(FactNotFound):
                change(*to)
            return
        fact = change(*to)
        assert (fact.version, fact.held) == (self.model.version, is_held)
        if self.model.is_held is not is_held:
            self.told.append(("hold" if is_held else "release", self.model.version))
        self.model = replace(self.model, is_held=is_held)
        if not is_held and self.model.is_over(self.hour):
            assert fact.expires_at == self.clock.now()

    def _wait(self) -> None:
        self._pass(24 * self.rng.choice([1, 3, 20]))

    def _pass(self, hours: int) -> None:
        self.hour += hours
        self.clock.advance(hours=hours)


@pytest.mark.parametrize("seed", range(30))
def test_a_fact_its_holds_and_its_end_are_as_the_model_has_them_after_every_step(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    assert history.model.version > 0
