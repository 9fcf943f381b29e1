"""How long the SDK waits: a store that hangs is answered for before the function dies, a function is called once."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ReadTimeoutError
from botocore.retries import standard
from support.fakes import fake_services
from support.gateway import Gateway
from support.principals import issue, principal
from support.tables import declared

from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.s3_blobs import S3Blobs
from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.log.kms_wrapper import KmsWrapper
from factbook.api.app import RESERVE_SECONDS
from factbook.domain.errors import StorageUnavailable
from factbook.wiring.services import make_client

ANSWER_SECONDS = 1.0
"""Of a function, for its own work and to send its answer."""


def longest(service: str) -> float:
    """Seconds that one call may take when nothing answers."""
    config = make_client(service).meta.config
    tries = config.retries["total_max_attempts"]
    longest_pauses = sum(2.0**number for number in range(tries - 1))
    return float(tries * (config.connect_timeout + config.read_timeout) + longest_pauses)


def shortest_function() -> float:
    return min(function.timeout for function in declared().functions.values())


@pytest.mark.parametrize("service", ["dynamodb", "s3", "kms", "sqs", "secretsmanager", "lambda"])
def test_a_call_that_nothing_answers_ends_before_the_function_whose_token_took_as_long(service: str) -> None:
    assert longest("dynamodb") + longest(service) <= shortest_function() - ANSWER_SECONDS


@pytest.mark.parametrize("service", ["dynamodb", "s3", "kms"])
def test_a_call_begun_just_before_the_deadline_of_its_request_leaves_time_to_answer(service: str) -> None:
    assert longest(service) + ANSWER_SECONDS <= RESERVE_SECONDS


def hang(client: Any, sent: list[str]) -> Any:
    def time_out(request: AWSPreparedRequest, **_: Any) -> None:
        sent.append(request.url)
        raise ReadTimeoutError(endpoint_url=request.url)

    client.meta.events.register("before-send", time_out)
    return client


@pytest.mark.parametrize(
    ("service", "call", "sends"),
    [
        ("dynamodb", lambda client: DynamoFacts(client, "t").head("t", "f"), 3),
        ("s3", lambda client: S3Blobs(client, "b").stat("blob://s3/b/facts/t/f/n"), 3),
        ("kms", lambda client: KmsWrapper(client, "k").unwrap("t", b"wrapped"), 3),
        ("lambda", lambda client: LambdaFunction(client, "f").call({}), 1),
    ],
)
def test_a_store_is_asked_three_times_and_a_function_once(
    service: str, call: Callable[[Any], Any], sends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standard.ExponentialBackoff, "delay_amount", lambda *_: 0)
    sent: list[str] = []
    with pytest.raises(StorageUnavailable):
        call(hang(make_client(service), sent))
    assert len(sent) == sends


@pytest.mark.parametrize(("left", "status"), [(29.0, 201), (RESERVE_SECONDS - 1, 503)])
def test_a_request_whose_function_has_no_time_left_is_refused_before_its_handler_begins(
    left: float, status: int
) -> None:
    services = fake_services()
    gateway = Gateway(services, issue(services, principal("t", "root", admin=True)))
    gateway.context = SimpleNamespace(get_remaining_time_in_millis=lambda: left * 1_000)

    body = {"type": "t", "content": "tea"}
    assert gateway.call("POST", "/v1/memory/facts", body).status == status
