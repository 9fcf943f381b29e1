"""Write the log down: what the store holds, the leaves that commit to it and the notes that sign for them.

Nothing is judged here. What does not hold goes into the file as it is, for the verifier to find. docs/log.md describes
the lines.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from factbook.verify.notes import note_size
from factbook_cli.answers import UnexpectedAnswer, cursors, expected, number
from factbook_cli.api import Api, ApiError

EXPORT_FORMAT = "factbook-log-export-1"
OLDER_NOTES = 100
"""Older checkpoints that one run's export is proven to extend, besides those asked for."""

LOG = ("v1", "memory")
Tell = Callable[[int], None]


@dataclass
class Exported:
    entries: int = 0
    leaves: int = 0
    runs: int = 0


class Export:
    """One file in the making; `tell` hears now and then how many entries are written."""

    def __init__(self, api: Api, file: IO[bytes], tell: Tell) -> None:
        self.api = api
        self.done = Exported()
        self._file = file
        self._tell = tell
        self._lines = 0

    def run(self, run: str, pinned: list[str]) -> Exported:
        """One run, with proofs that lead to the newest checkpoint."""
        with expected("the export of a run"):
            newest = self._newest()
            self._header(kind="run", run=run)
            if newest is not None:
                self._write({"checkpoint": newest["note"]})
                self._older(run, newest, pinned)
            self._run(run, number(newest["size"], "the size") if newest else None, proofs=True)
            return self._end()

    def everything(self) -> Exported:
        """The whole tree in order with every published note, then every run."""
        with expected("the export of the log"):
            return self._everything()

    def _everything(self) -> Exported:
        newest = self._newest()
        self._header(kind="all")
        runs: dict[str, None] = {}
        if newest is not None:
            size = int(newest["size"])
            published = pages(self.api, *LOG, "checkpoints", limit=100)
            notes = {int(note["size"]): str(note["note"]) for note in published} | {size: newest["note"]}
            for leaf in self._leaves(size):
                runs.setdefault(leaf["runId"])
                self._write(leaf_line(leaf))
                self.done.leaves += 1
                if leaf["index"] + 1 in notes:
                    self._write({"checkpoint": notes[leaf["index"] + 1]})
            if size > self.done.leaves:  # leaves are gone: the note says that there were more
                self._write({"checkpoint": newest["note"]})
            for run in runs:
                self._run(run, size, proofs=False)
        return self._end()

    def _newest(self) -> Any:
        try:
            return self.api.get(*LOG, "checkpoints", "latest")
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def _leaves(self, size: int) -> Iterator[Any]:
        start: int | None = 0
        while start is not None:
            page = self.api.get(*LOG, "checkpoints", "leaves", start=start, checkpointSize=size)
            yield from page["data"]
            following = page.get("next")
            if following is not None and number(following, "the next leaf") <= start:
                raise UnexpectedAnswer("the leaves do not go on")
            start = following

    def _older(self, run: str, newest: Any, pinned: list[str]) -> None:
        written = {newest["note"]}
        page = self.api.get(*LOG, "checkpoints", checkpointSize=newest["size"], limit=OLDER_NOTES)
        for note in page["data"]:
            if note["note"] not in written:
                written.add(note["note"])
                self._write({"older": note["note"], "proof": note["consistency"]})
        for text in pinned:
            size = note_size(text)
            if text in written or size > newest["size"]:
                continue
            proof = self.api.get(*LOG, "runs", run, "log", "proof", sequence=0, olderSize=size)
            self._write({"older": text, "proof": proof["consistency"]["proof"]})

    def _run(self, run: str, size: int | None, *, proofs: bool) -> None:
        self._write({"run": run})
        self.done.runs += 1
        asked = {"form": "stored", "limit": 100, "checkpointSize": size if proofs else None}
        try:
            for page in raw_pages(self.api, *LOG, "runs", run, "log", **asked):
                self._page(page, size, proofs=proofs)
        except ApiError as error:
            if error.status != 404 or proofs:
                raise

    def _page(self, page: Any, size: int | None, *, proofs: bool) -> None:
        """A part of a run: each entry, behind it the leaf that commits to it; last the leaves whose entry is gone."""
        leaves = {
            leaf["sequence"]: leaf for leaf in page["leaves"] if size is not None and leaf["index"] < size
        }
        for entry in page["data"]:
            self._raw(entry_line(entry))
            self.done.entries += 1
            leaf = leaves.pop(entry["sequence"], None)
            if leaf is not None:
                self._leaf(leaf, proofs=proofs)
        for sequence in sorted(leaves):
            self._leaf(leaves[sequence], proofs=proofs)
        self._tell(self.done.entries)

    def _leaf(self, leaf: Any, *, proofs: bool) -> None:
        self._write(leaf_line(leaf) | ({"proof": leaf["proof"]} if proofs else {}))
        if proofs:
            self.done.leaves += 1

    def _header(self, **what: str) -> None:
        tenant = self.api.get("v1", "identity", "whoami")["tenantId"]
        self._write({"format": EXPORT_FORMAT, **what, "tenant": tenant})

    def _end(self) -> Exported:
        counts = {"entries": self.done.entries, "leaves": self.done.leaves, "lines": self._lines + 1}
        self._write({"end": counts})
        return self.done

    def _write(self, line: Any) -> None:
        self._raw(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode())

    def _raw(self, line: bytes) -> None:
        self._file.write(line + b"\n")
        self._lines += 1


def entry_line(entry: Any) -> bytes:
    """An entry's line: the stored text stands in it byte for byte, unless it is no single line of text."""
    frame = {"h": entry["entryHash"], "f": entry["format"]}
    if entry.get("causedByLogId") is not None:
        frame["cause"] = entry["causedByLogId"]
    head = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
    text = str(entry["canonical"])
    if "\n" in text or "\r" in text:
        return head[:-1] + b',"broken":' + json.dumps(text).encode() + b"}"
    return head[:-1] + b',"entry":' + text.encode() + b"}"


def leaf_line(leaf: Any) -> Any:
    return {
        "leaf": leaf["index"],
        "run": leaf["runId"],
        "seq": leaf["sequence"],
        "head": leaf["head"],
        "salt": leaf["salt"],
    }


def raw_pages(api: Api, *path: str, **query: Any) -> Iterator[Any]:
    return cursors(lambda cursor: api.get(*path, **query, cursor=cursor))


def pages(api: Api, *path: str, **query: Any) -> Iterator[Any]:
    for page in raw_pages(api, *path, **query):
        yield from page["data"]
