"""Appending: one entry for each request however it is sent again, in order, in its run's scope, within its limits."""

import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import principal
from support.struck import Blow, Blows, Death, Struck

from factbook.adapters.aes_gcm import AesGcm
from factbook.domain.access.principals import Principal
from factbook.domain.errors import (
    BadInput,
    IdempotencyMismatch,
    LogChanged,
    NotFound,
    PermissionDenied,
    RequestTooLarge,
    ScopeInvalid,
    StorageUnavailable,
    Throttled,
)
from factbook.domain.log.entries import MAX_PAYLOAD_BYTES, LogEntry
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.deadline import Deadline
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log import appending
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.entries import open_entry
from factbook.usecases.log.sealing import Vault
from factbook.verify.chain import Chain

TENANT = "acme"
ADMIN = principal(TENANT, "admin", admin=True)


def scope(**names: str) -> Scope:
    return Scope(tenantId=TENANT, **names)


def says(*payloads: Any, where: Scope | None = None) -> list[Request]:
    return [Request("tool-call", payload, scope=where) for payload in payloads]


class Deployment:
    """One store, and processes that append to it, each with its own caches."""

    def __init__(self) -> None:
        self.store = FakeLog()
        self.keys, self.wrapper = FakeKeys(), FakeWrapper()

    def process(self, store: Any = None) -> LogWriter:
        vault = Vault(self.keys, self.wrapper, AesGcm())
        return LogWriter(store or self.store, vault, StandingClock(), pause=lambda _: None)

    def payloads(self, run: str = "r") -> list[Any]:
        """Of a run whose chain holds."""
        chain, found = Chain(run, TENANT), self.store.entries(TENANT, run, 0, 10**6, 10**9)[0]
        for entry in found:
            chain.follow(entry.text.encode(), entry.entry_hash[7:].encode(), entry.cause)
            assert entry.sequence == chain.sequence
        log = self.process()
        return [open_entry(log.vault, entry).payload for entry in found]


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


def append(
    log: LogWriter, requests: Sequence[Request], who: Principal = ADMIN, run: str = "r", **more: Any
) -> list[LogEntry]:
    return append_entries(log, who, run, requests, **more)


# -- cost


def test_a_warm_append_is_one_put_and_no_read(deployment: Deployment) -> None:
    log = deployment.process()
    append(log, says(0))
    reads = deployment.store.reads
    for number in range(1, 5):
        append(log, says(number))
    assert (deployment.store.puts, deployment.store.reads) == (5, reads)


def test_a_cold_append_adds_one_read(deployment: Deployment) -> None:
    append(deployment.process(), says(0))
    puts, reads = deployment.store.puts, deployment.store.reads
    append(deployment.process(), says(1))
    assert (deployment.store.puts, deployment.store.reads) == (puts + 1, reads + 1)


def test_a_busy_process_forgets_the_tails_it_used_least_and_stays_warm_for_the_others(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "CACHED_TAILS", 2)
    log = deployment.process()
    for run in ("a", "b", "a", "c"):
        append(log, says(0), run=run)
    for run, cost in (("a", 0), ("c", 0), ("b", 1)):
        reads = deployment.store.reads
        append(log, says(1), run=run)
        assert deployment.store.reads == reads + cost


def test_an_idempotency_key_costs_one_read_and_after_sequence_none(deployment: Deployment) -> None:
    log = deployment.process()
    append(log, says(0))
    reads = deployment.store.reads
    append(log, says(1), operation="op")
    assert deployment.store.reads == reads + 1
    append(log, says(2), after=1)
    append(log, says(3), after=2, operation="op2")
    assert deployment.store.reads == reads + 1


# -- retries


@pytest.mark.parametrize("same_process", [True, False])
def test_a_retry_with_after_sequence_is_answered_as_the_first_time(
    deployment: Deployment, same_process: bool
) -> None:
    log = deployment.process()
    append(log, says("first"))
    once = append(log, says("a", "b"), after=0)
    again = append(log if same_process else deployment.process(), says("a", "b"), after=0)
    assert again == once
    assert deployment.payloads() == ["first", "a", "b"]


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize("where", [scope(), scope(userId="u")], ids=["plain", "sealed"])
def test_a_retry_with_an_idempotency_key_is_answered_as_the_first_time(
    deployment: Deployment, same_process: bool, where: Scope
) -> None:
    log = deployment.process()
    once = append(log, says("a", 1.0, where=where), operation="op")
    append(log, says("between"))
    again = append(log if same_process else deployment.process(), says("a", 1, where=where), operation="op")
    assert again == once
    assert deployment.payloads() == ["a", 1, "between"]


def test_a_batch_of_large_entries_is_known_again_by_those_that_one_read_holds(deployment: Deployment) -> None:
    """The first entry of the batch lies further back than what a look-back of one read sees."""
    large = ["x" * 240_000] * 12
    once = append(deployment.process(), says(*large), operation="op")
    assert len(deployment.store.newest(TENANT, "r", 200)) < 12
    assert append(deployment.process(), says(*large), operation="op") == once
    assert len(deployment.payloads()) == 12


def test_a_look_back_is_one_read_however_large_the_entries_are(deployment: Deployment) -> None:
    for number in range(8):
        append(deployment.process(), says(f"{number}" + "x" * 240_000))
    reads = deployment.store.reads
    append(deployment.process(), says("a"), operation="op")
    assert deployment.store.reads == reads + 1


@pytest.mark.parametrize("other", [["b"], ["a", "b"], ["a", None]], ids=str)
def test_a_key_used_with_another_body_is_refused(deployment: Deployment, other: list[Any]) -> None:
    log = deployment.process()
    append(log, says("a"), operation="op")
    with pytest.raises(IdempotencyMismatch):
        append(log, says(*other), operation="op")
    assert deployment.payloads() == ["a"]


def test_a_key_used_with_fewer_entries_than_the_first_time_is_refused(deployment: Deployment) -> None:
    log = deployment.process()
    append(log, says("a", "b"), operation="op")
    with pytest.raises(IdempotencyMismatch):
        append(log, says("a"), operation="op")


def test_twenty_parallel_tries_of_one_key_make_one_entry_and_twenty_equal_answers(
    deployment: Deployment,
) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(lambda _: append(deployment.process(), says("a", "b"), operation="op"), range(20))
        )
    assert all(answer == answers[0] for answer in answers)
    assert deployment.payloads() == ["a", "b"]


def test_twenty_parallel_tries_of_one_after_sequence_make_one_entry(deployment: Deployment) -> None:
    append(deployment.process(), says("first"))
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: append(deployment.process(), says("a"), after=0), range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert deployment.payloads() == ["first", "a"]


class LostReply:
    """A store whose put lands, while the SDK, having heard nothing, sends it again."""

    def __init__(self, store: FakeLog) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        assert self._store.put(entries) is None
        return self._store.put(entries)


@pytest.mark.parametrize("more", [{}, {"after": -1}, {"operation": "op"}], ids=str)
@pytest.mark.parametrize("payloads", [["a"], ["a", "b", "c"]], ids=len)
def test_a_lost_reply_answers_the_entry_that_landed(
    deployment: Deployment, payloads: list[str], more: dict[str, Any]
) -> None:
    answer = append(deployment.process(LostReply(deployment.store)), says(*payloads), **more)
    assert [entry.payload for entry in answer] == payloads
    assert deployment.payloads() == payloads


def struck_calls(more: dict[str, Any]) -> int:
    deployment, blows = Deployment(), Blows()
    append(deployment.process(), says("first"))
    append(deployment.process(Struck(deployment.store, blows)), says("a", "b"), **more)
    return len(blows.calls)


CASES = [
    (more, at, blow)
    for more in ({"after": 0}, {"operation": "op"})
    for at in range(struck_calls(more))
    for blow in Blow
]


@pytest.mark.parametrize(("more", "at", "blow"), CASES, ids=str)
def test_whatever_stops_an_append_its_retry_leaves_it_there_once(
    deployment: Deployment, more: dict[str, Any], at: int, blow: Blow
) -> None:
    append(deployment.process(), says("first"))
    with pytest.raises((Death, StorageUnavailable)):
        append(deployment.process(Struck(deployment.store, Blows(blow, at))), says("a", "b"), **more)
    assert deployment.payloads() in (["first"], ["first", "a", "b"])
    answer = append(deployment.process(), says("a", "b"), **more)
    assert [entry.payload for entry in answer] == ["a", "b"]
    assert deployment.payloads() == ["first", "a", "b"]


# -- afterSequence


@pytest.mark.parametrize(("after", "current"), [(-1, 1), (0, 1), (2, 1), (99, 1)])
def test_an_append_behind_another_entry_than_the_last_is_refused_with_the_last_one(
    deployment: Deployment, after: int, current: int
) -> None:
    append(deployment.process(), says("a", "b"))
    with pytest.raises(LogChanged) as refused:
        append(deployment.process(), says("c"), after=after)
    assert refused.value.details == {"currentSequence": current}
    assert deployment.payloads() == ["a", "b"]


def test_minus_one_opens_a_run_once(deployment: Deployment) -> None:
    append(deployment.process(), says("a"), after=-1)
    with pytest.raises(LogChanged):
        append(deployment.process(), says("b"), after=-1)
    with pytest.raises(LogChanged) as refused:
        append(deployment.process(), says("c"), run="empty", after=0)
    assert refused.value.details == {"currentSequence": -1}


# -- others


def test_a_process_whose_tail_is_old_walks_forward(deployment: Deployment) -> None:
    old, other = deployment.process(), deployment.process()
    append(old, says(0))
    for number in range(1, 8):
        append(other, says(number))
    assert append(old, says("late"))[0].sequence == 8
    assert deployment.payloads() == [0, 1, 2, 3, 4, 5, 6, 7, "late"]


def test_parallel_writers_leave_no_gap_and_no_duplicate(deployment: Deployment) -> None:
    def write(writer: int) -> None:
        log = deployment.process()
        for number in range(20):
            append(log, says([writer, number], [writer, number, "more"]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    payloads = deployment.payloads()
    assert len(payloads) == 320
    assert len({str(payload) for payload in payloads}) == 320
    for first, second in zip(payloads[::2], payloads[1::2], strict=True):
        assert second == [*first, "more"], "a request's entries stand together"


class AlwaysContended(LostReply):
    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        raise Contended


@pytest.mark.parametrize("more", [{}, {"after": -1}], ids=str)
def test_a_run_that_stays_contended_asks_the_caller_to_come_back(
    deployment: Deployment, more: dict[str, Any]
) -> None:
    with pytest.raises(Throttled):
        append(deployment.process(AlwaysContended(deployment.store)), says("a"), **more)
    assert deployment.payloads() == []


class OvertakenOnce(LostReply):
    """Another opens the run between this process's look and its put."""

    def __init__(self, store: FakeLog, overtake: Any) -> None:
        super().__init__(store)
        self._overtake, self._lock = overtake, threading.Lock()

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        with self._lock:
            overtake, self._overtake = self._overtake, None
        if overtake is not None:
            overtake()
        return self._store.put(entries)


@pytest.mark.parametrize(
    ("asked", "who", "refusal"),
    [
        (scope(), ADMIN, ScopeInvalid),
        (scope(userId="ann"), principal(TENANT, "ann"), NotFound),
        (None, ADMIN, None),
    ],
    ids=["another scope", "a scope not theirs", "no scope asked"],
)
@pytest.mark.parametrize("more", [{}, {"after": -1}], ids=str)
def test_who_loses_the_race_to_open_a_run_is_held_to_the_winners_scope(
    deployment: Deployment, asked: Scope | None, who: Principal, refusal: Any, more: dict[str, Any]
) -> None:
    def overtake() -> None:
        append(deployment.process(), says("winner", where=scope(userId="eve")))

    log = deployment.process(OvertakenOnce(deployment.store, overtake))
    if refusal is not None or more:
        with pytest.raises(refusal or LogChanged):
            append(log, says("loser", where=asked), who, **more)
        assert deployment.payloads() == ["winner"]
    else:
        assert append(log, says("loser"), who)[0].scope == scope(userId="eve")
        assert deployment.payloads() == ["winner", "loser"], "sealed under the run's own key"


# -- scope and access


def test_a_run_keeps_its_first_entrys_scope(deployment: Deployment) -> None:
    log = deployment.process()
    append(log, says("a", where=scope(projectId="p")))
    assert append(log, says("b"))[0].scope == scope(projectId="p")
    for process, other in itertools.product((log, deployment.process()), (scope(), scope(projectId="q"))):
        with pytest.raises(ScopeInvalid):
            append(process, says("c", where=other))
    assert deployment.payloads() == ["a", "b"]


def test_entries_of_one_request_share_one_scope(deployment: Deployment) -> None:
    with pytest.raises(ScopeInvalid):
        append(deployment.process(), [*says(1, where=scope()), *says(2, where=scope(projectId="p"))])


@pytest.mark.parametrize(
    ("who", "where", "allowed"),
    [
        (principal(TENANT, "ann"), scope(), False),
        (principal(TENANT, "ann"), scope(userId="ann"), True),
        (principal(TENANT, "ann"), scope(userId="bob"), False),
        (principal(TENANT, "ann", reads=["p"]), scope(projectId="p"), False),
        (principal(TENANT, "ann", writes=["p"]), scope(projectId="p", threadId="t"), True),
        (principal(TENANT, "ann", administers_orgs=["o"]), scope(orgId="o"), True),
        (principal(TENANT, "ann", reads_orgs=["o"]), scope(orgId="o"), False),
    ],
)
def test_writing_a_run_is_writing_its_scope(
    deployment: Deployment, who: Principal, where: Scope, allowed: bool
) -> None:
    log = deployment.process()
    if allowed:
        append(log, says("a", where=where), who)
    else:
        with pytest.raises(PermissionDenied):
            append(log, says("a", where=where), who)
    assert len(deployment.payloads()) == int(allowed)


def test_a_run_one_may_not_read_is_not_found_and_one_may_only_read_is_denied(deployment: Deployment) -> None:
    log = deployment.process()
    append(log, says("a", where=scope(projectId="p")))
    with pytest.raises(NotFound):
        append(log, says("b"), principal(TENANT, "ann"))
    with pytest.raises(PermissionDenied):
        append(log, says("b"), principal(TENANT, "ann", reads=["p"]))
    assert deployment.payloads() == ["a"]


@pytest.mark.parametrize("run", ["_erasures", "_holds", "_refresh:f", "_"])
def test_the_services_own_runs_are_not_the_callers_to_write(deployment: Deployment, run: str) -> None:
    with pytest.raises(BadInput):
        append(deployment.process(), says("a"), run=run)


def test_the_caller_is_the_actor_unless_it_names_one(deployment: Deployment) -> None:
    log = deployment.process()
    named = append(log, [Request("tool-call", actor="agent:planner"), Request("tool-call")])
    assert [entry.actor for entry in named] == ["agent:planner", "user:admin"]


# -- limits


def test_a_payload_of_256_kb_is_taken_and_one_byte_more_refused(deployment: Deployment) -> None:
    log = deployment.process()
    largest = "x" * (MAX_PAYLOAD_BYTES - 2)
    for where in (scope(), scope(userId="u")):
        append(log, says(largest, where=where), run=where.container.replace(":", "-"))
    with pytest.raises(BadInput, match="256 KB"):
        append(log, says(largest + "x"))


def test_a_batch_that_no_transaction_holds_is_refused_whole(deployment: Deployment) -> None:
    with pytest.raises(RequestTooLarge):
        append(deployment.process(), says(*["x" * 200_000] * 16, where=scope(userId="u")))
    assert deployment.payloads() == []


@pytest.mark.parametrize("payload", [2**53, 1e16, float("nan"), "\ud83d", {"\ud83d": 1}])
def test_a_batch_with_one_entry_that_has_no_canonical_form_writes_nothing(
    deployment: Deployment, payload: object
) -> None:
    with pytest.raises(BadInput):
        append(deployment.process(), says("fine", payload))
    assert deployment.payloads() == []


# -- deadline


class Busy(FakeLog):
    """Each put meets another's transaction and takes `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.time, self.seconds = 0.0, seconds

    def put(self, entries: Sequence[StoredEntry]) -> StoredEntry | None:
        self.time += self.seconds
        raise Contended

    def pause(self, seconds: float) -> None:
        self.time += seconds

    def now(self) -> float:
        return self.time


@pytest.mark.parametrize("after", [None, -1])
@pytest.mark.parametrize("seconds", [0.02, 6.0])
def test_an_append_that_keeps_meeting_others_gives_up_at_its_deadline(
    deployment: Deployment, after: int | None, seconds: float
) -> None:
    busy = Busy(seconds)
    log = replace(deployment.process(busy), pause=busy.pause, elapsed=busy.now)

    with pytest.raises(Throttled):
        append(log, says(0), after=after, deadline=Deadline(16.0, busy.now))
    assert busy.time <= 16.0 + seconds


def test_past_its_deadline_an_append_reads_and_writes_nothing(deployment: Deployment) -> None:
    log = deployment.process()
    for again in range(2):  # without, then with the tail at hand
        puts, reads = deployment.store.puts, deployment.store.reads
        with pytest.raises(StorageUnavailable):
            append(log, says(again), deadline=Deadline(0.0))
        assert (deployment.store.puts, deployment.store.reads) == (puts, reads)
        append(log, says("in time"))
