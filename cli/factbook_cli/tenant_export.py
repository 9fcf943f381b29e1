"""Export a tenant into one file: every revision, payload and log entry as stored, and nothing secret.

The same command goes on where it was interrupted. Payloads of the log that are sealed stay so; --rewrap-for writes their
keys, encrypted for an RSA key of yours, to a file of their own.
"""

import argparse
import base64
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from factbook_cli.answers import cursors, expected
from factbook_cli.api import Api, add_service_options, connect
from factbook_cli.bars import Bar
from factbook_cli.errors import CommandError, UsageError
from factbook_cli.files import check_place
from factbook_cli.tenant_file import CHUNK_BYTES, FileLines, Summed
from factbook_cli.transfers import Transfers

EXPORT = ("v1", "memory", "export")
PLURALS = {"policy": "policy", "leaf": "leaves", "entry": "entries", "wrapped": "wrapped"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="PATH", help="the file it goes to")
    parser.add_argument("--as-is", action="store_true", help="make no checkpoint first")
    parser.add_argument(
        "--rewrap-for",
        type=Path,
        metavar="KEY",
        help="a public RSA key (PEM): write the log's data keys, encrypted for it, to PATH.keys",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--json", action="store_true", help="what was written, as JSON on stdout")
    add_service_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from factbook_cli.log import make_checkpoint

    api = connect(arguments)
    check_place(arguments.out)
    keys = arguments.out.with_name(arguments.out.name + ".keys")
    if arguments.rewrap_for is not None:
        check_place(keys)
    public = None if arguments.rewrap_for is None else public_key(arguments.rewrap_for)
    if not arguments.as_is:
        make_checkpoint(api, [])
    counts = TenantExport(api, arguments.out, quiet=arguments.quiet).run()
    written: dict[str, Any] = {"out": str(arguments.out), "counts": counts}
    said = f"{arguments.out}: {_told(counts)}"
    if public is not None:
        wrapped = TenantExport(api, keys, quiet=arguments.quiet, rewrapFor=public).run(mode=0o600)
        written |= {"keys": str(keys), "wrapped": wrapped.get("wrapped", 0)}
        said += f"\n{keys}: {wrapped.get('wrapped', 0):,} data keys. Keep it from whoever may not read the log, and replay later erasures on it."
    print(json.dumps(written) if arguments.json else said)
    return 0


def public_key(path: Path) -> str:
    """The key's DER in base64url. Raises UsageError for a file without one."""
    lines = [line.strip() for line in _text(path).splitlines()]
    try:
        begin, end = lines.index("-----BEGIN PUBLIC KEY-----"), lines.index("-----END PUBLIC KEY-----")
        der = base64.b64decode("".join(lines[begin + 1 : end]), validate=True)
    except ValueError as error:
        raise UsageError(f"--rewrap-for {path} holds no public key in PEM.") from error
    return base64.urlsafe_b64encode(der).decode().rstrip("=")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"--rewrap-for {path} cannot be read.") from error


def _told(counts: dict[str, int]) -> str:
    """Of which kinds a file has how many lines; what is one of a kind by its nature stays one."""
    return (
        ", ".join(f"{count:,} {PLURALS.get(kind, f'{kind}s')}" for kind, count in counts.items()) or "nothing"
    )


class TenantExport:
    """One file in the making. Beside it, until it is whole, stands what the next try needs to go on."""

    def __init__(self, api: Api, out: Path, *, quiet: bool = False, **query: str) -> None:
        self._api = api
        self._out = out.resolve()
        self._part = self._out.with_name(self._out.name + ".part")
        self._state = self._out.with_name(self._out.name + ".part.json")
        self._query = query
        self._bar = Bar("exported", quiet=quiet)
        self._transfers = Transfers()
        self._counts: Counter[str] = Counter()
        self._blobs: tuple[str, set[str]] = ("", set())
        """A fact, and the payloads of it that are written."""

    def run(self, mode: int = 0o666) -> dict[str, int]:
        """How many lines of which kind were written. Raises CommandError."""
        try:
            return self._run(mode)
        except OSError as error:
            raise CommandError(f"{self._out} cannot be written: {error.strerror or error}.") from error
        finally:
            if not self._state.exists():  # of a try that came to no page nothing is gone on with
                self._part.unlink(missing_ok=True)

    def _run(self, mode: int) -> dict[str, int]:
        begun = self._begun()
        self._part.touch(mode)  # which it has from the beginning
        with self._part.open("r+b") as file:
            file.truncate(begun["bytes"])
            lines = self._resumed(file, begun["bytes"])
            for page in cursors(self._pages_behind(begun["cursor"])):
                for line in page["lines"]:
                    self._line(lines, line)
                self._keep(file, page.get("nextCursor"))
                self._bar(lines.lines, f"{lines.lines:,} lines")
            counts = dict(self._counts)
            lines.write(_json({"end": {"lines": lines.lines + 1, "counts": counts}}))
            file.flush()
            os.fsync(file.fileno())
        self._part.replace(self._out)
        self._state.unlink(missing_ok=True)
        self._bar.end()
        return counts

    def _begun(self) -> Any:
        """Where an earlier try ended; the beginning without one, or when that was another export."""
        try:
            begun = json.loads(self._state.read_text("utf-8"))
            same = (begun["query"], begun["url"]) == (self._query, self._api.url)
            if same and begun["cursor"] and self._part.stat().st_size >= begun["bytes"]:
                return begun
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return {"bytes": 0, "cursor": None}

    def _resumed(self, file: IO[bytes], size: int) -> Summed:
        """What is there already makes the sums and the counts that go on. Raises Damaged."""
        written, number = FileLines(self._part), 0
        for line in written if size else ():
            number = line.number
            self._meet(line.kind, line.value)
        file.seek(size)
        return Summed(file, written.sum, number)

    def _pages_behind(self, first: str | None) -> Callable[[str | None], Any]:
        def page_of(cursor: str | None) -> Any:
            lines = self._api.lines(*EXPORT, cursor=cursor or first, **self._query)
            with expected("an export"):
                page = json.loads(lines.pop())["page"]
                return {**page, "lines": lines}

        return page_of

    def _line(self, lines: Summed, line: bytes) -> None:
        with expected("a line of an export"):
            ((kind, value),) = json.loads(line).items()
            url = value.pop("url", None) if kind == "blob" else None
            if not self._meet(kind, value):
                return
            lines.write(_json({kind: value}) if url else line)
        if url is not None:
            for data in self._transfers.download(str(url), CHUNK_BYTES):
                chunk = base64.b64encode(data).decode()
                self._meet("chunk", chunk)
                lines.write(_json({"chunk": chunk}))

    def _meet(self, kind: str, value: Any) -> bool:
        """Whether the line is to be written, which is then counted: a payload that several revisions name is there once."""
        if kind == "blob":
            fact, names = self._blobs
            if fact != value["factId"]:
                self._blobs = fact, names = value["factId"], set()
            if value["name"] in names:
                return False
            names.add(value["name"])
        if kind != "header":
            self._counts[kind] += 1
        return True

    def _keep(self, file: IO[bytes], cursor: str | None) -> None:
        """The file first: what is said of it is then true."""
        file.flush()
        os.fsync(file.fileno())
        state = {"query": self._query, "url": self._api.url, "bytes": file.tell(), "cursor": cursor}
        beside = self._state.with_name(self._state.name + ".new")
        beside.write_text(json.dumps(state), "utf-8")
        beside.replace(self._state)


def _json(line: Any) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
