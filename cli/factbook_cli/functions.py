"""The functions of a deployed stack, or of a `factbook local`, and how a command calls one."""

import argparse
import json
from pathlib import Path
from typing import Any

from factbook_cli.errors import CommandError

INVOKE_SECONDS = 120


def add_place(command: argparse.ArgumentParser, function: str) -> None:
    """Options that say where the function is; one of them has to be given."""
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--stack", metavar="NAME", help="the deployed stack")
    where.add_argument(
        "--function", metavar="NAME", help=f"its {function} function, where the stack may not be read"
    )
    where.add_argument("--ready-file", type=Path, metavar="F", help="what `factbook local` wrote")


class CalledFunction:
    """A function that a command calls. A call that takes long is not sent twice."""

    def __init__(self, arguments: argparse.Namespace, name: str) -> None:
        """`name`: as its folder is called. Raises CommandError when there is none."""
        from factbook_cli.aws import aws_errors, client, stack_value

        self._kind = name
        self._ready_file: Path | None = arguments.ready_file
        if arguments.ready_file is not None:
            where, self._name = _of_ready_file(arguments.ready_file, name)
            self._client = client("lambda", patience=INVOKE_SECONDS, attempts=1, **where)
            return
        output = f"{name.capitalize()}Function"
        self._name = arguments.function or stack_value(arguments.stack, output)
        with aws_errors():
            self._client = client("lambda", patience=INVOKE_SECONDS, attempts=1)

    def call(self, command: str) -> dict[str, Any]:
        """What it answers. Raises CommandError."""
        from factbook_cli.aws import ADVICE, aws_errors

        here = {
            "EndpointConnectionError": f"Is `factbook local --ready-file {self._ready_file}` still running?"
        }
        with aws_errors(ADVICE if self._ready_file is None else here):
            asked = json.dumps({"factbook": command}).encode()
            answer = self._client.invoke(FunctionName=self._name, Payload=asked)
            payload: dict[str, Any] = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise CommandError(
                f"The {self._kind} function failed: {payload.get('errorMessage', 'no message')}"
            )
        return payload


def _of_ready_file(file: Path, name: str) -> tuple[dict[str, str], str]:
    """Where a local service's functions are called, and the function's name."""
    try:
        ready = json.loads(file.read_text("utf-8"))["aws"]
        where = {
            "endpoint_url": ready["functions"]["endpoint"],
            "region_name": ready["region"],
            "aws_access_key_id": ready["accessKeyId"],
            "aws_secret_access_key": ready["secretAccessKey"],
        }
        return where, ready["functions"][name]
    except OSError as error:
        raise CommandError(
            f"The ready file {file} cannot be read: {error.strerror}. Is `factbook local --ready-file {file}` running?"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{file} is no ready file: give the one that `factbook local` wrote.") from error
