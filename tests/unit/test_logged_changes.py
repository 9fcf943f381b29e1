"""A change with an entry of the log: both land once, whoever else writes the fact or the run, and whatever reply is lost."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from support.fakes import FakeClock, FakeFacts, FakeJoint, fake_memory
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import principal
from support.struck import Blow, Blows, Death, Struck

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.errors import FactNotFound, StorageUnavailable, Throttled
from factbook.domain.facts.fact import Fact, FactChanges, Retention
from factbook.domain.facts.holds import held, released
from factbook.domain.facts.transitions import open_fact, supersede
from factbook.domain.log.entries import LogEntry
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.facts.joint import Change, OwnEntry
from factbook.ports.facts.store import Head
from factbook.ports.log.entries import StoredEntry
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import Advance, Amend, Create, Decision, FactChange
from factbook.usecases.facts.payloads import Content
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.log.appending import LogWriter, Request, append_own
from factbook.usecases.log.entries import open_entry
from factbook.usecases.log.sealing import Vault
from factbook.usecases.provenance.joint import LoggedChanges
from factbook.verify.chain import Chain

TENANT = "acme"
ADMIN = principal(TENANT, "ann", admin=True)
PLAIN, SEALED = Scope(tenantId=TENANT), Scope(tenantId=TENANT, userId="ann")


class Deployment:
    """Facts and a log, and processes that write both, each with its own caches."""

    def __init__(self) -> None:
        self.facts, self.log = FakeFacts(), FakeLog()
        self.keys, self.wrapper = FakeKeys(), FakeWrapper()
        self.clock = FakeClock()

    def writer(self) -> LogWriter:
        vault = Vault(self.keys, self.wrapper, AesGcm())
        return LogWriter(self.log, vault, StandingClock(), pause=lambda _: None)

    def process(self, joint: Any = None) -> FactPorts:
        made = LoggedChanges(self.writer(), joint or FakeJoint(self.facts, self.log))
        return replace(fake_memory(self.clock, self.facts), commit_with_entry=made.commit)

    def fact(self, fact_id: str = "f") -> Fact:
        change = FactChange(self.process(), ADMIN, Operation(f"create {fact_id}", "body"), fact_id)

        def create(_: Head | None, now: str) -> Decision:
            payload = change.payload(Content("v1"))
            return Create(open_fact(fact_id, "note", PLAIN, FactChanges(), payload, ADMIN, now))

        return change.run(create, expect_new=True)

    def head(self, fact_id: str = "f") -> Head:
        head = self.facts.head(TENANT, fact_id)
        assert head is not None
        return head

    def entries(self, run: str = "_run") -> list[LogEntry]:
        """Of a run whose chain holds."""
        chain, found = Chain(run, TENANT), self.log.entries(TENANT, run, 0, 10**6)[0]
        for entry in found:
            chain.follow(entry.text.encode(), entry.entry_hash[7:].encode(), entry.cause)
        return [open_entry(self.writer().vault, entry) for entry in found]

    def append(self, count: int = 1) -> None:
        """Entries of another's."""
        for number in range(count):
            request = Request("event-emitted", {"other": number}, scope=PLAIN)
            append_own(self.writer(), TENANT, "_run", request, f"other {number}", self.log.put)


@pytest.fixture
def deployment() -> Deployment:
    made = Deployment()
    made.fact()
    return made


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)


def amend(ports: FactPorts, key: str = "key", fact_id: str = "f", **operation: Any) -> Fact:
    """Put a hold on, which is a change in place."""
    entry = OwnEntry("_run", PLAIN, "event-emitted", {"factId": fact_id}, ADMIN.name)

    def decide(head: Head | None, _now: str) -> Decision:
        assert head is not None
        return Amend(head, held(head.fact), entry=entry)

    return FactChange(ports, ADMIN, Operation(key, "body", **operation), fact_id, made=held).run(decide)


def advance(ports: FactPorts, key: str = "key", scope: Scope = PLAIN, **operation: Any) -> Fact:
    """Write the next revision, which names its entry."""
    change = FactChange(ports, ADMIN, Operation(key, "body", **operation), "f")

    def decide(head: Head | None, now: str) -> Decision:
        assert head is not None
        closed, following = supersede(head.fact, FactChanges(), change.payload(Content("v2")), ADMIN, now)
        payload = {"version": following.version}
        entry = OwnEntry("_run", scope, "tool-result", payload, "service:refresh", is_cause=True)
        return Advance(head, closed, following, entry)

    return change.run(decide)


def test_a_change_in_place_lands_with_its_entry_and_its_replay_writes_neither(deployment: Deployment) -> None:
    for _ in range(2):
        fact = amend(deployment.process())
        assert (fact.held, fact.version) == (True, 1)
    assert deployment.head().edition == 2
    (entry,) = deployment.entries()
    assert (entry.kind, entry.actor, entry.payload) == ("event-emitted", "user:ann", {"factId": "f"})


@pytest.mark.parametrize("scope", [PLAIN, SEALED], ids=["plain", "sealed"])
def test_a_revision_names_the_entry_it_landed_with(deployment: Deployment, scope: Scope) -> None:
    fact = advance(deployment.process(), scope=scope)
    (entry,) = deployment.entries()
    assert fact.caused_by_log_id == [entry.id] == deployment.head().fact.caused_by_log_id
    assert (entry.payload, entry.actor, entry.scope) == ({"version": 2}, "service:refresh", scope)
    assert ("version" in deployment.log.entries(TENANT, "_run", 0, 1)[0][0].text) is (scope is PLAIN)
    assert advance(deployment.process(), scope=scope) == fact
    assert len(deployment.entries()) == 1


def test_a_run_that_others_write_is_walked_as_an_append_walks_it(deployment: Deployment) -> None:
    process = deployment.process()
    deployment.append()
    amend(process, "first", deployment.fact("a").id)
    deployment.append(5)
    fact = amend(process, "second", deployment.fact("b").id)
    assert fact.held
    assert [entry.payload for entry in deployment.entries()][-1] == {"factId": "b"}


def test_many_at_once_in_one_run_all_land_each_with_one_entry(deployment: Deployment) -> None:
    names = [deployment.fact(f"f{number}").id for number in range(40)]
    processes = [deployment.process() for _ in range(8)]

    def write(number: int) -> Fact:
        return amend(processes[number % 8], names[number], names[number])

    with ThreadPoolExecutor(16) as pool:
        facts = list(pool.map(write, range(40)))
    assert all(fact.held for fact in facts)
    assert sorted(entry.payload["factId"] for entry in deployment.entries()) == sorted(names)


def test_many_at_once_on_one_fact_land_one_after_another(deployment: Deployment) -> None:
    processes = [deployment.process() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        facts = list(pool.map(lambda number: advance(processes[number], str(number)), range(6)))
    assert sorted(fact.version for fact in facts) == [2, 3, 4, 5, 6, 7]
    assert [entry.payload["version"] for entry in deployment.entries()] == [2, 3, 4, 5, 6, 7]
    named = {fact.version: fact.caused_by_log_id for fact in facts}
    assert named == {entry.payload["version"]: [entry.id] for entry in deployment.entries()}


class Answering:
    """A joint store that answers its first put otherwise than the store under it."""

    def __init__(self, store: FakeJoint, first: Any) -> None:
        self._store, self._first = store, first
        self.puts = 0

    def put(self, entry: StoredEntry, change: Change) -> Head | StoredEntry | None:
        self.puts += 1
        answer = self._store.put(entry, change)
        return self._first(self._store, entry, change) if self.puts == 1 else answer


def sent_again(store: FakeJoint, entry: StoredEntry, change: Change) -> Head | StoredEntry | None:
    return store.put(entry, change)


def contended(*_: Any) -> None:
    raise Contended


@pytest.mark.parametrize("first", [sent_again, contended], ids=lambda each: each.__name__)
@pytest.mark.parametrize("write", [amend, advance], ids=lambda each: each.__name__)
def test_a_lost_reply_is_answered_with_what_landed(deployment: Deployment, write: Any, first: Any) -> None:
    joint = Answering(FakeJoint(deployment.facts, deployment.log), first)
    fact = write(deployment.process(joint))
    assert fact == deployment.head().fact
    assert (deployment.head().edition, len(deployment.entries())) == (2, 1)


def test_a_lost_reply_of_a_change_that_ended_the_fact_is_no_refusal(deployment: Deployment) -> None:
    """What a release judges anew may have run out at once: then nothing is shown any more, but it was done."""
    ports = deployment.process()

    def end(head: Head | None, now: str) -> Decision:
        assert head is not None
        over = head.fact.model_copy(update={"retention": Retention(keep_days=1, legal_hold=True)})
        entry = OwnEntry("_run", PLAIN, "event-emitted", {}, ADMIN.name)
        return Amend(head, released(over, None, now), entry=entry)

    deployment.clock.advance(days=2)
    joint = Answering(FakeJoint(deployment.facts, deployment.log), sent_again)
    ended = FactChange(deployment.process(joint), ADMIN, Operation("end", "body"), "f").run(end)
    assert ended.expires_at == deployment.clock.now()
    with pytest.raises(FactNotFound):
        FactChange(ports, ADMIN, Operation("end", "body"), "f").run(end)
    assert len(deployment.entries()) == 1


def calls_of(write: Any) -> int:
    deployment, blows = Deployment(), Blows()
    deployment.fact()
    write(deployment.process(Struck(FakeJoint(deployment.facts, deployment.log), blows)))
    return len(blows.calls)


@pytest.mark.parametrize("write", [amend, advance], ids=lambda each: each.__name__)
@pytest.mark.parametrize("blow", Blow)
def test_whatever_stops_it_both_are_there_or_neither_and_a_retry_leaves_them_there_once(
    deployment: Deployment, write: Any, blow: Blow
) -> None:
    assert calls_of(write) == 1
    joint = Struck(FakeJoint(deployment.facts, deployment.log), Blows(blow, 0))
    with pytest.raises((Death, StorageUnavailable)):
        write(deployment.process(joint))
    assert (deployment.head().edition == 2) is (len(deployment.entries()) == 1)
    fact = write(deployment.process())
    assert fact == deployment.head().fact
    assert (deployment.head().edition, len(deployment.entries())) == (2, 1)


class Busy(FakeJoint):
    """Each put meets another's transaction and takes six seconds."""

    time = 0.0

    def put(self, entry: StoredEntry, change: Change) -> Head | StoredEntry | None:
        self.time += 6.0
        raise Contended


def test_one_that_keeps_meeting_others_gives_up_at_its_deadline(deployment: Deployment) -> None:
    busy = Busy(deployment.facts, deployment.log)
    with pytest.raises(Throttled):
        amend(deployment.process(busy), deadline=Deadline(16.0, lambda: busy.time))
    assert busy.time <= 16.0 + 6.0
    assert deployment.entries() == []


def test_past_its_deadline_nothing_is_begun(deployment: Deployment) -> None:
    with pytest.raises(StorageUnavailable):
        amend(deployment.process(), deadline=Deadline(0.0))
    assert (deployment.head().edition, deployment.entries()) == (1, [])
