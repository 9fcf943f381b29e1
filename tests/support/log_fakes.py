"""In-memory ports of the log, honest where it matters: one lock, conditional writes that fail, nothing ever aliased."""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from itertools import accumulate

from factbook.adapters.dynamodb.key_parts import shard_of
from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.domain.log.entries import LogEntry
from factbook.domain.log.merkle import Edge
from factbook.domain.log.runs import Leaf
from factbook.domain.log.sealing import KeyName
from factbook.domain.scope import Scope
from factbook.ports.cipher import Forged
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.checkpoints import DirtyRun, Growth, NoteConflict, PublishedNote
from factbook.ports.log.entries import RunRow, StoredEntry, ThreadPage
from factbook.ports.log.sealing import SealedKey
from factbook.ports.log.walks import RunName
from factbook.ports.walks import Stop, WalkPage


def message_in(scope: Scope) -> LogEntry:
    """A message of this scope, for those who judge by nothing else of it."""
    return LogEntry(
        id="r:0:n",
        kind="user-message",
        scope=scope,
        run_id="r",
        timestamp="2026-01-01T00:00:00.000000Z",
        sequence=0,
        content_hash="",
        prev_hash="",
        entry_hash="",
    )


class FakeLog:
    """LogStore in a dictionary; `puts` counts attempts, `reads` counts every read."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.puts = 0
        self.reads = 0
        self._entries: dict[tuple[str, str, int], StoredEntry] = {}

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        with self.lock:
            self.puts += 1
            taken = [self._entries[_place(entry)] for entry in entries if _place(entry) in self._entries]
            if taken:
                return taken[-1]
            self._entries |= {_place(entry): entry for entry in entries}
            return None

    def stored_bytes(self, entry: StoredEntry) -> int:
        return DynamoLog(None, "").stored_bytes(entry)

    def entry(self, tenant: str, run_id: str, sequence: int) -> StoredEntry | None:
        with self.lock:
            self.reads += 1
            return _stripped(self._entries.get((tenant, run_id, sequence)))

    def newest(self, tenant: str, run_id: str, count: int) -> list[StoredEntry]:
        found: list[StoredEntry] = []
        room = 2**20  # what one query of DynamoDB reads
        for entry in list(reversed(self._run(tenant, run_id, 0)))[:count]:
            room -= len(entry.text.encode())
            if found and room < 0:
                break
            found.append(entry)
        return found

    def entries(
        self, tenant: str, run_id: str, since: int, limit: int, budget: int = 4_000_000
    ) -> tuple[list[StoredEntry], bool]:
        found: list[StoredEntry] = []
        for entry in self._run(tenant, run_id, since):
            budget -= len(entry.text.encode())
            if len(found) == limit or (budget < 0 and found):
                return found, True
            found.append(entry)
        return found, False

    def thread(
        self,
        tenant: str,
        thread: str,
        containers: Sequence[str] | None,
        position: str,
        rows: int | None,
        *,
        newest_first: bool,
    ) -> ThreadPage:
        with self.lock:
            self.reads += 1
            found = [
                (f"{entry.timestamp}|{entry.run_id}", entry)
                for (owner, _, _), entry in self._entries.items()
                if owner == tenant and entry.thread == thread
            ]
        found.sort(key=lambda each: each[0], reverse=newest_first)
        later = [
            (at, entry)
            for at, entry in found
            if not position or (at < position if newest_first else at > position)
        ]
        looked_at = later[: _in_one_read(later) if rows is None else rows]
        # As DynamoDB does: full to the brim, it cannot know whether more follow.
        more = len(looked_at) < len(later) or len(looked_at) == rows
        kept = [
            (at, replace(entry, thread=None, timestamp=None, opens=None, container=None))
            for at, entry in looked_at
            if containers is None or entry.container in (None, *containers)
        ]
        return ThreadPage(kept if containers != () else [], looked_at[-1][0] if more and looked_at else None)

    def runs(
        self, tenant: str, container: str | None, shard: int, before: str, limit: int
    ) -> tuple[list[RunRow], bool]:
        with self.lock:
            self.reads += 1
            found = [
                RunRow(f"{entry.timestamp}|{entry.run_id}", entry.opens)
                for entry in self._entries.values()
                if entry.opens is not None
                and entry.tenant == tenant
                and container in (None, entry.opens.container)
                and shard_of(entry.run_id, self.run_shards(container)) == shard
            ]
        later = sorted((row for row in found if row.order < before), key=lambda row: row.order, reverse=True)
        return later[:limit], len(later) >= limit

    def run_shards(self, container: str | None) -> int:
        return 8 if container is None else 4

    def _run(self, tenant: str, run_id: str, since: int) -> list[StoredEntry]:
        with self.lock:
            self.reads += 1
            found = [
                entry
                for (owner, run, sequence), entry in self._entries.items()
                if (owner, run) == (tenant, run_id) and sequence >= since
            ]
        found.sort(key=lambda entry: entry.sequence)
        return [replace(entry, thread=None, timestamp=None, opens=None, container=None) for entry in found]


class FakeRuns:
    """RunWalk over the entries of FakeLog: a page of each tenant in turn."""

    def __init__(self, log: FakeLog) -> None:
        self._log = log

    def walk(self, after: str | None, limit: int) -> WalkPage[RunName]:
        turn, places = json.loads(after) if after else (0, {})
        with self._log.lock:
            runs = sorted((tenant, run) for tenant, run, sequence in self._log._entries if sequence == 0)
        left = {
            tenant: own
            for tenant in sorted({tenant for tenant, _ in runs})
            if (own := [run for owner, run in runs if owner == tenant and run > places.get(tenant, "")])
        }
        if not left:
            return WalkPage([], None)
        tenant = list(left)[turn % len(left)]
        taken = left[tenant][:limit]
        stops = [Stop(RunName(tenant, run), json.dumps([turn, {**places, tenant: run}])) for run in taken]
        more = len(left) > 1 or len(left[tenant]) > limit
        following = json.dumps([turn + (len(left[tenant]) > limit), {**places, tenant: taken[-1]}])
        return WalkPage(stops, following if more else None)


def _in_one_read(found: Sequence[tuple[str, StoredEntry]]) -> int:
    """How many of these one query of DynamoDB reads."""
    sizes = accumulate(len(entry.text.encode()) for _, entry in found)
    return max(1, sum(size <= 2**20 for size in sizes))


def _place(entry: StoredEntry) -> tuple[str, str, int]:
    return entry.tenant, entry.run_id, entry.sequence


def _stripped(entry: StoredEntry | None) -> StoredEntry | None:
    # A store reads back what the authority says; the index's fields it only writes.
    if entry is None:
        return None
    return replace(entry, thread=None, timestamp=None, opens=None, container=None)


class FakeKeys:
    """KeyStore in a dictionary."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reads = 0
        self._keys: dict[tuple[str, KeyName, int], SealedKey] = {}

    def newest(self, tenant: str, name: KeyName) -> SealedKey | None:
        with self.lock:
            self.reads += 1
            found = [key for (owner, own, _), key in self._keys.items() if (owner, own) == (tenant, name)]
        return max(found, key=lambda key: key.generation, default=None)

    def generation(self, tenant: str, name: KeyName, generation: int) -> SealedKey | None:
        with self.lock:
            self.reads += 1
            return self._keys.get((tenant, name, generation))

    def create(self, key: SealedKey) -> SealedKey | None:
        with self.lock:
            there = self._keys.setdefault((key.tenant, key.name, key.generation), key)
        return None if there == key else there

    def walk(self, tenant: str, after: SealedKey | None = None) -> Iterator[SealedKey]:
        with self.lock:
            found = {_order(key): key for key in self._keys.values() if key.tenant == tenant}
        for order in sorted(found):
            if after is None or order > _order(after):
                yield found[order]

    def destroy(self, key: SealedKey, at: str) -> None:
        with self.lock:
            where = (key.tenant, key.name, key.generation)
            there = self._keys.get(where)
            if there is not None and there.destroyed_at is None:
                self._keys[where] = replace(there, wrapped=None, destroyed_at=at)

    def supply(self, key: SealedKey) -> SealedKey | None:
        with self.lock:
            where = (key.tenant, key.name, key.generation)
            there = self._keys.get(where)
            if there is None or (there.wrapped, there.destroyed_at) == (None, None):
                self._keys[where] = there = key
        return None if there == key else there


def _order(key: SealedKey) -> tuple[str | int, ...]:
    return (*astuple(key.name), key.generation)


class FakeWrapper:
    """KeyWrapper that keeps the keys itself; `calls` counts."""

    def __init__(self) -> None:
        self.calls = 0
        self._keys: dict[tuple[str, bytes], bytes] = {}

    def new_key(self, tenant: str) -> tuple[bytes, bytes]:
        self.calls += 1
        plain, wrapped = os.urandom(32), os.urandom(16)
        self._keys[tenant, wrapped] = plain
        return plain, wrapped

    def wrap(self, tenant: str, plain: bytes) -> bytes:
        self.calls += 1
        wrapped = os.urandom(16)
        self._keys[tenant, wrapped] = plain
        return wrapped

    def unwrap(self, tenant: str, wrapped: bytes) -> bytes:
        self.calls += 1
        try:
            return self._keys[tenant, wrapped]
        except KeyError as error:
            raise Forged from error


class FakeTree:
    """TreeStore in dictionaries."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._edges: dict[str, Edge] = {}
        self._leaves: dict[str, list[tuple[Leaf, bytes]]] = {}
        self._nodes: dict[tuple[str, int], dict[int, bytes]] = {}
        self._dirty: dict[tuple[str, str], DirtyRun] = {}
        self._notes: dict[str, dict[int, PublishedNote]] = {}

    def edge(self, tenant: str) -> Edge:
        with self.lock:
            return self._edges.get(tenant, Edge())

    def grow(self, tenant: str, growth: Growth) -> bool:
        with self.lock:
            if self._edges.get(tenant, Edge()) != growth.before:
                return self._edges.get(tenant) == growth.after
            self._edges[tenant] = growth.after
            self._leaves.setdefault(tenant, []).extend(growth.leaves)
            for level, index, hashed in growth.nodes:
                self._nodes.setdefault((tenant, level), {})[index] = hashed
            return True

    def hashes(self, tenant: str, height: int, page: int) -> list[bytes]:
        with self.lock:
            if height == 0:
                return [hashed for _, hashed in self._leaves.get(tenant, [])][page * 256 : page * 256 + 256]
            nodes = self._nodes.get((tenant, 8 * height), {})
        return [nodes[index] for index in range(page * 256, page * 256 + 256) if index in nodes]

    def leaves(self, tenant: str, start: int, limit: int) -> list[Leaf]:
        with self.lock:
            return [leaf for leaf, _ in self._leaves.get(tenant, [])][start : start + limit]

    def run_leaves(self, tenant: str, run_id: str, since: int, limit: int) -> list[Leaf]:
        return [leaf for leaf in self._of_run(tenant, run_id) if leaf.sequence >= since][:limit]

    def last_leaf(self, tenant: str, run_id: str) -> Leaf | None:
        return next(reversed(self._of_run(tenant, run_id)), None)

    def mark_dirty(self, run: DirtyRun) -> None:
        with self.lock:
            there = self._dirty.get((run.tenant, run.run_id))
            if there is None or there.sequence < run.sequence:
                self._dirty[run.tenant, run.run_id] = run

    def dirty_tenants(self, deadline: Deadline = NEVER) -> Iterator[str]:
        with self.lock:
            tenants = list(dict.fromkeys(tenant for tenant, _ in self._dirty))
        yield from () if deadline.passed else tenants

    def dirty_of(self, tenant: str, deadline: Deadline = NEVER) -> Iterator[DirtyRun]:
        with self.lock:
            marks = [run for run in self._dirty.values() if run.tenant == tenant]
        yield from () if deadline.passed else marks

    def clear(self, run: DirtyRun) -> None:
        with self.lock:
            there = self._dirty.get((run.tenant, run.run_id))
            if there is not None and there.sequence <= run.sequence:
                del self._dirty[run.tenant, run.run_id]

    def keep_note(self, tenant: str, note: PublishedNote) -> None:
        with self.lock:
            self._notes.setdefault(tenant, {}).setdefault(note.size, note)

    def notes(self, tenant: str, below: int, limit: int) -> list[PublishedNote]:
        with self.lock:
            kept = dict(self._notes.get(tenant, {}))
        return [kept[size] for size in sorted(kept, reverse=True) if size < below][:limit]

    def _of_run(self, tenant: str, run_id: str) -> list[Leaf]:
        with self.lock:
            found = [leaf for leaf, _ in self._leaves.get(tenant, []) if leaf.run_id == run_id]
        return sorted(found, key=lambda leaf: leaf.sequence)


class FakeCheckpoints:
    """CheckpointStore that never takes back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.notes: dict[tuple[str, int], str] = {}

    def newest(self, tenant: str) -> str | None:
        with self.lock:
            sizes = [size for owner, size in self.notes if owner == tenant]
            return self.notes[tenant, max(sizes)] if sizes else None

    def publish(self, tenant: str, size: int, note: str) -> None:
        with self.lock:
            if self.notes.setdefault((tenant, size), note) != note:
                raise NoteConflict
