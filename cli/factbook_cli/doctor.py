"""Look at all that Factbook stands on here, and say what is wrong and what to do.

Without options: the settings in this environment, the endpoints that they name, and the port that `factbook local` takes.
--data looks at a data folder too, --ready-file or --url and --token at a running service and this machine's clock,
--stack at AWS: its credentials, the clock, and the deployed stack. Nothing is changed, and no secret is shown.
exit codes: 0 nothing is wrong, 1 something is, 2 the command line cannot be read
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal

import urllib3
from urllib3.exceptions import HTTPError

from factbook import __version__
from factbook.settings import Settings, misspelt, read_settings
from factbook_cli import probes
from factbook_cli.answers import expected, shown
from factbook_cli.api import Api, ApiError, add_service_options, reason
from factbook_cli.errors import CommandError, UsageError

State = Literal["ok", "wrong", "unseen"]
TOLERATED = timedelta(seconds=60)
"""Between two clocks. AWS refuses requests from five minutes on; times in the log and in retention are the service's."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `unseen` when an option or a package is needed to look at it."""

    subject: str
    state: State
    said: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="a data folder of `factbook local`")
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="the port it is to take (default 8000)"
    )
    parser.add_argument(
        "--ready-file", type=Path, metavar="F", help="what `factbook local` wrote: URL and token"
    )
    parser.add_argument("--stack", metavar="NAME", help="a deployed stack")
    parser.add_argument("--json", action="store_true", help="what was found as JSON on stdout")
    add_service_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Say each finding as it is made; exit code 1 when one is wrong."""
    url, token = _service(arguments)
    found: list[Finding] = []
    for finding in _examined(arguments, url, token):
        found.append(finding)
        if not arguments.json:
            print(f"{finding.state:<7} {finding.subject:<11} {finding.said}", flush=True)
    wrong = sum(finding.state == "wrong" for finding in found)
    if arguments.json:
        print(json.dumps([vars(finding) for finding in found]))
    else:
        print(f"\n{wrong or 'Nothing'} of this {'is' if wrong < 2 else 'are'} wrong.")
    return 1 if wrong else 0


def _service(arguments: argparse.Namespace) -> tuple[str, str]:
    """URL and token, empty when none is named. Raises UsageError for a ready file that is none, or half a service."""
    if arguments.ready_file is None:
        if bool(arguments.url) != bool(arguments.token):
            raise UsageError("--url and --token belong together (FACTBOOK_URL and FACTBOOK_TOKEN).")
        return arguments.url or "", arguments.token or ""
    try:
        ready = json.loads(arguments.ready_file.read_text("utf-8"))
        return str(ready["url"]), str(next(iter(ready["tenants"].values()))["token"])
    except OSError as error:
        raise UsageError(f"--ready-file {arguments.ready_file} cannot be read: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration) as error:
        raise UsageError(
            f"--ready-file {arguments.ready_file} is not what `factbook local` wrote."
        ) from error


def _examined(arguments: argparse.Namespace, url: str, token: str) -> Iterator[Finding]:
    yield Finding("version", "ok", f"factbook {__version__}, Python {sys.version.partition(' ')[0]}")
    settings = read_settings(os.environ)
    dates: dict[str, str | None] = {}
    yield from _settings(settings)
    yield from _endpoints(settings, dates)
    yield from _machine(arguments)
    yield from (
        _running(url, token, dates)
        if url
        else [Finding("service", "unseen", "give --ready-file, or --url and --token")]
    )
    if arguments.stack:
        from factbook_cli.account import examined

        for subject, problem, said in examined(arguments.stack, dates):
            yield Finding(subject, "wrong" if problem else "ok", problem or said)
    else:
        yield Finding("account", "unseen", "give --stack")
    yield _clock(dates)


def _settings(settings: Settings) -> Iterator[Finding]:
    problems = settings.problems + misspelt(os.environ)
    for problem in problems:
        yield Finding("settings", "wrong", problem)
    if not problems:
        on = (
            "search by meaning is on"
            if settings.semantic
            else "search by words alone (MEMORY_EMBEDDINGS is off)"
        )
        yield Finding("settings", "ok", on)


def _endpoints(settings: Settings, dates: dict[str, str | None]) -> Iterator[Finding]:
    if settings.semantic and settings.memory_embeddings_api_key.startswith("arn:"):
        yield Finding(
            "embeddings", "unseen", "the key is in a secret, which the functions' role alone may read"
        )
    elif settings.semantic and settings.memory_embeddings != "openai-compat":
        yield Finding(
            "embeddings",
            "unseen",
            f"{settings.memory_embeddings} {settings.embedding_model} has no endpoint of yours",
        )
    elif settings.semantic:
        yield _probed("embeddings", probes.embeddings(settings), dates)
    if settings.opensearch_url and not settings.search_problem:
        yield _probed("search", probes.search(settings), dates)
    if settings.oidc_issuer and not settings.sign_on_problem:
        yield _probed("sign-on", probes.issuer(settings), dates)


def _probed(subject: str, probe: probes.Probe, dates: dict[str, str | None]) -> Finding:
    dates[subject] = probe.date
    return Finding(subject, "wrong" if probe.problem else "ok", probe.problem or probe.said)


def _machine(arguments: argparse.Namespace) -> Iterator[Finding]:
    """Folder and port, where the local runner is there."""
    try:
        from factbook_local import examination
    except ModuleNotFoundError as missing:
        if missing.name != "factbook_local":
            raise
        return
    if arguments.data is None:
        yield Finding("folder", "unseen", "give --data")
    else:
        faults, said = examination.folder(arguments.data)
        for fault in faults:
            yield Finding("folder", "wrong", fault)
        if not faults:
            yield Finding("folder", "ok", said)
    fault, said = examination.port(arguments.port)
    yield Finding("port", "wrong" if fault else "ok", fault or said)


def _running(url: str, token: str, dates: dict[str, str | None]) -> Iterator[Finding]:
    """A service: whether it answers, whom it takes the token for, and what it says of itself."""
    try:
        api = Api(url, token)
        health = urllib3.request(
            "GET", f"{api.url}/health", timeout=probes.TIMEOUT, retries=False, redirect=False
        )
    except CommandError as error:
        yield Finding("service", "wrong", str(error))
        return
    except HTTPError as error:
        yield Finding(
            "service", "wrong", f"{api.url} does not answer: {reason(error)}. Start it, or correct the URL."
        )
        return
    dates["service"] = health.headers.get("Date")
    if health.status != 200 or b'"ok"' not in health.data:
        yield Finding(
            "service",
            "wrong",
            f"{api.url} is no Factbook: GET /health answers {health.status}. Correct the URL.",
        )
        return
    yield Finding("service", "ok", f"{api.url} answers")
    try:
        with expected("who the token is, or the status"):
            who, status = api.get("v1", "identity", "whoami"), api.get("v1", "memory", "status")
            yield from _status(who, status)
    except ApiError as error:
        yield Finding("token", "wrong", str(error))
    except CommandError as error:
        yield Finding("service", "wrong", str(error))


def _status(who: Any, status: Any) -> Iterator[Finding]:
    rights = "an administrator" if who["tenantAdmin"] else "no administrator"
    yield Finding("token", "ok", shown(f"{who['actor']} of tenant {who['tenantId']}, {rights}"))
    problems = list(status.get("problems", ()))
    for problem in problems:
        yield Finding("search", "wrong", shown(problem))
    if not problems:
        yield Finding("search", "ok", shown(status["search"]))
    index = status["index"]
    job = index.get("job")
    at = "no job yet" if job is None else f"{job['kind']} {job['phase']}"
    yield Finding("index", "ok", shown(f"{at}; {index['waiting']} records wait"))


def _clock(dates: dict[str, str | None]) -> Finding:
    """This machine's clock beside the servers' that were asked; a date is of whole seconds."""
    now = datetime.now(UTC)
    beside = {}
    for name, date in dates.items():
        try:
            beside[name] = now - parsedate_to_datetime(date or "").astimezone(UTC)
        except (ValueError, OverflowError):  # a date at the calendar's end, of another zone
            continue
    if not beside:
        return Finding("clock", "unseen", "no server was asked that says the time")
    name, worst = max(beside.items(), key=lambda each: abs(each[1]))
    seconds = abs(worst.total_seconds())
    if abs(worst) <= TOLERATED:
        return Finding("clock", "ok", f"{seconds:.0f} s beside that of the {name}")
    where = "ahead of" if worst > timedelta() else "behind"
    return Finding(
        "clock",
        "wrong",
        f"{seconds:,.0f} s {where} that of the {name}. Set the clock of this machine, or of that.",
    )
