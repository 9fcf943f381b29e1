"""What the erasure of one person costs a large tenant, and what it costs another tenant's writes meanwhile.

python benchmarks/erasure.py [--facts 100000] [--runs 10000] [--read-ms 4] [--write-ms 8] [--object-ms 20]

The rules, phases, turns and threads are the service's; the stores are dictionaries in this process, and each call takes the
time given for its kind, because no emulator here carries so many facts. One fact in a hundred is the person's, with three
revisions, one of these in a hundred has a large payload; one in a hundred of the others was caused by an entry of hers; one run
in a hundred is hers. It is done twice: once with those times, in turns of 40 seconds as Lambda's are, while another tenant
writes one fact after another; once without, to see how much memory it takes. Printed: turns and how long they are, reads of
heads for each fact of the tenant, calls, memory, and the other tenant's writes as a ratio.
"""
# ruff: noqa: ARG001, ARG002, SLF001 - the fakes of the tests are filled from inside, and stand in for parts of them

import argparse
import gc
import json
import statistics
import sys
import threading
import time
import tracemalloc
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

TENANT, OTHER, PERSON = "huge", "other", "xara"
TURN_SECONDS = 40.0
ONE_IN = 100
WRITES = 300
KINDS = {
    "create": "write", "amend": "write", "remove_revisions": "write", "keep": "write", "replace": "write", "destroy": "write",
    "put_off": "write", "take": "write", "of_fact": "object", "of_tenant": "object", "remove": "object",
}  # fmt: skip
FREE = {"walk_keys", "run_shards", "stored_bytes"}


class Slow:
    """A port each of whose calls takes a while; `calls` counts them by name."""

    def __init__(self, port: Any, seconds: dict[str, float], calls: Counter[str]) -> None:
        self._port, self._seconds, self._calls = port, seconds, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or name in FREE:
            return found
        seconds = self._seconds[KINDS.get(name, "read")]

        def call(*arguments: Any, **named: Any) -> Any:
            self._calls[name] += 1
            if seconds:
                time.sleep(seconds)
            return found(*arguments, **named)

        return call


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--read-ms", type=float, default=4, help="a read of DynamoDB")
    parser.add_argument("--write-ms", type=float, default=8, help="a write of DynamoDB")
    parser.add_argument("--object-ms", type=float, default=20, help="a call of S3")
    options = parser.parse_args()
    kinds = ("read", "write", "object")
    seconds = {kind: getattr(options, f"{kind}_ms") / 1000 for kind in kinds}
    timed(options.facts, options.runs, seconds)
    remembered(options.facts, options.runs, dict.fromkeys(kinds, 0.0))


def timed(facts: int, runs: int, seconds: dict[str, float]) -> None:
    here = Place(facts, runs, seconds)
    alone = [here.write() for _ in range(WRITES)]
    beside: list[float] = []
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            beside.append(here.write())

    here.calls.clear()
    here.facts.heads_read = 0
    writer = threading.Thread(target=write)
    writer.start()
    try:
        turns = here.erase()
    finally:
        over.set()
        writer.join()
    read = here.facts.heads_read
    print(f"{facts:,} facts and {runs:,} runs, of one person {facts // ONE_IN:,} and {runs // ONE_IN:,}")
    print(f"{len(turns)} turns, the longest of {max(turns):.1f} s, {sum(turns):.0f} s together")
    print(f"{read:,} heads read: {read / facts:.3f} for each fact of the tenant")
    print("counts:", json.dumps(here.done.counts))
    print("calls:", ", ".join(f"{name} {count:,}" for name, count in sorted(here.calls.items())))
    halves = statistics.median(alone), statistics.median(beside)
    print(
        f"another tenant's writes: {halves[0] * 1000:.1f} ms alone ({len(alone):,}), {halves[1] * 1000:.1f} ms beside it "
        f"({len(beside):,}), a ratio of {halves[1] / halves[0]:.2f}"
    )


def remembered(facts: int, runs: int, seconds: dict[str, float]) -> None:
    here = Place(facts, runs, seconds)
    gc.collect()
    tracemalloc.start()
    here.erase()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"memory: {peak / 2**20:.0f} MB at most, what the stores keep of the erasure among it")


class Place:
    """A tenant, and another one beside it, over stores that answer fast however much they hold."""

    def __init__(self, facts: int, runs: int, seconds: dict[str, float]) -> None:
        from support.erasing import ErasureWorld
        from support.principals import principal

        self.world = ErasureWorld(Index())
        self.calls: Counter[str] = Counter()
        self._seconds = seconds
        self.facts, self.log, self.blobs = stores(self.world, facts, runs)
        self.admin = principal(OTHER, "ann", admin=True)
        self.ports = self._ports()
        self._memory = replace(self.world.memory, facts=self._slow(self.facts, Counter()), blobs=self.blobs)

    def _slow(self, port: Any, calls: "Counter[str] | None" = None) -> Any:
        return Slow(port, self._seconds, self.calls if calls is None else calls)

    def write(self) -> float:
        """How long one write of the other tenant takes."""
        from support.erasing import scope

        from factbook.domain.facts.fact import FactChanges
        from factbook.usecases.facts.changes import write_fact
        from factbook.usecases.facts.payloads import Content

        began = time.monotonic()
        place = scope(OTHER, projectId="p", participantId="yves")
        write_fact(self._memory, self.admin, self.world.operation(), "note", place, FactChanges(), Content(1))
        return time.monotonic() - began

    def erase(self) -> list[float]:
        """How long each turn took that had something to do."""
        from support.principals import principal

        from factbook.domain.access.erasing import Selector
        from factbook.ports.deadline import Deadline
        from factbook.ports.operations import Operation
        from factbook.usecases.erasure.requesting import request_erasure
        from factbook.usecases.erasure.working import work_on_erasure

        ports = self.ports
        who = principal(TENANT, "ann", admin=True)
        erasure = request_erasure(ports, who, Operation("erase", ""), Selector("participant", PERSON))
        turns: list[float] = []
        while not self.world.records.kept[TENANT, erasure.id].ended:
            due = self.world.records.due[TENANT, erasure.id]
            self.world.clock.instant = max(due, self.world.clock.instant)
            began = time.monotonic()
            work_on_erasure(ports, TENANT, erasure.id, Deadline(TURN_SECONDS), fail)
            turns.append(time.monotonic() - began)
        self.done = self.world.records.kept[TENANT, erasure.id]
        assert self.done.status == "completed", self.done
        return turns

    def _ports(self) -> Any:
        ports = self.world.erasing_ports()
        slow = {name: self._slow(getattr(ports, name)) for name in ("records", "jobs", "keys")}
        return replace(
            ports,
            **slow,
            facts=replace(ports.facts, facts=self._slow(self.facts), blobs=self.blobs),
            walk=self._slow(Walk(self.facts)),
            erasing=self._slow(erasing(self.facts)),
            log=self._slow(self.log),
            blobs=self._slow(self.blobs),
        )


def fail(error: Exception) -> None:
    raise error


class Index:
    """A search index that holds nothing."""

    def indexes(self) -> list[Any]:
        return []

    def purge(self) -> None:
        return


class Walk:
    """FactWalk over heads whose ids do not change."""

    def __init__(self, facts: Any) -> None:
        self._facts = facts
        self._ids = sorted(name for tenant, name in facts._heads if tenant == TENANT)

    def heads(self, tenant: str, after: str | None, limit: int) -> Any:
        from factbook.ports.walks import Stop, WalkPage

        start = bisect_right(self._ids, after or "")
        ids = self._ids[start : start + limit]
        found = self._facts.heads(tenant, ids)
        left = [found[each] for each in ids if found[each].fact.invalidation_reason != "erased"]
        return WalkPage(
            [Stop(head, head.fact.id) for head in left], ids[-1] if start + limit < len(self._ids) else None
        )


def erasing(facts: Any) -> Any:
    from support.erasing import FakeErasing

    hers = sorted(name for (tenant, name), head in facts._heads.items() if tenant == TENANT and is_hers(head))

    class Erasing(FakeErasing):
        """Knows which heads can be tombstones."""

        def remove_revisions(self, tenant: str, fact_id: str, deadline: Any) -> bool:
            facts._revisions.pop(((tenant, fact_id), facts._heads[tenant, fact_id].life), None)
            return True

        def _own(self, tenant: str, after: str | None) -> list[Any]:
            return [facts._heads[tenant, name] for name in hers[bisect_right(hers, after or "") :]]

    return Erasing(facts)


def is_hers(head: Any) -> bool:
    return bool(head.fact.scope.participant_id == PERSON)


def stores(world: Any, facts: int, runs: int) -> tuple[Any, Any, Any]:
    from support.erasing import scope
    from support.fakes import FakeBlobs
    from support.log_fakes import FakeLog
    from support.principals import principal

    from factbook.domain.facts.fact import FactChanges, Payload
    from factbook.domain.facts.transitions import open_fact, supersede
    from factbook.ports.facts.store import Head, Mark

    admin = principal(TENANT, "ann", admin=True)
    log, causes = filled_log(world, FakeLog, runs)
    text, now = Payload(text='"some words"', content_hash="sha256:x", size=12), world.clock.now()

    class Blobs(FakeBlobs):
        """Finds the objects of a fact, and a page of all, at once."""

        def of_fact(self, tenant: str, fact_id: str) -> Iterator[Any]:
            return iter([self._stored(ref) for ref in self.by_fact.pop(fact_id, ())])

        def of_tenant(self, tenant: str, after: str | None, limit: int) -> tuple[list[Any], str | None]:
            return [], None

    blobs = Blobs()
    blobs.by_fact = defaultdict(list)
    for number in range(facts):
        fact_id = f"f{number:07d}"
        hers, derived = number % ONE_IN == 0, number % ONE_IN == 1
        place = scope(TENANT, projectId="p", participantId=PERSON if hers else f"u{number % 100}")
        said = FactChanges(causedByLogId=[causes[number % len(causes)]]) if derived else FactChanges()
        head = Head.first(
            open_fact(fact_id, "note", place, said, text, admin, now), Mark("k" * 12, "b" * 12, 1)
        )
        for _ in range(2 if hers else 0):
            closed, fact = supersede(head.fact, FactChanges(), text, admin, now)
            world.facts._revisions.setdefault(((TENANT, fact_id), head.life), {})[closed.version] = closed
            head = head.followed_by(fact, Mark("k" * 12, "b" * 12, fact.version))
        assert world.facts.create(head) is None
        if hers and number % (ONE_IN * ONE_IN) == 0:
            ref = blobs.new_ref(TENANT, fact_id, "object")
            blobs.put(ref, b"some words")
            blobs.by_fact[fact_id].append(ref)
    return world.facts, log, blobs


def filled_log(world: Any, kind: Callable[[], Any], runs: int) -> tuple[Any, list[str]]:
    """Runs of three messages, and the ids of the person's first ones."""
    from factbook.domain.log.chain import FORMAT, text_hash
    from factbook.ports.log.entries import RunRow, StoredEntry
    from factbook.usecases.log.entries import scope_of

    class Log(kind):  # type: ignore[misc, valid-type]
        """Finds the rows of a shard, and the entries of a run, at once."""

        def runs(self, tenant: str, container: Any, shard: int, before: str, limit: int) -> Any:
            own = rows[shard]
            start = next((place for place, row in enumerate(own) if row.order < before), len(own))
            page = own[start : start + limit]
            return page, len(page) == limit

        def _run(self, tenant: str, run_id: str, since: int) -> Sequence[Any]:
            found = (self._entries.get((tenant, run_id, number)) for number in range(since, since + 3))
            return [each for each in found if each is not None]

    from factbook.adapters.dynamodb.key_parts import shard_of

    log, causes = Log(), []
    rows: dict[int, list[Any]] = defaultdict(list)
    for number in range(runs):
        run, person = f"r{number:06d}", PERSON if number % ONE_IN == 0 else f"u{number % 100}"
        for sequence in range(3):
            said = {
                "id": f"{run}:{sequence}:0123456789abcdef", "kind": "user-message", "runId": run, "sequence": sequence,
                "scope": {"tenantId": TENANT, "projectId": "p", "participantId": person},
                "timestamp": "2026-01-01T00:00:00.000000Z", "actor": "user:ann", "payload": {"text": "words"}, "prevHash": "",
            }  # fmt: skip
            text = json.dumps(said)
            entry = StoredEntry(TENANT, run, sequence, text, text_hash(text), FORMAT)
            log._entries[TENANT, run, sequence] = entry
            if sequence == 0:
                row = RunRow(f"{said['timestamp']}|{run}", scope_of(entry))
                rows[shard_of(run, 8)].append(row)
                causes += [str(said["id"])] if person == PERSON else []
    for own in rows.values():
        own.sort(key=lambda row: row.order, reverse=True)
    return log, causes


if __name__ == "__main__":
    main()
