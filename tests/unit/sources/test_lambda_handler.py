"""`lambda:<name>`: what a function is asked, and what each of its answers means."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.source_server import SourceServer, json_reply, reply

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.sources.lambda_handler import LambdaHandler, read_functions
from factbook.domain.facts.fact import Freshness, Refresh, Source
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import Answer, Ask, Fetched, SourceRefused, SourceUnavailable, Unchanged
from factbook.wiring.clients import OF_SERVICE, SDK, sdk_session

PATH = "/2015-03-31/functions/stock-feed/invocations"
SOURCE = Source(
    kind="external-db",
    uri="db://stock/7#/level",
    freshness=Freshness(etag="e1", source_version="v1", ttl_seconds=60),
    refresh=Refresh(strategy="background", handler="lambda:stock"),
)


@pytest.fixture
def handler(server: SourceServer) -> Iterator[LambdaHandler]:
    config = SDK.merge(OF_SERVICE["lambda"])
    client = sdk_session().create_client("lambda", "us-east-1", endpoint_url=server.url(""), config=config)
    yield LambdaHandler(LambdaFunction(client, "stock-feed"))
    client.close()


def ask(handler: LambdaHandler, known_hash: str | None = "sha256:0") -> Answer:
    return handler.ask(Ask("acme", "f1", SOURCE, known_hash), Deadline(30))


def test_a_function_is_told_whose_fact_it_is_and_what_is_known(
    server: SourceServer, handler: LambdaHandler
) -> None:
    server.behaviours[PATH] = json_reply('{"outcome": "unchanged"}')
    ask(handler)
    ask(handler, None)
    sent = [json.loads(request.body) for request in server.requests]
    assert sent[0] == {
        "factbook": "refresh",
        "tenant": "acme",
        "factId": "f1",
        "knownHash": "sha256:0",
        "source": SOURCE.to_json(),
    }
    assert "knownHash" not in sent[1]


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        ({"outcome": "fetched", "content": {"level": None}}, Fetched("null")),
        (
            {
                "outcome": "fetched",
                "content": {"level": 3},
                "etag": "e",
                "sourceVersion": "v",
                "maxAgeSeconds": 9,
            },
            Fetched("3", "e", "v", 9),
        ),
        ({"outcome": "unchanged", "etag": "e", "maxAgeSeconds": -9}, Unchanged("e", None, 0)),
        ({"outcome": "unchanged", "etag": 7, "maxAgeSeconds": True, "more": 1}, Unchanged()),
        ({"outcome": "unchanged", "etag": "e" * 2000, "maxAgeSeconds": 1e300}, Unchanged(None, None, 2**31)),
    ],
)
def test_an_answer_is_a_value_or_says_that_nothing_changed(
    server: SourceServer, handler: LambdaHandler, answer: Any, meaning: Answer
) -> None:
    server.behaviours[PATH] = json_reply(json.dumps(answer))
    assert ask(handler) == meaning


@pytest.mark.parametrize(
    "answer",
    [
        '{"outcome": "refused"}',
        '{"outcome": "fetched"}',
        '{"outcome": "done", "content": 1}',
        '{"content": 1}',
        "null",
        "7",
        '{"outcome": "fetched", "content": {"level": 1, "level": 2}}',
    ],
)
def test_an_answer_of_another_form_is_refused(
    server: SourceServer, handler: LambdaHandler, answer: str
) -> None:
    server.behaviours[PATH] = json_reply(answer)
    with pytest.raises(SourceRefused):
        ask(handler)


def test_a_function_may_say_that_its_source_is_down_and_for_how_long(
    server: SourceServer, handler: LambdaHandler
) -> None:
    for wait, seconds in (("30", 30), ("-1", 0), ("1e9", 86_400), ('"soon"', None), ("null", None)):
        server.behaviours[PATH] = json_reply(f'{{"outcome": "unavailable", "retryAfter": {wait}}}')
        with pytest.raises(SourceUnavailable) as raised:
            ask(handler)
        assert raised.value.retry_after == seconds


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (json_reply('{"errorMessage": "boom"}', x_amz_function_error="Unhandled"), False),
        (reply(429, b"{}", x_amzn_errortype="TooManyRequestsException"), False),
        (reply(500, b"{}", x_amzn_errortype="ServiceException"), False),
        (reply(404, b"{}", x_amzn_errortype="ResourceNotFoundException"), True),
        (reply(403, b"{}", x_amzn_errortype="AccessDeniedException"), True),
        (b"", False),
    ],
)
def test_a_function_that_fails_may_pass_and_one_that_may_not_be_called_does_not(
    server: SourceServer, handler: LambdaHandler, answer: bytes, refused: bool
) -> None:
    server.behaviours[PATH] = answer
    with pytest.raises(SourceRefused if refused else SourceUnavailable):
        ask(handler)
    assert len(server.requests) == 1  # to repeat an invocation would start it again


def test_functions_are_listed_by_the_names_that_handlers_have() -> None:
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:stock:live"
    assert read_functions(["prices", f"stock={arn}"]) == {"prices": "prices", "stock": arn}
    assert read_functions([]) == {}
