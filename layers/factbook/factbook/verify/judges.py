"""Judge an export with one public key: one run's, or a whole tenant's log with every leaf and every root."""

import sys
from collections.abc import Iterator
from pathlib import Path

from . import processes
from .apart import BLOCK, NotJoined, join, joins_from_here
from .exports import Export
from .findings import Finding
from .lines import Progress, read_parts, skip_begun_line
from .notes import VerifierKey
from .one_run import RunExport
from .verdict import Verdict
from .whole_log import WholeExport

WORTH_PROCESSES = 8 * BLOCK
"""Bytes of a file from which on it is judged by several processes: they take a moment to start."""
_TO_THE_END = sys.maxsize


def verify_run(
    path: Path,
    key: VerifierKey,
    pinned: str | None = None,
    progress: Progress | None = None,
    at_once: int | None = None,
) -> Verdict:
    """Judge the export of one run; `pinned` is a note kept from earlier, `at_once` how many processes (each processor's one)."""
    return _judged(RunExport(key, pinned), path, progress, at_once)


def audit(
    path: Path,
    key: VerifierKey,
    pinned: str | None = None,
    progress: Progress | None = None,
    at_once: int | None = None,
) -> Verdict:
    """Judge the export of a whole log; the tree at the size of `pinned` must have that note's root."""
    return _judged(WholeExport(key, pinned, lambda: _lines(path)), path, progress, at_once)


def _judged(export: Export, path: Path, progress: Progress | None, at_once: int | None) -> Verdict:
    verdict = export.verdict
    try:
        _read(export, path, progress, processes.available() if at_once is None else at_once)
        export.close()
    except Finding as finding:
        verdict.code, verdict.why = finding.code, finding.why
        verdict.run, verdict.sequence = finding.run, finding.sequence
        verdict.line = export.number or None
    return verdict


def _read(export: Export, path: Path, progress: Progress | None, at_once: int) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        for lines in read_parts(file, _TO_THE_END):
            export.take(lines)
            done = file.tell()
            if progress is not None:
                progress(done, size)
            if at_once > 1 and size - done >= WORTH_PROCESSES and joins_from_here(export):
                break
        else:
            return
    _read_in_blocks(export, path, done, progress, at_once)


def _read_in_blocks(export: Export, path: Path, start: int, progress: Progress | None, at_once: int) -> None:
    """The rest of a file, its blocks judged by processes of their own and joined here in order."""
    size = path.stat().st_size
    spans = [(at, min(at + BLOCK, size)) for at in range(start, size, BLOCK)]
    for (begin, end), found in processes.judged(path, export, spans, at_once):
        passed = export.passed
        try:
            if found is None:
                raise NotJoined
            for each in found:
                join(export, each)
        except NotJoined:
            _take_again(export, path, begin, end, export.passed - passed)
        if progress is not None:
            progress(end, size)


def _take_again(export: Export, path: Path, begin: int, end: int, judged: int) -> None:
    """Judge the lines of a block here, behind those that are judged already."""
    with path.open("rb") as file:
        skip_begun_line(file, begin, end)
        for lines in read_parts(file, end):
            export.take(lines[judged:])
            judged = max(0, judged - len(lines))


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for lines in read_parts(file, _TO_THE_END):
            yield from lines
