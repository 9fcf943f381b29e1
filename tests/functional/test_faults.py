"""Every write route under every fault at each of its storage calls, against the tables of docs/faults.md."""

from collections.abc import Iterator

import pytest
from support.emulators import Aws
from support.fault_scenarios import DOCUMENT, SCENARIOS, FaultyService, Scenario, impatient, sections, table
from support.gateway import load_app


@pytest.fixture(scope="module")
def faulty(moto: Aws) -> Iterator[FaultyService]:
    with impatient():
        yield FaultyService(moto)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_an_answer_under_fault_is_true_and_a_retry_gives_the_right_state(
    faulty: FaultyService, scenario: Scenario
) -> None:
    assert table(faulty, scenario) == sections(DOCUMENT.read_text(encoding="utf-8"))[scenario.name]


def test_every_write_route_has_a_table() -> None:
    routes = {route.key for route in load_app("write") if route.method != "GET"}
    routes |= {"POST /v1/memory/facts/{id}/refresh"}  # of another function; its sweep writes no fact
    presigns = {"POST /v1/memory/blobs"}  # it writes nothing
    invokes = {"POST /v1/memory/checkpoints"}  # another function writes, and makes up for its own faults
    told = {scenario.name.partition(",")[0] for scenario in SCENARIOS}

    assert routes - presigns - invokes == told


def test_the_document_has_no_table_of_a_route_that_is_gone() -> None:
    tables = sections(DOCUMENT.read_text(encoding="utf-8"))

    assert list(tables) == [scenario.name for scenario in SCENARIOS]
