"""What an error of AWS means here: what may be tried again, what was decided, and what has to be mended."""

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ReadTimeoutError,
)

from factbook.adapters.aws_errors import (
    MEANINGS,
    AlreadyThere,
    NotGenuine,
    NothingThere,
    any_failure_is_unavailable,
    aws_errors,
)
from factbook.adapters.dynamodb.client import ConditionFailed, store_errors
from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.contention import Contended


def answered(code: str, status: int = 400, **more: object) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}, **more},  # type: ignore[typeddict-item]
        "Operation",
    )


@pytest.mark.parametrize(
    ("service", "code", "meaning"),
    [
        ("dynamodb", "ProvisionedThroughputExceededException", Throttled),
        ("dynamodb", "RequestLimitExceeded", Throttled),
        ("dynamodb", "TransactionConflictException", Contended),
        ("dynamodb", "InternalServerError", StorageUnavailable),
        ("s3", "SlowDown", Throttled),
        ("s3", "NoSuchKey", NothingThere),
        ("s3", "404", NothingThere),
        ("s3", "PreconditionFailed", AlreadyThere),
        ("s3", "ConditionalRequestConflict", Contended),
        ("s3", "RequestTimeout", StorageUnavailable),
        ("s3", "OperationAborted", Contended),
        ("kms", "ThrottlingException", Throttled),
        ("kms", "KeyUnavailableException", StorageUnavailable),
        ("kms", "InvalidCiphertextException", NotGenuine),
        ("sqs", "RequestThrottled", Throttled),
        ("lambda", "TooManyRequestsException", Throttled),
        ("lambda", "ResourceConflictException", StorageUnavailable),
        ("secretsmanager", "ThrottlingException", Throttled),
    ],
)
def test_a_code_means_what_its_services_table_says(service: str, code: str, meaning: type[Exception]) -> None:
    with pytest.raises(meaning), aws_errors(service):
        raise answered(code)


@pytest.mark.parametrize("service", MEANINGS)
def test_what_no_table_knows_has_to_be_mended_and_passes_unchanged(service: str) -> None:
    for error in (answered("AccessDeniedException"), answered("ValidationException"), NoCredentialsError()):
        with pytest.raises(type(error)) as raised, aws_errors(service):
            raise error
        assert raised.value is error


@pytest.mark.parametrize("service", MEANINGS)
@pytest.mark.parametrize(
    "error",
    [
        answered("WhoKnows", 500),
        answered("", 503),
        ReadTimeoutError(endpoint_url="u"),
        ConnectTimeoutError(endpoint_url="u"),
        EndpointConnectionError(endpoint_url="u"),
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
    ],
    ids=["status 500", "status 503", "read time-out", "connect time-out", "no endpoint", "cut short"],
)
def test_a_service_that_broke_or_gave_no_whole_answer_is_unavailable(
    service: str, error: ClientError | BotoCoreError
) -> None:
    with pytest.raises(StorageUnavailable), aws_errors(service):
        raise error


def test_a_removal_that_was_not_allowed_is_reported_like_one_that_failed() -> None:
    for error in (answered("AccessDenied", 403), answered("SlowDown", 503), NoCredentialsError()):
        with pytest.raises(StorageUnavailable), any_failure_is_unavailable():
            raise error


def reasons(*codes: str) -> ClientError:
    listed = [{"Code": code, "Item": {"n": {"N": "7"}}} for code in codes]
    return answered("TransactionCanceledException", CancellationReasons=listed)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (answered("ConditionalCheckFailedException", Item={"n": {"N": "7"}}), ConditionFailed),
        (reasons("None", "ConditionalCheckFailed"), ConditionFailed),
        (reasons("TransactionConflict", "ConditionalCheckFailed"), ConditionFailed),
        (reasons("None", "TransactionConflict"), Contended),
        (reasons("ProvisionedThroughputExceeded", "None"), Throttled),
        (reasons("ValidationError", "None"), ClientError),
    ],
)
def test_a_conditional_write_tells_what_it_met(error: ClientError, meaning: type[Exception]) -> None:
    with pytest.raises(meaning) as raised, store_errors():
        raise error
    if isinstance(raised.value, ConditionFailed):
        assert raised.value.item == {"n": 7}
