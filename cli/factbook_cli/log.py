"""Export, verify and audit the log, and make or keep a checkpoint.

`verify` and `audit` need no network: they judge an exported file with one public key.
exit codes of both: 0 holds, 1 tampered, 2 incomplete, 3 unsupported
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from factbook_cli.answers import expected, number, shown
from factbook_cli.api import Api, ApiError, add_service_options, connect
from factbook_cli.errors import UsageError
from factbook_cli.files import check_place, written


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from factbook.verify import command

    commands = parser.add_subparsers(dest="command", required=True, metavar="export|verify|audit|checkpoint")
    export = commands.add_parser(
        "export", help="write the log down", description="Write the log down, to verify anywhere."
    )
    what = export.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", help="one run, with its proofs")
    what.add_argument(
        "--all", action="store_true", help="every run, every leaf and every checkpoint (administrators)"
    )
    export.add_argument("--out", type=Path, required=True, metavar="PATH", help="the file it goes to")
    export.add_argument(
        "--checkpoint",
        type=Path,
        action="append",
        default=[],
        metavar="NOTE",
        help="with --run: prove that the log extends a checkpoint you kept",
    )
    export.add_argument("--as-is", action="store_true", help="make no checkpoint first")
    export.add_argument("--quiet", action="store_true", help="no progress on stderr")
    export.add_argument("--json", action="store_true", help="what was written, as JSON on stdout")
    add_service_options(export)
    verify = commands.add_parser("verify", help="judge the export of one run")
    command.add_arguments(verify, "--checkpoint")
    audit = commands.add_parser("audit", help="judge the export of a whole log")
    command.add_arguments(audit, "--pinned")
    checkpoint = commands.add_parser(
        "checkpoint",
        help="make a checkpoint now and keep its note",
        description="Make a checkpoint now; keep the note where the service cannot reach it.",
    )
    checkpoint.add_argument("--latest", action="store_true", help="make none: take the newest there is")
    checkpoint.add_argument(
        "--out", type=Path, metavar="PATH", help="where to keep the note; otherwise it is printed"
    )
    checkpoint.add_argument(
        "--json", action="store_true", help="size, note and verifier key as JSON on stdout"
    )
    add_service_options(checkpoint)


def run(arguments: argparse.Namespace) -> int:
    from factbook.verify import command, judges

    if arguments.command == "verify":
        return command.judge_file(judges.verify_run, arguments)
    if arguments.command == "audit":
        return command.judge_file(judges.audit, arguments)
    return _export(arguments) if arguments.command == "export" else _checkpoint(arguments)


def _export(arguments: argparse.Namespace) -> int:
    from factbook_cli.export import Export

    if arguments.all and arguments.checkpoint:
        raise UsageError(
            "--checkpoint goes with --run; hold a whole log to a checkpoint with `factbook log audit --pinned NOTE`."
        )
    api = connect(arguments)
    check_place(arguments.out)
    pinned = [_note(path) for path in arguments.checkpoint]
    if not arguments.as_is:
        make_checkpoint(api, [] if arguments.all else [arguments.run])
    tell = _progress(quiet=arguments.quiet)
    with written(arguments.out) as file:
        export = Export(api, file, tell)
        done = export.everything() if arguments.all else export.run(arguments.run, pinned)
    if arguments.json:
        print(json.dumps({"out": str(arguments.out), **vars(done)}))
    else:
        print(f"{arguments.out}: {done.entries:,} entries of {done.runs:,} runs, {done.leaves:,} leaves")
    return 0


def _note(path: Path) -> str:
    """A checkpoint that was kept. Raises UsageError for another kind of file."""
    from factbook.verify.findings import Tampered
    from factbook.verify.notes import note_size

    try:
        note = path.read_text("utf-8")
        note_size(note)
    except OSError as error:
        raise UsageError(f"--checkpoint {path} cannot be read: {error.strerror}.") from error
    except (ValueError, Tampered) as error:
        raise UsageError(
            f"--checkpoint {path} holds no checkpoint. Give a note that `factbook log checkpoint --out` kept."
        ) from error
    return note


CHECKPOINTS_AT_MOST = 20
"""Made for an export: a tenant with very many runs that grew takes several, of 20 seconds each."""


WRONG_FOR_ALL = (0, 400, 401, 405, 501)
"""No answer, a bad request or token, another server: what ends the making of a checkpoint ends the export too, and is said once."""


def make_checkpoint(api: Api, runs: list[str]) -> None:
    """So that the newest entries are signed for, too. Who may not make one exports what is signed already."""
    try:
        for _ in range(CHECKPOINTS_AT_MOST):
            made = api.post({"runIds": runs}, "v1", "memory", "checkpoints")
            with expected("a checkpoint"):
                more = made.get("more")
            if not more or runs:
                return
    except ApiError as error:
        if error.status in WRONG_FOR_ALL:
            raise
        if error.status not in (403, 404):
            print(f"factbook log export: no new checkpoint: {error}", file=sys.stderr)


def _checkpoint(arguments: argparse.Namespace) -> int:
    api = connect(arguments)
    if arguments.out is not None:
        check_place(arguments.out)
    path = ("v1", "memory", "checkpoints")
    made: Any = api.get(*path, "latest") if arguments.latest else api.post({}, *path)
    with expected("a checkpoint"):
        note, size = str(made["note"]), number(made["size"], "the size")
        kept = note.encode()
    if arguments.out is not None:
        with written(arguments.out) as file:
            file.write(kept)
    if arguments.json:
        print(json.dumps(made))
    elif arguments.out is None:
        print(shown(note), end="")
    else:
        print(f"{arguments.out}: checkpoint of {size:,} leaves")
    return 0


def _progress(*, quiet: bool) -> Any:
    terminal = sys.stderr.isatty()
    last = time.monotonic()

    def tell(entries: int) -> None:
        nonlocal last
        if quiet or time.monotonic() - last < (0.2 if terminal else 5):
            return
        last = time.monotonic()
        print(
            f"\r{entries:,} entries" if terminal else f"{entries:,} entries",
            end="" if terminal else "\n",
            file=sys.stderr,
            flush=True,
        )

    return tell
