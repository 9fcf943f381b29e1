"""What a process keeps in memory: bounded, the least recently used first out, for no longer than is said, by any thread."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.logs import Elapsed

from factbook.usecases import caches
from factbook.usecases.caches import RecentValues, TrustedAnswers

THREADS = 8


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Threads take turns in the middle of everything."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurried_threads")
def test_threads_that_push_each_others_keys_out_get_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_ANSWERS", 3)
    known = TrustedAnswers(str.upper, 60.0, lambda: 0.0)

    def ask(start: int) -> list[tuple[str, str]]:
        keys = [f"key-{(start + 7 * number) % 11}" for number in range(10_000)]
        return [(key, known(key)) for key in keys]

    with ThreadPoolExecutor(THREADS) as pool:
        answered = [pair for pairs in pool.map(ask, range(THREADS)) for pair in pairs]

    assert all(answer == key.upper() for key, answer in answered)
    assert len(known) == 3


@pytest.mark.usefixtures("hurried_threads")
def test_threads_may_drop_values_while_others_put_them() -> None:
    kept: RecentValues[int, int] = RecentValues(5, until=lambda _: 1.0, elapsed=lambda: 0.0)

    def work(number: int) -> None:
        for each in range(5_000):
            kept.put(each % 13, each)
            kept.get((each + number) % 13)
            if each % 3 == 0:
                kept.drop(lambda key: key % 2 == 0)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))

    kept.drop(lambda key: key % 2 == 0)
    assert [kept.get(key) for key in range(0, 13, 2)] == [None] * 7
    assert len(kept) <= 5


def test_what_was_used_last_stays_when_room_is_needed() -> None:
    kept: RecentValues[str, int] = RecentValues(2)
    kept.put("a", 1)
    kept.put("b", 2)
    kept.get("a")
    kept.put("c", 3)
    assert [kept.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_is_gone_from_its_instant_on() -> None:
    elapsed = Elapsed()
    kept: RecentValues[str, float] = RecentValues(2, until=lambda value: value, elapsed=elapsed)
    kept.put("a", 5.0)
    elapsed.seconds = 4.99
    assert kept.get("a") == 5.0
    elapsed.seconds = 5.0
    assert kept.get("a") is None
    kept.put("a", 5.0)
    assert kept.get("a") is None


def test_an_answer_is_trusted_from_before_it_was_asked_for_however_long_that_took() -> None:
    elapsed, truth = Elapsed(), ["old"]

    def slow(_: str) -> str:
        answer = truth[0]
        elapsed.seconds += 1.5
        return answer

    known = TrustedAnswers(slow, 2.0, elapsed)
    assert known("k") == "old"
    truth[0] = "new"
    elapsed.seconds = 1.99
    assert known("k") == "old"
    elapsed.seconds = 2.0
    assert known("k") == "new"


def test_nothing_found_is_asked_for_again() -> None:
    asked: list[str] = []
    known: TrustedAnswers[str, None] = TrustedAnswers(asked.append, 60.0, lambda: 0.0)
    known("k")
    known("k")
    assert asked == ["k", "k"]
    assert len(known) == 0
