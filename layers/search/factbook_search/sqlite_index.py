"""The search index in one SQLite file, for local use: several processes may open it at once.

FTS5 gives the postings, sqlite-vec the distances. A search by words looks at all documents that its filter keeps: their
number and lengths count, and nobody else's (`bm25`). One transaction compares a change's version with what is there and
applies it, so changes that arrive out of order need no more care.
"""
# ruff: noqa: S608 - names in a statement are the product's own; every value is bound

import json
import re
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import sqlite_vec

from factbook.domain.errors import SearchUnavailable
from factbook.domain.filters import AllOf, Equals, Filter, values_of
from factbook.domain.retrieval.documents import (
    FORMAT,
    KEYWORD_FIELDS,
    NUMBER_FIELDS,
    Change,
    Put,
    Tombstone,
    change_problem,
    check_filter,
    vector_problem,
)
from factbook.ports.retrieval.index import (
    EmbeddingSpace,
    Entry,
    EntryPage,
    Hit,
    IndexInfo,
    IndexMissing,
    KeywordLeg,
    Leg,
    LegAnswer,
    LegFailure,
    Refused,
    VectorLeg,
)

from .bm25 import marks
from .sqlite_filters import MANY, condition
from .sqlite_schema import COLUMNS, FORMAT_COLUMN, REGISTRY, WHOLE, create_tables, drop_tables
from .sqlite_words import Words

_MISSING = "There is no search index. Rebuild it."
NEAREST = 4096
"""The most neighbours sqlite-vec gives."""
STEPS_BETWEEN_LOOKS = 20_000
MERGED_AT_ONCE = 1_000
"""Pages of the inverted index: four megabytes."""
IDLE_CHANGES = 2
"""A merge that makes fewer changes than these had nothing to do."""
_OUTAGES = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.SchemaChangeError,
)

_NEAREST = """
SELECT d.id, 1 - near.distance, d.chunk, d.version FROM (
  SELECT rowid, distance FROM vectors_{k} WHERE vector MATCH :vector AND k = :near AND tenant = :tenant
  AND rowid IN (SELECT d.rowid FROM docs_{k} d WHERE {condition})) near
JOIN docs_{k} d ON d.rowid = near.rowid ORDER BY near.distance, d.id, d.chunk
"""
_ENTRY = "SELECT tenant, id, version, live, revision, chunks, embedded FROM docs_{k} WHERE chunk = 0"


class SqliteIndex:
    """The file at `path` is made when it is not there. Threads may share an index; it does one operation at a time."""

    def __init__(self, path: Path | str, busy_seconds: float = 5.0) -> None:
        self._lock = threading.Lock()
        with _outages():
            self._db = apsw.Connection(str(path))
            self._db.set_busy_timeout(round(busy_seconds * 1000))
            self._db.enable_load_extension(True)  # noqa: FBT003 - its only argument
            self._db.load_extension(sqlite_vec.loadable_path())
            self._db.enable_load_extension(False)  # noqa: FBT003
            self._db.pragma("journal_mode", "wal")
            self._db.pragma("synchronous", "normal")
            self._db.pragma("secure_delete", "on")  # what is deleted is overwritten, in every process
            with self._transaction("IMMEDIATE"):
                self._make_registry()

    def close(self) -> None:
        self._db.close()

    def search(
        self, tenant: str, legs: Sequence[Leg], *, timeout: float = 2.0, index: str | None = None
    ) -> list[LegAnswer]:
        for leg in legs:
            check_filter(leg.filter)
        with self._transaction():
            table = self._table(index)
            answers = [self._answer(tenant, leg, table, timeout) for leg in legs]
        if legs and all(isinstance(answer, LegFailure) for answer in answers):
            raise SearchUnavailable("The search did not answer in time. Try again.")
        return answers

    def apply(self, changes: Sequence[Change], *, index: str | None = None) -> list[Refused]:
        refused = []
        with self._transaction("IMMEDIATE"):
            table = self._table(index)
            for change in changes:
                problem = change_problem(change, table.dimensions)
                if problem is not None:
                    refused.append(Refused(change, problem, retry=False))
                elif self._is_newer(change, table.k):
                    self._replace(change, table)
        return refused

    def lookup(self, tenant: str, ids: Sequence[str], *, index: str | None = None) -> dict[str, Entry]:
        with self._transaction():
            k = self._table(index).k
            rows = self._db.execute(
                _ENTRY.format(k=k) + " AND tenant = ? AND id IN (SELECT value FROM json_each(?))",
                (tenant, json.dumps(list(ids))),
            )
            return {entry.id: entry for entry in map(_entry, rows)}

    def walk(
        self,
        *,
        tenant: str | None = None,
        after: str | None = None,
        limit: int = 1000,
        index: str | None = None,
    ) -> EntryPage:
        with self._transaction():
            sql, values = _ENTRY.format(k=self._table(index).k), []
            if tenant is not None:
                sql, values = f"{sql} AND tenant = ?", [tenant]
            if after is not None:
                sql, values = f"{sql} AND (tenant, id) > (?, ?)", [*values, *json.loads(after)]
            rows = self._db.execute(f"{sql} ORDER BY tenant, id LIMIT ?", (*values, limit + 1))
            entries = tuple(map(_entry, rows))
        if len(entries) <= limit:
            return EntryPage(entries, None)
        last = entries[limit - 1]
        return EntryPage(entries[:limit], json.dumps([last.tenant, last.id]))

    def refresh(self, *, index: str | None = None) -> None:
        """Nothing to do: a committed change can be found at once. Raises IndexMissing when there is no index."""
        with self._transaction():
            self._table(index)

    def indexes(self) -> list[IndexInfo]:
        """Those whose tables are there: somebody may have dropped tables under a service that runs."""
        try:
            with self._transaction():
                rows = self._db.execute(
                    f"SELECT name, model, dimensions, active, format FROM indexes WHERE {WHOLE} ORDER BY k"
                )
                return [
                    IndexInfo(name, _space(model, size), bool(active), current=made == FORMAT)
                    for name, model, size, active, made in rows
                ]
        except IndexMissing:
            return []

    def create(self, space: EmbeddingSpace | None) -> IndexInfo:
        model, dimensions = (space.model, space.dimensions) if space else (None, None)
        slug = re.sub(r"[^a-z0-9]+", "-", (model or "keyword").lower()).strip("-")[:40]
        name = f"{slug}-{secrets.token_hex(4)}"
        with self._transaction("IMMEDIATE"):
            self._make_registry()
            lost: Any = self._db.execute(f"DELETE FROM indexes WHERE NOT {WHOLE} RETURNING k")
            for (k,) in lost.fetchall():
                self._drop_tables(k)
            self._db.execute(
                "INSERT INTO indexes(name, model, dimensions, format) VALUES (?, ?, ?, ?)",
                (name, model, dimensions, FORMAT),
            )
            k = self._db.last_insert_rowid()
            self._drop_tables(k)  # of a registry that was lost, and with it the count of its indexes
            for statement in create_tables(k, dimensions):
                self._db.execute(statement)
        return IndexInfo(name, space, active=False)

    def activate(self, name: str) -> None:
        with self._transaction("IMMEDIATE"):
            self._table(name)
            self._db.execute("UPDATE indexes SET active = (name = ?)", (name,))

    def drop(self, name: str) -> None:
        with suppress(IndexMissing), self._transaction("IMMEDIATE"):
            row = self._db.execute("DELETE FROM indexes WHERE name = ? RETURNING k", (name,)).fetchone()
            if row is not None:
                self._drop_tables(row[0])

    def purge(self) -> None:
        """Afterwards the file holds nothing else than what is in the indexes, and the write-ahead file is empty.

        Words of removed documents stay in the segments of the inverted index until these are merged: its own option
        `secure-delete` does nothing for one without content. Deleted rows are overwritten as they go, and with the file
        written anew nothing stays between rows either. Raises SearchUnavailable while another process reads or writes.
        """
        for k in self._numbers():
            self._merge(k)
        with self._lock, _outages():
            self._db.execute("VACUUM")
            ((busy, _, _),) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise SearchUnavailable("The search index is being read. Try again.")

    def _numbers(self) -> list[int]:
        with suppress(IndexMissing), self._transaction():
            return [k for (k,) in self._db.execute(f"SELECT k FROM indexes WHERE {WHOLE}")]
        return []

    def _merge(self, k: int) -> None:
        """All segments of an inverted index become one, some pages in a transaction: others write in between."""
        pages = -MERGED_AT_ONCE  # negative: take part, all of you
        while True:
            with self._transaction("IMMEDIATE"):
                before = self._db.total_changes()
                self._db.execute(f"INSERT INTO words_{k}(words_{k}, rank) VALUES ('merge', ?)", (pages,))
                if self._db.total_changes() - before < IDLE_CHANGES:
                    return
            pages = MERGED_AT_ONCE

    def _make_registry(self) -> None:
        self._db.execute(REGISTRY)
        columns = self._db.execute("SELECT name FROM pragma_table_info('indexes')").fetchall()
        if ("format",) not in columns:
            self._db.execute(FORMAT_COLUMN)

    def _drop_tables(self, k: int) -> None:
        for statement in drop_tables(k):
            self._db.execute(statement)

    def _table(self, name: str | None) -> "_Table":
        chosen = ("name = ?", (name,)) if name is not None else ("active = 1", ())
        row = self._db.execute(
            f"SELECT k, dimensions FROM indexes WHERE {chosen[0]} AND {WHOLE}", chosen[1]
        ).fetchone()
        if row is None:
            raise IndexMissing(_MISSING)
        return _Table(*row)

    def _answer(self, tenant: str, leg: Leg, table: "_Table", timeout: float) -> LegAnswer:
        deadline = time.monotonic() + timeout
        self._db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
        try:
            if isinstance(leg, KeywordLeg):
                return self._by_keyword(tenant, leg, table.k)
            return self._by_meaning(tenant, leg, table)
        except apsw.InterruptError:
            return LegFailure("timeout")
        finally:
            self._db.set_progress_handler(None)

    def _by_keyword(self, tenant: str, leg: KeywordLeg, k: int) -> LegAnswer:
        if not leg.terms or leg.limit < 1:
            return ()
        words = Words(self._db, k)
        return words.best(words.scores(leg.terms, *_within(tenant, leg.filter)), leg.limit)

    def _by_meaning(self, tenant: str, leg: VectorLeg, table: "_Table") -> LegAnswer:
        """The nearest records. More neighbours are asked for as long as chunks of a few records fill all places."""
        if vector_problem(leg.vector, table.dimensions) is not None:
            return LegFailure("unavailable")
        where, values = _within(tenant, leg.filter)
        sql = _NEAREST.format(k=table.k, condition=where)
        near = min(leg.limit * 2, NEAREST)
        while True:
            vector = sqlite_vec.serialize_float32(leg.vector)
            rows = self._db.execute(
                sql, {"vector": vector, "near": near, "tenant": tenant, **values}
            ).fetchall()
            best = {row[0]: row for row in reversed(rows)}
            if len(best) >= leg.limit or len(rows) < near or near == NEAREST:
                ranked = sorted(best.values(), key=lambda row: (-row[1], row[0]))
                return _hits(ranked[: leg.limit])
            near = min(near * 4, NEAREST)

    def _is_newer(self, change: Change, k: int) -> bool:
        row = self._db.execute(
            f"SELECT version, live FROM docs_{k} WHERE tenant = ? AND id = ? AND chunk = 0",
            (change.tenant, change.id),
        ).fetchone()
        return row is None or (change.version, isinstance(change, Tombstone)) >= (row[0], not row[1])

    def _replace(self, change: Change, table: "_Table") -> None:
        k = table.k
        old = self._db.execute(
            f"DELETE FROM docs_{k} WHERE tenant = ? AND id = ? RETURNING rowid, live",
            (change.tenant, change.id),
        ).fetchall()
        for row, live in old:
            if live:
                self._db.execute(f"DELETE FROM words_{k} WHERE rowid = ?", (row,))
            if live and table.dimensions is not None:
                self._db.execute(f"DELETE FROM vectors_{k} WHERE rowid = ?", (row,))
        if isinstance(change, Tombstone):
            self._insert(k, (change.tenant, change.id, 0, change.version, 0, 1, 0, 0))
            return
        fields = tuple(_stored(change, name) for name in (*KEYWORD_FIELDS, *NUMBER_FIELDS))
        for at, chunk in enumerate(change.chunks):
            head = (change.tenant, change.id, at, change.version, 1, len(change.chunks), change.embedded)
            tokens = chunk.tokens.split()
            row = self._insert(k, (*head, len(tokens), *fields))
            words = [*dict.fromkeys(tokens), *marks(tokens)]
            self._db.execute(f"INSERT INTO words_{k}(rowid, text) VALUES (?, ?)", (row, " ".join(words)))
            if chunk.vector is not None:
                vector = sqlite_vec.serialize_float32(chunk.vector)
                self._db.execute(
                    f"INSERT INTO vectors_{k}(rowid, tenant, vector) VALUES (?, ?, ?)",
                    (row, change.tenant, vector),
                )

    def _insert(self, k: int, row: tuple[Any, ...]) -> int:
        columns = COLUMNS[: len(row)]
        self._db.execute(
            f"INSERT INTO docs_{k}({', '.join(columns)}) VALUES ({', '.join('?' * len(row))})",
            row,
        )
        return self._db.last_insert_rowid()

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED") -> Iterator[None]:
        with self._lock, _outages():
            self._db.execute(f"BEGIN {kind}")
            try:
                yield
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # SQLite has ended it by itself where the disk is full
                    self._db.execute("ROLLBACK")


class _Table(NamedTuple):
    k: int
    dimensions: int | None


@contextmanager
def _outages() -> Iterator[None]:
    try:
        yield
    except _OUTAGES as error:
        raise SearchUnavailable("The search index is not available. Try again.") from error
    except apsw.SQLError as error:
        if "no such table" in str(error):
            raise IndexMissing(_MISSING) from error
        raise


def _within(tenant: str, rule: Filter) -> tuple[str, dict[str, str | int | bytes]]:
    """The condition of a leg under its tenant, with named parameters."""
    sql, values = condition(AllOf((Equals("tenant", tenant), rule)))
    pieces = sql.split("?")
    named = "".join(f"{piece}:v{at}" for at, piece in enumerate(pieces[:-1])) + pieces[-1]
    return f"d.live = 1 AND {named}", {f"v{at}": value for at, value in enumerate(values)}


def _stored(put: Put, name: str) -> str | int | None:
    values = values_of(put.fields, name)
    if name == MANY:
        return json.dumps(values) if values else None
    return values[0] if values else None


def _space(model: str | None, dimensions: int | None) -> EmbeddingSpace | None:
    return None if model is None or dimensions is None else EmbeddingSpace(model, dimensions)


def _entry(row: tuple[Any, ...]) -> Entry:
    tenant, record, version, live, revision, count, embedded = row
    return Entry(tenant, record, version, bool(live), revision, count, bool(embedded))


def _hits(rows: Any) -> tuple[Hit, ...]:
    return tuple(Hit(record, score, chunk, version) for record, score, chunk, version in rows)
