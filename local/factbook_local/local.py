"""`factbook local`: the service on this machine."""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

from factbook_local.dataplane.process import DataPlaneEnded
from factbook_local.folder import FolderError
from factbook_local.runner import Options, Runner, StartError
from factbook_local.template import TemplateError

CANNOT_START, BROKEN = 2, 1
"""Exit codes: it never served; what it stands on ended under it. 0: it was asked to end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port on 127.0.0.1 (0: a free one; default 8000)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the state in DIR (default: it ends with the runner)"
    )
    parser.add_argument(
        "--tenant",
        action="append",
        dest="tenants",
        metavar="T",
        help="a tenant to make a token for (may be repeated; default demo)",
    )
    parser.add_argument(
        "--ready-file", type=Path, metavar="F", help="write URL, tokens and endpoints to F once ready (JSON)"
    )
    parser.add_argument("--reset", action="store_true", help="empty the --data folder first")
    parser.add_argument("--verbose", action="store_true", help="show what the functions log")
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=VALUE",
        help="a parameter of the template (may be repeated)",
    )
    parser.add_argument(
        "--template",
        type=Path,
        default=Path(__file__).resolve().parents[2] / "template.yaml",
        help=argparse.SUPPRESS,
    )


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def run(arguments: argparse.Namespace) -> int:
    if arguments.reset and arguments.data is None:
        return _say("--reset needs --data DIR: there is nothing else to empty.", CANNOT_START)
    options = Options(
        template=arguments.template,
        port=arguments.port,
        data=arguments.data,
        reset=arguments.reset,
        tenants=tuple(arguments.tenants or ("demo",)),
        verbose=arguments.verbose,
        parameters=dict(arguments.parameter),
    )
    code = asyncio.run(_run(options, arguments.ready_file))
    sys.stdout.flush()
    sys.stderr.flush()
    # All is saved and ended; what is left are threads that wait for answers of a data plane that is gone.
    os._exit(code)


async def _run(options: Options, ready_file: Path | None) -> int:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    runner = Runner(options)
    ended = asyncio.ensure_future(asked.wait())
    try:
        starting = asyncio.ensure_future(runner.start())
        await asyncio.wait([starting, ended], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            return 0
        starting.result()
        await _announce(runner, ready_file)
        broken = asyncio.ensure_future(runner.until_broken())
        await asyncio.wait([broken, ended], return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            return _say(broken.result(), BROKEN)
        broken.cancel()
        return 0
    except (StartError, FolderError, TemplateError, DataPlaneEnded) as error:
        return _say(str(error), CANNOT_START)
    finally:
        ended.cancel()
        await runner.stop()
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)


def _say(message: str, code: int) -> int:
    print(f"factbook: {message}", file=sys.stderr, flush=True)
    return code


async def _announce(runner: Runner, ready_file: Path | None) -> None:
    description = runner.description()
    for logical, failure in runner.failures.items():
        print(f"factbook: {logical} cannot run: {failure}", file=sys.stderr)
    token = next(iter(runner.tokens.values()), "")
    lines = [f"Factbook is ready at {runner.url} ({runner.timings['ready']:.1f} s)"]
    lines += [f"  token ({name})  {text}" for name, text in runner.tokens.items()]
    if search := await runner.search_line():
        lines.append(f"  search  {search}")
    if token:
        lines += [
            "",
            f"  curl -s {runner.url}/v1/memory/facts -H 'Authorization: Bearer {token}' \\",
            """    -d '{"type": "note", "scope": {}, "content": "the first fact"}'""",
        ]
    lines += ["", "Ctrl-C ends it."]
    print("\n".join(lines), flush=True)
    if ready_file is not None:
        draft = ready_file.with_name(ready_file.name + ".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            json.dump(description, stream, indent=2)
        draft.replace(ready_file)
