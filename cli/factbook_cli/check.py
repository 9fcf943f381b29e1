"""Check a running service as a caller would: write, read, find, log, verify offline, delete. For a monitor to run.

Use a token of a tenant of its own, with administrator's rights: what is written is deleted again, log entries stay. Prints a
line for each step with its time; exit code 0 when every step held, 1 at the first that did not.
"""

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from factbook_cli.answers import expected
from factbook_cli.api import Api, ApiError, add_service_options, connect
from factbook_cli.errors import CommandError, UsageError

TYPE, RUN = "factbook.check", "factbook-check"
FOUND_WITHIN = 30.0
"""Seconds for a write to be found; the index follows the table's stream."""


@dataclass(frozen=True)
class Step:
    """`held` is None for what this service does not have, so nothing was checked."""

    name: str
    held: bool | None
    seconds: float
    said: str = ""


class NotHere(Exception):
    """The service does not have what the step would check."""


class WrongAnswer(CommandError):
    """The service answered, and not what was written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_service_options(parser)
    parser.add_argument(
        "--vkey", help="the deployment's verifier key; without it, what the service says of itself"
    )
    parser.add_argument("--json", action="store_true", help="the steps as JSON")


def run(arguments: argparse.Namespace) -> int:
    _require_key(arguments.vkey)
    steps = []
    for step in Check(connect(arguments), arguments.vkey).steps():
        steps.append(step)
        if not arguments.json:
            _tell(step)
    if arguments.json:
        print(json.dumps([asdict(step) for step in steps], indent=2))
    return 1 if any(step.held is False for step in steps) else 0


def _require_key(vkey: str | None) -> None:
    """Raises UsageError before anything is begun for what is no verifier key."""
    from factbook.verify.findings import Unsupported
    from factbook.verify.notes import read_key

    try:
        if vkey is not None:
            read_key(vkey)
    except Unsupported as error:
        raise UsageError(f"--vkey: {error}.") from error


def _tell(step: Step) -> None:
    mark = {True: "ok", False: "FAILED", None: "not checked"}[step.held]
    print(f"{mark:12}{step.name:28}{step.seconds * 1000:8.0f} ms  {step.said}".rstrip(), flush=True)


class Check:
    """One walk through the service; the fact that it writes is deleted whatever happens."""

    def __init__(self, api: Api, vkey: str | None) -> None:
        self._api = api
        self._vkey = vkey
        self._word = f"check{secrets.token_hex(8)}"
        self._fact: dict[str, Any] = {}
        self._deleted = False

    def steps(self) -> Iterator[Step]:
        """Each step as it ends; none after the first that fails."""
        try:
            for name, step in (
                ("who the token is", self._who),
                ("write a fact", self._write),
                ("read it back", self._read),
                ("find it", self._find),
                ("append to the log", self._append),
                ("verify the log offline", self._verify),
                ("delete it, and it is gone", self._delete),
            ):
                done = _timed(name, step)
                yield done
                if done.held is False:
                    return
        finally:
            self._clean_up()

    def _who(self) -> str:
        who = self._api.get("v1", "identity", "whoami")
        if not who.get("tenantAdmin"):
            raise WrongAnswer("the token is no administrator's, so it may not write for the whole tenant")
        return f"{who['actor']} of {who['tenantId']}"

    def _write(self) -> str:
        content = {"text": f"The service was checked: {self._word}."}
        body = {"type": TYPE, "content": content, "retention": {"keepDays": 1}}
        self._fact = self._api.post(body, "v1", "memory", "facts")
        return str(self._fact["id"])

    def _read(self) -> str:
        found = self._api.get("v1", "memory", "facts", self._fact["id"])
        if found["content"] != self._fact["content"] or found["version"] != 1:
            raise WrongAnswer("what was read is not what was written")
        return ""

    def _find(self) -> str:
        asked = {
            "mode": "keyword",
            "query": self._word,
            "type": TYPE,
            "after": [{"id": self._fact["id"], "version": 1}],
        }
        until = time.monotonic() + FOUND_WITHIN
        while True:
            try:
                found = self._api.post(asked, "v1", "memory", "retrieve")["results"]
            except ApiError as error:
                if (
                    error.code in ("search-unavailable", "memory-operation-unsupported")
                    and not self._searches()
                ):
                    raise NotHere("this service has no search by words") from error
                raise
            if [hit["fact"]["id"] for hit in found] == [self._fact["id"]]:
                return ""
            if time.monotonic() > until:
                raise WrongAnswer(f"a fact is not found {FOUND_WITHIN:.0f} seconds after it was written")
            time.sleep(0.5)

    def _searches(self) -> bool:
        return "keyword" in json.dumps(self._api.get("v1", "memory", "status").get("search", ""))

    def _append(self) -> str:
        entry = {"kind": "event-emitted", "payload": {"checked": self._word}}
        (made,) = self._api.post({"entries": [entry]}, "v1", "memory", "runs", RUN, "log")["entries"]
        return str(made["id"])

    def _verify(self) -> str:
        from factbook.verify.judges import verify_run
        from factbook.verify.notes import read_key
        from factbook_cli.export import Export

        made = self._api.post({"runIds": [RUN]}, "v1", "memory", "checkpoints")
        key = read_key(self._vkey or made["vkey"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.jsonl"
            with path.open("wb") as file:
                Export(self._api, file, lambda _: None).run(RUN, [])
            verdict = verify_run(path, key)
        if not verdict.holds or verdict.newer:
            raise WrongAnswer(verdict.why or "the newest entry is in no checkpoint")
        return f"{verdict.entries:,} entries"

    def _delete(self) -> str:
        self._api.delete("v1", "memory", "facts", self._fact["id"])
        self._deleted = True
        try:
            self._api.get("v1", "memory", "facts", self._fact["id"])
        except ApiError as error:
            if error.code == "fact-not-found":
                return ""
            raise
        raise WrongAnswer("a deleted fact is still answered")

    def _clean_up(self) -> None:
        if not self._fact or self._deleted:
            return
        try:
            self._api.delete("v1", "memory", "facts", self._fact["id"])
        except CommandError as error:
            print(f"factbook check: {self._fact['id']} stays until tomorrow: {error}", file=sys.stderr)


def _timed(name: str, step: Callable[[], str]) -> Step:
    began = time.monotonic()
    held: bool | None = True
    try:
        with expected(name):
            said = step()
    except NotHere as missing:
        held, said = None, str(missing)
    except CommandError as error:
        held, said = False, str(error)
    return Step(name, held, time.monotonic() - began, said)
