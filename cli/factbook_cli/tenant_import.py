"""Import the file of an exported tenant into an empty tenant of the same id, in another service.

The whole file is checked first, and nothing is written when a line of it is damaged. The same command goes on where it was
interrupted; run again it changes nothing. At the end the ledger of this tenant is replayed, so that nothing comes back
that was erased here meanwhile; replay the ledger of the former service as well: factbook erasure replay.
exit codes: 0 imported, 1 refused or damaged, or something else stood in the place of a record
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factbook_cli.answers import expected, number
from factbook_cli.api import Api, add_service_options, connect
from factbook_cli.bars import Bar
from factbook_cli.errors import CommandError, UsageError
from factbook_cli.tenant_file import BESIDE, Contents, FileLines, Line, chunk_of
from factbook_cli.transfers import Transfers

IMPORT = ("v1", "memory", "import")
BODY_BYTES = 3_000_000
AT_ONCE = 2_000
"""Records of one request, which the service writes within its time."""
TRIES = 20
"""Requests in a row that may get nowhere."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="PATH", help="what `factbook export` wrote")
    parser.add_argument(
        "--dry-run", action="store_true", help="check the file, say what it would do, and write nothing"
    )
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="KEYS",
        help="data keys of the log, as `factbook export --rewrap-for` wrote them",
    )
    parser.add_argument(
        "--unwrap-with",
        type=Path,
        metavar="KEY",
        help="with --keys: the private RSA key (PEM) they were encrypted for",
    )
    parser.add_argument(
        "--no-replay", action="store_true", help="do not replay this tenant's ledger at the end"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--json", action="store_true", help="what became of the records, as JSON on stdout")
    add_service_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from factbook_cli.tenant_check import check_file

    if (arguments.keys is None) != (arguments.unwrap_with is None):
        raise UsageError("--keys and --unwrap-with go together.")
    api = connect(arguments)
    checking = Bar("checked", _size(arguments.file), quiet=arguments.quiet)
    contents = check_file(arguments.file, checking)
    checking.end()
    keys = [] if arguments.keys is None else read_keys(arguments.keys, arguments.unwrap_with, contents)
    importing = TenantImport(api, arguments.file, contents, dry_run=arguments.dry_run, quiet=arguments.quiet)
    importing.run(keys)
    if not arguments.dry_run and not arguments.no_replay:
        _replay_own_ledger(api, quiet=arguments.quiet)
    others = sum(
        count for outcomes in importing.counts.values() for name, count in outcomes.items() if name == "other"
    )
    if arguments.json:
        print(
            json.dumps(
                {"records": contents.records, "uploaded": importing.uploaded, "counts": importing.counts}
            )
        )
    else:
        print(_told(importing, dry_run=arguments.dry_run))
    return int(bool(others))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _told(done: "TenantImport", *, dry_run: bool) -> str:
    names = {
        "written": "would be written" if dry_run else "written",
        "present": "there already",
        "other": "left, as something else is there",
        "missing": "not there any more",
        "gone": "of which the export had no payload",
    }
    lines = [
        f"{kind}: " + ", ".join(f"{count:,} {names.get(name, name)}" for name, count in outcomes.items())
        for kind, outcomes in done.counts.items()
    ]
    if done.uploaded:
        lines.append(f"payloads uploaded: {done.uploaded:,}")
    return "\n".join(lines) or "nothing"


def read_keys(path: Path, private: Path, contents: Contents) -> list[bytes]:
    """Lines of data keys, decrypted. Raises Damaged, UsageError."""
    from factbook_cli.tenant_keys import unwrapped

    lines = list(FileLines(path))
    header = lines[0].value if lines and lines[0].kind == "header" else None
    if not isinstance(header, dict) or header.get("tenant") != contents.header.tenant:
        raise UsageError(f"{path} has no data keys of this tenant.")
    return unwrapped(path, lines, private, contents.header.tenant)


def _replay_own_ledger(api: Api, *, quiet: bool) -> None:
    """What was erased here while the file was imported, or before, is looked for once more."""
    from factbook_cli.export import pages
    from factbook_cli.replaying import ERASURES, Replaying

    entries = list(pages(api, *ERASURES, "export", limit=100))
    if entries:
        Replaying(api, quiet=quiet).replay(entries)


class TenantImport:
    """One file on its way into the service, in requests that may each be sent twice."""

    def __init__(self, api: Api, path: Path, contents: Contents, *, dry_run: bool, quiet: bool) -> None:
        self._api = api
        self._path = path
        self._contents = contents
        self._asked: dict[str, Any] = {"file": contents.digest, "dryRun": "true" if dry_run else None}
        self._bar = Bar("imported", contents.records, quiet=quiet)
        self._transfers = Transfers()
        self.counts: dict[str, Counter[str]] = {}
        self.uploaded = 0

    def run(self, keys: list[bytes]) -> None:
        """Raises CommandError."""
        at = self._post([])["at"]
        self._send_keys(keys)
        batch: list[Line] = []
        weight = 0
        for line in FileLines(self._path):
            if line.kind in BESIDE or line.at < at:
                continue
            if batch and (len(batch) == AT_ONCE or weight + len(line.raw) > BODY_BYTES):
                self._send(batch)
                batch, weight = [], 0
            batch.append(line)
            weight += len(line.raw) + 1
        self._send(batch, last=True)
        self._bar.end()

    def _send_keys(self, keys: list[bytes]) -> None:
        """They are of no file that the service keeps the place of, so their places are their own."""
        at = 0
        while at < len(keys):
            said = self._post(keys[at : at + AT_ONCE], at=at)
            with expected("an import of keys"):
                following = number(said["at"], "the place")
            if following <= at:
                raise CommandError("The import of keys gets no further. Run the command again.")
            at = following

    def _send(self, batch: list[Line], *, last: bool = False) -> None:
        """A batch, as often as it takes: a request does what it has time for, and asks for payloads that it lacks."""
        first, tries = batch[0].at if batch else self._contents.records, 0
        while True:
            said = self._post([line.raw for line in batch], at=first, last="true" if last else None)
            with expected("an import"):
                following, uploads = number(said["at"], "the place"), said["uploads"]
            for upload in uploads:
                self._upload(batch[upload["at"] - first], upload)
            batch = batch[following - first :]
            tries = tries + 1 if following == first and not uploads else 0
            first = following
            self._bar(first, f"{first:,} of {self._contents.records:,} records")
            if not batch and (not last or said["done"]):
                return
            if tries == TRIES:
                raise CommandError("The import gets no further. Run the command again to go on with it.")

    def _post(self, lines: list[bytes], **where: Any) -> Any:
        said = self._api.post_lines([self._contents.header_line, *lines], *IMPORT, **self._asked, **where)
        with expected("an import"):
            for kind, outcomes in said["counts"].items():
                self.counts.setdefault(kind, Counter()).update(outcomes)
        return said

    def _upload(self, line: Line, upload: Any) -> None:
        self._transfers.upload(str(upload["url"]), upload["headers"], self._chunks(line))
        self.uploaded += 1

    def _chunks(self, blob: Line) -> Iterator[bytes]:
        """The bytes that stand behind a payload's line."""
        for line in FileLines(self._path, blob.sum, blob.at, blob.number).from_place(blob.end):
            if line.kind != "chunk":
                return
            yield chunk_of(self._path, line)
