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
    script = (
        "import sys\n"
        f"sys.path[:0] = {[str(ROOT / 'layers' / 'factbook'), str(ROOT / 'functions' / function)]!r}\n"
        "import app\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    imported = set(done.stdout.split())

    assert {"factbook", "botocore", "pydantic"} <= imported
    assert imported & set(HEAVY) == set()
