"""ministack, served on a socket the runner has bound, with four things added: saves, expiry, a wake-up, and searches of a partition alone.

Started as `python -m factbook_local.dataplane.emulator CONFIG` where CONFIG is the JSON of `Config`. Ends when its
standard input does, so it never outlives a runner that was killed; what was acknowledged is saved first.
"""

import asyncio
import bisect
import contextlib
import dataclasses
import functools
import json
import os
import re
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn
from cachetools import LRUCache

from factbook_local.dataplane.expiry import Expiry
from factbook_local.dataplane.store import DAMAGED, FULL, UNUSABLE, Cut, Store

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SAVE_SECONDS = 0.5
"""Between two saves. What is acknowledged is on disk within this and one save's length."""
MOST_WRITTEN_AHEAD = 10
"""Saves between which the write-ahead file is emptied where no moment is quiet."""
_KMS_READS = re.compile(r"Encrypt|Decrypt|GenerateDataKey|Sign|Verify|Describe|Get|List")
_GATHER_SECONDS = 0.02
"""After the first record of a wait, so that what is written together is read together."""
_KEPT_VECTORS = 20_000
_KEPT_RECORDS = 1_000
"""Stream records that stay readable after every consumer has passed them."""


@dataclasses.dataclass(frozen=True)
class Config:
    """`file`: where the state is kept, None for nowhere. `expiring`: table name → its time-to-live attribute."""

    socket_fd: int
    file: str | None
    expiring: dict[str, str]
    expiry_seconds: float


class DataPlane:
    """The ASGI application: ministack's, and `/_factbook/…` for the runner."""

    def __init__(self, config: Config) -> None:
        # ministack reads its environment when imported: `process.py` has set it.
        from ministack import app as ministack
        from ministack.services import dynamodb

        from factbook_local.dataplane import state

        self._ministack: Any = ministack.app
        self._dynamodb: Any = dynamodb
        self._expiry = Expiry(config.expiring)
        self._expiry_seconds = config.expiry_seconds
        self._emitted = 0
        self._more = asyncio.Condition()
        self._expiring = False
        self._waits: set[asyncio.Task[Any]] = set()
        """Requests of the pumps that wait for something to read."""
        self._sequence = 0
        self._positions: dict[str, str] = {}
        self._store = Store(Path(config.file)) if config.file else None
        if self._store:
            self._positions = state.restore(self._store)
        self.journal = state.Journal()
        self.saves: dict[str, Any] = {"count": 0, "longestSeconds": 0.0, "cutSeconds": 0.0, "failed": 0}
        self._saving = asyncio.Lock()
        self._unsaved = ""
        self._written_ahead = 0
        """Saves since the write-ahead file was emptied."""
        self._watch()
        _search_one_partition(dynamodb)

    def _watch(self) -> None:
        """Stand in for ministack's own item functions, which all writes of items go through."""
        ddb, journal, expiry = self._dynamodb, self.journal, self._expiry
        set_item, remove_item, build = ddb._set_item, ddb._remove_item, ddb._build_change_record

        def watched_set(table: dict[str, Any], pk: str, sk: str, item: dict[str, Any]) -> Any:
            journal.items.add((table["TableArn"], pk, sk))
            expiry.watch(table, pk, sk, item)
            return set_item(table, pk, sk, item)

        def watched_remove(table: dict[str, Any], pk: str, sk: str) -> Any:
            journal.items.add((table["TableArn"], pk, sk))
            return remove_item(table, pk, sk)

        def recorded(*args: Any) -> dict[str, Any]:
            record: dict[str, Any] = build(*args)
            if self._expiring:
                record["userIdentity"] = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
            journal.records.append(record)
            self._emitted += 1
            return record

        ddb._set_item, ddb._remove_item, ddb._build_change_record = watched_set, watched_remove, recorded
        # A query holds its condition against each item of a partition, and would read it anew as often.
        for pure in ("_tokenize", "_condition_syntax_error"):
            setattr(ddb, pure, functools.lru_cache(1_000)(getattr(ddb, pure)))
        ddb._next_stream_seq = self._next_sequence
        for table in ddb._tables.all_values():
            for pk, row in table["items"].items():
                for sk, item in row.items():
                    expiry.watch(table, pk, sk, item)

    def _next_sequence(self) -> str:
        """Ever larger, also when the clock is set back and across restarts of a few milliseconds."""
        self._sequence = max(self._sequence + 1, time.time_ns())
        return f"{self._sequence:030d}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _waits(scope) and (task := asyncio.current_task()):
            self._waits.add(task)
            task.add_done_callback(self._waits.discard)
        if scope["type"] == "http" and scope["path"].startswith("/_factbook/"):
            return await self._control(scope, receive, send)
        before = self._emitted
        try:
            await self._ministack(scope, receive, send)
        finally:
            if scope["type"] == "http":
                self._note(scope)
            if self._emitted != before:
                await self._wake()

    def _note(self, scope: Scope) -> None:
        """Which service may have changed, told from the request alone."""
        service, _, action = _target(scope).partition(".")
        if service.startswith("DynamoDB"):
            if not action.endswith(("Item", "Items", "Query", "Scan", "GetRecords", "GetShardIterator")):
                self.journal.documents.add("dynamodb")
        elif service == "AmazonSQS":
            self.journal.documents.add("sqs")
        elif service == "TrentService":
            if not _KMS_READS.match(action):
                self.journal.documents.add("kms")
        elif scope["method"] not in ("GET", "HEAD"):
            self._note_object(scope["path"])

    def _note_object(self, path: str) -> None:
        from ministack.core.responses import get_account_id

        bucket, _, key = path.lstrip("/").partition("/")
        self.journal.documents.add("s3")
        if key:
            self.journal.objects.add((get_account_id(), bucket, key))
        else:
            self.journal.buckets.add((get_account_id(), bucket))

    async def _wake(self) -> None:
        async with self._more:
            self._more.notify_all()

    async def _control(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        answer: Any = {}
        match scope["path"].removeprefix("/_factbook/"):
            case "next":
                answer = await self._next(json.loads(body + message["body"]))
            case "save":
                await self.save()
                answer = self.saves
            case "saves":
                answer = self.saves
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    async def _next(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Note how far a consumer is, and hand over the records after the last ones, once there are any."""
        arn, consumer = asked["arn"], asked["consumer"]
        if asked["done"]:
            self._positions[consumer] = self.journal.positions[consumer] = asked["done"]
            behind = min(self._positions.get(name, "") for name in asked["consumers"])
            if behind:
                self.journal.trimmed[arn] = behind
                self._trim(arn, behind)
        after = self._positions.get(consumer, "") if asked["after"] is None else asked["after"]
        if not self._after(arn, after, 1):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(asked["seconds"]), self._more:
                    await self._more.wait_for(lambda: self._after(arn, after, 1))
            await asyncio.sleep(_GATHER_SECONDS)
        records = self._after(arn, after, asked["limit"])
        return {"records": records, "after": _newest(records) or after}

    def _records(self, arn: str) -> list[dict[str, Any]]:
        with _as_owner_of(arn):
            return self._dynamodb._stream_records.get(arn.split("/")[1]) or []

    def _after(self, arn: str, sequence: str, limit: int) -> list[dict[str, Any]]:
        records = self._records(arn)
        first = bisect.bisect_right(records, sequence, key=_sequence)
        return records[first : first + limit]

    def _trim(self, arn: str, sequence: str) -> None:
        records, table = self._records(arn), arn.split("/")[1]
        excess = 0
        while (
            len(records) - excess > _KEPT_RECORDS
            and records[excess]["dynamodb"]["SequenceNumber"] <= sequence
        ):
            excess += 1
        if excess:
            del records[:excess]
            with _as_owner_of(arn):
                trimmed = self._dynamodb._stream_trimmed
                trimmed[table] = trimmed.get(table, 0) + excess

    def end_waits(self) -> None:
        """Whoever ends the data plane has ended its pumps: nobody reads what they wait for."""
        for task in self._waits:
            task.cancel()

    async def save(self) -> None:
        """Write down what changed since the last save; a cut that fails is part of the next one."""
        if self._store is None:
            self.journal.clear()
            return
        async with self._saving:
            began = time.perf_counter()
            cut = self.journal.cut()
            taken = time.perf_counter()
            loop = asyncio.get_running_loop()
            if not cut or self._written_ahead >= MOST_WRITTEN_AHEAD:
                await self._settle_file(self._store)
            if not cut:
                return
            try:
                await loop.run_in_executor(None, self._store.apply, cut)
                self._written_ahead += 1
            except Exception as error:  # noqa: BLE001 - a full disk must not end the service
                self._failed(cut, error)
                return
            self._unsaved = ""
            self.saves["count"] += 1
            self.saves["cutSeconds"] = max(self.saves["cutSeconds"], taken - began)
            self.saves["longestSeconds"] = max(self.saves["longestSeconds"], time.perf_counter() - began)

    async def _settle_file(self, store: Store) -> None:
        """In a quiet moment, or after so many saves without one: nothing that was deleted stays in the file."""
        if self._written_ahead:
            with contextlib.suppress(sqlite3.Error):  # a full disk: the next moment will do
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, store.empty_the_write_ahead_file)
                self._written_ahead = 0

    def _failed(self, cut: Cut, error: Exception) -> None:
        self.journal.put_back(cut)
        self.saves["failed"] += 1
        if self._unsaved != str(error):  # once for each reason, not twice a second
            self._unsaved = str(error)
            print(f"factbook: the state cannot be saved: {error}", file=sys.stderr, flush=True)

    async def keep_saving(self) -> None:
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self.save()

    async def keep_expiring(self) -> None:
        while True:
            await asyncio.sleep(self._expiry_seconds)
            before = self._emitted
            self._expiring = True
            try:
                for table, pk, sk, item in self._expiry.due(time.time()):
                    with _as_owner_of(table["TableArn"]):
                        self._dynamodb._remove_item(table, pk, sk)
                        self._dynamodb._emit_stream_event(table["TableName"], "REMOVE", item, None)
            finally:
                self._expiring = False
            if self._emitted != before:
                await self._wake()


def _search_one_partition(ddb: Any) -> None:
    """ministack reads each number of every vector of a table, in each search, before it looks whether that asks for its partition.

    What it has read is kept, of as many vectors as a local service has.
    """
    search, parse, entry_of = ddb._search_vectors, ddb._vector_condition_terms, ddb._vector_entry
    asked: list[tuple[str, Any]] = []
    kept: LRUCache[tuple[str, int], tuple[dict[str, Any], Any]] = LRUCache(_KEPT_VECTORS)

    def parsed(*condition: Any) -> Any:
        terms, refusal = parse(*condition)
        asked.extend(terms or ())
        return terms, refusal

    def entry(table: Any, vix: Any, item: Any) -> Any:
        if not item or any(item.get(name) != value for name, value in asked):
            return None
        place = (vix["IndexName"], id(item))
        read, found = kept.get(place, ({}, None))
        if len(read) != len(item) or any(item.get(name) is not value for name, value in read.items()):
            found = entry_of(table, vix, item)
            kept[place] = (dict(item), found)
        return found

    def searched(request: Any) -> Any:
        try:
            return search(request)
        finally:
            asked.clear()

    ddb._vector_condition_terms, ddb._vector_entry, ddb._search_vectors = parsed, entry, searched


def _target(scope: Scope) -> str:
    """What is asked of a service that has one path for everything; empty where the path says it."""
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-amz-target"), "")


def _waits(scope: Scope) -> bool:
    return scope["type"] == "http" and (
        scope["path"] == "/_factbook/next" or _target(scope) == "AmazonSQS.ReceiveMessage"
    )


def _sequence(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def _newest(records: list[dict[str, Any]]) -> str:
    return _sequence(records[-1]) if records else ""


@contextlib.contextmanager
def _as_owner_of(arn: str) -> Iterator[None]:
    from ministack.core.arn import parse_arn
    from ministack.core.responses import request_scope

    spec = parse_arn(arn)
    with request_scope(spec.account_id, spec.region):
        yield


class _Server(uvicorn.Server):
    def __init__(self, plane: DataPlane, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._plane = plane

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._plane.end_waits()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the runner decides when this ends


def _end_with_stdin(stop: Callable[[], object]) -> None:
    def wait() -> None:
        while os.read(0, 4096):
            pass
        stop()

    threading.Thread(target=wait, daemon=True).start()


async def serve(config: Config) -> None:
    try:
        plane = DataPlane(config)
    except sqlite3.OperationalError as error:
        sys.exit(FULL if error.sqlite_errorcode == sqlite3.SQLITE_FULL else UNUSABLE)
    except (sqlite3.DatabaseError, json.JSONDecodeError):
        sys.exit(DAMAGED)
    server = _Server(
        plane,
        uvicorn.Config(
            plane,
            lifespan="on",
            log_level="critical",
            access_log=False,
            ws="none",
            proxy_headers=False,
            http="h11",
            timeout_keep_alive=600,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=1 << 20,
        ),
    )
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.should_exit = True

    _end_with_stdin(lambda: loop.call_soon_threadsafe(end))
    tasks = [asyncio.create_task(plane.keep_saving()), asyncio.create_task(plane.keep_expiring())]
    await server.serve(sockets=[socket.socket(fileno=config.socket_fd)])
    for task in tasks:
        task.cancel()
    await plane.save()


def main() -> None:
    asyncio.run(serve(Config(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    main()
