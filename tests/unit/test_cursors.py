"""Cursors: good for the query and the principal they were given to, and nothing else."""

import base64
import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.principals import principal

from factbook.adapters.aes_gcm import AesGcm
from factbook.api.cursors import Cursors
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import dump_json

CURSORS = Cursors(lambda: b"k" * 32, AesGcm())
ANN = principal("t", "ann")
QUERY: dict[str, Any] = {"facts": ["note", {"projectId": "p"}, None, None]}
POSITION = {"at": "2026-01-01T00:00:00.000Z|id"}


def test_a_position_comes_back_to_who_asked_for_what_they_asked() -> None:
    assert CURSORS.read(ANN, QUERY, CURSORS.write(ANN, QUERY, POSITION)) == POSITION


@pytest.mark.parametrize(
    ("who", "query"),
    [
        (principal("u", "ann"), QUERY),
        (principal("t", "eve"), QUERY),
        (principal("t", "ann", kind="service"), QUERY),
        (ANN, {"facts": ["other", {"projectId": "p"}, None, None]}),
        (ANN, {"facts": ["note", {"projectId": "q"}, None, None]}),
        (ANN, {"facts": ["note", {"projectId": "p"}, None, "2026-01-01T00:00:00.000Z"]}),
        (ANN, {"revisions": "id"}),
    ],
)
def test_a_cursor_of_another_query_or_principal_is_refused(who: Any, query: Any) -> None:
    with pytest.raises(BadInput):
        CURSORS.read(who, query, CURSORS.write(ANN, QUERY, POSITION))


def test_a_cursor_of_another_deployment_is_refused() -> None:
    with pytest.raises(BadInput):
        CURSORS.read(ANN, QUERY, Cursors(lambda: b"x" * 32, AesGcm()).write(ANN, QUERY, POSITION))


def test_a_cursor_shows_nothing_of_its_position() -> None:
    cursors = {CURSORS.write(ANN, QUERY, {"at": f"secret-merger {'x' * long}"}) for long in (0, 1, 9, 99)}
    assert len({len(cursor) for cursor in cursors}) == 1
    for cursor in cursors:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        assert b"secret" not in raw


def test_a_cursor_that_was_signed_and_readable_is_refused() -> None:
    text, bound = dump_json(POSITION).encode(), dump_json([ANN.tenant, ANN.name, QUERY]).encode()
    signed = hmac.new(b"k" * 32, b"cursor:" + hashlib.sha256(bound).digest() + text, "sha256").digest()[:16]
    with pytest.raises(BadInput, match="Start again without a cursor"):
        CURSORS.read(ANN, QUERY, base64.urlsafe_b64encode(signed + text).decode().rstrip("="))


@given(st.integers(0, 500), st.integers(1, 255))
def test_no_byte_of_a_cursor_can_be_altered(place: int, change: int) -> None:
    cursor = CURSORS.write(ANN, QUERY, POSITION)
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    raw[place % len(raw)] ^= change
    with pytest.raises(BadInput):
        CURSORS.read(ANN, QUERY, base64.urlsafe_b64encode(raw).decode())


@given(st.text())
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        CURSORS.read(ANN, QUERY, text)
