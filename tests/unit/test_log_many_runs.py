"""A whole log gets one verdict, whether it is judged line by line, many lines together, or in blocks: whatever was changed."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.domain.log.merkle import leaf_hash
from factbook.domain.log.notes import NoteKey, checkpoint_text, origin_of
from factbook.domain.log.runs import Leaf
from factbook.verify import judges, lines, processes, together
from factbook.verify.apart import Found, Span, ground_of, judge_span
from factbook.verify.chain import cause_digits
from factbook.verify.exports import Export
from factbook.verify.notes import read_key
from factbook.verify.tree import GrowingRoot
from factbook.verify.verdict import Verdict
from factbook.verify.whole_log import WholeExport

TENANT = "acme"
PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(32))
KEY = NoteKey("test", PRIVATE.public_key().public_bytes_raw())
RUNS = [("a", 3), ("run-2", 1), ("b:c", 12), ("a-run.of@4", 2), ("run-5", 4)]
ACTORS = ['"user:ann"', '"agent:p"', None, r'"a \"quoted\" \\"']
NAMED_TWICE = 2
"""The entry of each run behind which a leaf stands that is older than the last."""


def as_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def entry(run: str, number: int, before: str, cause: str | None) -> tuple[bytes, str]:
    actor = ACTORS[number % len(ACTORS)]
    named = "" if actor is None else f'"actor":{actor},'
    text = (
        f'{{{named}"id":"{run}:{number}:0123456789abcdef{cause_digits(cause)}","kind":"k","payload":{{"n":{number}}},'
        f'"prevHash":"{before}","runId":"{run}","scope":{{"projectId":"p","tenantId":"{TENANT}"}},'
        f'"sequence":{number},"timestamp":"2026-01-01T00:00:00.{number:06d}Z"}}'
    ).encode()
    digest = "sha256:" + sha256(text).hexdigest()
    said = "" if cause is None else f'"cause":"{cause}",'
    return f'{{"h":"{digest}","f":"jcs-sha256-v1",{said}"entry":'.encode() + text + b"}\n", digest


def leaf_line(leaf: Leaf) -> bytes:
    return as_line(
        {
            "leaf": leaf.index,
            "run": leaf.run_id,
            "seq": leaf.sequence,
            "head": leaf.head,
            "salt": leaf.salt,
        }
    )


def whole_log() -> list[bytes]:
    tree, of_tree, of_runs, index = GrowingRoot(), [], [], 0
    for run, count in RUNS:
        of_runs.append(as_line({"run": run}))
        head, last = "sha256:" + "0" * 64, f"{run}:0:0123456789abcdef"
        for number in range(count):
            line, head = entry(run, number, head, last if number % 3 == 2 else None)
            of_runs.append(line)
            if number in (NAMED_TWICE, count - 1):
                leaf = Leaf(index, run, number, head, f"{index:032x}")
                index += 1
                of_runs.append(leaf_line(leaf))
                of_tree.append(leaf_line(leaf))
                tree.add(leaf_hash(leaf.data))
                if index in (3, 4) or run == RUNS[-1][0]:
                    of_tree.append(as_line({"checkpoint": note(index, tree.root())}))
    header = as_line({"format": "factbook-log-export-1", "kind": "all", "tenant": TENANT})
    body = [header, *of_tree, *of_runs]
    return [*body, end_line(sum(count for _, count in RUNS), index, len(body) + 1)]


def end_line(entries: int, leaves: int, count: int) -> bytes:
    return as_line({"end": {"entries": entries, "leaves": leaves, "lines": count}})


def note(size: int, root: bytes) -> str:
    text = checkpoint_text(origin_of("test", TENANT), size, root)
    return KEY.note(text, PRIVATE.sign(text.encode()))


LOG = whole_log()


def rechained(log: list[bytes]) -> list[bytes]:
    """With hashes and sequences of entries that hold again: what a writer with a forged store could make."""
    made: list[bytes] = []
    before = "sha256:" + "0" * 64
    for line in log:
        if line.startswith(b'{"run":'):
            before = "sha256:" + "0" * 64
        if line.startswith(b'{"h":'):
            begin, _, text = line.partition(b'"entry":')
            text = re.sub(
                rb'"prevHash":"sha256:[0-9a-f]{64}"', b'"prevHash":"%b"' % before.encode(), text[:-2]
            )
            before = "sha256:" + sha256(text).hexdigest()
            line = b'{"h":"' + before.encode() + begin[77:] + b'"entry":' + text + b"}\n"
        made.append(line)
    return made


def one_by_one(path: Path, pinned: str | None) -> Verdict:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WholeExport, "follow", lambda *_: 0)
        return judges.audit(path, read_key(KEY.vkey), pinned, at_once=1)


def together_by(path: Path, pinned: str | None, many: int) -> Verdict:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(together, "MANY", many)
        return judges.audit(path, read_key(KEY.vkey), pinned, at_once=1)


def in_blocks(path: Path, pinned: str | None, size: int, many: int) -> Verdict:
    def all_apart(
        path: Path, export: Export, spans: list[Span], _: int
    ) -> Iterator[tuple[Span, list[Found]]]:
        ground = ground_of(export)
        return ((span, judge_span(path, ground, span)) for span in spans)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(judges, "WORTH_PROCESSES", 0)
        patched.setattr(judges, "BLOCK", size)
        patched.setattr(lines, "PART", 300)
        patched.setattr(together, "MANY", many)
        patched.setattr(processes, "judged", all_apart)
        return judges.audit(path, read_key(KEY.vkey), pinned, at_once=2)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "all.jsonl"


def check_alike(path: Path, log: list[bytes], many: int, size: int, pinned: str | None = None) -> Verdict:
    path.write_bytes(b"".join(log))
    alone = one_by_one(path, pinned)
    assert together_by(path, pinned, many) == alone
    assert in_blocks(path, pinned, size, many) == alone
    return alone


MANY = st.sampled_from([1, 2, 3, 5, 8, 13, 256])
SIZES = st.integers(100, 9000)


@pytest.mark.parametrize("many", [1, 2, 3, 5, 8, 256])
@pytest.mark.parametrize("size", [100, 1000, 3333, 100_000])
def test_the_log_holds_however_it_is_judged(path: Path, many: int, size: int) -> None:
    verdict = check_alike(path, LOG, many, size)
    assert (verdict.code, verdict.runs, verdict.entries, verdict.leaves) == (0, 5, 22, 7)


def test_all_lines_of_the_runs_are_taken_together() -> None:
    export = WholeExport(read_key(KEY.vkey), None, list)
    begin = LOG.index(as_line({"run": "a"}))
    export.take(LOG[: begin + 1])
    assert export.follow(LOG, begin + 1) == len(LOG) - begin - 2


LINES = st.integers(0, len(LOG) - 1)
INSERTED = [
    b"\n",
    b"{}\n",
    b'{"run":"a"}\n',
    b'{"run":"\\u0061"}\n',
    b'{"run":5}\n',
    b'{"run":"a","run":"b"}\n',
    b'{"leaf":0}\n',
    b"{h}\n",
]


@settings(max_examples=250)
@given(
    LINES,
    LINES,
    st.sampled_from(["left out", "moved", "repeated", "swapped", "put in"]),
    st.booleans(),
    MANY,
    SIZES,
    st.sampled_from(INSERTED),
)
def test_lines_left_out_moved_repeated_swapped_or_put_in_get_one_verdict(
    path: Path, at: int, to: int, how: str, again: bool, many: int, size: int, other: bytes
) -> None:
    log = list(LOG)
    if how == "swapped":
        log[at], log[to] = log[to], log[at]
    elif how == "put in":
        log.insert(at, other)
    else:
        line = log[at] if how == "repeated" else log.pop(at)
        if how != "left out":
            log.insert(to, line)
    verdict = check_alike(path, rechained(log) if again else log, many, size)
    assert verdict.holds == (log == LOG)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("how", ["left out", "repeated", "swapped with the next"])
def test_each_line_left_out_repeated_or_swapped_with_its_neighbour_gets_one_verdict(
    path: Path, how: str, again: bool
) -> None:
    for at in range(1, len(LOG) - 1):
        line, following = LOG[at : at + 2]
        put = {"left out": [], "repeated": [line, line], "swapped with the next": [following, line]}[how]
        log = [*LOG[:at], *put, *LOG[at + (2 if how.startswith("swapped") else 1) :]]
        log[-1] = end_line(22, 7, len(log))
        holds = check_alike(path, rechained(log) if again else log, 256, 1500).holds
        assert not holds or (how == "left out" and line.startswith(b'{"checkpoint":'))


@pytest.mark.parametrize("cause", ["b\\u003ac:0", 'b"c', "b c", "\x01", "ü", ""])
def test_a_cause_whose_hash_is_that_of_its_text_as_it_stands_gets_one_verdict(path: Path, cause: str) -> None:
    at = next(at for at, line in enumerate(LOG) if b'"id":"b:c:8:' in line)
    log = list(LOG)
    before = json.loads(log[at])["entry"]["prevHash"]
    log[at], _ = entry("b:c", 8, before, cause)  # of an actor that is known by then
    for many in (1, 2, 5):
        check_alike(path, log, many, 1500)


BYTES = [
    b"0",
    b"1",
    b"9",
    b"a",
    b"g",
    b'"',
    b"\\",
    b"{",
    b"}",
    b",",
    b":",
    b" ",
    b"\n",
    b"\x00",
    b"\xff",
    b"",
]


@settings(max_examples=400)
@given(
    LINES,
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(BYTES),
    st.booleans(),
    st.booleans(),
    MANY,
    SIZES,
)
def test_a_changed_byte_gets_one_verdict(
    path: Path, at: int, where: float, byte: bytes, inserted: bool, again: bool, many: int, size: int
) -> None:
    log = list(LOG)
    place = int(where * len(log[at]))
    log[at] = log[at][:place] + byte + log[at][place if inserted else place + 1 :]
    check_alike(path, rechained(log) if again else log, many, size)


FORGED: dict[str, tuple[bytes, bytes]] = {
    "a key twice": (b'"payload":{"n":0},', b'"payload":{"n":0},"payload":{"n":1},'),
    "a scope twice": (b'"payload":{"n":0},', b'"payload":{"n":0},"scope":{"tenantId":"acme"},'),
    "a payload that is no JSON": (b'"payload":{"n":0}', b'"payload":{"n":00}'),
    "a scope with a space": (b'"scope":{"projectId"', b'"scope":{ "projectId"'),
    "an escaped tenant": (b'"tenantId":"acme"', b'"tenantId":"\\u0061cme"'),
    "another tenant": (b'"tenantId":"acme"', b'"tenantId":"acmf"'),
    "a scope of a number": (b'"projectId":"p"', b'"projectId":1'),
    "a scope of true": (b'"projectId":"p"', b'"projectId":true'),
    "keys of the scope in another order": (
        b'{"projectId":"p","tenantId":"acme"}',
        b'{"tenantId":"acme","projectId":"p"}',
    ),
    "a number with a zero before": (b'"sequence":1,', b'"sequence":01,'),
    "the instant before once more": (b":00.000001Z", b":00.000000Z"),
    "an instant of letters": (b":00.000001Z", b":00.00000aZ"),
    "a nonce in capitals": (b"0:0123456789abcdef", b"0:0123456789ABCDEF"),
    "another cause": (b'"cause":"b:c:0', b'"cause":"b:c:1'),
    "a cause with an escape": (b'"cause":"b:c:0', b'"cause":"b\\u003ac:0'),
    "an index with a zero before": (b'{"leaf":2,', b'{"leaf":02,'),
    "a salt in capitals": (b'0000000002"}', b'000000000A"}'),
    "a salt of odd length": (b'0000000002"}', b'00000000002"}'),
    "another salt": (b'0000000002"}', b'0000000003"}'),
    "a proof in a leaf": (b'0000000002"}', b'0000000002","proof":[]}'),
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("which", ["first", "last", "all"])
def test_what_a_forger_may_write_gets_one_verdict(path: Path, name: str, again: bool, which: str) -> None:
    old, new = FORGED[name]
    found = [at for at, line in enumerate(LOG) if old in line]
    assert found
    log = list(LOG)
    for at in {"first": found[:1], "last": found[-1:], "all": found}[which]:
        log[at] = log[at].replace(old, new)
    for many, size in ((1, 700), (2, 3000), (3, 1500), (256, 100_000)):
        check_alike(path, rechained(log) if again else log, many, size)


@settings(max_examples=60)
@given(st.integers(1, 8), st.booleans(), MANY, SIZES)
def test_a_pinned_checkpoint_gets_one_verdict(
    path: Path, size: int, other: bool, many: int, block: int
) -> None:
    tree = GrowingRoot()
    for line in LOG[1:]:
        if line.startswith(b'{"leaf":') and tree.size < size:
            told = json.loads(line)
            leaf = Leaf(told["leaf"], told["run"], told["seq"], told["head"], told["salt"])
            tree.add(leaf_hash(leaf.data))
    pinned = note(size, b"\x01" * 32 if other else tree.root())
    verdict = check_alike(path, LOG, many, block, pinned)
    assert verdict.holds == (not other and size <= 7)
