"""A world in which persons are erased: real rules and phases over fakes, and the real index in a file."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from factbook.domain import times
from factbook.domain.access.erasing import NOTHING_ERASED, Erasing, Selector
from factbook.domain.access.principals import Principal
from factbook.domain.erasure.ledger import KeyedHash
from factbook.domain.memories.statements import Statement
from factbook.domain.scope import Scope
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.erasure.records import Erasure
from factbook.ports.facts.store import Head
from factbook.ports.facts.walks import Held
from factbook.ports.log.checkpoints import PublishedNote
from factbook.ports.walks import Stop, WalkPage
from factbook.usecases.erasure.ports import ErasurePorts
from factbook.usecases.erasure.requesting import request_erasure
from factbook.usecases.erasure.stating import Stated, StatingPorts, state_erasure
from factbook.usecases.erasure.working import work_on_erasure
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.remembering import remember
from support.fakes import FakeFacts, FakeMemories
from support.log_fakes import FakeTree
from support.principals import principal
from support.search_world import FakeWalk, World, admin, is_tombstone
from support.struck import Blows, Struck

ADMIN = admin()
TOKEN = "quokkazebra"
LARGE = f"{TOKEN} " * 10_000
IN_PROJECT = {"projectId": "p", "participantId": "x"}
X = Selector("participant", "x")


class FakeErasures:
    """ErasureStore in dictionaries; every method is one atomic step."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[tuple[str, str], Erasure] = {}
        self.force: dict[tuple[str, str], tuple[Selector, str]] = {}
        self.due: dict[tuple[str, str], str] = {}

    def create(self, erasure: Erasure, work_from: str) -> Erasure | None:
        with self.lock:
            where = (erasure.tenant, erasure.id)
            if where in self.kept:
                return self.kept[where]
            self._put(erasure, work_from)
            return None

    def erasure(self, tenant: str, erasure_id: str) -> Erasure | None:
        with self.lock:
            return self.kept.get((tenant, erasure_id))

    def several(self, tenant: str, ids: Sequence[str]) -> dict[str, Erasure]:
        assert len(ids) <= 100
        with self.lock:
            return {each: self.kept[tenant, each] for each in ids if (tenant, each) in self.kept}

    def put_back(self, erasures: Sequence[Erasure]) -> None:
        with self.lock:
            for erasure in erasures:
                self.kept.setdefault((erasure.tenant, erasure.id), erasure)

    def page(
        self, tenant: str, position: str | None, limit: int, *, oldest_first: bool = False
    ) -> tuple[list[Erasure], str | None]:
        with self.lock:
            own = {
                f"{each.created_at}|{each.id}": each for each in self.kept.values() if each.tenant == tenant
            }
        places = sorted(own, reverse=not oldest_first)
        if position is not None:
            places = [each for each in places if (each > position) is oldest_first and each != position]
        page = places[:limit]
        return [own[each] for each in page], page[-1] if len(places) > limit else None

    def in_force(self, tenant: str) -> Erasing:
        with self.lock:
            own = {name: marked for (owner, name), marked in self.force.items() if owner == tenant}
            return Erasing.of(own.values(), own)

    def replace(self, erasure: Erasure) -> bool:
        with self.lock:
            where = (erasure.tenant, erasure.id)
            later = replace(erasure, edition=erasure.edition + 1)
            there = self.kept.get(where)
            if there is None or there.edition != erasure.edition:
                return there == later
            self.kept[where] = later
            if later.ended:
                self._unmark(where)
            return True

    def put_in_force(self, erasure: Erasure, work_from: str) -> bool:
        with self.lock:
            later = replace(erasure, edition=erasure.edition + 1)
            there = self.kept.get((erasure.tenant, erasure.id))
            if there is not None and there.edition != erasure.edition:
                return there == later
            self._put(later, work_from)
            return True

    def withdraw(self, erasure: Erasure) -> bool:
        with self.lock:
            where = (erasure.tenant, erasure.id)
            there = self.kept.get(where)
            if there is not None and there.edition != erasure.edition:
                return False
            self.kept.pop(where, None)
            self._unmark(where)
            return True

    def work(self, now: str, after: str | None, limit: int) -> tuple[list[tuple[str, str]], str | None]:
        with self.lock:
            last = tuple(json.loads(after)) if after else ()
            page = sorted(where for where in self.due if where > last)[:limit]
            found = [where for where in page if self.due[where] <= now]
            return found, json.dumps(page[-1]) if len(page) == limit else None

    def take(self, tenant: str, erasure_id: str, now: str, until: str) -> bool:
        with self.lock:
            due = self.due.get((tenant, erasure_id))
            if due is None or due > now:
                return False
            self.due[tenant, erasure_id] = until
            return True

    def put_off(self, tenant: str, erasure_id: str, until: str) -> None:
        with self.lock:
            if (tenant, erasure_id) in self.due:
                self.due[tenant, erasure_id] = until

    def _put(self, erasure: Erasure, work_from: str) -> None:
        where = (erasure.tenant, erasure.id)
        assert erasure.selector is not None
        self.kept[where] = erasure
        self.force[where] = (erasure.selector, erasure.created_at)
        self.due[where] = work_from

    def _unmark(self, where: tuple[str, str]) -> None:
        self.force.pop(where, None)
        self.due.pop(where, None)


@dataclass
class FakeErasing:
    """FactErasing over FakeFacts; a cursor is the last id."""

    facts: FakeFacts

    def held(self, tenant: str, after: str | None, limit: int) -> WalkPage[Held]:
        found = [head for head in self._own(tenant, after) if head.fact.held]
        stops = [
            Stop(Held(head.fact.id, head.fact.scope, head.fact.owner, head.subjects), head.fact.id)
            for head in found[:limit]
        ]
        return WalkPage(stops, stops[-1].cursor if len(found) > limit else None)

    def tombstones(self, tenant: str, erasure_id: str, after: str | None, limit: int) -> WalkPage[Head]:
        found = [
            head
            for head in self._own(tenant, after)
            if is_tombstone(head) and head.erasure is not None and head.erasure.by == erasure_id
        ]
        stops = [Stop(head, head.fact.id) for head in found[:limit]]
        with self.facts.lock:
            self.facts.heads_read += len(stops)
        return WalkPage(stops, stops[-1].cursor if len(found) > limit else None)

    def remove_revisions(self, tenant: str, fact_id: str, deadline: Deadline) -> bool:
        with self.facts.lock:
            for where in [each for each in self.facts._revisions if each[0] == (tenant, fact_id)]:
                del self.facts._revisions[where]
        return True

    def _own(self, tenant: str, after: str | None) -> list[Head]:
        with self.facts.lock:
            ids = sorted(
                name for owner, name in self.facts._heads if owner == tenant and name > (after or "")
            )
            return [self.facts._heads[tenant, name] for name in ids]


@dataclass
class FakeQueue:
    sent: list[tuple[str, str, float]] = field(default_factory=list)
    replays: list[str] = field(default_factory=list)

    def send(self, tenant: str, erasure_id: str, after_seconds: float = 0.0) -> None:
        self.sent.append((tenant, erasure_id, after_seconds))

    def send_replays(self, tenant: str, after_seconds: float = 0.0) -> None:
        self.replays.append(tenant)


class ErasureWorld(World):
    """`work` does what the queue and the schedule would have done, until an erasure has ended."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.records = FakeErasures()
        self.queue = FakeQueue()
        self.tree = FakeTree()
        self.slept: list[float] = []
        self.stated: list[Erasure] = []
        self.damaged: frozenset[str] = frozenset()
        """Ids of facts that were edited past being read."""
        self.sleep_hook: Callable[[], None] = lambda: None
        """What goes on while a request waits."""
        super().__init__(*arguments, **named)
        self.erasing = NOTHING_ERASED

    @property
    def memories(self) -> MemoryPorts:
        return MemoryPorts(self.memory, FakeMemories(self.facts))

    def elapsed(self) -> float:
        return times.epoch_ms(self.clock.now()) / 1000

    def being_erased(self, tenant: str) -> Erasing:
        return self.records.in_force(tenant)

    def make(self, tenant: str, run_ids: Sequence[str]) -> PublishedNote | None:
        """CheckpointRequests: none is made here."""
        return None

    def erasing_ports(self, blows: Blows | None = None, *, searched: bool = True) -> ErasurePorts:
        def struck(port: Any) -> Any:
            return port if blows is None else Struck(port, blows)

        return ErasurePorts(
            records=struck(self.records),
            queue=struck(self.queue),
            facts=replace(self.memory, facts=struck(self.facts)),
            walk=struck(FakeWalk(self.facts, self.damaged)),
            erasing=struck(FakeErasing(self.facts)),
            blobs=struck(self.blobs),
            log=struck(self.log),
            keys=struck(self.keys),
            index=struck(self.index) if searched else None,
            jobs=struck(self.jobs),
            clock=self.clock,
            hash_of=lambda _, selector: KeyedHash("k1", f"{selector.kind}:{len(selector.id):064d}"),
            state=self._state if blows is None else Struck(self, blows)._state,
            sleep=self._sleep,
        )

    def _state(self, erasure: Erasure, at: str, deadline: Deadline) -> Stated:
        self.stated.append(erasure)
        writer = LogWriter(self.log, self.vault, self.log_clock)
        return state_erasure(StatingPorts(writer, self.tree, self), erasure, at, deadline)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        for _ in range(4):
            self.clock.advance(seconds=seconds / 4)
            self.sleep_hook()

    def ask(self, selector: Selector, who: Principal | None = None, blows: Blows | None = None) -> Erasure:
        return request_erasure(self.erasing_ports(blows), who or admin(), self.operation(), selector)

    def turn(
        self, erasure: Erasure, deadline: Deadline = NEVER, blows: Blows | None = None
    ) -> Erasure | None:
        """One message of the queue, when it is due."""
        due = self.records.due.get((erasure.tenant, erasure.id))
        if due is not None and due > self.clock.now():
            self.clock.instant = due
        return self.work_once(erasure, deadline, blows)

    def work_once(self, erasure: Erasure, deadline: Deadline, blows: Blows | None = None) -> Erasure | None:
        return work_on_erasure(self.erasing_ports(blows), erasure.tenant, erasure.id, deadline, _raise)

    def work(self, erasure: Erasure, deadline: Deadline = NEVER) -> Erasure:
        for _ in range(1_000):
            self.turn(erasure, deadline)
            kept = self.records.kept[erasure.tenant, erasure.id]
            if kept.ended:
                return kept
        raise AssertionError(f"it does not end: {kept}")

    def erase(self, selector: Selector, who: Principal | None = None) -> Erasure:
        return self.work(self.ask(selector, who))


def _raise(error: Exception) -> None:
    raise error


def scope(tenant: str = "t1", **named: str) -> Scope:
    return Scope.model_validate({"tenantId": tenant, **named})


def everything(world: ErasureWorld) -> str:
    """All that the stores hold, as one text."""
    kept = [
        world.facts._heads,
        world.facts._revisions,
        world.blobs.bodies,
        world.records.kept,
        world.jobs._kept,
    ]
    return repr(kept)


def hits(world: ErasureWorld, word: str = TOKEN) -> int:
    """How many facts and messages a search for the word finds, by words and by meaning."""
    found = [*world.words(ADMIN, word), *world.recalled(ADMIN, word)]
    if world.embedder is not None:
        found += world.words(ADMIN, word, "semantic")
    return len([each for each in found if word in each])


def fill(world: ErasureWorld) -> dict[str, Any]:
    """A person's records of all kinds beside those of others."""
    own = world.write(ADMIN, TOKEN, scope=IN_PROJECT, key=f"k-{TOKEN}")
    large = world.write(ADMIN, LARGE, scope=IN_PROJECT)
    large = world.supersede(large, ADMIN, LARGE + "again")
    about = world.write(ADMIN, f"they said {TOKEN}", subjects=[{"kind": "participant", "id": "x"}])
    about = world.supersede(about, ADMIN, f"{TOKEN} once more", subjects=[])
    gone = world.delete(world.write(ADMIN, TOKEN, scope=IN_PROJECT), ADMIN)
    stated = Statement("copilot", scope(**IN_PROJECT), "participant:p/x", "m", TOKEN, key=f"m-{TOKEN}")
    memory = remember(world.memories, principal("t1", "bob", writes=["p"]), world.operation(), stated).fact
    (said,) = world.say(ADMIN, "run-x", ("ann", f"I am {TOKEN}"), scope=IN_PROJECT | {"threadId": "th"})
    derived = world.write(ADMIN, "derived", causedByLogId=[said.id])
    other = world.write(ADMIN, "another's fact", scope={"projectId": "p", "participantId": "y"})
    world.say(ADMIN, "run-y", ("bob", "another's words"), scope={"projectId": "p", "participantId": "y"})
    return {
        "own": [own, large, about, gone],
        "memory": memory.id,
        "derived": derived.fact.id,
        "other": other.fact.id,
        "said": said.id,
    }
