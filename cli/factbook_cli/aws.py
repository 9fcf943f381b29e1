"""The AWS account a stack is deployed in, by the credentials and the region of the shell."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from factbook.domain.errors import FactbookError
from factbook_cli.errors import CommandError

_SIGN_IN = "Sign in again."
_WHERE = "Check the name and AWS_REGION."
_MAY_NOT = "Use credentials that may do this."
_CLOCK = "Set the clock of this machine, or sign in again."
ADVICE = {
    "NoCredentialsError": "Sign in, or set AWS_PROFILE.",
    "PartialCredentialsError": "Set both, or take both out and set AWS_PROFILE.",
    "ProfileNotFound": "Check AWS_PROFILE.",
    "ConfigParseError": "Mend the file, or set AWS_CONFIG_FILE.",
    "NoRegionError": "Set AWS_REGION to the region of the deployment.",
    "InvalidRegionError": "Check AWS_REGION.",
    "EndpointConnectionError": "Check AWS_REGION and your network.",
    "ConnectTimeoutError": "Check AWS_REGION and your network.",
    "ExpiredToken": _SIGN_IN,
    "ExpiredTokenException": _SIGN_IN,
    "InvalidClientTokenId": _SIGN_IN,
    "UnrecognizedClientException": _SIGN_IN,
    "TokenRetrievalError": _SIGN_IN,
    "SSOTokenLoadError": _SIGN_IN,
    "UnauthorizedSSOTokenError": _SIGN_IN,
    "SignatureDoesNotMatch": _CLOCK,
    "InvalidSignatureException": _CLOCK,
    "RequestTimeTooSkewed": _CLOCK,
    "AccessDenied": _MAY_NOT,
    "AccessDeniedException": _MAY_NOT,
    "NotFoundException": _WHERE,
    "ResourceNotFoundException": _WHERE,
    "ValidationError": _WHERE,
}
"""By the name of the SDK's exception or AWS's code of the refusal."""


def client(service: str, *, patience: float = 30.0, attempts: int = 4, **where: Any) -> Any:
    """A client of a service; `patience` is how many seconds one answer may take. Raises CommandError for an endpoint that is none.

    The SDK for Python knows AWS_DEFAULT_REGION alone; AWS_REGION, which other tools of AWS and Lambda have, wins.
    """
    config = Config(
        connect_timeout=10,
        read_timeout=patience,
        retries={"mode": "standard", "total_max_attempts": attempts},
    )
    where.setdefault("region_name", os.environ.get("AWS_REGION") or None)
    try:
        return botocore.session.get_session().create_client(service, config=config, **where)
    except BotoCoreError:
        raise
    except ValueError as error:
        raise CommandError(f"{error}. AWS_ENDPOINT_URL must begin with http:// or https://.") from error


def signed(
    service: str,
    region: str,
    url: str,
    *,
    method: str = "GET",
    body: bytes = b"",
    credentials: Credentials | None = None,
) -> dict[str, str]:
    """The headers of a signed request, by the credentials of the shell unless others are given; none without any."""
    credentials = credentials or botocore.session.get_session().get_credentials()
    if credentials is None:
        return {}
    request = AWSRequest(method, url, headers={"Content-Type": "application/json"} if body else {}, data=body)
    SigV4Auth(credentials, service, region).add_auth(request)
    return {str(name): str(value) for name, value in request.headers.items()}


def assumed(role: str) -> Credentials:
    """The credentials of a role for a quarter of an hour. Raises CommandError."""
    with aws_errors():
        answer = client("sts").assume_role(RoleArn=role, RoleSessionName="factbook", DurationSeconds=900)
    given = answer["Credentials"]
    return Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


@contextmanager
def aws_errors(advice: Mapping[str, str] = ADVICE) -> Iterator[None]:
    """Raises CommandError for whatever the SDK or a store raises, with the advice of its name or code."""
    try:
        yield
    except (BotoCoreError, ClientError, FactbookError) as error:
        answer = getattr(error, "response", {})
        code = answer.get("Error", {}).get("Code") or type(error).__name__
        text = str(error) or str(error.__cause__)
        raise CommandError(f"{text.rstrip('.')}. {advice.get(code, '')}".strip()) from error


def stack_values(stack: str) -> dict[str, str]:
    """Parameters and outputs of a deployed stack by name. Raises CommandError when there is none."""
    with aws_errors():
        (found,) = client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    given = {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])}
    return given | {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}


def stack_value(stack: str, name: str) -> str:
    """One of them. Raises CommandError when the stack has no such value."""
    value = stack_values(stack).get(name)
    if value is None:
        raise CommandError(f"The stack {stack} has no output {name}. Deploy this version of Factbook first.")
    return value
