"""Route selection of an HTTP API, and its results as answers."""

import json
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook_local.payload import BadAnswer, read_result
from factbook_local.routes import Router, decode_path
from factbook_local.stack import Route

KEYS = [
    "ANY /things/{id}",
    "GET /things/{id}",
    "GET /things/mine",
    "GET /things/{id}/parts",
    "GET /{kind}/mine",
    "GET /files/readme",
    "GET /",
]
ROUTER = Router([Route(key, key) for key in KEYS])


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        ("GET /things/1", "GET /things/{id}"),
        ("PUT /things/1", "ANY /things/{id}"),
        ("GET /things/mine", "GET /things/mine"),
        ("PUT /things/mine", "ANY /things/{id}"),
        ("GET /others/mine", "GET /{kind}/mine"),
        ("GET /things/1/parts", "GET /things/{id}/parts"),
        ("GET /files/readme", "GET /files/readme"),
        ("GET /", "GET /"),
        ("GET /things/%6Dine", "GET /things/mine"),
        ("GET /things/a%2Fparts", "GET /things/{id}"),
    ],
)
def test_the_most_specific_route_wins(request_line: str, expected: str) -> None:
    method, path = request_line.split(" ")
    selected = ROUTER.select(method, path)
    assert selected is not None
    assert selected.route.key == expected


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /things/",
        "GET /things",
        "GET /files/",
        "GET /files",
        "GET /files/readme/x",
        "POST /files/readme",
        "POST /",
        "GET //things/1",
        "GET /things/1/",
    ],
)
def test_without_a_default_what_matches_nothing_has_no_route(request_line: str) -> None:
    method, path = request_line.split(" ")
    assert ROUTER.select(method, path) is None


def test_the_default_route_takes_what_is_left() -> None:
    router = Router([Route("$default", "F"), Route("GET /a", "G")])
    assert [
        selected.route.function for selected in map(router.select, ("GET", "POST"), ("/a", "/a")) if selected
    ] == ["G", "F"]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_decoding_a_path_parameter_once_more_gives_what_was_encoded(text: str) -> None:
    decoded = decode_path(quote(text, safe=""))
    assert unquote(decoded) == text
    assert "/" not in decoded


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["statusCode", "headers", "cookies", "body", "isBase64Encoded", "x"]), inner
            )
        ),
    )
)
def test_any_result_is_an_answer_or_a_bad_one(result: object) -> None:
    try:
        answer = read_result(json.dumps(result).encode())
    except BadAnswer:
        return
    assert 200 <= answer.status <= 599
    assert isinstance(answer.body, bytes)
    assert all(
        name.encode("latin-1") and value.encode("latin-1") is not None for name, value in answer.headers
    )
