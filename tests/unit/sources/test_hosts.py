"""Waits, circuits and turns: pure rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.domain import times
from factbook.domain.sources.circuits import CLOSED, FAILURES, Circuit
from factbook.domain.sources.turns import taking_turns
from factbook.domain.sources.waits import doubled, retry_at

NOON = "2026-01-01T12:00:00.000Z"
draws = st.floats(0, 1, exclude_max=True)
counts = st.integers(1, 10**6)


def seconds_after_noon(instant: str | None) -> float:
    assert instant is not None
    return (times.epoch_ms(instant) - times.epoch_ms(NOON)) / 1000


@given(count=counts, draw=draws)
def test_a_wait_doubles_up_to_its_most_and_half_of_it_is_drawn(count: int, draw: float) -> None:
    longest = min(15.0 * 2 ** min(count - 1, 40), 3600.0)

    wait = doubled(15.0, 3600.0, count, draw)
    assert longest / 2 <= wait <= longest
    assert doubled(15.0, 3600.0, count, 0) <= doubled(15.0, 3600.0, count + 1, 0)


@given(count=counts, draw=draws, asked=st.floats(0, 10**9))
def test_a_source_that_asks_to_be_left_alone_is_obeyed_for_a_day_at_most(
    count: int, draw: float, asked: float
) -> None:
    wait = seconds_after_noon(retry_at(NOON, count, draw, asked))

    assert wait >= min(asked, 86_400) - 0.001
    assert wait <= max(3600, min(asked, 86_400) + 15)


@given(draw=draws, failures=st.integers(0, 40))
def test_a_circuit_opens_at_the_fifth_failure_in_a_row_and_longer_each_time(
    draw: float, failures: int
) -> None:
    circuit, now, longest = CLOSED, NOON, []
    for _ in range(failures):
        assert circuit.state(now) in ("closed", "half-open")
        circuit = circuit.failed(now, draw)
        if circuit.until is not None:
            assert circuit.state(now) == "open"
            longest.append(times.epoch_ms(circuit.until) - times.epoch_ms(now))
            now = circuit.until
            assert circuit.state(now) == "half-open"
    assert len(longest) == max(0, failures - FAILURES + 1)
    assert longest == sorted(longest)
    assert all(30_000 <= each <= 3_600_000 for each in longest)


def test_while_one_ask_decides_nobody_else_asks_until_it_may_have_died() -> None:
    half_open = Circuit(0, 1, NOON)
    later = times.add(NOON, seconds=1)

    probed = half_open.probed(later)
    assert probed.state(later) == "open"
    assert probed.state(times.add(later, seconds=30)) == "half-open"
    assert probed.failed(later, 0, decides=True).opened == 2


@given(asked=st.one_of(st.none(), st.floats(0, 10**9)), draw=draws)
def test_what_fails_while_a_circuit_is_open_opens_it_no_further(asked: float | None, draw: float) -> None:
    circuit = Circuit(0, 1, times.add(NOON, seconds=60))

    after = circuit.failed(NOON, draw, asked)
    assert (after.failures, after.opened) == (0, 1)
    assert seconds_after_noon(after.until) == pytest.approx(max(60, min(asked or 0, 3600)), abs=0.001)


@pytest.mark.parametrize(("asked", "wait"), [(120.0, 120), (10.0**9, 3600)])
def test_a_host_that_asks_for_it_is_left_alone_at_once_for_an_hour_at_most(asked: float, wait: int) -> None:
    circuit = CLOSED.failed(NOON, 0, asked)

    assert circuit.state(NOON) == "open"
    assert seconds_after_noon(circuit.until) == wait
    assert circuit.failed(circuit.until or "", 0) == Circuit(2), "it has failed twice, no more"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers())))
def test_owners_take_turns_and_each_one_s_own_stay_in_order(items: list[tuple[str, int]]) -> None:
    turned = taking_turns(items, lambda item: item[0])

    assert sorted(turned) == sorted(items)
    for owner in "abc":
        own = [item for item in items if item[0] == owner]
        assert [item for item in turned if item[0] == owner] == own
        places = [place for place, item in enumerate(turned) if item[0] == owner]
        owners = len({item[0] for item in items})
        assert all(place < owners * (count + 1) for count, place in enumerate(places))
