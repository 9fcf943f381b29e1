"""Print the verifier key of a deployment: the name its checkpoints carry, and the public half of its signing key.

Give it to auditors by a way that does not lead through the service. With --stack, or --key and --origin, it comes from
KMS itself, with the AWS credentials of the shell. With --url it is what the service says of itself, as its newest
checkpoint names it: good for a service on your own machine.
"""

import argparse

from factbook_cli.answers import expected, shown
from factbook_cli.api import add_service_options, connect
from factbook_cli.errors import CommandError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--stack", metavar="NAME", help="the deployed stack")
    where.add_argument("--key", metavar="ID", help="its signing key in KMS, where the stack may not be read")
    parser.add_argument(
        "--origin", help="with --key: the name, which is the stack's parameter CheckpointOrigin"
    )
    add_service_options(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.stack is not None or arguments.key is not None:
        print(_of_deployment(arguments))
    elif arguments.origin is not None:
        raise UsageError("--origin goes with --key.")
    elif not arguments.url or not arguments.token:
        raise UsageError(
            "Say whose key: --stack NAME, or --key ID and --origin NAME; of a service on your own machine --url and "
            "--token, or FACTBOOK_URL and FACTBOOK_TOKEN."
        )
    else:
        print(_of_service(arguments))
    return 0


def _of_deployment(arguments: argparse.Namespace) -> str:
    from factbook.adapters.log.kms_signer import KmsSigner
    from factbook_cli.aws import aws_errors, client, stack_values

    key, origin = arguments.key, arguments.origin
    if arguments.stack is not None:
        values = stack_values(arguments.stack)
        key, origin = values.get("SigningKeyId"), origin or values.get("CheckpointOrigin")
        if key is None or origin is None:
            raise CommandError(f"{arguments.stack} is no stack of Factbook: it has no signing key.")
    elif origin is None:
        raise UsageError("Give --origin with --key: the stack's parameter CheckpointOrigin.")
    try:
        with aws_errors():
            return KmsSigner(client("kms"), key, origin).key.vkey
    except (TypeError, ValueError) as error:
        raise CommandError(f"{key} is no Ed25519 key, so it signs no checkpoints.") from error


def _of_service(arguments: argparse.Namespace) -> str:
    latest = connect(arguments).get("v1", "memory", "checkpoints", "latest")
    with expected("the newest checkpoint"):
        return shown(latest["vkey"])
