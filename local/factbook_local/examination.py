"""What `factbook doctor` says of a data folder and a port. Nothing is changed."""

import contextlib
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import urllib3
from urllib3.exceptions import HTTPError

from factbook_local.folder import FolderError, check_foreign, check_format, read_secret
from factbook_local.signer import read_signing_key
from factbook_local.sockets import listen

LEAST_FREE_MB = 500


def folder(path: Path) -> tuple[list[str], str]:
    """What is wrong with a data folder, each with what to do; and what it is."""
    if not path.exists():
        may = path.absolute().parent.is_dir() and os.access(path.absolute().parent, os.W_OK | os.X_OK)
        return [] if may else [
            f"{path} is not there and cannot be made. Give another --data."
        ], f"{path}: the first start makes it"
    try:
        check_foreign(path)
    except FolderError as error:
        return [str(error)], ""
    holder = _holder(path / "lock")
    used = f"in use by process {holder}" if holder else "not in use"
    return list(_faults(path)), f"{path}: {used}"


def port(number: int) -> tuple[str, str]:
    """What is wrong with a port, empty when nothing is; and who has it."""
    try:
        listen(number).close()
        return "", f"{number} is free"
    except (OSError, OverflowError) as error:
        said = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    with contextlib.suppress(HTTPError):
        answer = urllib3.request("GET", f"http://127.0.0.1:{number}/health", timeout=3, retries=False)
        if answer.status == 200 and b'"ok"' in answer.data:
            return "", f"{number} is that of a Factbook that runs"
    return (
        f"{number} cannot be used: {said}. Stop what holds it, or give `factbook local` another --port.",
        "",
    )


def _faults(path: Path) -> Iterator[str]:
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield f"{path} may not be read and written. Make it yours."
        return
    checks = (
        lambda: check_format(path),
        lambda: read_secret(path / "secret") if (path / "secret").exists() else None,
        lambda: (
            read_signing_key(path / "checkpoint-key.pem", "key")
            if (path / "checkpoint-key.pem").exists()
            else None
        ),
    )
    for check in checks:
        try:
            check()
        except FolderError as error:
            yield str(error)
    for name, remedy in (
        ("state.sqlite", "Put it back from a copy, or start with --reset, which empties the folder."),
        ("search/index.sqlite", "Remove it: the next start makes it again."),
    ):
        if (path / name).exists() and (said := _no_database(path / name)):
            yield f"{path / name} is damaged ({said}). {remedy}"
    open_to_others = [each.name for each in (path, *path.glob("*")) if each.stat().st_mode & 0o077]
    if open_to_others:
        yield f"others may read {', '.join(sorted(open_to_others))}. The next start takes that right away."
    free = shutil.disk_usage(path).free // 1_000_000
    if free < LEAST_FREE_MB:
        yield f"{path} has {free} MB of room. Make some, or move it: a save that finds none is tried again, and nothing more is kept."


def _no_database(file: Path) -> str:
    """What SQLite finds wrong, at the first fault; a file that is in use is read beside its user."""
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if said == "ok" else str(said)


def _holder(lock: Path) -> str:
    """The process that holds the folder; empty when none does."""
    try:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(32).decode().strip()
    except OSError:
        pass
    return ""
