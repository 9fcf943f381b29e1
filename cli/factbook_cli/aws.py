"""The AWS account a stack is deployed in, by the credentials and the region of the shell."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from factbook.domain.errors import FactbookError
from factbook_cli.errors import CommandError

_ADVICE = {
    "NoCredentialsError": "Sign in, or set AWS_PROFILE.",
    "NoRegionError": "Set AWS_REGION to the region of the deployment.",
    "AccessDenied": "Use credentials that may do this.",
    "AccessDeniedException": "Use credentials that may do this.",
    "NotFoundException": "Check the name and AWS_REGION.",
    "ResourceNotFoundException": "Check the name and AWS_REGION.",
    "ValidationError": "Check the name and AWS_REGION.",
}


def client(service: str, *, patience: float = 30.0, attempts: int = 4, **where: Any) -> Any:
    """A client of a service; `patience` is how many seconds one answer may take."""
    config = Config(
        connect_timeout=10,
        read_timeout=patience,
        retries={"mode": "standard", "total_max_attempts": attempts},
    )
    return botocore.session.get_session().create_client(service, config=config, **where)


@contextmanager
def aws_errors() -> Iterator[None]:
    """Raises CommandError for whatever the SDK or a store raises."""
    try:
        yield
    except (BotoCoreError, ClientError, FactbookError) as error:
        answer = getattr(error, "response", {})
        code = answer.get("Error", {}).get("Code") or type(error).__name__
        text = str(error) or str(error.__cause__)
        raise CommandError(f"{text} {_ADVICE.get(code, '')}".strip()) from error


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
