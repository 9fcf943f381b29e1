"""Random histories of a tenant with one erasure in them: nothing of the person is shown or written from the answer on, nothing
is left of them in the end, and everybody else has everything.
"""

import random
from collections.abc import Iterator

import pytest
from support.erasing import ErasureWorld
from support.interleaved import Tenancy

from factbook.usecases.facts import engine
from factbook_search.sqlite_index import SqliteIndex

STEPS, SHARING = 40, 25


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PAUSE_SECONDS", 0)


def histories(first: int, last: int) -> Iterator[Tenancy]:
    """Each in a tenant of its own; some share an index, as tenants do."""
    index = SqliteIndex(":memory:")
    for seed in range(first, last):
        if (seed - first) % SHARING == 0:
            index.close()
            index = SqliteIndex(":memory:")
            ErasureWorld(index).start()
        yield told(index, seed)
    index.close()


def told(index: SqliteIndex, seed: int) -> Tenancy:
    chance = random.Random(seed)
    tenancy = Tenancy(ErasureWorld(index), chance, f"t{seed}")
    when = chance.randrange(STEPS)
    try:
        for number in range(STEPS):
            if number == when:
                tenancy.ask()
            tenancy.step()
        tenancy.end()
    except BaseException as error:
        error.add_note(f"history {seed}: {' '.join(tenancy.done)}")
        raise
    return tenancy


def test_no_history_shows_or_leaves_anything_of_the_erased() -> None:
    ends = {"completed": 0, "failed": 0, "refused": 0}
    for tenancy in histories(0, 150):
        ends["refused" if tenancy.erasure is None else tenancy._record.status] += 1
    assert all(ends.values()), ends


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(150, 10_150, 1_000))  # in parts, for as many processes
def test_no_history_of_ten_thousand_shows_or_leaves_anything_of_the_erased(first: int) -> None:
    assert sum(1 for _ in histories(first, first + 1_000)) == 1_000
