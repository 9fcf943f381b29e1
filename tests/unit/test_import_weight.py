"""What a cold start must not pay for: modules that only other functions, or no function, need."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "apsw",
    "aws_xray_sdk",
    "cryptography",
    "factbook_search",
    "h11",
    "httpcore2",
    "httpx",
    "jsonschema",
    "numpy",
    "onnxruntime",
    "opensearchpy",
    "requests",
    "snowballstemmer",
    "sqlite_vec",
    "yaml",
)


@pytest.mark.parametrize("function", ["write", "read"])
def test_a_function_imports_nothing_heavy_before_a_request_needs_it(function: str) -> None:
    imported = imports_of(function)
    assert {"factbook", "botocore", "pydantic"} <= imported
    assert imported & set(HEAVY) == set()


@pytest.mark.parametrize("function", ["checkpoint", "index", "retrieve"])
def test_what_asks_sources_is_imported_by_no_other_function(function: str) -> None:
    assert not imports_of(function) & {"h11", "httpcore2"}


def imports_of(function: str) -> set[str]:
    """What the process has imported when the function's handler is there."""
    script = (
        "import sys\n"
        f"sys.path[:0] = {[str(ROOT / 'layers' / 'factbook'), str(ROOT / 'functions' / function)]!r}\n"
        "import app\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())
