"""Files that a command writes: refused before anything is begun, and whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from factbook_cli.errors import CommandError, UsageError


def check_place(out: Path) -> None:
    """Raises UsageError before anything is begun where no file can be written."""
    if str(out) == "-" or out.absolute().parts[1:2] in (("dev",), ("proc",)):
        raise UsageError(
            f"--out {out} is no regular file. Give the name of one: an export is there once it is whole."
        )
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder. Give the name of a file.")
    if out.exists() and not out.is_file():
        raise UsageError(f"--out {out} is no regular file. Give the name of one.")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}. Make it first.")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise UsageError(f"--out {out}: you may not write into the folder {out.parent}.")


@contextmanager
def written(out: Path) -> Iterator[IO[bytes]]:
    """A file that is there under its name once it is whole; what is left of a failed one is removed."""
    out = out.resolve()  # what a link points to is written, and the link stays
    unfinished = out.with_name(out.name + ".part")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(out)
    except OSError as error:
        raise CommandError(f"{out} cannot be written: {error.strerror or error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
