"""When two requests with one Idempotency-Key are the same: equal JSON values, whatever their bytes."""

import hashlib
import json
import random
import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.fakes import FakeClock, fake_services
from support.gateway import Gateway, Reply
from support.log_fakes import FakeKeys, FakeLog, FakeWrapper
from support.logs import StandingClock
from support.principals import TenantService

from factbook.adapters.aes_gcm import AesGcm
from factbook.api import operations
from factbook.canonical import log_canonical
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.operations import Operation
from factbook.usecases.log.appending import LogWriter
from factbook.usecases.log.sealing import Vault

FACTS = "/v1/memory/facts"
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def admin() -> Gateway:
    services = fake_services(FakeClock())
    log, vault = FakeLog(), Vault(FakeKeys(), FakeWrapper(), AesGcm())
    services.__dict__["logs"] = SimpleNamespace(
        store=log, vault=vault, log=LogWriter(log, vault, StandingClock())
    )
    return TenantService(services, "t").admin


def written(value: Any, chance: random.Random) -> str:
    """A JSON text of the value in which everything that does not count is drawn anew."""
    space = chance.choice(["", " ", "\n\t", "\r\n  "])
    match value:
        case dict():
            members = list(value.items())
            chance.shuffle(members)
            inner = f"{space},{space}".join(
                f"{written(name, chance)}{space}:{space}{written(item, chance)}" for name, item in members
            )
            return f"{{{space}{inner}{space}}}"
        case list():
            return f"[{space}" + f",{space}".join(written(item, chance) for item in value) + f"{space}]"
        case str():
            return '"' + "".join(character(each, chance) for each in value) + '"'
        case float():
            return number(value, chance)
        case _:
            return dump_json(value)


def character(each: str, chance: random.Random) -> str:
    plain = dump_json(each)[1:-1]
    units = each.encode("utf-16-be")
    escaped = "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    return chance.choice(
        [plain, escaped, escaped.upper().replace("\\U", "\\u"), "\\/" if each == "/" else plain]
    )


def number(value: float, chance: random.Random) -> str:
    plain = dump_json(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    forms = [plain, f"{value:.17e}", f"{value:.20E}"]
    if not exponent:
        forms += [mantissa + "000", mantissa + "e0", mantissa + "E+00"]
    return chance.choice([form for form in forms if repr(parse_json(form)) == repr(value)])


def send(admin: Gateway, path: str, text: str, key: str) -> Reply:
    return admin.call("POST", path, raw=text, key=key)


def note(content: str) -> str:
    return '{"type":"n","content":' + content + "}"


def replays(admin: Gateway, path: str, body: Any, chance: random.Random) -> tuple[str, Reply]:
    key = uuid.uuid4().hex
    first = send(admin, path, dump_json(body), key)
    assert first.status in (200, 201), first.text
    again = send(admin, path, written(body, chance), key)
    assert (again.status, again.text) == (first.status, first.text)
    return key, first


def other_than(value: Any) -> st.SearchStrategy[Any]:
    return VALUES.filter(lambda other: comparable(other) != comparable(value))


def comparable(value: Any) -> str:
    """Equal texts for equal values, and for no others: 1 and 1.0, 0.0 and -0.0 are different content."""
    return json.dumps(value, sort_keys=True)


@settings(max_examples=60)
@given(value=VALUES, chance=st.randoms(use_true_random=False), data=st.data())
def test_a_body_written_otherwise_is_a_replay_and_another_body_is_refused(
    admin: Gateway, value: Any, chance: random.Random, data: st.DataObject
) -> None:
    body = {"type": "note", "content": value, "scope": {"projectId": "p", "sessionId": "é/s"}}
    other = data.draw(other_than(value))
    key, first = replays(admin, FACTS, body, chance)
    assert first.text.endswith('"content":' + dump_json(value) + "}")  # as first sent, whoever asks again
    refused = send(admin, FACTS, written(body | {"content": other}, chance), key)
    assert (refused.status, refused.code) == (409, "idempotency-key-body-mismatch")

    supersede = f"{FACTS}/{first.json['id']}/supersede"
    key, _ = replays(admin, supersede, {"content": value, "subjects": []}, chance)
    assert send(admin, supersede, written({"content": other, "subjects": []}, chance), key).status == 409
    assert send(admin, supersede, written({"content": value}, chance), key).status == 409


@settings(max_examples=40)
@given(values=st.lists(VALUES, min_size=1, max_size=4), chance=st.randoms(use_true_random=False))
def test_a_batch_written_otherwise_is_a_replay_of_each_item(
    admin: Gateway, values: list[Any], chance: random.Random
) -> None:
    body = {"items": [{"type": "note", "content": value} for value in values]}
    key, first = replays(admin, f"{FACTS}/batch", body, chance)
    body["items"].append({"type": "note", "content": "one more"})
    results = send(admin, f"{FACTS}/batch", written(body, chance), key).json["results"]
    assert results[:-1] == first.json["results"]
    assert results[-1]["status"] == 201


@settings(max_examples=40)
@given(
    payload=VALUES.filter(lambda value: chains(value)),
    other=VALUES.filter(lambda value: chains(value)),
    chance=st.randoms(use_true_random=False),
)
def test_an_append_written_otherwise_is_a_replay_and_other_words_are_refused(
    admin: Gateway, payload: Any, other: Any, chance: random.Random
) -> None:
    """A payload is kept in its canonical form, so 1 and 1.0 are one payload."""
    path = f"/v1/memory/runs/{uuid.uuid4()}/log"
    body = {
        "entries": [{"kind": "tool-call", "payload": payload}, {"kind": "tool-call", "actor": "service:x"}]
    }
    key, _ = replays(admin, path, body, chance)
    assume(log_canonical(payload) != log_canonical(other))
    body["entries"][0]["payload"] = other
    refused = send(admin, path, written(body, chance), key)
    assert (refused.status, refused.code) == (409, "idempotency-key-body-mismatch")


def chains(value: Any) -> bool:
    try:
        log_canonical(value)
    except BadInput:
        return False
    return True


def test_a_batch_with_a_flawed_item_replays_too(admin: Gateway) -> None:
    key = uuid.uuid4().hex
    first = send(
        admin, f"{FACTS}/batch", '{"items":[{"type":"a","content":1},{"type":"b","content":NaN}]}', key
    )
    assert [each["status"] for each in first.json["results"]] == [201, 400]
    again = send(
        admin,
        f"{FACTS}/batch",
        '{"items": [{"content": 1, "type": "a"}, {"content": NaN, "type": "b"}]}',
        key,
    )
    assert again.text == first.text


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1.0"), ("0.0", "-0.0"), ("0", "-0"), ("1e2", "100"), ('"1"', "1"), ("[]", "{}")]
)
def test_values_that_come_back_differently_are_different_bodies(admin: Gateway, one: str, other: str) -> None:
    key = uuid.uuid4().hex
    assert send(admin, FACTS, note(one), key).status == 201
    assert send(admin, FACTS, note(other), key).status == 409


@pytest.mark.parametrize(
    ("one", "other"), [("1e2", "100.0"), ("-0", "-0.0"), ("0.1", "0.10000000000000000001")]
)
def test_forms_of_one_number_are_one_body(admin: Gateway, one: str, other: str) -> None:
    key = uuid.uuid4().hex
    first = send(admin, FACTS, note(one), key)
    assert send(admin, FACTS, note(other), key).text == first.text


def test_no_body_and_an_empty_one_are_the_same_verification(admin: Gateway) -> None:
    fact = admin.call("POST", FACTS, {"type": "n", "content": 1}).json["id"]
    first = admin.call("POST", f"{FACTS}/{fact}/verify", key="v")
    assert first.json["version"] == 2
    for text in ("{}", " { } ", ""):
        assert send(admin, f"{FACTS}/{fact}/verify", text, "v").text == first.text


def former(request: Any, body: bytes) -> str:
    """The digest that the release before made: of the bytes as sent, whatever they meant."""
    return dump_json([dict(request.path), dict(request.query), hashlib.sha256(request.body).hexdigest()])


@pytest.mark.parametrize("suffix", ["", "/batch", "/{id}/supersede", "/{id}/verify"])
def test_what_the_release_before_wrote_is_replayed_by_the_same_bytes(
    admin: Gateway, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    fact = admin.call("POST", FACTS, {"type": "n", "content": 1}).json["id"]
    path = FACTS + suffix.replace("{id}", fact)
    item = '{ "type":"n", "content": {"b":1, "a":2} }'
    text = {"": item, "/batch": f'{{"items":[{item}]}}'}.get(suffix, '{ "expectVersion" : 1 }')
    key = uuid.uuid4().hex
    with monkeypatch.context() as before:
        before.setattr(operations, "_asked", former)
        before.setattr(Operation, "at", lambda own, place, _: replace(own, key=f"{own.key}/{place}"))
        first = send(admin, path, text, key)
    assert first.status in (200, 201)
    again = send(admin, path, text, key)
    assert (again.status, again.text) == (first.status, first.text)
    other = send(admin, path, text.replace("1", "2"), key)
    codes = [each["error"]["code"] for each in other.json.get("results", [other.json])]
    assert codes == ["idempotency-key-body-mismatch"]
