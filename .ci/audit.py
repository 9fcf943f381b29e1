"""Known faults of what is deployed, by pip-audit.

exit codes: 0 all packages were looked up and have none, 1 one has, 3 of some nobody could be asked (with --pass-unaudited 0)
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCKS = ("layer", "search")
SECONDS = 300


def audited(tool: str, lock: Path) -> list[dict[str, Any]]:
    """Each package of a lock: its known faults, or why nobody could be asked about it."""
    options = ["--disable-pip", "--no-deps", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(  # noqa: S603 - the tool of our own environment
        [tool, "--requirement", str(lock), *options],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        sys.exit(f"pip-audit did not answer: {done.stderr[-1000:]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tool")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--pass-unaudited", action="store_true", help="where the list of known faults cannot be reached"
    )
    arguments = parser.parse_args()
    found = (each for name in LOCKS for each in audited(arguments.tool, arguments.folder / f"{name}.txt"))
    packages = {each["name"]: each for each in found}
    faults = {
        f"{name} {package['version']}": [fault["id"] for fault in package["vulns"]]
        for name, package in packages.items()
        if package.get("vulns")
    }
    unasked = sorted(name for name, package in packages.items() if "skip_reason" in package)
    asked = len(packages) - len(unasked)
    print(f"{asked} of {len(packages)} packages looked up, {len(faults)} of these with known faults")
    for name, ids in faults.items():
        print(f"  {name}: {', '.join(ids)}")
    if unasked:
        print(
            f"NOT AUDITED: of {len(unasked)} packages the list of known faults could not be asked, so this says nothing of them "
            f"({', '.join(unasked)})"
        )
    if faults:
        return 1
    return 3 if unasked and not arguments.pass_unaudited else 0


if __name__ == "__main__":
    sys.exit(main())
