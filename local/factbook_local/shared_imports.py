"""Which modules of the layers several functions import: what is worth importing once before forking them."""

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from factbook_local.stack import Function


def shared_modules(functions: Iterable[Function]) -> list[str]:
    """Modules found in a layer's folder that the handler files of two or more functions import, most shared first."""
    counts: Counter[str] = Counter()
    for function in functions:
        code, *layers = function.paths
        file = code / (function.handler.rpartition(".")[0] + ".py")
        if file.is_file():
            counts.update({name for name in _imports(file) if _is_module_of(name, layers)})
    return [name for name, count in counts.most_common() if count > 1]


def _imports(file: Path) -> set[str]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError:
        return set()  # the function reports it itself
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)  # a module, or a name in one
    return found


def _is_module_of(name: str, layers: list[Path]) -> bool:
    path = Path(*name.split("."))
    return any((layer / path).is_dir() or (layer / path).with_suffix(".py").is_file() for layer in layers)
