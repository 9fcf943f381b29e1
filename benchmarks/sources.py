"""Mirrored facts under a crowd, and large payloads: `python benchmarks/sources.py readers | sweep | dead-host | blobs`.

readers     50 readers in 5 processes read one stale fact at once: first of a source that takes 0.5 s, then of one that hangs
sweep       10,000 facts are due among 1,000,000, in a store on disk; the sweep is killed with SIGKILL again and again
dead-host   1,000 hosts, one of which never answers; the same without it, some rounds of both
blobs       200 MB up and down by presigned URLs, wrong bytes, a second upload, and an object that somebody replaces

Times are given as ratios within one run, or beside what they are to stay below.
"""

import argparse
import hashlib
import http.client
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from factbook.adapters.dynamodb.key_parts import shard_of
from factbook.adapters.sources.sqs_refreshes import LONG_POLL
from factbook.api.sources.events import RESERVE_SECONDS
from factbook.domain import times
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.jobs import DONE, Job
from factbook.ports.sources.stores import Due, Taken, Wanted
from factbook.usecases.sources.on_read import READ_SECONDS
from factbook.usecases.sources.sweeping import SHARD_ROWS, SWEEP, SweepPorts, sweep
from factbook_local.testing import Ready, descendants, running

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # fakes, and a server to ask

FACTS = "/v1/memory/facts"
NOON = "2026-01-01T12:00:00.000Z"
PROCESSES, READERS_EACH = 5, 10
BLOB_BYTES = 200_000_000
PIECE = 1 << 20


# -- a service


def call(
    ready: Ready, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Any:
    """Status, headers and JSON of an answer."""
    where = urlsplit(ready.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
    said = {"Authorization": f"Bearer {ready.tokens['demo']}", **(headers or {})}
    connection.request(method, path, None if body is None else json.dumps(body), said)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), json.loads(text) if text[:1] == b"{" else text


def mirror(ready: Ready, url: str) -> str:
    """A fact that is stale until its source is asked, and fresh for an hour then."""
    freshness = {"ttlSeconds": 3600, "lastVerifiedAt": "2026-01-01T00:00:00Z"}
    source = {"kind": "http-api", "uri": url, "freshness": freshness, "refresh": {"strategy": "on-read"}}
    status, _, fact = call(ready, "POST", FACTS, {"type": "acme.price", "content": "old", "source": source})
    assert status == 201, fact
    return str(fact["id"])


# -- readers


def read_in_a_process(
    aws: dict[str, Any], token: str, facts: dict[str, str], rounds: list[str], start: Any, told: Any
) -> None:
    """Ten readers: the read function, as ten invocations that are warm. What each was told, and when."""
    from functools import cache

    from support.gateway import Gateway

    from factbook.settings import Settings
    from factbook.wiring.clients import make_client
    from factbook.wiring.services import Services

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what the function logs
    os.environ |= {
        "AWS_ENDPOINT_URL": aws["endpoint"],
        "AWS_ENDPOINT_URL_LAMBDA": aws["functions"]["endpoint"],
        "AWS_REGION": aws["region"],
        "AWS_DEFAULT_REGION": aws["region"],
        "AWS_ACCESS_KEY_ID": aws["accessKeyId"],
        "AWS_SECRET_ACCESS_KEY": aws["secretAccessKey"],
    }
    tables = {f"{name}_table": table for name, table in aws["tables"].items()}
    settings = Settings(**tables, refresh_function=aws["functions"]["refresh"])
    client = cache(make_client)
    # An invocation has services of its own: they know how long its request has been there.
    gateways = [Gateway(Services(settings, client=client), token) for _ in range(READERS_EACH)]

    def reader(gateway: Gateway, name: str) -> tuple[float, Any, str | None]:
        start.wait()
        began = time.monotonic()
        fact = gateway.call("GET", f"{FACTS}/{facts[name]}").json
        return time.monotonic() - began, fact["content"], fact.get("staleReason")

    with ThreadPoolExecutor(READERS_EACH) as pool:
        for name in rounds:
            told.put((name, list(pool.map(reader, gateways, [name] * READERS_EACH))))


def readers(_: argparse.Namespace) -> int:
    from support.source_server import json_reply, source_server

    with (
        tempfile.TemporaryDirectory() as name,
        source_server() as server,
        running(Path(name), env={"REFRESH_ALLOW": server.netloc}) as ready,
    ):

        def slow(exchange: Any) -> None:
            time.sleep(0.5)
            exchange.send(json_reply('"new"'))

        server.behaviours |= {"/warm": json_reply('"new"'), "/slow": slow, "/hangs": lambda it: it.hang()}
        facts = {path: mirror(ready, server.url(path)) for path in server.behaviours}
        call(
            ready, "GET", f"{FACTS}/{mirror(ready, server.url('/warm'))}"
        )  # the function is warm from now on
        rounds = ["/warm", "fresh", "/slow", "/hangs"]
        facts["fresh"] = facts["/warm"]
        token = ready.tokens["demo"]
        context = multiprocessing.get_context("spawn")
        start, told = context.Barrier(PROCESSES * READERS_EACH), context.Queue()
        arguments = (ready.aws, token, facts, rounds, start, told)
        processes = [context.Process(target=read_in_a_process, args=arguments) for _ in range(PROCESSES)]
        for process in processes:
            process.start()
        found: dict[str, list[Any]] = {}
        for _ in range(PROCESSES * len(rounds)):
            path, answers = told.get(timeout=300)
            found.setdefault(path, []).extend(answers)
        for process in processes:
            process.join()
        print(f"{PROCESSES * READERS_EACH} readers in {PROCESSES} processes read one on-read fact at once")
        longest = {path: max(seconds for seconds, *_ in found[path]) for path in rounds}
        failed = 0
        for path in rounds[1:]:  # what is made at first use is made by then
            asked = sum(request.target == path for request in server.requests)
            said = Counter(f"{content}, {why or 'fresh'}" for _, content, why in found[path])
            over = longest[path] - longest["fresh"]
            print(
                f"{path}: source asked {asked}×; longest {longest[path]:.2f} s, {over:+.2f} s to a fresh one; {dict(said)}"
            )
            failed += path in ("/slow", "/hangs") and (asked != 1 or longest[path] > READ_SECONDS)
        return 1 if failed else 0


# -- sweep


class OnDisk:
    """DueIndex, RefreshQueue and JobStore in one SQLite file; it counts what is read. Each call is kept before it returns."""

    shards = 8

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
        self._base.execute("PRAGMA journal_mode=WAL")

    def fill(self, rows: Iterator[tuple[int, str, str, str]]) -> None:
        self._base.executescript(
            "CREATE TABLE due (p, s, o, tenant, fact, PRIMARY KEY (p, s, o)) WITHOUT ROWID;"
            "CREATE TABLE queue (n INTEGER PRIMARY KEY, tenant, fact, done DEFAULT 0);"
            "CREATE TABLE job (name PRIMARY KEY, step, v); CREATE TABLE reads (rows); BEGIN"
        )
        self._base.executemany(
            "INSERT INTO due VALUES (?, ?, ?, ?, ?)",
            ((p, shard_of(fact, 8), f"{at}|{tenant}|{fact}", tenant, fact) for p, at, tenant, fact in rows),
        )
        self._base.execute("COMMIT")

    def _do(self, text: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._base.execute(text, values).fetchall()

    def due(self, priority: int, shard: int, after: str, until: str, limit: int) -> tuple[list[Due], bool]:
        found = self._do(
            "SELECT o, tenant, fact FROM due WHERE p = ? AND s = ? AND o > ? AND o <= ? ORDER BY o LIMIT ?",
            *(priority, shard, after, f"{until}|~", limit + 1),
        )
        self._do("INSERT INTO reads VALUES (?)", len(found[:limit]))
        return [Due(*row) for row in found[:limit]], len(found) > limit

    def send(self, wanted: Sequence[Wanted], delay: int = 0) -> None:
        assert not delay
        with self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany(
                "INSERT INTO queue (tenant, fact) VALUES (?, ?)",
                [(each.tenant, each.fact_id) for each in wanted],
            )
            self._base.execute("COMMIT")

    def waiting(self) -> int:
        return int(self._do("SELECT COUNT(*) FROM queue WHERE NOT done")[0][0])

    def job(self, name: str, tenant: str | None = None) -> Job | None:
        del tenant
        found = self._do("SELECT v FROM job WHERE name = ?", name)
        return Job(**json.loads(found[0][0])) if found else None

    def keep(self, job: Job) -> bool:
        before = self._do("SELECT step FROM job WHERE name = ?", job.name)
        if job.step != (before[0][0] + 1 if before else 0):
            return False
        self._do("INSERT OR REPLACE INTO job VALUES (?, ?, ?)", job.name, job.step, json.dumps(asdict(job)))
        return True

    def ask(self, name: str, at: str, tenant: str | None = None) -> None:
        raise NotImplementedError

    def asked(self, name: str, tenant: str | None = None) -> str | None:
        raise NotImplementedError

    def queued(self) -> list[str]:
        return [row[0] for row in self._do("SELECT fact FROM queue ORDER BY n")]

    def work_off(self) -> None:
        self._do("UPDATE queue SET done = 1")

    def reads(self) -> tuple[int, int]:
        """Queries, and the rows that they brought."""
        (found,) = self._do("SELECT COUNT(*), SUM(rows) FROM reads")
        return int(found[0]), int(found[1] or 0)


class Noon:
    def now(self) -> str:
        return NOON


def some_facts(due: int, later: int) -> Iterator[tuple[int, str, str, str]]:
    drawn = random.Random(7)
    for number in range(due + later):
        seconds = -(number + 61) if number < due else number
        yield drawn.randrange(10), times.add(NOON, seconds=seconds), f"t{drawn.randrange(50)}", f"f{number}"


def sweep_once(arguments: argparse.Namespace) -> int:
    """One invocation, in a process of its own that may be killed."""
    store = OnDisk(Path(arguments.store))
    job = sweep(SweepPorts(store, store, store, Noon()), NEVER)
    return 0 if job is not None and job.phase == DONE else 3


def swept(path: Path, kills: int) -> tuple[OnDisk, int]:
    """The store after a round that was killed so often; after how many it was done."""
    store, dice, killed = OnDisk(path), random.Random(1), 0
    while True:
        command = [sys.executable, __file__, "sweep-once", "--store", str(path)]
        with subprocess.Popen(command) as process:
            if killed < kills:
                before = len(store.queued())
                enough = dice.randrange(1, 2_000)
                while process.poll() is None and len(store.queued()) < before + enough:
                    time.sleep(0.002)
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    killed += 1
            process.wait()
        store.work_off()
        job = store.job(SWEEP)
        if job is not None and job.phase == DONE:
            return store, killed


def sweeping(arguments: argparse.Namespace) -> int:
    rows = list(some_facts(arguments.due, 0))
    expected = [row[3] for row in sorted(rows, key=lambda row: (-row[0], row[1]))]
    with tempfile.TemporaryDirectory() as name:
        found = {}
        for label, later, kills in (
            ("due alone", 0, 0),
            ("among all", arguments.facts - arguments.due, 0),
            ("killed", arguments.facts - arguments.due, arguments.kills),
        ):
            path = Path(name) / f"{label}.db"
            OnDisk(path).fill(some_facts(arguments.due, later))
            store, killed = swept(path, kills)
            queued = store.queued()
            first = list(dict.fromkeys(queued))
            # Tenants take turns within a page, so places are compared by page.
            pages = 8 * SHARD_ROWS
            ordered = all(
                abs(first.index(fact) - place) <= pages
                for place, fact in list(enumerate(expected))[:: max(1, len(expected) // 500)]
            )
            queries, read = store.reads()
            skipped = len(set(expected) - set(queued))
            strange = len(set(queued) - set(expected))
            found[label] = (skipped, strange, ordered)
            print(
                f"{label}: {arguments.due + later:,} facts, {arguments.due:,} due, {killed} kills: {queries:,} queries brought "
                f"{read:,} rows; queued {len(set(queued)):,}, skipped {skipped}, not due {strange}, twice "
                f"{len(queued) - len(set(queued)):,}; in order of priority and time: {ordered}"
            )
    return 0 if set(found.values()) == {(0, 0, True)} else 1


# -- one dead host

ANSWER_SECONDS, SILENCE_SECONDS = (1.0, 3.0), 10.0
"""Of a living host, drawn between: so long that threads and invocations are what runs short, not this machine. Of the dead one,
as long as the service waits.
"""
INVOCATIONS = 10
"""At once, as the template has it."""
ROUNDS = 3
MOST_RATIO = 1.1


def tick(clock: Any, stopped: threading.Event) -> None:
    """Move a clock that stands still as time goes."""
    before = time.monotonic()
    while not stopped.wait(0.02):
        now = time.monotonic()
        clock.advance(milliseconds=int(1000 * (now - before)))
        before = now


def delaying_queue() -> Any:
    """A queue that gives what is put off when its time has come, and an invocation what it is brought."""
    from support.source_world import FakeQueue

    class Delaying(FakeQueue):
        def __init__(self) -> None:
            super().__init__()
            self._later: list[tuple[float, Wanted]] = []

        def send(self, wanted: Sequence[Wanted], delay: int = 0) -> None:
            with self._lock:
                if delay:
                    self._later += [(time.monotonic() + delay, each) for each in wanted]
                else:
                    self.sent += wanted

        def take(self, most: int) -> list[Taken]:
            taken = [Taken("", each) for each in self.brought(most)]
            if not taken:
                time.sleep(LONG_POLL)
            return taken

        def remove(self, taken: Taken) -> None:
            """It is gone since it was taken: nothing fails here."""

        def brought(self, most: int) -> list[Wanted]:
            with self._lock:
                now = time.monotonic()
                self.sent += [each for at, each in self._later if at <= now]
                self._later = [(at, each) for at, each in self._later if at > now]
                first, self.sent[:] = self.sent[:most], self.sent[most:]
                return first

    return Delaying()


def work(dead: int, living: int, priority: int | None = None) -> tuple[float, int]:
    """Seconds until the last fact of a living host is refreshed; how often the dead one was asked."""
    from support.search_world import FakeJobs
    from support.source_world import SourceUnavailable, SourceWorld

    from factbook.usecases.sources.working import work_off

    world, queue = SourceWorld(), delaying_queue()
    for _ in range(dead):
        world.mirror(host="dead.example", priority=priority, ttlSeconds=0)
    left = {world.mirror(host=f"h{number}.example", ttlSeconds=0) for number in range(living)}
    dice = random.Random(living)
    for number in range(living):
        seconds = dice.uniform(*ANSWER_SECONDS)
        world.source(f"h{number}.example").during = partial(time.sleep, seconds)
    world.source("dead.example").during = lambda: time.sleep(SILENCE_SECONDS)
    world.source("dead.example").says = SourceUnavailable("the source did not answer in time")
    world.clock.advance(seconds=1)
    stopped, ends = threading.Event(), [0.0]
    give_back = world.leases.give_back

    def refreshed(what: Sequence[str], owner: str, rest: float = 0.0) -> None:
        """A refresh ends with this, whether or not the invocation goes on that it is part of."""
        give_back(what, owner, rest)
        if what[-1] in left and world.head(what[-1]).fact.content_text == '"new"':
            ends.append(time.monotonic())
            left.discard(what[-1])

    world.leases.give_back = refreshed  # type: ignore[method-assign]

    def invocations() -> None:
        while left:
            wanted = queue.brought(10)
            if wanted:
                work_off(world.ports, queue, wanted, Deadline(60 - RESERVE_SECONDS))
            else:
                time.sleep(0.01)

    clock = threading.Thread(target=tick, args=(world.clock, stopped))
    clock.start()
    began = time.monotonic()
    sweep(SweepPorts(world.due, queue, FakeJobs(), world.clock), NEVER)
    with ThreadPoolExecutor(INVOCATIONS) as pool:
        for _ in range(INVOCATIONS):
            pool.submit(invocations)
    stopped.set()
    clock.join()
    return max(ends) - began, len(world.source("dead.example").asked)


def dead_host(arguments: argparse.Namespace) -> int:
    work(0, 100)  # whatever is imported at first use
    ratios: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        alone, _ = work(0, arguments.hosts)
        for where, priority in (("among them", None), ("before them", 9)):
            beside, asked = work(arguments.dead, arguments.hosts, priority)
            ratios.setdefault(where, []).append(beside / alone)
            print(
                f"{arguments.hosts} hosts, a fact each: the last one is refreshed after {alone:.1f} s; with {arguments.dead} facts "
                f"of a dead host {where} after {beside:.1f} s, {beside / alone:.2f} times that; it was asked {asked}×"
            )
    for where, found in ratios.items():
        print(f"{where}: {statistics.median(found):.2f} in the median of {len(found)} rounds")
    return 0 if max(map(statistics.median, ratios.values())) <= MOST_RATIO else 1


# -- blobs


def uploaded(headers: dict[str, str], url: str, size: int, flawed_at: int | None = None) -> tuple[int, str]:
    """PUT that many bytes, one of them another if so said; status and code of the answer."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=300)
    connection.putrequest("PUT", f"{where.path}?{where.query}", skip_accept_encoding=True)
    for name, value in (headers | {"Content-Length": str(size)}).items():
        connection.putheader(name, value)
    connection.endheaders()
    for piece in pieces(size, flawed_at):
        connection.send(piece)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, text.partition("<Code>")[2].partition("</Code>")[0]


def pieces(size: int, flawed_at: int | None = None) -> Iterator[bytes]:
    """The same bytes each time, a megabyte at a time."""
    for at in range(0, size, PIECE):
        piece = random.Random(at).randbytes(min(PIECE, size - at))
        if flawed_at is not None and at <= flawed_at < at + len(piece):
            piece = bytes([piece[0] ^ 1]) + piece[1:]
        yield piece


def downloaded(url: str) -> tuple[int, str]:
    where, digest, size = urlsplit(url), hashlib.sha256(), 0
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=300)
    connection.request("GET", f"{where.path}?{where.query}")
    answer = connection.getresponse()
    while piece := answer.read(PIECE):
        digest.update(piece)
        size += len(piece)
    connection.close()
    return size, digest.hexdigest()


class Memory:
    """The most that a function's process has held, from the kernel's tables, in MB."""

    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    def most(self) -> float:
        return max(self._held(), default=0.0)

    def _held(self) -> Iterator[float]:
        for pid in descendants(self._ready.process.pid):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            if b"zygote" in command:
                yield int(status.partition("VmHWM:")[2].split()[0]) / 1024


def blobs(_: argparse.Namespace) -> int:
    digest = hashlib.sha256()
    for piece in pieces(BLOB_BYTES):
        digest.update(piece)
    sha256, wrong = digest.hexdigest(), []
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as ready:

        def granted() -> Any:
            status, _, made = call(
                ready,
                "POST",
                "/v1/memory/blobs",
                {"size": BLOB_BYTES, "sha256": sha256, "type": "acme.film", "scope": {}},
            )
            assert status == 201, made
            return made

        def written(ref: str) -> Any:
            return call(ready, "POST", FACTS, {"type": "acme.film", "contentRef": ref})

        def read(fact_id: str) -> Any:
            return call(ready, "GET", f"{FACTS}/{fact_id}/content")

        written(granted()["contentRef"])
        memory = Memory(ready)
        before = memory.most()
        for what, size, flawed in (
            ("one byte another", BLOB_BYTES, 77_000_000),
            ("a byte less", BLOB_BYTES - 1, None),
            ("a byte more", BLOB_BYTES + 1, None),
        ):
            made = granted()
            status, code = uploaded(made["headers"], made["uploadUrl"], size, flawed)
            refused, _, told = written(made["contentRef"])
            print(f"{what}: PUT {status} {code}; a write that names it {refused} {told['error']['code']}")
            wrong += [what] if status < 400 or refused != 400 else []
        made = granted()
        began = time.monotonic()
        first = uploaded(made["headers"], made["uploadUrl"], BLOB_BYTES)
        again = uploaded(made["headers"], made["uploadUrl"], BLOB_BYTES)
        status, _, fact = written(made["contentRef"])
        print(f"{BLOB_BYTES:,} bytes: PUT {first[0]}, again {again[0]} {again[1]}; the write {status}")
        wrong += ["upload"] if (first[0], again[0], status) != (200, 412, 201) else []
        status, headers, _ = read(fact["id"])
        location = next(value for key, value in headers.items() if key.lower() == "location")
        size, found = downloaded(location)
        print(
            f"GET content {status}; {size:,} bytes, SHA-256 as contentHash: {fact['contentHash'] == 'sha256:' + found}"
        )
        wrong += ["download"] if (size, "sha256:" + found) != (BLOB_BYTES, fact["contentHash"]) else []
        print(
            f"up and down in {time.monotonic() - began:.0f} s; a function's process held {before:.0f} MB before, {memory.most():.0f} MB after"
        )
        wrong += ["memory"] if memory.most() > before + 20 else []
        bucket, _, key = fact["contentRef"].removeprefix("blob://s3/").partition("/")
        ready.client("s3").put_object(Bucket=bucket, Key=key, Body=b"replaced", ChecksumAlgorithm="SHA256")
        status, _, told = read(fact["id"])
        print(
            f"the object is replaced behind the service: GET content {status} {told['error']['code'] if status >= 400 else ''}"
        )
        wrong += ["replaced"] if status < 400 else []
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(required=True)
    made: dict[str, Callable[[argparse.Namespace], int]] = {
        "readers": readers,
        "sweep": sweeping,
        "sweep-once": sweep_once,
        "dead-host": dead_host,
        "blobs": blobs,
    }
    for name, run in made.items():
        part = parts.add_parser(name)
        part.set_defaults(run=run)
        if name == "sweep":
            part.add_argument("--facts", type=int, default=1_000_000)
            part.add_argument("--due", type=int, default=10_000)
            part.add_argument("--kills", type=int, default=12)
        if name == "dead-host":
            part.add_argument("--hosts", type=int, default=999)
            part.add_argument("--dead", type=int, default=40)
        if name == "sweep-once":
            part.add_argument("--store", required=True)
    arguments = parser.parse_args()
    return int(arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
