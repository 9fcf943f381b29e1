"""What an error of an AWS service means here: one table for each service, and one rule for what no table knows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as BotoConnectionError

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.contention import Contended


class NothingThere(Exception):
    """The service has nothing under that name."""


class AlreadyThere(Exception):
    """Something was to be put where nothing is, and something is."""


class NotGenuine(Exception):
    """A cipher text was not made with this key for this context."""


Meanings = Mapping[str, type[Exception]]

MEANINGS: dict[str, Meanings] = {
    "dynamodb": {
        "ProvisionedThroughputExceededException": Throttled,
        "ProvisionedThroughputExceeded": Throttled,  # as a cancelled transaction's reason
        "ThrottlingException": Throttled,
        "ThrottlingError": Throttled,
        "RequestLimitExceeded": Throttled,
        "LimitExceededException": Throttled,
        "TransactionConflictException": Contended,
        "TransactionConflict": Contended,
        "TransactionInProgressException": Contended,
        "InternalServerError": StorageUnavailable,
        "InternalFailure": StorageUnavailable,
        "ServiceUnavailable": StorageUnavailable,
        "RequestTimeout": StorageUnavailable,
    },
    # A HEAD request is answered without a body: then the status is the code.
    "s3": {
        "SlowDown": Throttled,
        "503": Throttled,
        "RequestTimeout": StorageUnavailable,
        "NoSuchKey": NothingThere,
        "404": NothingThere,
        "PreconditionFailed": AlreadyThere,
        "412": AlreadyThere,
        "ConditionalRequestConflict": Contended,
        "409": Contended,
        "OperationAborted": Contended,
    },
    "kms": {
        "ThrottlingException": Throttled,
        "LimitExceededException": Throttled,
        "KMSInternalException": StorageUnavailable,
        "DependencyTimeoutException": StorageUnavailable,
        "KeyUnavailableException": StorageUnavailable,
        "InvalidCiphertextException": NotGenuine,
    },
    "sqs": {
        "RequestThrottled": Throttled,
        "ThrottlingException": Throttled,
        "KmsThrottled": Throttled,
    },
    "lambda": {
        "TooManyRequestsException": Throttled,
        "ServiceException": StorageUnavailable,
        "ResourceNotReadyException": StorageUnavailable,
        "ResourceConflictException": StorageUnavailable,  # while the function is being updated
    },
    "secretsmanager": {
        "ResourceNotFoundException": NothingThere,
        "ThrottlingException": Throttled,
        "InternalServiceError": StorageUnavailable,
    },
}


@contextmanager
def aws_errors(service: str) -> Iterator[None]:
    """Turn botocore's errors into what the service's table says.

    What no table knows passes unchanged, for it has to be mended and not tried again; but a status of 500 and above, and
    an answer that did not come or not whole, are StorageUnavailable.
    """
    try:
        yield
    except ClientError as error:
        raise meaning(service, error) from error
    except (BotoConnectionError, HTTPClientError, IncompleteReadError) as error:
        raise StorageUnavailable from error


@contextmanager
def any_failure_is_unavailable() -> Iterator[None]:
    """Whatever a service answers but success is StorageUnavailable, refusals of the role included."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise StorageUnavailable from error


def meaning(service: str, error: ClientError) -> Exception:
    """The error to raise for a service's answer: the answer itself when no rule knows it."""
    known = meaning_of_code(service, error.response.get("Error", {}).get("Code", ""))
    if known is not None:
        return known
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    unknown: Exception = error
    return StorageUnavailable() if status >= HTTPStatus.INTERNAL_SERVER_ERROR else unknown


def meaning_of_code(service: str, code: str) -> Exception | None:
    found = MEANINGS[service].get(code)
    return None if found is None else found()
