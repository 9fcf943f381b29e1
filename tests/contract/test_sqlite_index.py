"""The SearchIndex contract on SQLite, and what only a file has: other processes, damage, a deadline kept by the reader."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
import sqlite_vec

from factbook.domain.errors import SearchUnavailable
from factbook.domain.filters import EVERYTHING
from factbook.ports.retrieval.index import IndexMissing, KeywordLeg, Leg, LegFailure, VectorLeg
from factbook_search.sqlite_index import SqliteIndex

from .search_index import EAST, SPACE, SearchIndexContract, ids, put


@pytest.fixture(scope="class")
def sqlite_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path_factory.mktemp("search") / "search.db")
    index.activate(index.create(SPACE).name)
    yield index
    index.close()


class TestSqliteIndex(SearchIndexContract):
    @pytest.fixture(autouse=True)
    def _index(self, sqlite_index: SqliteIndex) -> None:
        self.index = sqlite_index


def write_some(path: Path, worker: int) -> None:
    index = SqliteIndex(path, busy_seconds=60)
    for version in range(1, 21):
        changes = [put("t", f"w{worker}", f"word v{version}", vector=EAST, version=version)]
        changes.append(put("t", "shared", f"word by{worker}", vector=EAST, version=100 * version + worker))
        if index.apply(changes) != []:
            raise SystemExit(3)
        index.search("t", [KeywordLeg(("word",), EVERYTHING, 50)], timeout=60)
    index.close()


def test_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    index = SqliteIndex(path)
    index.activate(index.create(SPACE).name)
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=write_some, args=(path, worker)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=300)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    found = ids(index.search("t", [KeywordLeg(("word",), EVERYTHING, 50)], timeout=30)[0])
    assert set(found) == {"w0", "w1", "w2", "shared"}
    assert {entry.version for entry in index.walk(tenant="t").entries} == {20, 2002}
    assert ids(index.search("t", [KeywordLeg(("by2",), EVERYTHING, 50)], timeout=30)[0]) == ["shared"]
    index.close()


def test_a_slow_leg_is_given_up_and_a_quick_one_answers(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "search.db")
    index.activate(index.create(None).name)
    assert index.apply([put("t", f"r{n}", "common " * 40) for n in range(2_000)]) == []
    slow, quick = KeywordLeg(("common",), EVERYTHING, 10), KeywordLeg((), EVERYTHING, 10)
    legs: list[Leg] = [slow, quick]
    assert index.search("t", legs, timeout=0) == [LegFailure("timeout"), ()]
    with pytest.raises(SearchUnavailable):
        index.search("t", [slow], timeout=0)
    assert len(ids(index.search("t", [slow], timeout=60)[0])) == 10
    index.close()


def test_a_new_file_has_no_index_until_one_is_made(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "search.db")
    with pytest.raises(IndexMissing):
        index.search("t", [KeywordLeg(("word",), EVERYTHING, 10)])
    with pytest.raises(IndexMissing):
        index.apply([put("t", "it", "word")])
    assert index.indexes() == []
    index.close()


def test_a_file_that_is_no_index_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(SearchUnavailable):
        SqliteIndex(path)


def test_a_file_kept_locked_by_another_is_unavailable_and_then_not(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    index, other = SqliteIndex(path, busy_seconds=0.05), SqliteIndex(path)
    index.activate(index.create(SPACE).name)
    with other._transaction("IMMEDIATE"):
        with pytest.raises(SearchUnavailable):
            index.apply([put("t", "it", "word")])
        assert ids(index.search("t", [KeywordLeg(("word",), EVERYTHING, 10)])[0]) == []
    assert index.apply([put("t", "it", "word")]) == []
    index.close()
    other.close()


def test_what_was_applied_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    index = SqliteIndex(path)
    index.activate(index.create(SPACE).name)
    assert index.apply([put("t", "it", "word", vector=EAST)]) == []
    index.close()
    again = SqliteIndex(path)
    assert ids(again.search("t", [KeywordLeg(("word",), EVERYTHING, 10)])[0]) == ["it"]
    assert [info.space for info in again.indexes()] == [SPACE]
    again.close()


@pytest.mark.parametrize("lost", ["docs", "words", "terms", "vectors", "indexes"])
def test_tables_that_are_dropped_under_a_service_are_a_missing_index_until_one_is_made(
    tmp_path: Path, lost: str
) -> None:
    index = SqliteIndex(tmp_path / "search.db")
    index.activate(index.create(SPACE).name)
    index.apply([put("t", "it", "word", vector=EAST)])
    name = index.indexes()[0].name
    other = apsw.Connection(str(tmp_path / "search.db"))
    other.enable_load_extension(True)
    other.load_extension(sqlite_vec.loadable_path())
    other.execute(f"DROP TABLE {lost if lost == 'indexes' else lost + '_1'}")
    other.close()

    assert index.indexes() == []
    for operation in (
        lambda: index.search("t", [KeywordLeg(("word",), EVERYTHING, 5), VectorLeg(EAST, EVERYTHING, 5)]),
        lambda: index.apply([put("t", "it", "word", vector=EAST, version=2)]),
        lambda: index.lookup("t", ["it"]),
        index.walk,
        index.refresh,
        lambda: index.activate(name),
    ):
        with pytest.raises(IndexMissing):
            operation()
    index.drop(name)

    index.activate(index.create(SPACE).name)
    assert index.apply([put("t", "it", "word", vector=EAST)]) == []
    assert ids(index.search("t", [KeywordLeg(("word",), EVERYTHING, 5)])[0]) == ["it"]
    assert len(index.indexes()) == 1
