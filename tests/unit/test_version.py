"""One version, in factbook/__init__.py; whatever else names it agrees."""

import json
import re
import tomllib

import pytest
from support.gateway import ROOT

from factbook import __version__
from factbook_cli.main import main


def test_the_command_tells_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"factbook {__version__}\n"


def test_the_api_description_has_the_version() -> None:
    assert json.loads((ROOT / "openapi.json").read_text())["info"]["version"] == __version__


def test_the_distribution_takes_its_version_from_the_package() -> None:
    project = tomllib.loads((ROOT / "cli" / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    source = ROOT / "cli" / project["tool"]["hatch"]["version"]["path"]
    assert re.findall(r'^__version__ = "(.*)"$', source.read_text(), re.MULTILINE) == [__version__]


def test_no_other_project_file_names_a_version() -> None:
    assert "project" not in tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_newest_version_of_the_changelog_is_this_one() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## \[?v?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)[:1] == [__version__]
