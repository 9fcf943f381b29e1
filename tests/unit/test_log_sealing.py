"""Sealed payloads: readable while their key lives, gone everywhere when it is destroyed, and never erased by hand."""

import hashlib
import json
from dataclasses import replace

import pytest
from support.fakes import FakeClock
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import Elapsed, StandingClock
from support.principals import principal

from factbook.adapters.aes_gcm import AesGcm
from factbook.canonical import log_canonical
from factbook.domain.errors import LogChanged
from factbook.domain.log.chain import text_hash
from factbook.domain.log.entries import LogEntry
from factbook.domain.log.runs import Leaf, new_salt
from factbook.domain.log.sealing import KeyName, key_name
from factbook.domain.scope import Scope
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log import sealing
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.entries import open_entry
from factbook.usecases.log.sealing import CACHE_SECONDS, Vault
from factbook.verify.chain import Chain

TENANT = "acme"
ADMIN = principal(TENANT, "admin", admin=True)
ERASED = "2026-02-02T00:00:00.000000Z"


class Deployment:
    """A log's stores, and processes over them."""

    def __init__(self) -> None:
        self.store, self.keys, self.wrapper, self.elapsed = FakeLog(), FakeKeys(), FakeWrapper(), Elapsed()
        self.clock = FakeClock()
        self.log = self.process()

    def process(self) -> LogWriter:
        vault = Vault(self.keys, self.wrapper, AesGcm(), self.elapsed, self.clock.now)
        return LogWriter(self.store, vault, StandingClock(), pause=lambda _: None)

    def append(self, payload: object, run: str = "r", **scope: str) -> LogEntry:
        request = Request("user-message", payload, scope=Scope(tenantId=TENANT, **scope))
        return append_entries(self.log, ADMIN, run, [request])[0]

    def stored(self, run: str = "r", sequence: int = 0) -> StoredEntry:
        entry = self.store.entry(TENANT, run, sequence)
        assert entry is not None
        return entry

    def read(self, run: str = "r", sequence: int = 0, log: LogWriter | None = None) -> LogEntry:
        return open_entry((log or self.log).vault, self.stored(run, sequence))


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


@pytest.mark.parametrize(
    ("scope", "sealed"),
    [
        ({}, False),
        ({"orgId": "o"}, False),
        ({"projectId": "p"}, False),
        ({"projectId": "p", "sessionId": "s"}, False),
        ({"userId": "u"}, True),
        ({"threadId": "t"}, True),
        ({"projectId": "p", "participantId": "x"}, True),
        ({"projectId": "p", "threadId": "t"}, True),
    ],
)
def test_a_payload_is_sealed_iff_its_scope_names_a_person_or_a_conversation(
    deployment: Deployment, scope: dict[str, str], sealed: bool
) -> None:
    deployment.append({"text": "the words"}, **scope)
    assert ("the words" in deployment.stored().text) is not sealed
    assert deployment.read().payload == {"text": "the words"}
    assert (key_name(Scope(tenantId=TENANT, **scope)) is not None) is sealed


@pytest.mark.parametrize("payload", [None, 0, "", [], {}, [None], {"a": {"b": [1.5, None, "é𐀀"]}}, False])
def test_every_payload_comes_back_from_its_envelope(deployment: Deployment, payload: object) -> None:
    deployment.append(payload, userId="u")
    assert deployment.read().payload == payload


def test_another_process_reads_what_this_one_sealed(deployment: Deployment) -> None:
    deployment.append("words", userId="u")
    assert deployment.read(log=deployment.process()).payload == "words"


def test_a_warm_process_reads_no_key_and_asks_no_wrapper(deployment: Deployment) -> None:
    deployment.append("one", userId="u")
    reads, calls = deployment.keys.reads, deployment.wrapper.calls
    deployment.append("two", userId="u")
    deployment.read(sequence=1)
    assert (deployment.keys.reads, deployment.wrapper.calls) == (reads, calls)


def test_a_key_is_forgotten_after_a_minute(deployment: Deployment) -> None:
    deployment.append("one", userId="u")
    calls = deployment.wrapper.calls
    deployment.elapsed.seconds += CACHE_SECONDS + 1
    assert deployment.read().payload == "one"
    assert deployment.wrapper.calls == calls + 1


class SlowWrapper(FakeWrapper):
    """Takes its time over unwrapping."""

    def __init__(self, elapsed: Elapsed) -> None:
        super().__init__()
        self._elapsed = elapsed

    def unwrap(self, tenant: str, wrapped: bytes) -> bytes:
        self._elapsed.seconds += 20.0
        return super().unwrap(tenant, wrapped)


def test_the_minute_counts_from_the_reading_of_a_key_and_not_from_its_unwrapping(
    deployment: Deployment,
) -> None:
    deployment.wrapper = SlowWrapper(deployment.elapsed)
    deployment.log = deployment.process()
    deployment.append("words", userId="u")
    other = deployment.process()
    assert deployment.read(log=other).payload == "words"
    deployment.log.vault.destroy(TENANT, KeyName(user="u"), ERASED)
    deployment.elapsed.seconds += CACHE_SECONDS - 20.0
    assert deployment.read(log=other).payload_erased_at == ERASED


def test_a_process_that_holds_too_many_keys_forgets_the_least_used_and_no_other(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "CACHED_KEYS", 2)
    deployment.log = deployment.process()
    for user in ("a", "b"):
        deployment.append("words", f"run-{user}", userId=user)
    deployment.read("run-a")
    deployment.append("words", "run-c", userId="c")
    calls = deployment.wrapper.calls
    for run in ("run-a", "run-c"):
        assert deployment.read(run).payload == "words"
    assert deployment.wrapper.calls == calls
    assert deployment.read("run-b").payload == "words"
    assert deployment.wrapper.calls == calls + 1


def test_destroying_a_key_erases_the_words_and_leaves_the_chain(deployment: Deployment) -> None:
    entries = [deployment.append({"text": f"secret {number}"}, userId="u") for number in range(3)]
    assert deployment.log.vault.destroy(TENANT, KeyName(user="u"), ERASED) == 1
    chain = Chain("r", TENANT)
    for before in entries:
        after = deployment.read(sequence=before.sequence)
        assert (after.payload, after.payload_erased_at) == (None, ERASED)
        assert "payload" not in after.to_json()
        assert (after.entry_hash, after.content_hash) == (before.entry_hash, before.content_hash)
        stored = deployment.stored(sequence=before.sequence)
        chain.follow(stored.text.encode(), stored.entry_hash[7:].encode(), stored.cause)


def test_what_the_same_person_says_afterwards_reads_normally(deployment: Deployment) -> None:
    deployment.append("before", userId="u")
    deployment.log.vault.destroy(TENANT, KeyName(user="u"), ERASED)
    deployment.append("after", userId="u")
    assert deployment.read(sequence=0).payload_erased_at == ERASED
    for log in (deployment.log, deployment.process()):
        assert deployment.read(sequence=1, log=log).payload == "after"
    assert [json.loads(deployment.stored(sequence=at).text)["payload"]["gen"] for at in (0, 1)] == [1, 2]


def test_another_process_loses_the_words_within_a_minute(deployment: Deployment) -> None:
    deployment.append("words", userId="u")
    other = deployment.process()
    assert deployment.read(log=other).payload == "words"
    deployment.log.vault.destroy(TENANT, KeyName(user="u"), ERASED)
    deployment.elapsed.seconds += CACHE_SECONDS + 1
    assert deployment.read(log=other).payload_erased_at == ERASED


@pytest.mark.parametrize(
    ("selector", "erased"),
    [
        (KeyName(user="u"), {"user"}),
        (KeyName(participant="x"), {"participant", "both"}),
        (KeyName(project="q", participant="x"), set()),
        (KeyName(thread="t"), {"thread", "both"}),
    ],
    ids=["a user", "a participant", "a participant of another project", "a thread"],
)
def test_an_erasure_reaches_the_keys_it_names_and_no_other(
    deployment: Deployment, selector: KeyName, erased: set[str]
) -> None:
    scopes = {
        "user": {"userId": "u"},
        "participant": {"projectId": "p", "participantId": "x"},
        "thread": {"projectId": "p", "threadId": "t"},
        "both": {"projectId": "p", "participantId": "x", "threadId": "t"},
        "other": {"userId": "x"},
    }
    for run, scope in scopes.items():
        deployment.append("words", run, **scope)
    assert deployment.log.vault.destroy(TENANT, selector, ERASED) == len(erased)
    assert {run for run in scopes if deployment.read(run).payload_erased_at} == erased
    assert deployment.log.vault.destroy("other-tenant", selector, ERASED) == 0


def test_a_replay_destroys_the_generations_that_began_before_and_no_later_one(deployment: Deployment) -> None:
    vault, user = deployment.log.vault, KeyName(user="u")
    deployment.append("long before", userId="u")
    vault.destroy(TENANT, user, ERASED)
    deployment.clock.advance(days=1)
    deployment.append("before", userId="u")
    asked_at = deployment.clock.advance(milliseconds=1)
    vault.destroy(TENANT, user, asked_at)
    deployment.append("after", userId="u")
    assert vault.destroy(TENANT, user, asked_at, begun_before=asked_at) == 0, "it began at that instant"
    assert vault.destroy(TENANT, KeyName(), asked_at, begun_before=asked_at) == 0
    assert deployment.read(sequence=2).payload == "after"
    assert vault.destroy(TENANT, user, asked_at, begun_before="2026-01-02T00:00:00.002Z") == 1
    assert deployment.read(sequence=2).payload_erased_at == asked_at


def test_a_replay_destroys_the_generations_of_which_nobody_kept_when_they_began(
    deployment: Deployment,
) -> None:
    deployment.append("words", userId="u")
    (key,) = deployment.keys.walk(TENANT)
    assert key.begun_at == deployment.clock.now()
    deployment.keys = FakeKeys()
    assert deployment.keys.create(replace(key, begun_at=None)) is None
    vault = deployment.process().vault
    assert vault.destroy(TENANT, key.name, ERASED, begun_before="2020-01-01T00:00:00.000Z") == 1


def test_a_short_payload_cannot_be_guessed_from_anything_that_is_kept(deployment: Deployment) -> None:
    answer = deployment.append("4711", userId="u")
    deployment.log.vault.destroy(TENANT, KeyName(user="u"), ERASED)
    stored = deployment.stored()
    leaf = Leaf(0, "r", 0, stored.entry_hash, new_salt())
    envelope = json.loads(stored.text)["payload"]
    kept = {answer.content_hash, stored.entry_hash, leaf.data.hex()} | {
        str(each) for each in envelope.values()
    }
    for guess in range(10_000):
        text = log_canonical(f"{guess:04d}")
        entry = log_canonical(json.loads(stored.text) | {"payload": f"{guess:04d}"})
        for candidate in (text, entry, f"{guess:04d}", leaf.salt + text):
            assert text_hash(candidate) not in kept
            assert hashlib.sha256(candidate.encode()).hexdigest() not in kept


def test_answers_of_like_length_leave_envelopes_of_one_length(deployment: Deployment) -> None:
    for payload in ("yes", "no", "maybe", 1, True, {"a": 1}):
        deployment.append(payload, userId="u")
    sealed = [json.loads(deployment.stored(sequence=at).text)["payload"]["ct"] for at in range(6)]
    assert len({len(text) for text in sealed}) == 1


def rehashed(entry: StoredEntry, payload: object) -> StoredEntry:
    text = log_canonical(json.loads(entry.text) | {"payload": payload})
    return replace(entry, text=text, entry_hash=text_hash(text))


@pytest.mark.parametrize(
    "payload", [{}, "gone", {"alg": "A256GCM", "ct": "AAAA", "gen": 1, "iv": "AAAA"}, {"erased": True}]
)
def test_a_payload_replaced_by_hand_is_an_alteration_not_an_erasure(
    deployment: Deployment, payload: object
) -> None:
    deployment.append("words", userId="u")
    with pytest.raises(LogChanged):
        open_entry(deployment.log.vault, rehashed(deployment.stored(), payload))


def test_an_envelope_moved_to_another_entry_does_not_open(deployment: Deployment) -> None:
    deployment.append("one", userId="u")
    deployment.append("two", userId="u")
    taken = json.loads(deployment.stored(sequence=0).text)["payload"]
    with pytest.raises(LogChanged):
        open_entry(deployment.log.vault, rehashed(deployment.stored(sequence=1), taken))


@pytest.mark.parametrize("generation", [2, 0, -1, True, "1", None])
def test_an_envelope_of_a_key_that_never_was_does_not_read_as_erased(
    deployment: Deployment, generation: object
) -> None:
    deployment.append("words", userId="u")
    envelope = json.loads(deployment.stored().text)["payload"]
    with pytest.raises(LogChanged):
        open_entry(deployment.log.vault, rehashed(deployment.stored(), envelope | {"gen": generation}))


def test_an_edited_text_or_cause_is_an_alteration(deployment: Deployment) -> None:
    deployment.append({"n": 1}, projectId="p")
    entry = deployment.stored()
    for changed in (
        replace(entry, text=entry.text.replace('"n":1', '"n":2')),
        replace(entry, text="{}"),
        replace(entry, text="no json"),
        replace(entry, cause="r:0:cause"),
        replace(entry, format="jcs-sha256-v2"),
        replace(entry, sequence=1),
    ):
        with pytest.raises(LogChanged):
            open_entry(deployment.log.vault, changed)
