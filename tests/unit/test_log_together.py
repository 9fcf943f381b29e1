"""Entries that are judged together get the verdict of entries that are judged one after the other, whatever was changed."""

import re
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.verify.chain import Chain, cause_digits
from factbook.verify.findings import Finding
from factbook.verify.lines import read_entry, whole_line
from factbook.verify.together import Openings, Place, follow_together

TENANT = "acme"
RUN = "run-1"
ACTORS = ['"user:ann"', '"agent:planner-1"', '"agent:planner-2"', r'"a \"quoted\" \\"', '"ü"', None]
CAUSES = ["run-0:3:0123456789abcdef", r"of \"old\""]
LINES_OF_THE_LOG = 14


def line_of(number: int, before: str, actor: str | None, cause: str | None) -> tuple[bytes, str]:
    """An entry's line and its hash. `actor` and `cause` are JSON."""
    nonce = "0123456789abcdef" + cause_digits(None if cause is None else cause.replace("\\", ""))
    named = "" if actor is None else f'"actor":{actor},'
    text = (
        f'{{{named}"id":"{RUN}:{number}:{nonce}","kind":"tool-call","payload":{{"kind":"a","n":[{number},"x"]}},'
        f'"prevHash":"sha256:{before}","runId":"{RUN}","scope":{{"projectId":"p","tenantId":"{TENANT}"}},'
        f'"sequence":{number},"timestamp":"2026-01-01T00:00:00.{number:06d}Z"}}'
    ).encode()
    said = "" if cause is None else f'"cause":"{cause}",'
    digest = sha256(text).hexdigest()
    return f'{{"h":"sha256:{digest}","f":"jcs-sha256-v1",{said}"entry":'.encode() + text + b"}\n", digest


def log_of(speakers: list[tuple[str | None, str | None]]) -> list[bytes]:
    lines, before = [], "0" * 64
    for number, (actor, cause) in enumerate(speakers):
        line, before = line_of(number, before, actor, cause)
        lines.append(line)
    return lines


LOGS = st.lists(
    st.tuples(st.sampled_from(ACTORS), st.sampled_from([None, None, *CAUSES])),
    min_size=LINES_OF_THE_LOG,
    max_size=LINES_OF_THE_LOG,
).map(log_of)

Judged = tuple[int, int, bytes, bytes, bytes, str]


def judged(lines: list[bytes], together: bool) -> Judged:
    """How many lines hold, the state behind them, and why the next one does not."""
    chain, openings, at, why = Chain(RUN, TENANT), Openings(), 0, ""
    while at < len(lines) and not why:
        if together:
            at += follow_together(Place(chain), openings, lines, at, runs=False)
        if at < len(lines):
            try:
                chain.follow(*read_entry(whole_line(at, lines[at])))
                at += 1
            except Finding as finding:
                why = f"{finding.sequence} {finding.why}"
    return at, chain.sequence, chain.digest, chain.instant, chain.middle, why


PARTS = {
    "the frame before the hash": rb'\{"h":"sha256:',
    "the hash": rb"(?<=^.{13})[0-9a-f]{64}",
    "the format": rb'","f":"jcs-sha256-v1",',
    "the cause": rb'"cause":.*?,(?="entry":)',
    "the frame before the text": rb'"entry":\{',
    "the actor": rb'"actor":.*?,(?="id":)',
    "the id's run": rb'"id":"[^:]*:',
    "the id's number": rb"(?<=run-1:)\d+:(?=[0-9a-f]{16})",
    "the nonce": rb'[0-9a-f]{16,36}(?=","kind":"tool-call")',
    "the kind": rb'","kind":"tool-call"',
    "the payload": rb'"payload":.*?,(?="prevHash")',
    "the hash before": rb'"prevHash":"sha256:[0-9a-f]{64}",',
    "the run": rb'"runId":"[^"]*",',
    "the scope": rb'"scope":\{.*?\},',
    "the number": rb'"sequence":\d+,',
    "the instant": rb'"timestamp":"[^"]*"',
    "the end": rb"\}\}\n$",
}
BYTES = [
    b"0",
    b"9",
    b"a",
    b"f",
    b"g",
    b"Z",
    b'"',
    b"\\",
    b"{",
    b"}",
    b",",
    b":",
    b"-",
    b" ",
    b"\x00",
    b"\x80",
    b"\xff",
    b"",
]


def changed(line: bytes, span: tuple[int, int], byte: bytes, inserted: bool, hashed: bool) -> bytes:
    """With a byte put in, put in another's place or (an empty one) taken away; and with a hash that holds if asked for."""
    at = span[0]
    line = line[:at] + byte + line[at if inserted else at + 1 :]
    text_at = line.find(b'"entry":') + len('"entry":')
    if not hashed or text_at < span[0] - len(line):
        return line
    return line[:13] + sha256(line[text_at:-2]).hexdigest().encode() + line[77:]


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=60)
@given(lines=LOGS, data=st.data())
def test_a_change_is_judged_together_as_it_is_alone(
    part: str, lines: list[bytes], data: st.DataObject
) -> None:
    victim = data.draw(st.integers(0, len(lines) - 1))
    found = re.search(PARTS[part], lines[victim], re.DOTALL)
    if found is not None:
        at = data.draw(st.integers(found.start(), found.end() - 1))
        byte, inserted, hashed = data.draw(st.tuples(st.sampled_from(BYTES), st.booleans(), st.booleans()))
        damaged = changed(lines[victim], (at, at + 1), byte, inserted, hashed)
        lines = [*lines[:victim], damaged, *lines[victim + 1 :]]
    assert judged(lines, together=True) == judged(lines, together=False)


@settings(max_examples=100)
@given(LOGS, st.data())
def test_entries_that_are_moved_left_out_or_of_another_time_are_judged_together_as_alone(
    lines: list[bytes], data: st.DataObject
) -> None:
    at, to = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    moved = data.draw(st.sampled_from(["moved", "left out", "repeated"]))
    line = lines[at]
    kept = lines if moved == "repeated" else [*lines[:at], *lines[at + 1 :]]
    changed_lines = kept if moved == "left out" else [*kept[:to], line, *kept[to:]]
    assert judged(changed_lines, together=True) == judged(changed_lines, together=False)


@given(LOGS)
def test_what_holds_alone_is_taken_together_but_a_cause_that_is_escaped(lines: list[bytes]) -> None:
    escaped = [at for at, line in enumerate(lines) if b'"cause":"of' in line]
    taken = follow_together(Place(Chain(RUN, TENANT)), Openings(), lines, 0, runs=False)
    assert taken == (escaped[0] if escaped else len(lines))
    assert judged(lines, together=False)[0] == len(lines)


def test_a_run_of_thousands_and_of_more_actors_than_are_remembered_is_taken_together() -> None:
    lines = log_of([(f'"agent:{number % 70}"', None) for number in range(1105)])
    assert follow_together(Place(Chain(RUN, TENANT)), Openings(), lines, 0, runs=False) == 1105
    lines[1050] = lines[1050].replace(b'"sequence":1050', b'"sequence":1051')
    assert follow_together(Place(Chain(RUN, TENANT)), Openings(), lines, 0, runs=False) == 1050
    assert judged(lines, together=True) == judged(lines, together=False)
