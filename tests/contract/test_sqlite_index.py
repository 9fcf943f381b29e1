"""The SearchIndex contract on SQLite, and what only a file has: other processes, damage, a deadline kept by the reader."""

import multiprocessing
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import pytest
import sqlite_vec

from factbook.domain.errors import SearchUnavailable
from factbook.domain.filters import EVERYTHING
from factbook.domain.retrieval.documents import Put, Tombstone
from factbook.ports.retrieval.index import IndexMissing, KeywordLeg, Leg, LegFailure, VectorLeg
from factbook_search.sqlite_index import SqliteIndex

from .interference import NonInterferenceContract
from .search_index import EAST, SPACE, SearchIndexContract, ids, put


@pytest.fixture(scope="class")
def sqlite_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path_factory.mktemp("search") / "search.db")
    index.activate(index.create(SPACE).name)
    yield index
    index.close()


class TestSqliteIndex(SearchIndexContract, NonInterferenceContract):
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


def test_a_file_that_is_older_than_formats_answers_and_is_to_be_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    index = SqliteIndex(path)
    index.activate(index.create(SPACE).name)
    index.apply([put("t", "it", "word", vector=EAST)])
    index.close()
    old = apsw.Connection(str(path))
    old.execute("ALTER TABLE indexes DROP COLUMN format")
    old.close()

    again = SqliteIndex(path)
    assert [(info.active, info.current) for info in again.indexes()] == [(True, False)]
    assert ids(again.search("t", [KeywordLeg(("word",), EVERYTHING, 10)])[0]) == ["it"]
    assert [info.current for info in (again.create(SPACE), *again.indexes())] == [True, False, True]
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


# -- what is removed is gone from the files

FIELDS = ("type", "owner", "agent", "s_user", "s_thread", "subjects")


class Trace:
    """One record with a secret of its own in each of its parts, and where they still stand in the files."""

    def __init__(self, path: Path, record: str) -> None:
        rng = random.Random(record)
        self._folder = path
        self.record = record
        self.words = [rng.randbytes(10).hex() for _ in range(6)]
        self.fields = {name: rng.randbytes(10).hex() for name in FIELDS}
        vector = [rng.gauss(0, 1) for _ in range(SPACE.dimensions)]
        length = sum(each * each for each in vector) ** 0.5
        self.vector = tuple(each / length for each in vector)

    def put(self, version: int) -> Put:
        texts = [" ".join(self.words[:3]), " ".join(self.words[3:])]
        return put("t", self.record, *texts, version=version, vector=self.vector, **self.fields)

    def left(self) -> set[str]:
        """Words lose their first characters in the inverted index, which writes what one shares with the word before once."""
        held = b"".join(file.read_bytes() for file in self._folder.iterdir())
        secrets = {word: word[6:].encode() for word in (*self.words, *self.fields.values())}
        secrets["vector"] = sqlite_vec.serialize_float32(list(self.vector))[:24]
        return {name for name, secret in secrets.items() if secret in held}


@pytest.fixture(params=["removed", "replaced", "dropped"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def let_go(index: SqliteIndex, gone: Sequence[Trace], kept: Sequence[Trace], way: str) -> None:
    """The traces that are to be gone are written, changed, and then removed in one of three ways."""
    name = index.create(SPACE).name
    index.activate(name)
    for version in (1, 2):
        for first, second in zip(gone, kept, strict=True):
            assert index.apply([first.put(version), second.put(version)]) == []
    if way == "removed":
        assert index.apply([Tombstone("t", trace.record, 3) for trace in gone]) == []
    elif way == "replaced":
        assert index.apply([put("t", trace.record, "word", version=3, vector=EAST) for trace in gone]) == []
    else:
        index.activate(index.create(SPACE).name)
        assert index.apply([trace.put(2) for trace in kept]) == []
        index.drop(name)


@pytest.mark.parametrize("count", [1, 200])
def test_nothing_of_what_went_stays_in_the_files_once_they_are_purged(
    tmp_path: Path, way: str, count: int
) -> None:
    index, other = SqliteIndex(tmp_path / "search.db"), SqliteIndex(tmp_path / "search.db")
    gone = [Trace(tmp_path, f"gone-{number}") for number in range(count)]
    kept = [Trace(tmp_path, f"kept-{number}") for number in range(count)]
    let_go(index, gone, kept, way)
    assert any(trace.left() for trace in gone), "what there is to purge"
    whole = other.walk()

    index.purge()

    assert [trace.left() for trace in gone] == [set()] * count
    assert (tmp_path / "search.db-wal").stat().st_size == 0
    assert other.walk() == whole
    for trace in kept:
        legs: list[Leg] = [
            KeywordLeg((trace.words[0],), EVERYTHING, 5),
            VectorLeg(trace.vector, EVERYTHING, 1),
        ]
        assert [ids(answer) for answer in other.search("t", legs, timeout=30)] == [[trace.record]] * 2
    index.close()
    other.close()


def test_rows_and_vectors_are_overwritten_as_they_go(tmp_path: Path, way: str) -> None:
    index = SqliteIndex(tmp_path / "search.db")
    gone = [Trace(tmp_path, f"gone-{number}") for number in range(50)]
    let_go(index, gone, [Trace(tmp_path, f"kept-{number}") for number in range(50)], way)
    index._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    left = {secret for trace in gone for secret in trace.left()}
    assert left & {"vector", *(value for trace in gone for value in trace.fields.values())} == set()
    index.close()


def test_a_file_of_before_deletions_were_overwritten_is_purged_too(tmp_path: Path, way: str) -> None:
    before = SqliteIndex(tmp_path / "search.db")
    before._db.pragma("secure_delete", "off")
    gone = [Trace(tmp_path, f"gone-{number}") for number in range(50)]
    let_go(before, gone, [Trace(tmp_path, f"kept-{number}") for number in range(50)], way)
    before.close()
    index = SqliteIndex(tmp_path / "search.db")
    index.purge()
    assert [trace.left() for trace in gone] == [set()] * 50
    index.close()


def test_a_file_that_is_being_read_is_purged_later(tmp_path: Path) -> None:
    index, other = SqliteIndex(tmp_path / "search.db", busy_seconds=0.05), SqliteIndex(tmp_path / "search.db")
    trace = Trace(tmp_path, "gone")
    let_go(index, [trace], [Trace(tmp_path, "kept")], "removed")
    with other._transaction():
        other._db.execute("SELECT count(*) FROM docs_1").fetchone()
        assert index.apply([put("t", "another", "word", vector=EAST)]) == []
        with pytest.raises(SearchUnavailable):
            index.purge()
    index.purge()
    assert trace.left() == set()
    index.close()
    other.close()


def test_a_file_without_an_index_is_purged_too(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "search.db")
    index.purge()
    trace = Trace(tmp_path, "gone")
    let_go(index, [trace], [Trace(tmp_path, "kept")], "removed")
    for info in index.indexes():
        index.drop(info.name)
    index.purge()
    assert trace.left() == set()
    assert index.indexes() == []
    index.close()


def purge_some(path: Path) -> None:
    index = SqliteIndex(path, busy_seconds=60)
    for _ in range(10):
        try:
            index.purge()
        except SearchUnavailable:  # it is being read
            continue
    index.close()


def test_a_purge_leaves_alone_what_others_write_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    index = SqliteIndex(path)
    index.activate(index.create(SPACE).name)
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=write_some, args=(path, worker)) for worker in range(2)]
    workers.append(spawn.Process(target=purge_some, args=(path,)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=300)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    found = ids(index.search("t", [KeywordLeg(("word",), EVERYTHING, 50)], timeout=30)[0])
    assert set(found) == {"w0", "w1", "shared"}
    index.close()
