"""A data folder: one runner at a time, one version of its format."""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

FORMAT = "factbook local data 1"
SECRET_BYTES = 32
_LOCK, _VERSION, _SECRET = "lock", "format", "secret"
_OURS = (
    _SECRET,
    "state.sqlite",
    "state.sqlite-wal",
    "state.sqlite-shm",
    "search",
    "checkpoint-key.pem",
    "ledger-keys.json",
    _VERSION,  # last: until it is gone, a reset that was interrupted can be repeated
)
_GRACE_SECONDS = 10.0
"""How long the data plane of a killed runner may take to save and end."""


class FolderError(Exception):
    """The folder cannot be used; the message says why and what to do."""


class DataFolder:
    """An open, locked folder. The lock is the kernel's: it ends with the last process that holds `lock_fd`."""

    def __init__(self, path: Path, *, reset: bool = False) -> None:
        self.path = path
        if path.is_dir():
            check_foreign(path)  # before a lock is left in a folder that is not ours
        self.mended: list[str] = []
        """What was damaged and is made again, a line each."""
        self.lock_fd = _lock(path)
        try:
            self._prepare(reset=reset)
            self._tighten()
            self._drop_damaged_index()
            self.secret = self._read_secret()
        except OSError as error:
            os.close(self.lock_fd)
            raise FolderError(not_written(path, error)) from error
        except BaseException:
            os.close(self.lock_fd)
            raise

    @property
    def state(self) -> Path:
        return self.path / "state.sqlite"

    @property
    def search(self) -> Path:
        """The search index, in a folder that is there then. Raises FolderError."""
        folder = self.path / "search"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise FolderError(f"{folder} is no folder. Remove it: the search index is made again.") from error
        return folder / "index.sqlite"

    @property
    def signing_key(self) -> Path:
        return self.path / "checkpoint-key.pem"

    @property
    def ledger_keys(self) -> Path:
        return self.path / "ledger-keys.json"

    def close(self) -> None:
        os.close(self.lock_fd)

    def _empty(self) -> None:
        for name in _OURS:
            entry = self.path / name
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)

    def _prepare(self, *, reset: bool) -> None:
        """Only a folder that says it is ours is ever emptied."""
        version = self.path / _VERSION
        check_foreign(self.path)
        if version.exists() and reset:
            self._empty()
        if not version.exists():
            write_private(version, FORMAT.encode())
        check_format(self.path)

    def _tighten(self) -> None:
        """What is kept here is for its owner alone, whatever a former start or a copy has left."""
        ours = [self.path / name for name in (_LOCK, *_OURS)]
        for place in (self.path, *ours, *self.path.glob("search/*")):
            with contextlib.suppress(OSError):  # it is not there, or another's
                place.chmod(place.stat().st_mode & ~0o077)

    def _drop_damaged_index(self) -> None:
        """The index is a cache: one that is no database is removed, and made again by the start."""
        file = self.search
        if not file.exists():
            return
        try:
            with contextlib.closing(sqlite3.connect(file)) as index:
                index.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:
            return  # in use, or of another's: the functions say so
        except sqlite3.DatabaseError:
            for damaged in file.parent.glob(file.name + "*"):
                damaged.unlink()
            self.mended.append(f"{file} was damaged. It is made again from the tables.")

    def _read_secret(self) -> bytes:
        """What the tenants' first tokens derive from, so that every start on this folder gives the same ones."""
        file = self.path / _SECRET
        if not file.exists():
            write_private(file, secrets.token_bytes(SECRET_BYTES))
        return read_secret(file)


def not_written(place: Path, error: OSError) -> str:
    """What to do about a folder or file that the system does not let us write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{place} cannot be written: {error.strerror}. Make room, or give another --data folder."
    return f"{place} cannot be used: {error.strerror}. Give another --data folder."


def read_secret(file: Path) -> bytes:
    """Raises FolderError for one that is damaged: an empty one would give two folders the same tokens."""
    secret = file.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise FolderError(
            f"{file} is damaged: it has {len(secret)} bytes, not {SECRET_BYTES}. Put it back from a copy, or remove it: "
            "the next start makes another, and prints new tokens."
        )
    return secret


def check_format(path: Path) -> None:
    """Raises FolderError for a folder that another version wrote."""
    version = path / _VERSION
    found = version.read_text(encoding="utf-8", errors="replace").strip() if version.exists() else FORMAT
    if found != FORMAT:
        raise FolderError(
            f"{path} holds {found!r}, this version reads {FORMAT!r}. "
            "Start with --reset to empty it, or give another --data folder."
        )


def check_foreign(path: Path) -> None:
    """Raises FolderError for a folder that holds files and does not say that it is ours."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise FolderError(f"{path} cannot be used: {error.strerror}. Give another --data folder.") from error
    # The draft of the version is there for a moment at a first start, and stays when that was killed.
    if _VERSION not in names and names - {_LOCK, _draft_of(Path(_VERSION)).name}:
        raise FolderError(f"{path} is not empty and not a Factbook data folder. Give another --data folder.")


def _draft_of(file: Path) -> Path:
    return file.with_name(file.name + ".new")


def write_private(file: Path, data: bytes) -> None:
    """All or nothing, readable by its owner alone."""
    draft = _draft_of(file)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(data)
    draft.replace(file)


def _lock(path: Path) -> int:
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        why = "it is no folder" if path.exists() and not path.is_dir() else error.strerror
        raise FolderError(f"{path} cannot be used: {why}. Give another --data folder.") from error
    deadline = time.monotonic() + _GRACE_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode().strip()
            if _runs(holder) or time.monotonic() > deadline:
                os.close(fd)
                raise FolderError(
                    f"{path} is in use by another runner (process {holder}). Stop it, or give another --data folder."
                ) from None
            time.sleep(0.05)
        else:
            try:
                os.ftruncate(fd, 0)
                os.pwrite(fd, str(os.getpid()).encode(), 0)
            except OSError as error:
                os.close(fd)
                raise FolderError(not_written(path, error)) from error
            return fd


def _runs(holder: str) -> bool:
    if not holder.isdigit():
        return False
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class TemporaryFolder(DataFolder):
    """A folder that is removed at the end: what a start without --data uses."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="factbook-")))

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.path, ignore_errors=True)
