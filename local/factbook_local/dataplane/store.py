"""The file behind `--data DIR`: one SQLite database that holds the state of every service of the data plane.

Invariant: a cut is applied in one transaction, so the file always holds one moment's state of DynamoDB, KMS,
SQS and S3 together, whichever moment the process is killed at. What is deleted is overwritten (`secure_delete`),
and the write-ahead file is emptied in every quiet moment: an erased fact must not be readable in a free page or there.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS items (arn TEXT, pk TEXT, sk TEXT, body TEXT NOT NULL, PRIMARY KEY (arn, pk, sk));
CREATE TABLE IF NOT EXISTS objects (
    account TEXT, bucket TEXT, key TEXT, body TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (account, bucket, key));
CREATE TABLE IF NOT EXISTS records (sequence TEXT PRIMARY KEY, arn TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS positions (consumer TEXT PRIMARY KEY, sequence TEXT NOT NULL);
"""

DAMAGED, UNUSABLE, FULL = 3, 4, 5
"""Exit codes of a data plane whose state file is no state, may not be opened or written, or has no room."""

ItemKey = tuple[str, str, str]
"""(table ARN, partition key value, sort key value)."""
ObjectKey = tuple[str, str, str]
"""(account, bucket, key)."""


@dataclass
class Cut:
    """What changed since the last cut. None as a value: it is gone."""

    documents: dict[str, str] = field(default_factory=dict)
    items: dict[ItemKey, str | None] = field(default_factory=dict)
    objects: dict[ObjectKey, tuple[str, bytes] | None] = field(default_factory=dict)
    records: list[tuple[str, str, str]] = field(default_factory=list)
    positions: dict[str, str] = field(default_factory=dict)
    trimmed: dict[str, str] = field(default_factory=dict)
    """Stream ARN → sequence number up to which every consumer has read."""
    dropped: set[str] = field(default_factory=set)
    """ARNs of tables that were deleted: their items and records go before anything of this cut is written."""

    def __bool__(self) -> bool:
        return any(
            (
                self.documents,
                self.items,
                self.objects,
                self.records,
                self.positions,
                self.trimmed,
                self.dropped,
            )
        )


def _text(key: Any) -> str:
    return json.dumps(key)  # ASCII: a lone surrogate in a key must not stop a save


class Store:
    """One open state file. `apply` may be called from another thread than the one that opened it, one at a time.

    Raises sqlite3.DatabaseError for a file that is damaged or may not be written.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA secure_delete=ON")
        self._db.executescript(_SCHEMA)
        self._db.execute("DELETE FROM positions WHERE FALSE")  # fails now, where nothing could be saved later

    def apply(self, cut: Cut) -> None:
        """Save a cut, all or nothing."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            for arn in cut.dropped:
                db.execute("DELETE FROM items WHERE arn = ?", (arn,))
                db.execute("DELETE FROM records WHERE substr(arn, 1, length(?)) = ?", (f"{arn}/", f"{arn}/"))
            db.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?)", cut.documents.items())
            for key, body in cut.items.items():
                if body is None:
                    db.execute(
                        "DELETE FROM items WHERE arn = ? AND pk = ? AND sk = ?",
                        (key[0], _text(key[1]), _text(key[2])),
                    )
                else:
                    db.execute(
                        "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)",
                        (key[0], _text(key[1]), _text(key[2]), body),
                    )
            for key, stored in cut.objects.items():
                if stored is None:
                    db.execute(
                        "DELETE FROM objects WHERE account = ? AND bucket = ? AND key = ?",
                        (*key[:2], _text(key[2])),
                    )
                else:
                    db.execute(
                        "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
                        (*key[:2], _text(key[2]), *stored),
                    )
            db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", cut.records)
            db.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?)", cut.positions.items())
            db.executemany("DELETE FROM records WHERE arn = ? AND sequence <= ?", cut.trimmed.items())
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # SQLite has ended it by itself where the disk is full
                db.execute("ROLLBACK")
            raise

    def empty_the_write_ahead_file(self) -> None:
        """What is in it goes into the database, and the file has no length."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def documents(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT name, body FROM documents"))

    def tables(self) -> set[str]:
        """ARNs of the tables that have items."""
        return {arn for (arn,) in self._db.execute("SELECT DISTINCT arn FROM items")}

    def items(self) -> Iterator[tuple[ItemKey, dict[str, Any]]]:
        for arn, pk, sk, body in self._db.execute("SELECT arn, pk, sk, body FROM items ORDER BY rowid"):
            yield (arn, json.loads(pk), json.loads(sk)), json.loads(body)

    def objects(self) -> Iterator[tuple[ObjectKey, str, bytes]]:
        for account, bucket, key, body, data in self._db.execute(
            "SELECT account, bucket, key, body, bytes FROM objects"
        ):
            yield (account, bucket, json.loads(key)), body, data

    def records(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for sequence, arn, body in self._db.execute(
            "SELECT sequence, arn, body FROM records ORDER BY sequence"
        ):
            yield sequence, arn, json.loads(body)

    def positions(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT consumer, sequence FROM positions"))

    def close(self) -> None:
        self._db.close()
