"""Repair the search index, or build it anew, and say how far it is; let the functions into a search domain.

Calls the index function of a deployed stack, with the AWS credentials of the shell, or of a `factbook local`. Work goes
on in the background when the command is interrupted.
"""

import argparse
import sys

from factbook_cli import search_roles
from factbook_cli.functions import CalledFunction, add_place

COMMANDS = {"repair": "reconcile", "rebuild": "rebuild", "status": "progress"}
SUMMARIES = {
    "repair": "bring in what the index misses, and remove what the tables do not have",
    "rebuild": "build a new index from the tables beside the one in use, then switch over",
    "status": "how far the job is, and what waits for its embedding",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join([*COMMANDS, "roles"]))
    for name, text in SUMMARIES.items():
        add_place(commands.add_parser(name, help=text, description=text), "index")
    said = "let the functions into a search domain with fine-grained access control"
    search_roles.add_arguments(commands.add_parser("roles", help=said, description=search_roles.__doc__))


def run(arguments: argparse.Namespace) -> int:
    """Until the job is done; exit code 1 when the function says what is in the way."""
    if arguments.command == "roles":
        return search_roles.run(arguments)
    function = CalledFunction(arguments, "index")
    command = COMMANDS[arguments.command]
    while True:
        progress = function.call(command)
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
