"""The README's blocks, run as a newcomer would: pasted from top to bottom, in an empty folder, on a fresh service."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gateway import ROOT

from factbook_local import local
from factbook_local.testing import running

README = (ROOT / "README.md").read_text()
FENCES = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
BLOCKS = [
    (language, block, following[1] if following[0] == "text" else None)
    for (language, block), following in zip(FENCES, [*FENCES[1:], ("", "")], strict=True)
    if language in ("bash", "python")
]
SHELL = ["sh", "-e", "-c"]
SECONDS = 120


def start_arguments() -> argparse.Namespace:
    """What the README's `make local ARGS="…"` starts the service with."""
    (arguments,) = re.findall(r'^make local ARGS="(.*)"$', README, re.MULTILINE)
    parser = argparse.ArgumentParser()
    local.add_arguments(parser)
    return parser.parse_args(shlex.split(arguments))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A checkout's folder as `make local` leaves it: `.venv` and the ready file, while the service runs."""
    asked = start_arguments()
    assert not asked.data.is_absolute()
    with running(tmp_path, asked.tenants or ("demo",), data=tmp_path / asked.data):
        (ready_file,) = tmp_path.glob("ready-*.json")
        (tmp_path / asked.ready_file).symlink_to(ready_file)
        (tmp_path / ".venv").symlink_to(sys.prefix)
        yield tmp_path


def run(interpreter: list[str], block: str, folder: Path) -> str:
    """What a block prints. Fails when a command of it does."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [*interpreter, block],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(
    shutil.which("curl") is None and os.environ.get("CI") != "true", reason="the tour needs curl"
)
def test_the_blocks_of_the_readme_print_what_it_says(folder: Path) -> None:
    assert {language for language, _, _ in BLOCKS} == {"bash", "python"}
    for language, block, printed in BLOCKS:
        interpreter = SHELL if language == "bash" else [".venv/bin/python", "-c"]
        assert run(interpreter, block, folder) == printed


def test_a_block_with_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(SHELL, "false\necho went on\n", tmp_path)


def test_what_a_newcomer_makes_is_not_offered_to_git() -> None:
    asked = start_arguments()
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {f"/{asked.data}/", f"/{asked.ready_file}"} <= set(ignored)
