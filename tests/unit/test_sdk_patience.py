"""How long the SDK waits: a store that hangs is answered for before the function dies, a function is called once."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ReadTimeoutError
from botocore.retries import standard
from support.tables import declared

from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.s3_blobs import S3Blobs
from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.log.kms_wrapper import KmsWrapper
from factbook.domain.errors import StorageUnavailable
from factbook.wiring.services import make_client

LEFT_FOR_THE_REST = 5.0
"""Seconds of a function that its other calls, its own work and its answer may take."""


def longest(service: str) -> float:
    """Seconds that one call may take when nothing answers."""
    config = make_client(service).meta.config
    tries = config.retries["total_max_attempts"]
    longest_pauses = sum(2.0**number for number in range(tries - 1))
    return float(tries * (config.connect_timeout + config.read_timeout) + longest_pauses)


@pytest.mark.parametrize("service", ["dynamodb", "s3", "kms", "sqs", "secretsmanager", "lambda"])
def test_a_call_that_nothing_answers_ends_well_before_the_function_that_makes_it(service: str) -> None:
    shortest = min(function.timeout for function in declared().functions.values())

    assert longest(service) <= shortest - LEFT_FOR_THE_REST


def hang(client: Any, sent: list[str]) -> Any:
    def time_out(request: AWSPreparedRequest, **_: Any) -> None:
        sent.append(request.url)
        raise ReadTimeoutError(endpoint_url=request.url)

    client.meta.events.register("before-send", time_out)
    return client


@pytest.mark.parametrize(
    ("service", "call", "sends"),
    [
        ("dynamodb", lambda client: DynamoFacts(client, "t").head("t", "f"), 4),
        ("s3", lambda client: S3Blobs(client, "b").stat("blob://s3/b/facts/t/f/n"), 4),
        ("kms", lambda client: KmsWrapper(client, "k").unwrap("t", b"wrapped"), 4),
        ("lambda", lambda client: LambdaFunction(client, "f").call({}), 1),
    ],
)
def test_a_store_is_asked_four_times_and_a_function_once(
    service: str, call: Callable[[Any], Any], sends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standard.ExponentialBackoff, "delay_amount", lambda *_: 0)
    sent: list[str] = []
    with pytest.raises(StorageUnavailable):
        call(hang(make_client(service), sent))
    assert len(sent) == sends
