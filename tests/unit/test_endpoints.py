"""An endpoint that `make parity` cannot use is named once, before any test."""

import socket

import pytest
from support.emulators import Aws
from support.endpoints import why_no_dynamodb


def closed() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "No endpoint was named."),
        ("127.0.0.1:8001", "No DynamoDB answers at 127.0.0.1:8001: Invalid endpoint"),
        (closed(), "No DynamoDB answers at http://127.0.0.1:"),
    ],
    ids=["none", "no URL", "nobody there"],
)
def test_an_endpoint_that_is_none_is_told_what_to_give(url: str | None, said: str) -> None:
    told = why_no_dynamodb(url) or ""
    assert told.startswith(said)
    assert told.endswith("such as DYNAMODB_URL=http://127.0.0.1:8001.")


def test_an_endpoint_that_answers_is_taken(ministack: Aws) -> None:
    assert why_no_dynamodb(ministack.endpoint) is None
