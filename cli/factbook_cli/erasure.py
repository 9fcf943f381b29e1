"""Erase a person, a conversation or a fact; keep the ledger; replay it after a restore; fetch and verify receipts.

`verify` needs no network: it judges a receipt with one public key.
exit codes of verify: 0 holds, 1 tampered, 2 incomplete, 3 unsupported
exit codes of the others: 0 done, 1 refused, failed or not wholly done, 2 a command line that asks for what cannot be
"""

import argparse
import json
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from factbook_cli.answers import expected, shown
from factbook_cli.api import Api, ApiError, add_service_options, connect
from factbook_cli.errors import CommandError, UsageError
from factbook_cli.files import check_place, written

ERASURES = ("v1", "memory", "erasures")
POLL_SECONDS = 2.0
PAGE = 100
ENDED = ("completed", "failed")
PHASES = {
    "seed": "it comes in force",
    "expand": "all facts of the tenant are looked at",
    "settle": "what was begun before ends, for about a minute",
    "erase": "all facts are looked at again, and what is found is removed",
}
"""What happens meanwhile, for who waits; a phase that is not here is told by its name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="create|status|list|resume|export|replay|receipt|verify"
    )
    _add_create(commands)
    status = _add(commands, "status", "how far an erasure is", "id", wait="until it has ended")
    status.add_argument("--json", action="store_true", help="the record as JSON on stdout")
    listed = _add(commands, "list", "erasures of the tenant, newest first")
    listed.add_argument("--json", action="store_true", help="a record a line, as JSON on stdout")
    resume = _add(
        commands,
        "resume",
        "have an erasure go on now; one that failed begins again",
        "id",
        wait="until it has ended",
    )
    resume.add_argument(
        "--force", action="store_true", help="have one that is under way begin its steps again, too"
    )
    export = _add(commands, "export", "write the ledger down, to keep it where no restore reaches")
    export.add_argument("--out", type=Path, required=True, metavar="LEDGER", help="the file it goes to")
    replay = _add(
        commands,
        "replay",
        "erase again what a restore brought back, and wait until that is done; to be run before a restored service serves",
    )
    replay.add_argument("--no-wait", action="store_true", help="end once it is known what was found")
    replay.add_argument("--quiet", action="store_true", help="no progress on stderr")
    replay.add_argument("ledger", type=Path, metavar="LEDGER", help="what `factbook erasure export` wrote")
    replay.add_argument("--json", action="store_true", help="what became of each erasure, as JSON on stdout")
    receipt = _add(commands, "receipt", "fetch the receipt of an erasure", "id", wait="until there is one")
    receipt.add_argument("--out", type=Path, required=True, metavar="RECEIPT", help="the file it goes to")
    verify = commands.add_parser("verify", help="judge a receipt, offline")
    from factbook.verify import command

    command.add_receipt_arguments(verify)


def _add_create(commands: Any) -> None:
    create = _add(commands, "create", "erase a person, a conversation or a fact", wait="until it has ended")
    whom = create.add_mutually_exclusive_group(required=True)
    for kind, help_text in (
        ("participant", "a person that agents talk with"),
        ("external", "a person that facts are about"),
        ("user", "a user"),
        ("conversation", "a conversation, by its thread"),
        ("fact", "one fact"),
    ):
        whom.add_argument(f"--{kind}", metavar="ID", help=help_text)
    create.add_argument("--project", metavar="ID", help="with a person: only what stands in this project")
    create.add_argument(
        "--dry-run", action="store_true", help="count what it would reach, and change nothing"
    )
    create.add_argument("--yes", action="store_true", help="do not ask whether to erase")


def _add(
    commands: Any, name: str, summary: str, *arguments: str, wait: str | None = None
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=f"{summary}.")
    for each in arguments:
        command.add_argument(each, metavar=each.upper(), help="the erasure's id")
    if wait is not None:
        command.add_argument("--wait", action="store_true", help=f"wait {wait}; progress goes to stderr")
        command.add_argument("--quiet", action="store_true", help="no progress on stderr")
    add_service_options(command)
    return command


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "verify":
        from factbook.verify import command

        return command.judge_receipt_file(arguments)
    perform: dict[str, Callable[[Api, argparse.Namespace], int]] = {
        "create": _create,
        "status": _status,
        "list": _list,
        "resume": _resume,
        "export": _export,
        "replay": _replay,
        "receipt": _receipt,
    }
    return perform[arguments.command](connect(arguments), arguments)


def _create(api: Api, arguments: argparse.Namespace) -> int:
    selector = _selector(arguments)
    if arguments.dry_run or not arguments.yes:
        counted = api.post(selector, *ERASURES, dryRun="true")
        with expected("a dry run"):
            print(_told(counted["counts"]) or "nothing is there")
            if counted["heldFactIds"]:
                print(f"under legal hold: {', '.join(map(shown, counted['heldFactIds']))}")
            if not counted["complete"]:
                print("and maybe more: the tenant is larger than one request walks")
        if arguments.dry_run:
            return 0
        _confirm()
    return _say(api, api.post(selector, *ERASURES, key=f"erase-{uuid.uuid4()}"), arguments)


def _selector(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.fact is not None:
        selector: dict[str, Any] = {"factId": arguments.fact}
    elif arguments.conversation is not None:
        selector = {"conversationId": arguments.conversation}
    else:
        kinds = ("participant", "external", "user")
        kind = next(kind for kind in kinds if getattr(arguments, kind) is not None)
        selector = {"subject": {"kind": kind, "id": getattr(arguments, kind)}}
    if arguments.project is None:
        return selector
    if "subject" not in selector:
        raise UsageError("--project goes with a person.")
    return selector | {"projectId": arguments.project}


def _confirm() -> None:
    """Raises CommandError unless a person says yes: what is erased does not come back."""
    if not sys.stdin.isatty():
        raise UsageError("Say --yes: nobody can be asked here, and what is erased does not come back.")
    print("Erase this for good? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("Nothing was erased.")


def _status(api: Api, arguments: argparse.Namespace) -> int:
    return _say(api, api.get(*ERASURES, arguments.id), arguments)


def _resume(api: Api, arguments: argparse.Namespace) -> int:
    body = {"force": True} if arguments.force else {}
    return _say(api, api.post(body, *ERASURES, arguments.id, "resume"), arguments)


def _say(api: Api, record: Any, arguments: argparse.Namespace) -> int:
    """Print a record, once it has ended where that is waited for; 1 for a failed one."""
    with expected("an erasure"):
        if arguments.wait:
            record = _ended(api, str(record["id"]), quiet=arguments.quiet)
        failed = record["status"] == "failed"
        if getattr(arguments, "json", False):
            print(json.dumps(record))
            return int(failed)
        print(_line(record))
        for warning in record.get("warnings") or ():
            print(f"  {shown(warning['message'] if isinstance(warning, dict) else warning)}")
    return int(failed)


def _line(record: Any) -> str:
    said = f"{record['id']} {record['status']} ({record['selectorKind']}, {record['createdAt']}, phase {record['phase']})"
    if record.get("lastError"):
        said += f": {record['lastError']}"
    counts = _told(record["counts"])
    return shown(f"{said}: {counts}" if counts else said)


def _told(counts: Any) -> str:
    return shown(", ".join(f"{count:,} {name}" for name, count in counts.items() if count))


def _ended(api: Api, erasure: str, *, quiet: bool) -> Any:
    """The record once it has ended, by itself or by a failure."""
    phase = None
    while True:
        record = api.get(*ERASURES, erasure)
        with expected("an erasure"):
            if record["status"] in ENDED:
                return record
            if record["phase"] != phase and not quiet:
                phase = record["phase"]
                print(
                    ": ".join(filter(None, map(shown, (record["id"], phase, PHASES.get(phase, ""))))),
                    file=sys.stderr,
                )
        time.sleep(POLL_SECONDS)


def _list(api: Api, arguments: argparse.Namespace) -> int:
    from factbook_cli.export import pages

    with expected("a list of erasures"):
        for record in pages(api, *ERASURES, limit=PAGE):
            print(json.dumps(record) if arguments.json else _line(record))
    return 0


def _export(api: Api, arguments: argparse.Namespace) -> int:
    from factbook_cli.export import pages

    check_place(arguments.out)
    with expected("the ledger"):
        entries = list(pages(api, *ERASURES, "export", limit=PAGE))
    with written(arguments.out) as file:
        file.write(json.dumps({"erasures": entries}, indent=1).encode() + b"\n")
    print(f"{arguments.out}: {len(entries):,} erasures")
    return 0


def _replay(api: Api, arguments: argparse.Namespace) -> int:
    from factbook_cli.replaying import Replaying

    replaying = Replaying(api, quiet=arguments.quiet)
    return replaying.run(arguments.ledger, wait=not arguments.no_wait, as_json=arguments.json)


def _receipt(api: Api, arguments: argparse.Namespace) -> int:
    check_place(arguments.out)
    told = False
    while True:
        try:
            receipt = api.get(*ERASURES, arguments.id, "receipt")
            break
        except ApiError as error:
            if error.code != "receipt-pending":
                raise
            if not arguments.wait:
                raise CommandError(
                    "There is no receipt yet. Give --wait, or run it again in a minute."
                ) from error
            if not arguments.quiet and not told:
                told = True
                print("There is no receipt yet; it is waited for …", file=sys.stderr)
        time.sleep(POLL_SECONDS)
    with written(arguments.out) as file:
        file.write(json.dumps(receipt, indent=1).encode() + b"\n")
    print(f"{arguments.out}: the receipt of {shown(arguments.id)}")
    return 0
