"""What a cold start imports: `python benchmarks/imports.py [--runs 15]`.

Seconds of processor time to import a function's `app`, as a ratio to importing boto3 and making a DynamoDB client, in
fresh processes that take turns; the least of all runs counts, since other work on the machine only adds. The budget is
1.5. Bytecode is compiled first, for all alike, and kept apart from the sources. The second column also makes the
function's own client, which its first request does.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FUNCTIONS = ("write", "read")
BASE = "import boto3; boto3.client('dynamodb')"
APP = "import sys; sys.path[:0] = ['{root}/layers/factbook', '{root}/functions/{name}']; import app"
CLIENT = "; from factbook.wiring.services import make_client; make_client('dynamodb')"
CLOCK = "import time; began = time.process_time(); {code}; print(time.process_time() - began)"
BUDGET = 1.5


def seconds(code: str, bytecode: str) -> float:
    environment = {
        **os.environ,
        "AWS_DEFAULT_REGION": "us-east-1",
        "PYTHONPYCACHEPREFIX": bytecode,
        "PYTHONDONTWRITEBYTECODE": "",
        "PYDANTIC_DISABLE_PLUGINS": "true",  # it would read every package of a developer's environment for one
    }
    done = subprocess.run(
        [sys.executable, "-c", CLOCK.format(code=code)], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Import time of the functions.")
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    cases = {"boto3 + client": BASE}
    for name in FUNCTIONS:
        cases[name] = APP.format(root=ROOT, name=name)
        cases[f"{name} + client"] = cases[name] + CLIENT
    best = dict.fromkeys(cases, float("inf"))
    with tempfile.TemporaryDirectory() as bytecode:
        for code in cases.values():
            seconds(code, bytecode)
        for _ in range(runs):
            for case, code in cases.items():
                best[case] = min(best[case], seconds(code, bytecode))
    base = best["boto3 + client"]
    print(f"boto3 and a DynamoDB client: {base * 1000:.0f} ms")
    for name in FUNCTIONS:
        alone, served = best[name] / base, best[f"{name} + client"] / base
        verdict = "within" if alone <= BUDGET else "over"
        print(f"{name:6} import {alone:.2f} ({verdict} {BUDGET}), with its client {served:.2f}")


if __name__ == "__main__":
    main()
