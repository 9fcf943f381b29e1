"""Repair the search index, or build it anew, and say how far it is.

Calls the index function of a deployed stack, with the AWS credentials of the shell, or of a `factbook local`. Work goes
on in the background when the command is interrupted.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from factbook_cli.errors import CommandError

COMMANDS = {"repair": "reconcile", "rebuild": "rebuild", "status": "progress"}
SUMMARIES = {
    "repair": "bring in what the index misses, and remove what the tables do not have",
    "rebuild": "build a new index from the tables beside the one in use, then switch over",
    "status": "how far the job is, and what waits for its embedding",
}
INVOKE_SECONDS = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(COMMANDS))
    for name, text in SUMMARIES.items():
        command = commands.add_parser(name, help=text, description=text)
        where = command.add_mutually_exclusive_group(required=True)
        where.add_argument("--stack", metavar="NAME", help="the deployed stack")
        where.add_argument(
            "--function", metavar="NAME", help="its index function, where the stack may not be read"
        )
        where.add_argument("--ready-file", type=Path, metavar="F", help="what `factbook local` wrote")


def run(arguments: argparse.Namespace) -> int:
    """Until the job is done; exit code 1 when the function says what is in the way."""
    client, function = _function(arguments)
    command = COMMANDS[arguments.command]
    while True:
        progress = _invoke(client, function, command)
        job = progress.get("job")
        if job is not None:
            print(f"{job['kind']} {job['phase']}: {job['records']} seen, {job['changed']} brought in")
        print(f"waiting for an embedding: {progress['waiting']}")
        if progress.get("problem"):
            print(f"factbook: {progress['problem']}", file=sys.stderr)
            return 1
        if arguments.command == "status" or job is None or job["phase"] == "done":
            return 0
        command = "work"  # go on with the job, and start no other


def _function(arguments: argparse.Namespace) -> tuple[Any, str]:
    """A client and the function's name. A call that takes long is not sent twice."""
    from factbook_cli.aws import aws_errors, client, stack_value

    if arguments.ready_file is not None:
        where, function = _of_ready_file(arguments.ready_file)
        return client("lambda", patience=INVOKE_SECONDS, attempts=1, **where), function
    name = arguments.function or stack_value(arguments.stack, "IndexFunction")
    with aws_errors():
        return client("lambda", patience=INVOKE_SECONDS, attempts=1), name


def _of_ready_file(file: Path) -> tuple[dict[str, str], str]:
    """Where a local service's functions are called, and the index function's name."""
    try:
        ready = json.loads(file.read_text("utf-8"))["aws"]
        where = {
            "endpoint_url": ready["functions"]["endpoint"],
            "region_name": ready["region"],
            "aws_access_key_id": ready["accessKeyId"],
            "aws_secret_access_key": ready["secretAccessKey"],
        }
        return where, ready["functions"]["index"]
    except OSError as error:
        raise CommandError(
            f"The ready file {file} cannot be read: {error.strerror}. Is `factbook local --ready-file {file}` running?"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{file} is no ready file: give the one that `factbook local` wrote.") from error


def _invoke(client: Any, function: str, command: str) -> dict[str, Any]:
    from factbook_cli.aws import aws_errors

    with aws_errors():
        answer = client.invoke(FunctionName=function, Payload=json.dumps({"factbook": command}).encode())
        payload: dict[str, Any] = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise CommandError(f"The index function failed: {payload.get('errorMessage', 'no message')}")
    return payload
