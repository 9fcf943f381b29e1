"""What is imported once before functions are forked from it: all that two of them name, and nothing that is no module."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from support.tables import declared

from factbook_local.shared_imports import shared_modules
from factbook_local.stack import Function


def function(folder: Path, name: str, code: str, layer: Path) -> Function:
    (folder / name).mkdir()
    (folder / name / "app.py").write_text(code)
    return Function(name, name, (folder / name, layer), "app.handler", 3.0, 128, {}, None)


@pytest.mark.parametrize(
    ("line", "shared"),
    [
        ("import layer.one", {"layer.one"}),
        ("from layer.one import name", {"layer.one"}),
        ("from layer import one", {"layer", "layer.one"}),
        ("from layer import one as other, two", {"layer", "layer.one", "layer.two"}),
        ("import json", set()),
        ("from . import one", set()),
    ],
)
def test_a_module_of_a_layer_is_shared_however_it_is_named(
    tmp_path: Path, line: str, shared: set[str]
) -> None:
    package = tmp_path / "python" / "layer"
    (package / "two").mkdir(parents=True)
    (package / "one.py").write_text("name = 1")
    functions = [function(tmp_path, name, line, tmp_path / "python") for name in ("a", "b")]
    assert set(shared_modules(functions)) == shared
    assert shared_modules(functions[:1]) == []


def test_what_the_functions_share_are_modules_and_their_routes_are_among_them() -> None:
    shared = shared_modules(declared().functions.values())
    assert "factbook.api.facts.routes" in shared
    assert [name for name in shared if find_spec(name) is None] == []
