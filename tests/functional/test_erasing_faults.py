"""Every call of an erasure fails, fails after it took effect, and is the process's last: the same end, the right counts, nothing twice."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.erasing import ADMIN, IN_PROJECT, TOKEN, ErasureWorld, X, everything, fill, hits, scope
from support.struck import Blow, Blows, Death, Struck

from factbook.domain.errors import ErasureInProgress, LegalHold, StorageUnavailable
from factbook.domain.facts.fact import FactChanges
from factbook.ports.operations import Operation
from factbook.usecases.erasure import requesting
from factbook.usecases.facts import holds, keyed, payloads
from factbook.usecases.facts.payloads import Content
from factbook.usecases.log.reading import read_run
from factbook_search.sqlite_index import SqliteIndex

ASKED = Operation("asked", "body")
SAMPLE = 9
"""Of so many calls one is struck in the ordinary run; `exhaustive` strikes each."""


@dataclass
class Told:
    """A world in which a person is to be erased, and what of it must stay as it is."""

    world: ErasureWorld
    made: dict[str, Any]

    @classmethod
    def at(cls, folder: Path) -> "Told":
        world = ErasureWorld(SqliteIndex(folder / "index.sqlite"))
        world.start()
        made = fill(world)
        payloads.store_payload(world.memory, "t1", "f1", Content(f"{TOKEN} " * 10_000), scope(**IN_PROJECT))
        return cls(world, made)

    def ask(self, blows: Blows | None = None) -> Any:
        return requesting.request_erasure(self.world.erasing_ports(blows), ADMIN, ASKED, X)

    def end(self) -> dict[str, Any]:
        """What is there afterwards, without what may differ between two ways to the same end."""
        (record,) = self.world.records.kept.values()
        heads = {
            fact_id: (head.fact.model_copy(update={"caused_by_log_id": None}), head.erasure, head.subjects)
            for (_, fact_id), head in self.world.facts._heads.items()
        }
        (entry,) = read_run(self.world.log, self.world.vault, ADMIN, "_erasures", 0, 10).data
        return {
            "status": record.status,
            "counts": record.counts,
            "heads": heads,
            "revisions": {where: kept for where, kept in self.world.facts._revisions.items() if kept},
            "objects": len(self.world.blobs.bodies),
            "keys": sorted(
                (astuple(key.name), key.generation, str(key.destroyed_at))
                for key in self.world.keys._keys.values()
            ),
            "stated": entry["payload"]["counts"],
            "entry": record.entry_id == entry["id"],
            "force": dict(self.world.records.force),
            "due": dict(self.world.records.due),
        }


def reference(folder: Path) -> tuple[dict[str, Any], list[str], list[str]]:
    """What happens when nothing goes wrong: the end, the calls of the request, the calls of the worker."""
    told, asking, working = Told.at(folder), Blows(), Blows()
    erasure = told.ask(asking)
    for _ in range(4):
        told.world.turn(erasure, blows=working)
    return told.end(), asking.calls, working.calls


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str], list[str]]:
    return reference(tmp_path_factory.mktemp("calm"))


def struck_places(calls: list[str], every: int) -> Iterator[tuple[int, Blow]]:
    yield from itertools.product(range(0, len(calls), every), Blow)


def strike_the_worker(folder: Path, calm: dict[str, Any], blow: Blow, at: int) -> None:
    told = Told.at(folder)
    erasure = told.ask()
    blows = Blows(blow, at)
    for _ in range(4):
        with suppress(Death, StorageUnavailable):
            told.world.turn(erasure, blows=blows)
    told.world.work(erasure)
    assert told.end() == calm
    assert TOKEN not in everything(told.world)
    assert hits(told.world) == 0


def strike_the_request(folder: Path, calm: dict[str, Any], blow: Blow, at: int) -> None:
    told = Told.at(folder)
    with suppress(Death, StorageUnavailable):
        told.ask(Blows(blow, at))
    erasure = told.ask()  # its client tries again, with the same key
    told.world.work(erasure)
    assert told.end() == calm
    assert TOKEN not in everything(told.world)


def test_whatever_stops_the_worker_it_ends_as_if_nothing_had(tmp_path: Path, calm: Any) -> None:
    end, _, calls = calm
    assert len(calls) > 60
    for number, (at, blow) in enumerate(struck_places(calls, SAMPLE)):
        (folder := tmp_path / str(number)).mkdir()
        strike_the_worker(folder, end, blow, at)


@pytest.mark.exhaustive
def test_whatever_call_stops_the_worker_it_ends_as_if_nothing_had(tmp_path: Path, calm: Any) -> None:
    end, _, calls = calm
    for number, (at, blow) in enumerate(struck_places(calls, 1)):
        (folder := tmp_path / str(number)).mkdir()
        strike_the_worker(folder, end, blow, at)


def test_whatever_stops_a_request_its_retry_makes_the_one_erasure(tmp_path: Path, calm: Any) -> None:
    end, calls, _ = calm
    for number, (at, blow) in enumerate(struck_places(calls, 1)):
        (folder := tmp_path / str(number)).mkdir()
        strike_the_request(folder, end, blow, at)


def test_a_request_that_nobody_tries_again_is_worked_on_by_the_schedule(tmp_path: Path, calm: Any) -> None:
    """Killed when the erasure was in force and nobody had been told."""
    end, calls, _ = calm
    told = Told.at(tmp_path)
    with pytest.raises(Death):
        told.ask(Blows(Blow.DIES_AFTER, calls.index("FakeErasures.create")))
    assert not told.world.queue.sent
    assert told.world.records.work(told.world.clock.now(), None, 10) == ([], None), (
        "not while the request may go on"
    )
    told.world.clock.advance(seconds=requesting.GUARDED_SECONDS)
    ((tenant, erasure_id),), _ = told.world.records.work(told.world.clock.now(), None, 10)
    told.world.work(told.world.records.kept[tenant, erasure_id])
    assert told.end() == end


def test_a_request_that_dies_before_it_looked_for_held_facts_leaves_that_to_the_worker(
    tmp_path: Path, calm: Any
) -> None:
    _, calls, _ = calm
    told = Told.at(tmp_path)
    held = told.made["own"][0].fact.id
    holds.hold_fact(told.world.memory, ADMIN, told.world.operation(), held, "a case")
    with suppress(Death):
        told.ask(Blows(Blow.DIES_AFTER, calls.index("FakeErasures.create")))
    (record,) = told.world.records.kept.values()
    failed = told.world.work(record)
    assert (failed.status, failed.last_error) == ("failed", "legal-hold")
    assert set(failed.counts.values()) == {0}
    assert not told.world.records.force


def test_a_withdrawal_whose_answer_was_lost_leaves_nothing(tmp_path: Path) -> None:
    told = Told.at(tmp_path)
    held = told.made["own"][0].fact.id
    holds.hold_fact(told.world.memory, ADMIN, told.world.operation(), held, "a case")
    asking = Blows()
    with pytest.raises(LegalHold):
        told.ask(asking)
    place = asking.calls.index("FakeErasures.withdraw")
    with pytest.raises(StorageUnavailable):
        told.ask(Blows(Blow.FAILS_BUT_PERSISTED, place))
    assert not told.world.records.kept
    with pytest.raises(LegalHold):
        told.ask()
    assert not told.world.records.force


def test_a_write_of_an_erased_key_that_is_killed_leaves_one_life_or_none(tmp_path: Path) -> None:
    """Whoever writes the key again begins a life at version 1, also when the first try landed and nobody heard of it."""
    for at, blow in itertools.product(range(2), Blow):
        (folder := tmp_path / f"{at}-{blow.name}").mkdir()
        told = Told.at(folder)
        key = keyed.Key(scope(**IN_PROJECT), "acme.note", f"k-{TOKEN}")
        record = told.ask()
        with pytest.raises(ErasureInProgress):
            _write_keyed(told.world.memory, key, "early")
        told.world.work(record)
        blows = Blows(blow, at)
        struck = replace(told.world.memory, facts=Struck(told.world.facts, blows))
        with suppress(Death, StorageUnavailable):
            _write_keyed(struck, key, "new words")
        written = _write_keyed(told.world.memory, key, "new words")
        assert written.version == 1
        head = told.world.facts.head("t1", key.fact_id)
        assert head is not None
        assert (head.fact.version, head.fact.content_text) == (1, '"new words"')


def _write_keyed(ports: Any, key: Any, text: str) -> Any:
    asked = Operation(f"again-{text}", "body")
    return keyed.write_keyed_fact(
        ports, ADMIN, asked, key, FactChanges(), Content(text), may_supersede=True
    ).fact
