"""The arrows of docs/architecture.md, read from the source: who may import whom."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "factbook" / "factbook"
STANDARD = sys.stdlib_module_names

# Layer → the layers it may import besides itself, and the packages from outside it may use.
ARROWS: dict[str, tuple[set[str], set[str]]] = {
    "domain": (set(), {"pydantic"}),
    "ports": ({"domain"}, set()),
    "canonical": ({"domain"}, {"rfc8785"}),
    "settings": (set(), set()),
    "usecases": ({"domain", "ports", "canonical", "verify"}, {"cachetools"}),
    "adapters": ({"domain", "ports", "canonical"}, {"boto3", "botocore", "cryptography", "urllib3"}),
    "api": ({"domain", "ports", "usecases", "settings"}, {"pydantic", "aws_lambda_powertools"}),
    "wiring": (
        {"domain", "ports", "usecases", "adapters", "api", "settings"},
        {"boto3", "botocore"},
    ),
    "verify": (set(), {"cryptography"}),
}
# The API is handed the services, and asks the composition root for them when a function starts; it wires nothing.
FROM_THE_ROOT = {"factbook.wiring.services.Services", "factbook.wiring.services.services"}


def layer_of(module: str) -> str:
    """The layer of a module named from the package's root."""
    return module.split(".")[0]


def imports_of(path: Path) -> Iterator[str]:
    """Absolute names of everything a source file imports, wherever in the file it does so."""
    package = path.relative_to(PACKAGE.parent).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def sources() -> list[Path]:
    found = sorted(PACKAGE.rglob("*.py"))
    return [path for path in found if path.parent != PACKAGE or path.name != "__init__.py"]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    layer = layer_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    inner, outer = ARROWS[layer]
    for imported in imports_of(path):
        first, _, rest = imported.partition(".")
        if first == "factbook":
            wanted = layer_of(rest)
            asks_root = layer == "api" and imported in FROM_THE_ROOT
            assert wanted in {layer, "SCHEMA_VERSION", *inner} or asks_root, imported
        elif first == "factbook_search":
            assert layer == "wiring", imported
        else:
            assert first in STANDARD or first in outer, imported


def test_every_layer_of_the_package_is_under_the_rule() -> None:
    assert {layer_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts)) for path in sources()} == set(
        ARROWS
    )


@pytest.mark.parametrize(
    "path", sorted((ROOT / "functions").glob("*/app.py")), ids=lambda path: path.parent.name
)
def test_a_function_takes_nothing_from_an_adapter_but_readers_of_its_events(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("factbook.adapters"):
            assert all(alias.name.endswith("_records") for alias in node.names), node.module


def test_the_verifier_runs_where_nothing_else_of_factbook_or_its_dependencies_can_be_imported() -> None:
    script = (
        "import sys, importlib.abc\n"
        "class Refuse(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        allowed = name.startswith('factbook.verify') or not name.startswith('factbook.')\n"
        "        if not allowed or name.split('.')[0] in ('boto3', 'botocore', 'pydantic', 'rfc8785'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        f"sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
        "import factbook.verify\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
