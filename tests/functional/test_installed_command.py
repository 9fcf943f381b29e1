"""`factbook` as it is installed: by itself from `cli/`, and in a checkout whose path holds a space."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from support.emulators import Aws
from support.gateway import ROOT
from support.logs import LogService

from factbook import __version__

pytestmark = pytest.mark.exhaustive
NOT_THE_TREE = shutil.ignore_patterns(
    ".git", ".venv*", ".aws-sam", "build", "__pycache__", ".*_cache", ".hypothesis"
)


def said(command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run in a folder without anything of this process's Python."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=kept, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with nothing but `pip install ./cli`, in a folder with a space."""
    folder = tmp_path_factory.mktemp("an environment of its own")
    venv.create(folder / "env", with_pip=True)
    done = said([str(folder / "env/bin/pip"), "install", "--quiet", str(ROOT / "cli")], folder)
    assert done.returncode == 0, done.stderr
    return folder / "env" / "bin"


def test_it_has_the_operators_commands_and_no_others(installed: Path, tmp_path: Path) -> None:
    assert said([str(installed / "factbook"), "--version"], tmp_path).stdout == f"factbook {__version__}\n"
    told = said([str(installed / "factbook"), "--help"], tmp_path).stdout
    for name in ("token", "vkey", "index", "log", "doctor"):
        assert f"\n    {name} " in told
        assert said([str(installed / "factbook"), name, "--help"], tmp_path).returncode == 0
    assert "local" not in told
    assert "demo" not in told
    looked = said([str(installed / "factbook"), "doctor"], tmp_path)
    assert (looked.returncode, "Nothing of this is wrong." in looked.stdout) == (0, True), looked
    refused = said([str(installed / "factbook"), "local"], tmp_path)
    assert (refused.returncode, "no command 'local'" in refused.stderr) == (2, True)


def test_it_comes_without_the_emulator_and_what_only_functions_need(installed: Path, tmp_path: Path) -> None:
    listed = said([str(installed / "pip"), "list", "--format=freeze"], tmp_path).stdout.lower()
    assert "botocore==" in listed
    for other in ("ministack", "uvicorn", "kindgi", "apsw", "opensearch", "powertools", "numpy"):
        assert other not in listed


def test_it_judges_an_export_and_finds_the_edit(
    installed: Path, ministack: Aws, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log_service = LogService(ministack, tmp_path)
    log_service.append("r1", {"n": 1})
    log_service.checkpoint()
    export = log_service.export_all(tmp_path / "all.jsonl")
    command = [str(installed / "factbook"), "log", "audit", str(export), "--vkey", log_service.vkey]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert said(command, elsewhere).returncode == 0
    export.write_bytes(export.read_bytes().replace(b'"n":1', b'"n":2'))
    assert said(command, elsewhere).returncode == 1


def test_it_makes_a_token_and_calls_every_service_it_needs(
    installed: Path, ministack: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(ministack.endpoint))
    table = ministack.settings.access_table
    made = said([str(installed / "factbook"), "token", "--table", table, "--tenant", "acme"], tmp_path)
    assert made.returncode == 0, made.stderr
    holder = ministack.services().authenticator.authenticate(
        {"authorization": f"Bearer {made.stdout.strip()}"}
    )
    assert holder.tenant == "acme"


def test_a_checkout_in_a_path_with_spaces_installs_and_runs_and_may_be_moved(tmp_path: Path) -> None:
    checkout = tmp_path / "a path with spaces" / "factbook"
    shutil.copytree(ROOT, checkout, ignore=NOT_THE_TREE)
    made = said(["make", f"PYTHON={sys.executable}", "install"], checkout)
    assert made.returncode == 0, made.stderr
    told = said([str(checkout / ".venv/bin/factbook"), "--help"], tmp_path)
    assert told.returncode == 0, told.stderr
    assert "\n    local " in told.stdout
    checked = said(["make", "openapi-check"], checkout)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    moved = tmp_path / "it's elsewhere"
    checkout.rename(moved)
    (tmp_path / "linked").symlink_to(moved / ".venv/bin/factbook")
    for command in (moved / ".venv/bin/factbook", tmp_path / "linked"):
        told = said([str(command), "--version"], tmp_path)
        assert (told.returncode, told.stderr) == (0, ""), told.stderr


@pytest.fixture
def bare_checkout(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    return tmp_path


def test_a_python_that_is_too_old_is_said_before_anything_is_made(bare_checkout: Path) -> None:
    done = said(["make", "PYTHON=/bin/false", "install"], bare_checkout)
    assert done.returncode == 2
    told = "Factbook needs Python 3.11 or newer on the PATH, or make PYTHON=/path/to/python (/bin/false is none)."
    assert done.stderr.splitlines()[0] == told
    assert not (bare_checkout / ".venv").exists()


def test_a_package_index_that_does_not_answer_is_said(bare_checkout: Path) -> None:
    nowhere = ["PIP_INDEX_URL=http://127.0.0.1:9/simple", "PIP_RETRIES=0", "PIP_NO_CACHE_DIR=1"]
    done = said(["env", *nowhere, "make", f"PYTHON={sys.executable}", "install"], bare_checkout)
    assert done.returncode == 2
    assert "It needs a package index: look at your network, and at PIP_INDEX_URL." in done.stderr
    assert not (bare_checkout / ".venv/.run").exists()
