"""The blocks of the README and of the pages that go on from it, run as a newcomer would: pasted from top to bottom, in the order
in which they are read, in one folder and on one service.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest
from support.gateway import ROOT

from factbook_local import local
from factbook_local.testing import running

README = (ROOT / "README.md").read_text()
PAGES = {"the README": README} | {
    name: (ROOT / "docs" / f"{name}.md").read_text()
    for name in ("guide-end-users", "guide-copilots", "memories")
}
SHELL = ["sh", "-e", "-c"]
SECONDS = 120


def start_arguments() -> argparse.Namespace:
    """What the README's `make local ARGS="…"` starts the service with."""
    (arguments,) = re.findall(r'^make local ARGS="(.*)"$', README, re.MULTILINE)
    parser = argparse.ArgumentParser()
    local.add_arguments(parser)
    return parser.parse_args(shlex.split(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout's folder as `make local` leaves it: `.venv` and the ready file, while the service runs."""
    asked, path = start_arguments(), tmp_path_factory.mktemp("checkout")
    assert not asked.data.is_absolute()
    with running(path, asked.tenants or ("demo",), data=path / asked.data):
        (ready_file,) = path.glob("ready-*.json")
        (path / asked.ready_file).symlink_to(ready_file)
        (path / ".venv").symlink_to(sys.prefix)
        yield path


def blocks(page: str) -> list[tuple[str, str, str | None]]:
    """Language, text, and what the page says that it prints."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [
        (language, block, following[1] if following[0] == "text" else None)
        for (language, block), following in zip(fences, [*fences[1:], ("", "")], strict=True)
        if language in ("bash", "python")
    ]


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
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_print_what_it_says(folder: Path, page: str) -> None:
    found = blocks(PAGES[page])
    assert any(printed for _, _, printed in found)
    for language, of_one in groupby(found, key=itemgetter(0)):  # pasted into one shell, or one Python
        together = list(of_one)
        interpreter = SHELL if language == "bash" else [".venv/bin/python", "-c"]
        printed = run(interpreter, "".join(block for _, block, _ in together), folder)
        assert printed == "".join(shown or "" for _, _, shown in together)


def test_a_service_that_does_not_answer_or_refuses_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    (pick,) = re.findall(r"^pick\(\) .*?^print\(value\)' \"\$@\"; }$", README, re.MULTILINE | re.DOTALL)
    for sent, told in (("", "no answer"), ('{"error": {"code": "auth-missing"}}', "auth-missing")):
        script = f"{pick}\nprintf '%s' '{sent}' | pick id"
        done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```\n(Starting Factbook.*?)^```", README, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-m", "factbook_cli", "demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=True,
    )
    for line, printed in zip(shown.splitlines(), done.stdout.splitlines(), strict=True):
        assert re.fullmatch(".*".join(map(re.escape, line.split("…"))), printed), (line, printed)


def test_a_block_with_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(SHELL, "false\necho went on\n", tmp_path)


def test_what_a_newcomer_makes_is_not_offered_to_git() -> None:
    asked = start_arguments()
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {f"/{asked.data}/", f"/{asked.ready_file}"} <= set(ignored)
    auditing = (ROOT / "docs" / "guide-auditors.md").read_text()
    written = set(re.findall(r"(?:> |--out |-o )([\w.-]+\.\w+)", auditing))
    assert len(written) > 4
    assert {f"/{name}" for name in written} <= set(ignored)
