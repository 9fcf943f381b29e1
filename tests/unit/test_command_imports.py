"""The operator's commands stand on the factbook package and three libraries: nothing of the emulator, nothing to search."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest
from support.gateway import ROOT

CLI = ROOT / "cli" / "factbook_cli"
ALLOWED = {"factbook", "factbook_cli", "botocore", "urllib3"}


def imported_by(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names - sys.stdlib_module_names


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.name)
def test_a_command_imports_only_what_the_distribution_brings(path: Path) -> None:
    optional = {"factbook_local"} if path.name in ("main.py", "doctor.py") else set()
    assert imported_by(path) <= ALLOWED | optional


def test_the_distribution_asks_for_what_the_commands_and_the_package_import() -> None:
    project = tomllib.loads((ROOT / "cli" / "pyproject.toml").read_text())["project"]
    asked = {requirement.partition(">")[0] for requirement in project["dependencies"]}
    sources = [*CLI.glob("*.py"), *(ROOT / "layers" / "factbook" / "factbook").rglob("*.py")]
    only_in_functions = {"aws_lambda_powertools", "boto3", "factbook_search", "factbook_local", "httpcore2"}
    assert set().union(*map(imported_by, sources)) - {"factbook", "factbook_cli"} - only_in_functions <= asked
