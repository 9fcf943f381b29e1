"""`factbook local`: the service on this machine."""

import argparse
import asyncio
import contextlib
import errno
import json
import os
import signal
import sys
from pathlib import Path

from factbook_local import progress
from factbook_local.dataplane.process import DataPlaneEnded
from factbook_local.environment import misspelt_settings
from factbook_local.folder import FolderError, write_private
from factbook_local.runner import Options, Runner, StartError
from factbook_local.template import TemplateError

LAST_PORT = 65535
MAX_TENANT = 256
CANNOT_START, BROKEN = 2, 1
"""Exit codes: it never served; what it stands on ended under it. 0: it was asked to end."""

TO_EMBED = "to turn it on, start with MEMORY_EMBEDDINGS=built-in, or with MEMORY_EMBEDDINGS=openai-compat, MEMORY_EMBEDDINGS_URL and MEMORY_EMBEDDINGS_MODEL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=_port,
        default=8000,
        metavar="N",
        help="port on 127.0.0.1 (0: a free one; default 8000)",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the state in DIR (default: it ends with the runner)"
    )
    parser.add_argument(
        "--tenant",
        action="append",
        dest="tenants",
        type=_tenant,
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


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:6]) <= LAST_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give 0 (a free one) to {LAST_PORT}")
    return int(text)


def _tenant(text: str) -> str:
    if not 1 <= len(text) <= MAX_TENANT or not text.isprintable():
        raise argparse.ArgumentTypeError(f"a tenant's name has 1 to {MAX_TENANT} printable characters")
    return text


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def run(arguments: argparse.Namespace) -> int:
    if arguments.reset and arguments.data is None:
        return _say("--reset needs --data DIR: there is nothing else to empty.", CANNOT_START)
    if arguments.ready_file is not None and (wrong := _no_place(arguments.ready_file)):
        return _say(f"--ready-file {wrong}", CANNOT_START)
    options = Options(
        template=arguments.template,
        port=arguments.port,
        data=arguments.data,
        reset=arguments.reset,
        tenants=tuple(arguments.tenants or ("demo",)),
        verbose=arguments.verbose,
        parameters=dict(arguments.parameter),
    )
    os.umask(0o077)  # what this and its processes write down is for its owner alone
    try:
        code = asyncio.run(_run(options, arguments.ready_file))
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        code = _say("a process may open too few files here. Allow more: ulimit -n 1024", CANNOT_START)
    sys.stdout.flush()
    sys.stderr.flush()
    # All is saved and ended; what is left are threads that wait for answers of a data plane that is gone.
    os._exit(code)


def _no_place(file: Path) -> str:
    """Why a file cannot be written there; empty where it can."""
    if file.is_dir():
        return f"{file} is a folder. Give the name of a file."
    if not file.parent.is_dir():
        return f"{file}: there is no folder {file.parent}. Make it first."
    if not os.access(file.parent, os.W_OK | os.X_OK):
        return f"{file}: you may not write into the folder {file.parent}."
    return ""


def _ending_signals() -> list[signal.Signals]:
    """What asks the runner to end. A terminal that goes is no such thing to one that `nohup` started."""
    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    return ending


async def _run(options: Options, ready_file: Path | None) -> int:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ending_signals():
        loop.add_signal_handler(number, asked.set)
    for line in misspelt_settings():
        _tell(line)
    runner = Runner(options)
    ended = asyncio.ensure_future(asked.wait())
    written: bytes | None = None
    try:
        starting = asyncio.ensure_future(runner.start())
        showing = asyncio.ensure_future(progress.show(runner.doing))
        await asyncio.wait([starting, ended], return_when=asyncio.FIRST_COMPLETED)
        await _ended(showing)
        if not starting.done():
            await _ended(starting)
            return 0
        starting.result()
        for line in runner.mended:
            _tell(line)
        if ready_file is not None:
            written = _write_ready_file(ready_file, runner)
        await _announce(runner)
        looking = asyncio.ensure_future(_tell_what_is_not_there(runner))
        broken = asyncio.ensure_future(runner.until_broken())
        await asyncio.wait([broken, ended], return_when=asyncio.FIRST_COMPLETED)
        looking.cancel()
        if not ended.done():
            return _say(broken.result(), BROKEN)
        broken.cancel()
        return 0
    except (StartError, FolderError, TemplateError, DataPlaneEnded) as error:
        return _say(str(error), CANNOT_START)
    finally:
        ended.cancel()
        await runner.stop()
        if ready_file is not None and written is not None:
            _remove_ready_file(ready_file, written)


async def _ended(task: "asyncio.Future[None]") -> None:
    """Cancel a task and wait until it has ended, however it does."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


async def _tell_what_is_not_there(runner: Runner) -> None:
    """What the settings name and does not answer: the service serves without it, and nobody would know why."""
    from factbook_cli import probes

    settings, loop = runner.settings, asyncio.get_running_loop()
    asked = [probes.search] if settings.opensearch_url else []
    with_endpoint = settings.semantic and settings.memory_embeddings == "openai-compat"
    if with_endpoint and not settings.memory_embeddings_api_key.startswith("arn:"):
        asked.append(probes.embeddings)
    problems = [(await loop.run_in_executor(None, ask, settings)).problem for ask in asked]
    for problem in list(filter(None, problems)) or ([runner.behind] if runner.behind else []):
        _tell(problem)


def _write_ready_file(file: Path, runner: Runner) -> bytes:
    """What it wrote. Raises StartError."""
    text = json.dumps(runner.description(), indent=2).encode()
    try:
        write_private(file, text)
    except OSError as error:
        raise StartError(f"the ready file {file} cannot be written: {error.strerror}.") from error
    return text


def _remove_ready_file(file: Path, written: bytes) -> None:
    """Only what this runner wrote: by now the file may be another runner's."""
    with contextlib.suppress(OSError):
        if file.read_bytes() == written:
            file.unlink()


def _say(message: str, code: int) -> int:
    for line in message.splitlines():
        _tell(line)
    return code


def _tell(line: str) -> None:
    print(f"factbook: {line}", file=sys.stderr, flush=True)


async def _announce(runner: Runner) -> None:
    for logical, failure in runner.failures.items():
        print(f"factbook: {logical} cannot run: {failure}", file=sys.stderr)
    token = next(iter(runner.tokens.values()), "")
    lines = [f"Factbook is ready at {runner.url} ({runner.timings['ready']:.1f} s)"]
    lines += [f"  token ({name})  {text}" for name, text in runner.tokens.items()]
    if search := await runner.search_line():
        lines.append(f"  search  {search}")
        if not runner.settings.semantic:
            lines.append(f"          {TO_EMBED}")
    if token:
        lines += [
            "",
            f"  curl -s {runner.url}/v1/memory/facts -H 'Authorization: Bearer {token}' \\",
            """    -d '{"type": "note", "scope": {}, "content": "the first fact"}'""",
        ]
    lines += ["", "Ctrl-C ends it."]
    print("\n".join(lines), flush=True)
