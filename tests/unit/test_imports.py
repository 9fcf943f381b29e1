"""The arrows of docs/architecture.md, read from the source: which layer, and which column, may import which."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "factbook" / "factbook"
STANDARD = sys.stdlib_module_names

# Layer → the layers it may import besides itself, and the packages from outside it may use.
LAYERS: dict[str, tuple[set[str], set[str]]] = {
    "domain": (set(), {"pydantic"}),
    "ports": ({"domain"}, set()),
    "canonical": ({"domain"}, {"rfc8785"}),
    "settings": ({"domain"}, set()),
    "usecases": ({"domain", "ports", "canonical", "verify"}, {"cachetools"}),
    "adapters": (
        {"domain", "ports", "canonical"},
        {"boto3", "botocore", "cryptography", "httpcore2", "joserfc", "urllib3"},
    ),
    "api": (
        {"domain", "ports", "usecases", "settings", "SCHEMA_VERSION"},
        {"pydantic", "aws_lambda_powertools", "cachetools"},
    ),
    "wiring": (
        {"domain", "ports", "usecases", "adapters", "api", "settings", "factbook_search"},
        {"boto3", "botocore"},
    ),
    "verify": (set(), {"cryptography"}),
}
# Columns from left to right; of one rank, neither imports the other.
RANKS: tuple[tuple[str, ...], ...] = (
    ("access",),
    ("policy",),
    ("facts", "log"),
    ("retrieval", "provenance"),
    ("memories", "sources"),
    ("erasure", "portability"),
)
RANK = {column: rank for rank, columns in enumerate(RANKS) for column in columns}
# Modules of no column that put the columns together.
COMPOSE = {"factbook.api.services", "factbook.wiring.services"}


@dataclass(frozen=True)
class Module:
    """A module of the package by its dotted name, e.g. `factbook.domain.facts.gate`."""

    name: str

    @property
    def layer(self) -> str:
        return self.name.split(".")[1]

    @property
    def column(self) -> str | None:
        """The capability whose folder the module is in; None at a layer's root."""
        parts = self.name.split(".")
        return parts[2] if len(parts) > 2 and parts[2] in RANK else None


def problem(importer: Module, imported: str) -> str | None:
    """Why a module may not import `imported` (absolute, of anything), if so."""
    inner, outer = LAYERS[importer.layer]
    package, _, rest = imported.partition(".")
    if package == "factbook_search":
        return None if "factbook_search" in inner else "only wiring imports the search layer"
    if package != "factbook":
        return None if package in STANDARD or package in outer else f"{importer.layer} may not use {package}"
    other = Module(imported)
    if rest.split(".")[0] not in {importer.layer, *inner}:
        return f"{importer.layer} may not import {rest.split('.')[0]}"
    return None if importer.name in COMPOSE else column_problem(importer, other)


def column_problem(importer: Module, other: Module) -> str | None:
    if other.column in (None, importer.column):
        return None
    if importer.column is None:
        # What stands at a layer's root serves every column, so it may know of who calls and of no more.
        return None if other.column == "access" else f"a root module may not import {other.column}"
    if RANK[other.column] < RANK[importer.column]:
        return None
    return f"{importer.column} may not import {other.column}: it is not to its left"


def imports_of(text: str, package: tuple[str, ...]) -> Iterator[str]:
    """Absolute names of everything a source imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def sources() -> dict[Module, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name != "factbook":
            found[Module(name)] = path
    return found


SOURCES = sources()


@pytest.mark.parametrize("module", SOURCES, ids=lambda module: module.name)
def test_a_module_imports_only_what_its_layer_and_its_column_may(module: Module) -> None:
    path = SOURCES[module]
    package = path.relative_to(PACKAGE.parent).parent.parts

    problems = {name: problem(module, name) for name in imports_of(path.read_text(), package)}

    assert {name: why for name, why in problems.items() if why} == {}


def test_every_layer_of_the_package_is_under_the_rule() -> None:
    assert {module.layer for module in SOURCES} == set(LAYERS)


def test_every_folder_of_a_layer_is_a_column_or_a_named_exception() -> None:
    shared = {"adapters/dynamodb"}  # how every adapter of a table talks to DynamoDB
    for layer in ("domain", "ports", "usecases", "adapters", "api", "wiring"):
        folders = {path.name for path in (PACKAGE / layer).iterdir() if (path / "__init__.py").is_file()}
        assert {name for name in folders if f"{layer}/{name}" not in shared} <= RANK.keys(), layer


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {module.name for module in SOURCES}
    graph: dict[str, set[str]] = {}
    for module, path in SOURCES.items():
        package = path.relative_to(PACKAGE.parent).parent.parts
        found = imports_of(path.read_text(), package)
        graph[module.name] = {
            known for name in found for known in (name, name.rpartition(".")[0]) if known in names
        } - {module.name}

    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


# One planted arrow in each forbidden direction.
FORBIDDEN_LAYERS = [
    ("factbook.domain.facts.planted", "factbook.ports.facts.store.FactStore"),
    ("factbook.domain.facts.planted", "factbook.canonical.log_canonical"),
    ("factbook.domain.facts.planted", "botocore.session"),
    ("factbook.ports.facts.planted", "factbook.usecases.facts.reading.get_fact"),
    ("factbook.ports.facts.planted", "pydantic.BaseModel"),
    ("factbook.usecases.facts.planted", "factbook.adapters.facts.s3_blobs.S3Blobs"),
    ("factbook.usecases.facts.planted", "factbook.api.app.App"),
    ("factbook.usecases.facts.planted", "factbook.settings.Settings"),
    ("factbook.usecases.facts.planted", "botocore.session"),
    ("factbook.adapters.facts.planted", "factbook.usecases.facts.reading.get_fact"),
    ("factbook.adapters.facts.planted", "factbook.wiring.services.services"),
    ("factbook.api.facts.planted", "factbook.adapters.facts.s3_blobs.S3Blobs"),
    ("factbook.api.app", "factbook.wiring.services.services"),
    ("factbook.verify.planted", "factbook.domain.log.chain.text_hash"),
    ("factbook.adapters.retrieval.planted", "factbook_search.english.english_tokenizer"),
]
FORBIDDEN_COLUMNS = [
    (left, right) for left in RANK for right in RANK if left != right and RANK[right] >= RANK[left]
]


@pytest.mark.parametrize(("importer", "imported"), FORBIDDEN_LAYERS)
def test_an_arrow_against_the_layers_is_refused(importer: str, imported: str) -> None:
    assert problem(Module(importer), imported) is not None


@pytest.mark.parametrize("layer", ["domain", "ports", "usecases", "adapters", "api", "wiring"])
@pytest.mark.parametrize(("column", "other"), FORBIDDEN_COLUMNS)
def test_an_arrow_to_a_column_that_is_not_to_the_left_is_refused(layer: str, column: str, other: str) -> None:
    importer, imported = (
        Module(f"factbook.{layer}.{column}.planted"),
        f"factbook.{layer}.{other}.planted.thing",
    )

    assert problem(importer, imported) is not None


def test_an_arrow_from_a_layers_root_into_a_column_is_refused() -> None:
    assert problem(Module("factbook.api.planted"), "factbook.usecases.facts.reading.get_fact") is not None


def test_arrows_to_the_left_and_inwards_are_fine() -> None:
    assert (
        problem(Module("factbook.usecases.retrieval.planted"), "factbook.domain.facts.gate.can_see") is None
    )
    assert (
        problem(Module("factbook.wiring.erasure.planted"), "factbook.adapters.log.kms_wrapper.KmsWrapper")
        is None
    )


@pytest.mark.parametrize(
    "path", sorted((ROOT / "functions").glob("*/app.py")), ids=lambda path: path.parent.name
)
def test_a_function_only_says_what_it_serves(path: Path) -> None:
    """In 40 lines, and of the adapters it takes nothing but readers of its events."""
    text = path.read_text()
    assert len(text.splitlines()) <= 40
    for node in ast.walk(ast.parse(text)):
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
