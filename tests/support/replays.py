"""A tenant in which ledgers are replayed, in memory: records, ledgers that wait, and what is run again."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from factbook.domain.access.erasing import Selector
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.erasure.ledger import new_keys
from factbook.domain.errors import Throttled
from factbook.domain.facts.fact import FactChanges, Payload, Subject
from factbook.domain.facts.transitions import open_fact
from factbook.domain.log.sealing import KeyName
from factbook.domain.scope import Scope
from factbook.ports.erasure.records import Erasure
from factbook.ports.erasure.replays import LedgerEntry, Replay
from factbook.ports.facts.store import Head, Mark
from factbook.ports.log.sealing import SealedKey
from factbook.usecases.erasure.ledger import Ledger
from factbook.usecases.erasure.replaying import ReplayPorts
from support.fakes import FakeClock, FakeFacts
from support.log_fakes import FakeKeys
from support.search_world import FakeJobs, FakeWalk
from support.struck import Blows, Struck

TENANT = "acme"
WRITER = Principal(TENANT, Actor(kind="service", id="s"), admin=True)
MADE, ASKED, RESTORED = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"


class FakeErasures:
    """What of ErasureStore and ReplayStore a replay needs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[str, Erasure] = {}
        self.replays: dict[tuple[str, str], Replay] = {}

    def erasure(self, tenant: str, erasure_id: str) -> Erasure | None:
        with self.lock:
            return self.kept.get(erasure_id)

    def replace(self, erasure: Erasure) -> bool:
        with self.lock:
            there = self.kept.get(erasure.id)
            if there is None or there.edition != erasure.edition:
                return False
            self.kept[erasure.id] = replace(erasure, edition=erasure.edition + 1)
            return True

    def page(
        self, tenant: str, position: str | None, limit: int, *, oldest_first: bool = False
    ) -> tuple[list[Erasure], str | None]:
        found = sorted(
            self.kept.values(), key=lambda each: (each.created_at, each.id), reverse=not oldest_first
        )
        start = int(position or 0)
        return found[start : start + limit], str(start + limit) if start + limit < len(found) else None

    def keep(self, replay: Replay) -> None:
        with self.lock:
            self.replays.setdefault((replay.tenant, replay.id), replay)

    def replay(self, tenant: str, replay_id: str) -> Replay | None:
        return self.replays.get((tenant, replay_id))

    def waiting(self, tenant: str) -> list[str]:
        with self.lock:
            found = [each for each in self.replays.values() if each.tenant == tenant and not each.ended]
        return [each.id for each in sorted(found, key=lambda each: each.asked_at)]

    def end(self, replay: Replay) -> None:
        with self.lock:
            self.replays[replay.tenant, replay.id] = replace(
                replay, ended=True
            )  # with what it says of unreadable facts

    def tenants(self, after: str | None, limit: int) -> tuple[list[str], str | None]:
        found = sorted({each.tenant for each in self.replays.values() if not each.ended})
        page = [each for each in found if each > (after or "")][:limit]
        return page, page[-1] if page and page[-1] != found[-1] else None

    def several(self, tenant: str, ids: Sequence[str]) -> dict[str, Erasure]:
        assert len(ids) <= 100
        with self.lock:
            return {each: self.kept[each] for each in ids if each in self.kept}

    def put_back(self, erasures: Sequence[Erasure]) -> None:
        assert len(erasures) <= 50
        with self.lock:
            for erasure in erasures:
                self.kept.setdefault(erasure.id, erasure)


@dataclass
class Restored:
    """A tenant after a restore; `again` is what was run again, in order."""

    facts: FakeFacts = field(default_factory=FakeFacts)
    keys: FakeKeys = field(default_factory=FakeKeys)
    store: FakeErasures = field(default_factory=FakeErasures)
    jobs: FakeJobs = field(default_factory=FakeJobs)
    clock: FakeClock = field(default_factory=lambda: FakeClock(RESTORED))
    secrets: dict[str, str] = field(default_factory=lambda: new_keys("k1"))
    again: list[Erasure] = field(default_factory=list)
    woken: list[str] = field(default_factory=list)
    settled: int = 0
    room: int = 1_000
    """For erasures in force."""
    walk: Any = None

    def ledger(self) -> Ledger:
        return Ledger(lambda: json.dumps(self.secrets))

    def ports(self, blows: Blows | None = None) -> ReplayPorts:
        def struck(port: Any) -> Any:
            return port if blows is None else Struck(port, blows)

        walk = self.walk or FakeWalk(self.facts)
        store = struck(self.store)
        return ReplayPorts(
            store,
            store,
            self.ledger(),
            struck(walk),
            struck(self.keys),
            struck(self.jobs),
            self.clock,
            self._again,
            self.woken.append,
            self._settle,
        )

    def _settle(self) -> None:
        self.settled += 1

    def _again(self, erasure: Erasure) -> None:
        if len(self.again) >= self.room:
            raise Throttled
        self.again.append(erasure)
        with self.store.lock:
            there = self.store.kept.get(erasure.id, erasure)
            self.store.kept[erasure.id] = replace(erasure, edition=there.edition + 1)

    def fact(
        self, fact_id: str, about: Sequence[str] = (), at: str = MADE, owner: str | None = None, **scope: str
    ) -> None:
        """`about` are external persons."""
        changes = FactChanges(subjects=[Subject(kind="external", id=each) for each in about] or None)
        text = Payload(text="1", content_hash="", size=1)
        fact = open_fact(fact_id, "note", Scope(tenantId=TENANT, **scope), changes, text, WRITER, at)
        fact = fact.model_copy(update={"owner": owner})
        assert self.facts.create(Head.first(fact, Mark("k" * 12, "b" * 12, 1))) is None

    def key(self, generation: int = 1, begun_at: str | None = None, **name: str) -> None:
        key = SealedKey(TENANT, KeyName(**name), generation, b"wrapped", begun_at=begun_at)
        assert self.keys.create(key) is None

    def entry(self, erasure_id: str, selector: Selector, **more: Any) -> LedgerEntry:
        keyed = self.ledger().hash_of(TENANT, selector)
        assert keyed is not None
        entry = LedgerEntry(
            erasure_id,
            selector.kind,
            "user:admin",
            "completed",
            ASKED,
            "2026-02-01T00:01:00.000Z",
            keyed.hmac,
            keyed.key_id,
        )
        return replace(entry, **more)

    def replay(self, *entries: LedgerEntry, replay_id: str = "r1") -> Replay:
        return Replay(TENANT, replay_id, self.clock.now(), tuple(entries), asked_by="user:operator")
