"""Records as lines of an export and back: nothing is lost; and how a file's lines tell of damage."""

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.moved_records import AT, signed_note

from factbook.canonical import content_canonical
from factbook.domain.errors import BadInput
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.freshness import RefreshState
from factbook.domain.facts.ids import keyed_fact_id, memory_id
from factbook.domain.log.chain import text_hash
from factbook.domain.log.runs import Leaf
from factbook.domain.log.sealing import KeyName
from factbook.domain.portability.lines import FACT_ID, Header
from factbook.domain.scope import Scope
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.facts.store import Erased, Head, Mark
from factbook.ports.log.checkpoints import PublishedNote
from factbook.ports.log.sealing import SealedKey
from factbook.ports.portability.stores import FormerNote, Revision
from factbook.usecases.portability.records import (
    Reading,
    follows,
    head_line,
    key_line,
    leaf_line,
    note_line,
    revision_line,
)
from factbook_cli.errors import CommandError, UsageError
from factbook_cli.tenant_check import check_file
from factbook_cli.tenant_file import Contents, Damaged, FileLines, Summed
from factbook_cli.tenant_import import read_keys

HEADER = {"format": "factbook-export", "version": 1, "tenant": "t", "exportedAt": AT, "leaves": 0}
READING = Reading("t", lambda fact_id, name: f"blob://s3/there/facts/t/{fact_id}/{name}")
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
ids = st.from_regex(FACT_ID, fullmatch=True)
instants = st.just(AT)
keys = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)


contents = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts, st.lists
)


def maybe(value: Any) -> Any:
    return st.none() | value


@st.composite
def facts(draw: Any) -> Fact:
    fact_id, version = draw(ids), draw(st.integers(1, 10**6))
    fields: dict[str, Any] = {
        "id": fact_id,
        "type": draw(texts.filter(bool)),
        "scope": {"tenantId": "t"} | draw(st.sampled_from([{}, {"projectId": "é|%"}, {"userId": "ann"}])),
        "version": version,
        "revisionId": f"{fact_id}:{version}",
        "createdAt": AT,
        "updatedAt": AT,
        "attributedTo": {"kind": "agent", "id": "a", **draw(st.sampled_from([{}, {"agentVersion": "2"}]))},
        "keptFrom": draw(maybe(instants)),
        "reviewWhy": draw(maybe(st.just(("instruction-like", "derived-from-erased")))),
        "decidedBecause": draw(maybe(texts)),
        "contentRef": draw(maybe(st.just(f"blob://s3/here/facts/t/{fact_id}/name"))),
        **draw(st.sampled_from([{}, {"invalidatedAt": AT, "invalidationReason": "deleted"}])),
        "retention": draw(maybe(st.sampled_from([{"legalHold": True}, {"keepDays": 3}]))),
        "source": draw(
            maybe(
                st.just(
                    {
                        "kind": "http-api",
                        "uri": "https://x",
                        "freshness": {"ttlSeconds": 1},
                        "refresh": {"strategy": "on-read"},
                    }
                )
            )
        ),
        "subjects": draw(maybe(st.just([{"kind": "external", "id": "é"}]))),
        "owner": draw(maybe(st.just("user:ann"))),
        "agentId": draw(maybe(st.just("scribe"))),
        "reach": draw(maybe(st.sampled_from(["user", "account", "account-proposed", "account-rejected"]))),
        "review": draw(maybe(st.just("pending"))),
        "expiresAt": draw(maybe(instants)),
    }
    content = draw(maybe(contents.map(lambda value: (dump_json(value), content_canonical(value)))))
    if content is not None:
        digest = hashlib.sha256(content[1]).hexdigest()
        fields |= {
            "contentText": content[0],
            "contentHash": f"sha256:{digest}",
            "size": len(content[0].encode()),
        }
    key = draw(maybe(keys))
    if key is not None:
        scope, person, agent = Scope.model_validate(fields["scope"]), fields["owner"], fields["agentId"]
        keyed = keyed_fact_id(scope, fields["type"], key)
        named = memory_id("t", person, agent, key) if person and agent else keyed
        fields |= {"key": key, "id": named, "revisionId": f"{named}:{version}"}
        if fields["contentRef"] is not None:
            fields["contentRef"] = f"blob://s3/here/facts/t/{named}/name"
    return Fact.model_validate({name: value for name, value in fields.items() if value is not None})


@st.composite
def heads(draw: Any) -> Head:
    fact = draw(facts())
    known = draw(maybe(st.just(RefreshState(3, "source-refused", AT, by_agent=True, max_age=0))))
    beside = draw(maybe(st.just(Head(fact, 7, life=5, beside=True, refresh=known))))
    return Head(
        fact,
        draw(st.integers(1, 2**30)),
        draw(st.sampled_from([(), (Mark("k" * 12, "b" * 12, 1), Mark("-" * 12, "." * 12, 10**6))])),
        draw(maybe(st.integers(0, 10**13 - 1))),
        draw(maybe(st.just(("external:a", "user:b")))),
        beside,
        refresh=known,
        index_edition=draw(maybe(st.integers(1, 9))),
        erasure=draw(maybe(st.just(Erased("e", 2)))),
    )


def sent(line: Any) -> Any:
    """As it comes out of the file."""
    return parse_json(dump_json(line))


def moved(fact: Fact) -> Fact:
    ref = fact.content_ref
    return fact if ref is None else fact.model_copy(update={"content_ref": ref.replace("/here/", "/there/")})


@given(heads())
def test_a_head_comes_back_with_all_that_is_kept_beside_it_and_the_buckets_name_of_there(head: Head) -> None:
    confirmed = head.confirmed and replace(head.confirmed, fact=moved(head.confirmed.fact))
    assert READING.head(sent(head_line(head))) == replace(head, fact=moved(head.fact), confirmed=confirmed)


@given(facts(), maybe(st.integers(0, 10**13 - 1)), st.booleans())
def test_a_closed_revision_comes_back_with_its_life(fact: Fact, life: int | None, retyped: bool) -> None:
    closed = fact.model_copy(update={"invalidated_at": AT, "invalidation_reason": "superseded"})
    line = sent(revision_line(Revision(closed, life, retyped)))
    assert READING.revision(line) == Revision(moved(closed), life, retyped)


@given(texts, texts, texts, texts, st.integers(1, 10**9), maybe(instants), maybe(instants))
def test_a_data_key_comes_back_without_the_key(
    project: str, user: str, participant: str, thread: str, generation: int, begun: Any, destroyed: Any
) -> None:
    name = KeyName(project, user, participant, thread)
    key = SealedKey("t", name, generation, b"wrapped", destroyed, begun)
    assert READING.key(sent(key_line(key))) == replace(key, wrapped=None)


def test_leaves_and_notes_come_back() -> None:
    leaf = Leaf(3, "r|é", 4, "sha256:" + "0" * 64, "ab" * 16)
    note = signed_note(7)
    assert READING.leaf(sent(leaf_line(leaf))) == leaf
    assert READING.note(sent(note_line(note))) == FormerNote("t", note)


FACT = {
    "id": "f",
    "type": "n",
    "scope": {"tenantId": "t"},
    "version": 1,
    "createdAt": AT,
    "updatedAt": AT,
    "attributedTo": {"kind": "user", "id": "ann"},
    "contentText": "1",
    "contentHash": text_hash("1"),
    "size": 1,
}


@pytest.mark.parametrize(
    ("note", "why"),
    [
        (replace(signed_note(7), size=8), "another size"),
        (replace(signed_note(7), vkey=signed_note(7).vkey), "no signature of the key"),
        (replace(signed_note(7), note="a note"), "no signed note"),
        (replace(signed_note(7), vkey="k+1+a"), "verifier key"),
        (signed_note(7, "another"), "another log"),
    ],
)
def test_a_note_that_its_key_did_not_sign_is_no_evidence(note: PublishedNote, why: str) -> None:
    """Taken, it would be in every later export, and no import would take one of those."""
    with pytest.raises(BadInput, match=why):
        READING.note(note_line(note))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": "a/b"}, "id of a fact"),
        ({"id": ".."}, "id of a fact"),
        ({"payload": ".."}, "name of a payload"),
        ({"contentText": "no json"}, "no JSON"),
        ({"contentText": "[" * 33 + "]" * 33}, "no JSON"),
        ({"contentText": '{"a":1,"a":2}'}, "no JSON"),
        ({"contentText": "2"}, "contentHash"),
        ({"size": 2}, "size"),
        ({"contentHash": "sha256:" + "0" * 64}, "contentHash"),
        ({"contentHash": "forged"}, "contentHash"),
        ({"createdAt": "zzz"}, "createdAt"),
        ({"createdAt": "2026-01-01T00:00:00Z"}, "createdAt"),  # keys are ordered by its text
        ({"createdAt": "2027-01-01T00:00:00.000Z"}, "in no order"),
        ({"updatedAt": "2026-02-30T00:00:00.000Z"}, "updatedAt"),
        ({"updatedAt": "9999-12-31T23:59:59.999Z"}, "updatedAt"),  # nor any revision
        ({"expiresAt": "never"}, "expiresAt"),
        ({"keptFrom": "x" * 5_000}, "keptFrom"),
        ({"invalidatedAt": AT}, "why"),
        ({"invalidationReason": "deleted"}, "why"),
        ({"version": 0}, "version"),
        ({"version": 10**40}, "version"),
        ({"type": ""}, "type"),
        ({"key": "k"}, "its key makes"),
        ({"key": "\x00"}, "key"),
        ({"scope": {"tenantId": "t", "participantId": "p"}}, "participant"),
        ({"owner": "x" * 5_000}, "owner"),
        ({"reviewWhy": 1}, "reviewWhy"),
        ({"reviewWhy": []}, "reviewWhy"),
        ({"id": "~x"}, "id of a fact"),
        ({"id": None}, "id of a fact"),
        ({"payload": "../other"}, "name of a payload"),
        ({"payload": ""}, "name of a payload"),
        ({"scope": {"tenantId": "another"}}, "another tenant"),
        ({"version": "1"}, "version"),
        ({"stranger": 1}, "stranger"),
    ],
)
def test_a_fact_that_no_service_stored_is_refused_by_the_field(change: dict[str, Any], why: str) -> None:
    assert READING.head({"fact": FACT, "edition": 1}).fact.id == "f"
    with pytest.raises(BadInput, match=why):
        READING.head({"fact": FACT | change, "edition": 1})


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        ({"edition": 0}, "edition"),
        ({"edition": 10**40}, "edition"),
        ({"life": 10**13}, "life"),  # it has 13 digits in a key
        ({"marks": ["a"]}, "marks"),
        ({"indexEdition": -1}, "indexEdition"),
        ({"refresh": {"retryAt": "later"}}, "retryAt"),
        ({"refresh": {"maxAge": -1}}, "maxAge"),
    ],
)
def test_what_no_service_keeps_beside_a_fact_is_refused(beside: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        READING.head({"fact": FACT, "edition": 1} | beside)


SAID: dict[str, Any] = {
    "id": "r:0:" + "0" * 16,
    "kind": "tool-call",
    "scope": {"tenantId": "t"},
    "runId": "r",
    "timestamp": "2026-01-01T00:00:00.000000Z",
    "sequence": 0,
    "payload": 1,
    "prevHash": "sha256:" + "0" * 64,
}


def chained(fields: dict[str, Any], **how: Any) -> dict[str, Any]:
    """The line of an entry that says this."""
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, **how or {"separators": (",", ":")})
    return {"text": text, "hash": text_hash(text), "format": "jcs-sha256-v1"}


DEEP: Any = 1
for _ in range(40):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "gossip"}, "kind"),
        ({"actor": 5}, "actor"),
        ({"timestamp": "zzz"}, "timestamp"),
        ({"timestamp": "2026-02-30T00:00:00.000000Z"}, "timestamp"),
        ({"timestamp": "2026-01-01T00:00:00.000Z"}, "timestamp"),
        ({"timestamp": "9999-12-31T23:59:59.999999Z"}, "timestamp"),  # no entry could come after it
        ({"prevHash": "x"}, "prevHash"),
        ({"prevHash": "sha256:" + "1" * 64}, "nothing before it"),
        ({"payload": DEEP}, "none that is ever chained"),
        ({"payload": 2**60}, "none that is ever chained"),
        ({"stranger": 1}, "stranger"),
        ({"sequence": 1}, "nothing before it"),
        ({"sequence": True}, "sequence"),
        ({"id": "r:1:" + "0" * 16}, "another place"),
        ({"id": "other:0:" + "0" * 16}, "another place"),
        ({"scope": {"tenantId": "another"}}, "another tenant"),
        ({"scope": {"tenantId": "t", "userId": "ann"}}, "not sealed"),
        (
            {
                "scope": {"tenantId": "t", "threadId": "a"},
                "payload": {"alg": "A256GCM", "ct": 1, "gen": 1, "iv": ""},
            },
            "not sealed",
        ),
    ],
)
def test_an_entry_that_no_append_chained_is_refused_though_its_hash_holds(
    change: dict[str, Any], why: str
) -> None:
    """It would be read, and read wrongly or not at all, for as long as the log is: nothing is taken out of one."""
    assert READING.entry(chained(SAID)).run_id == "r"
    with pytest.raises(BadInput, match="not canonical"):
        READING.entry(chained(SAID, separators=(", ", ":")))
    with pytest.raises(BadInput, match=why):
        READING.entry(chained(SAID | change))


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": SAID["timestamp"]},
        {"timestamp": "2025-01-01T00:00:00.000000Z"},
        {"scope": {"tenantId": "t", "projectId": "p"}},
        {"prevHash": "sha256:" + "1" * 64},
        {"sequence": 2, "id": "r:2:" + "1" * 16},
        {"runId": "s", "id": "s:1:" + "1" * 16},
    ],
)
def test_an_entry_follows_another_only_as_a_verifier_would_have_it(change: dict[str, Any]) -> None:
    first = READING.entry(chained(SAID))
    second = SAID | {
        "id": "r:1:" + "1" * 16,
        "sequence": 1,
        "timestamp": "2026-01-01T00:00:00.000001Z",
        "prevHash": first.entry_hash,
    }
    assert follows(READING.entry(chained(second)), first)
    assert not follows(READING.entry(chained(second | change)), first)


@pytest.mark.parametrize(
    "change",
    [{"run": 'r","x":"'}, {"run": ""}, {"salt": "ab" * 65}, {"salt": ""}, {"head": "x"}, {"index": -1}],
)
def test_a_leaf_that_no_tree_has_is_refused(change: dict[str, Any]) -> None:
    leaf = leaf_line(Leaf(3, "r", 4, "sha256:" + "0" * 64, "ab" * 16))
    assert READING.leaf(leaf).index == 3
    with pytest.raises(BadInput):
        READING.leaf(leaf | change)


@pytest.mark.parametrize(
    "change", [{"user": "x" * 257}, {"begunAt": "then"}, {"destroyedAt": ""}, {"generation": 0}]
)
def test_a_data_key_of_no_service_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        READING.key(key_line(SealedKey("t", KeyName(user="u"), 1, None)) | change)


lines = st.lists(
    st.binary(max_size=30).map(lambda raw: json.dumps({"chunk": raw.hex()}).encode()), min_size=2
)


@given(lines, st.data())
def test_any_byte_that_is_changed_is_found_in_its_line(
    tmp_path_factory: Any, told: list[bytes], data: Any
) -> None:
    file = io.BytesIO()
    summed = Summed(file)
    for line in told:
        summed.write(line)
    whole = file.getvalue()
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    path: Path = tmp_path_factory.mktemp("file") / "damaged"
    path.write_bytes(whole)
    assert [line.raw for line in FileLines(path)] == told

    path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
    first = whole[:at].count(b"\n") + 1
    with pytest.raises(CommandError) as damaged:
        list(FileLines(path))
    if isinstance(damaged.value, Damaged):
        assert damaged.value.line == first
    else:
        assert isinstance(damaged.value, UsageError)  # it does not begin as one: no export at all
        assert first == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"fact":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "no JSON object of one field"),
        (b'{"leaf":' + b"9" * 5_000 + b"}", "no JSON object of one field"),
        (b'{"fact":null}', "valid dictionary"),
        (b'{"fact":{"\\ud800":1}}', "lone surrogate"),
        (b'{"end":[]}', "other lines than there are"),
        (b'{"header":[]}', "no place here"),
        (b'{"chunk":"AA"}', "belongs to no payload"),
        (b'{"wrapped":1}', "does not know"),
    ],
)
def test_a_line_with_a_right_sum_that_means_nothing_is_told_by_its_number(
    tmp_path: Path, line: bytes, why: str
) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        written = Summed(file)
        written.write(json.dumps({"header": HEADER}).encode())
        written.write(line)
    with pytest.raises(Damaged, match=why) as damaged:
        check_file(path)
    assert damaged.value.line == 2


def test_a_file_of_keys_without_a_header_of_this_tenant_is_none(tmp_path: Path) -> None:
    path, contents = tmp_path / "keys", Contents(Header.model_validate(HEADER), b"")
    for line in (b'{"header":[]}', b'{"header":{"tenant":"other"}}', b'{"wrapped":{}}'):
        with path.open("wb") as file:
            Summed(file).write(line)
        with pytest.raises(UsageError, match="no data keys of this tenant"):
            read_keys(path, tmp_path / "none", contents)
