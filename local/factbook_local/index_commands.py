"""Repair the search index, or build it anew, and say how far it is.

Names the index function of a deployed stack (an output of it), with the AWS credentials of the shell; or the ready file
of `factbook local`. Work goes on in the background when the command is interrupted.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

COMMANDS = {"repair": "reconcile", "rebuild": "rebuild", "status": "progress"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(COMMANDS))
    texts = {
        "repair": "bring in what the index misses, and remove what the tables do not have",
        "rebuild": "build a new index from the tables beside the one in use, then switch over",
        "status": "how far the job is, and what waits for its embedding",
    }
    for name, text in texts.items():
        command = commands.add_parser(name, help=text, description=text)
        where = command.add_mutually_exclusive_group(required=True)
        where.add_argument("--function", metavar="NAME", help="the index function: an output of the stack")
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
    import boto3
    from botocore.config import Config

    patient = Config(read_timeout=120, retries={"max_attempts": 0})
    make: Any = boto3.client
    if arguments.function is not None:
        return make("lambda", config=patient), arguments.function
    ready = json.loads(arguments.ready_file.read_text())["aws"]
    client = make(
        "lambda",
        config=patient,
        endpoint_url=ready["functions"]["endpoint"],
        region_name=ready["region"],
        aws_access_key_id=ready["accessKeyId"],
        aws_secret_access_key=ready["secretAccessKey"],
    )
    return client, ready["functions"]["index"]


def _invoke(client: Any, function: str, command: str) -> dict[str, Any]:
    answer = client.invoke(FunctionName=function, Payload=json.dumps({"factbook": command}).encode())
    payload: dict[str, Any] = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        sys.exit(f"factbook: the index function failed: {payload.get('errorMessage', 'no message')}")
    return payload
