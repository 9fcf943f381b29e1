"""An AWS account as `factbook doctor` looks at it: who the credentials are, the clock, and a deployed stack."""

from collections.abc import Iterator

from factbook_cli.aws import aws_errors, client, stack_values
from factbook_cli.errors import CommandError

OUTPUTS = ("AccessTable", "IndexFunction", "SigningKeyId")
"""What the commands read of a stack."""


def examined(stack: str, dates: dict[str, str | None]) -> Iterator[tuple[str, str, str]]:
    """(subject, problem or empty, what was found), and the date that AWS answered; ends at the first problem."""
    try:
        with aws_errors():
            caller = client("sts", attempts=2).get_caller_identity()
    except CommandError as error:
        yield "credentials", str(error), ""
        return
    dates["account"] = caller["ResponseMetadata"]["HTTPHeaders"].get("date")
    yield "credentials", "", f"{caller['Arn']}"
    try:
        values = stack_values(stack)
    except CommandError as error:
        yield "stack", str(error), ""
        return
    missing = [name for name in OUTPUTS if name not in values]
    lacking = f"{stack} has no output {', '.join(missing)}. Is it a stack of this version of Factbook?"
    yield "stack", lacking if missing else "", f"{stack} is there"
