"""The chain: what the service writes the verifier follows, and every change of a written byte is seen."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import principal

from factbook.adapters.aes_gcm import AesGcm
from factbook.canonical import log_canonical
from factbook.domain.log.chain import LogId, nonce_for, read_log_id, text_hash
from factbook.domain.log.runs import later_micros
from factbook.domain.scope import Scope
from factbook.ports.log.entries import StoredEntry
from factbook.usecases.log.appending import LogWriter, Request, append_entries
from factbook.usecases.log.sealing import Vault
from factbook.verify.chain import Chain
from factbook.verify.findings import Tampered, Unsupported
from factbook.verify.lines import read_entry
from factbook.verify.together import Openings, Place, follow_together
from factbook_cli.export import entry_line

TENANT = "acme"
ADMIN = principal(TENANT, "admin", admin=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
IDS = st.text("abcXYZ019._:@~-", min_size=1, max_size=12)
CALLERS_RUNS = IDS.filter(lambda run: not run.startswith("_"))
REQUESTS = st.builds(
    Request,
    kind=st.sampled_from(["user-message", "tool-call", "internal-thought"]),
    payload=JSON,
    actor=st.none() | TEXT,
    cause=st.none() | st.just("r:0:0123456789abcdef") | TEXT,
)
SCOPES = st.sampled_from(
    [{}, {"projectId": 'p"}]'}, {"userId": "ü"}, {"projectId": "p", "threadId": "\\u0000\n"}]
)


def new_log(clock: StandingClock | None = None) -> LogWriter:
    return LogWriter(
        FakeLog(), Vault(FakeKeys(), FakeWrapper(), AesGcm()), clock or StandingClock(), pause=lambda _: None
    )


def written(
    requests: list[Request], run: str = "r", scope: dict[str, str] | None = None
) -> list[StoredEntry]:
    log = new_log()
    for request in requests:
        place = Scope(tenantId=TENANT, **(scope or {}))
        append_entries(
            log, ADMIN, run, [Request(request.kind, request.payload, request.actor, request.cause, place)]
        )
    return log.store.entries(TENANT, run, 0, 1000)[0]


def follow(chain: Chain, entry: StoredEntry) -> None:
    chain.follow(entry.text.encode(), entry.entry_hash.removeprefix("sha256:").encode(), entry.cause)


def forged(entry: StoredEntry, **changes: object) -> StoredEntry:
    """The entry with other fields and a hash that holds."""
    text = log_canonical(json.loads(entry.text) | changes)
    return StoredEntry(
        entry.tenant, entry.run_id, entry.sequence, text, text_hash(text), entry.format, entry.cause
    )


@settings(max_examples=40)
@given(st.lists(REQUESTS, min_size=1, max_size=4), CALLERS_RUNS, SCOPES)
def test_whatever_is_appended_is_followed_entry_by_entry(
    requests: list[Request], run: str, scope: dict[str, str]
) -> None:
    entries = written(requests, run, scope)
    chain = Chain(run, TENANT)
    for sequence, entry in enumerate(entries):
        assert (entry.sequence, json.loads(entry.text)["sequence"]) == (sequence, sequence)
        follow(chain, entry)
    assert chain.sequence == len(requests) - 1
    assert "sha256:" + chain.digest.decode() == entries[-1].entry_hash


@settings(max_examples=60)
@given(st.lists(REQUESTS, min_size=1, max_size=3), st.data())
def test_a_changed_byte_is_seen_where_it_is(requests: list[Request], data: st.DataObject) -> None:
    entries = written(requests)
    victim = data.draw(st.integers(0, len(entries) - 1))
    raw = entries[victim].text.encode()
    at = data.draw(st.integers(0, len(raw) - 1))
    changed = raw[:at] + bytes([raw[at] ^ data.draw(st.integers(1, 255))]) + raw[at + 1 :]
    chain = Chain("r", TENANT)
    for entry in entries[:victim]:
        follow(chain, entry)
    with pytest.raises(Tampered) as caught:
        chain.follow(changed, entries[victim].entry_hash[7:].encode(), entries[victim].cause)
    assert (caught.value.run, caught.value.sequence) == ("r", victim)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sequence": 2}, "missing"),
        ({"sequence": 0}, "repeated"),
        ({"runId": "s"}, "another run"),
        ({"prevHash": "sha256:" + "1" * 64}, "prevHash"),
        ({"scope": {"tenantId": TENANT, "userId": "eve"}}, "scope"),
        ({"scope": {"tenantId": "other"}}, "scope"),
        ({"timestamp": "2025-12-31T23:59:59.999999Z"}, "timestamp"),
        ({"timestamp": "9999-99-99T99:99:99.99999Z"}, "canonical"),
        ({"id": "r:1:0123456789abcde"}, "cause"),
        ({"id": "r:1:0123456789abcdef0"}, "cause"),
        ({"id": "r:0:0123456789abcdef"}, "place"),
        ({"id": "s:1:0123456789abcdef"}, "place"),
        ({"id": "nowhere"}, "place"),
        ({"extra": 1}, "place"),
    ],
    ids=lambda value: str(value),
)
def test_a_forged_entry_with_a_hash_that_holds_is_still_refused(changes: dict[str, object], why: str) -> None:
    entries = written([Request("tool-call", {"n": 1}), Request("tool-call", {"n": 2})])
    chain = Chain("r", TENANT)
    follow(chain, entries[0])
    with pytest.raises(Tampered, match=why) as caught:
        follow(chain, forged(entries[1], **changes))
    assert caught.value.sequence == 1


@pytest.mark.parametrize("cause", [None, "r:0:other", "r:0:cause "])
def test_the_cause_an_entry_was_written_with_cannot_be_changed_or_taken_away(cause: str | None) -> None:
    (entry,) = written([Request("tool-call", None, None, "r:0:cause")])
    follow(Chain("r", TENANT), entry)
    with pytest.raises(Tampered, match="cause"):
        Chain("r", TENANT).follow(entry.text.encode(), entry.entry_hash[7:].encode(), cause)


def test_a_cause_cannot_be_added() -> None:
    (entry,) = written([Request("tool-call")])
    with pytest.raises(Tampered, match="cause"):
        Chain("r", TENANT).follow(entry.text.encode(), entry.entry_hash[7:].encode(), "r:0:cause")


def test_an_entry_that_names_a_key_twice_is_refused() -> None:
    (entry,) = written([Request("tool-call", 1)])
    text = entry.text.replace('"payload":1', '"payload":1,"runId":"s"')
    with pytest.raises(Tampered):
        Chain("r", TENANT).follow(text.encode(), text_hash(text)[7:].encode(), None)


@given(IDS, st.integers(0, 10**15), st.none() | TEXT)
def test_an_id_is_read_as_it_was_written(run: str, sequence: int, cause: str | None) -> None:
    log_id = LogId(run, sequence, nonce_for("0123456789abcdef", cause))
    assert read_log_id(str(log_id)) == log_id
    assert log_id.seed == "0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    ["", "r", "r:0", "r:01:0123456789abcdef", "r:-1:0123456789abcdef", "r:0:0123", "é:0:0123456789abcdef"],
)
def test_what_no_entry_can_be_called_is_no_id(text: str) -> None:
    assert read_log_id(text) is None


@settings(max_examples=40)
@given(st.lists(REQUESTS, min_size=1, max_size=3))
def test_an_entrys_line_gives_back_its_bytes_hash_and_cause(requests: list[Request]) -> None:
    for entry in written(requests):
        form = {
            "entryHash": entry.entry_hash,
            "format": entry.format,
            "canonical": entry.text,
            "causedByLogId": entry.cause,
        }
        line = entry_line(form)
        assert read_entry(line) == (entry.text.encode(), entry.entry_hash[7:].encode(), entry.cause)
        assert json.loads(line)["entry"] == json.loads(entry.text)


def test_a_line_of_another_format_is_unsupported_and_one_of_another_shape_tampered() -> None:
    form = {"entryHash": "sha256:" + "0" * 64, "format": "jcs-sha256-v2", "canonical": "{}"}
    with pytest.raises(Unsupported):
        read_entry(entry_line(form))
    with pytest.raises(Tampered):
        read_entry(entry_line(form | {"format": "jcs-sha256-v1", "canonical": '{"a":\n1}'}))


@given(st.integers(0, 10**6), st.integers(-5, 5))
def test_time_never_stands_still_in_a_run(micros: int, step: int) -> None:
    previous = f"2026-01-01T00:00:00.{micros % 10**6:06d}Z"
    now = f"2026-01-01T00:00:00.{max(0, min(999_999, micros % 10**6 + step)):06d}Z"
    following = later_micros(now, previous)
    assert following > previous
    assert following >= now
    assert len(following) == 27


def test_a_clock_that_goes_back_does_not_take_the_run_with_it() -> None:
    clock = StandingClock("2026-12-31T23:59:59.999999Z")
    log = new_log(clock)
    first = append_entries(log, ADMIN, "r", [Request("tool-call")])[0]
    clock.instant = "2026-01-01T00:00:00.000000Z"
    later = append_entries(log, ADMIN, "r", [Request("tool-call"), Request("tool-call")])
    assert [first.timestamp, *(entry.timestamp for entry in later)] == [
        "2026-12-31T23:59:59.999999Z",
        "2027-01-01T00:00:00.000000Z",
        "2027-01-01T00:00:00.000001Z",
    ]


@settings(max_examples=80)
@given(st.data())
def test_a_block_of_lines_is_taken_up_to_the_first_that_does_not_hold(data: st.DataObject) -> None:
    entries = written([Request("tool-call", {"n": number}) for number in range(5)], "r", {"projectId": "p"})
    lines = [
        entry_line({"entryHash": entry.entry_hash, "format": entry.format, "canonical": entry.text}) + b"\n"
        for entry in entries
    ]
    victim = data.draw(st.integers(1, 4))
    at = data.draw(st.integers(0, len(lines[victim]) - 1))
    flipped = bytes([lines[victim][at] ^ data.draw(st.integers(1, 255))])
    damaged = [*lines[:victim], lines[victim][:at] + flipped + lines[victim][at + 1 :], *lines[victim + 1 :]]
    chain = Chain("r", TENANT)
    assert follow_together(Place(chain), Openings(), damaged, 0, runs=False) == victim
    assert chain.sequence == victim - 1
    assert follow_together(Place(chain), Openings(), lines, victim, runs=False) == 5 - victim
    assert "sha256:" + chain.digest.decode() == entries[-1].entry_hash


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": 2},
        {"runId": "s"},
        {"prevHash": "sha256:" + "1" * 64},
        {"scope": {"tenantId": TENANT, "userId": "eve"}},
        {"timestamp": "2025-12-31T23:59:59.999999Z"},
        {"id": "r:1:0123456789abcde"},
        {"id": "r:0:0123456789abcdef"},
        {"id": "r:1:0123456789abcdef" + "0" * 20},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_block_takes_no_forged_entry_whose_hash_holds(changes: dict[str, object]) -> None:
    entries = written([Request("tool-call", {"n": 1}), Request("tool-call", {"n": 2})])
    chain = Chain("r", TENANT)
    follow(chain, entries[0])
    forgery = forged(entries[1], **changes)
    form = {"entryHash": forgery.entry_hash, "format": forgery.format, "canonical": forgery.text}
    assert follow_together(Place(chain), Openings(), [entry_line(form) + b"\n"], 0, runs=False) == 0
