"""Put a release together in dist/: the built functions and layers, the template, the command's wheel, bills of materials
and checksums. Needs a clean checkout, a version whose changelog section is dated, and what `make sam sbom` made.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT = ROOT / ".aws-sam" / "build"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive, so that the same source gives the same bytes."""


def version() -> str:
    text = (ROOT / "layers" / "factbook" / "factbook" / "__init__.py").read_text()
    (found,) = re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    return str(found)


def changes(changelog: str, wanted: str) -> str:
    """The dated section of a version. Exits where it is missing or not dated."""
    match = re.search(rf"^## \[{re.escape(wanted)}\] - (.*)\n((?:(?!^## ).*\n?)*)", changelog, re.MULTILINE)
    if match is None:
        sys.exit(f"CHANGELOG.md has no section [{wanted}]: write what has changed.")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", match[1]) is None:
        sys.exit(f"CHANGELOG.md says '{match[1]}' of {wanted}: give its day as YYYY-MM-DD, and commit.")
    return match[2].strip() + "\n"


def require_clean() -> None:
    asked = ["git", "status", "--porcelain"]
    status = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - no word of a caller's
    if status.stdout:
        sys.exit("The checkout has changes that are not committed: a release is of a commit.")


def archive(folder: Path, target: Path) -> None:
    """A zip with the files in order and without their dates. Byte code is left out."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc"):
            entry = zipfile.ZipInfo(str(path.relative_to(folder)), EPOCH)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())


def released_template(text: str, folder: Path) -> str:
    """The built template with the archives in the place of the folders they were made of. Exits where one is missing."""
    named = re.sub(r"^( +(?:CodeUri|ContentUri): )(\w+)$", r"\1\2.zip", text, flags=re.MULTILINE)
    for path in re.findall(r"^ +(?:CodeUri|ContentUri): (.*)$", named, re.MULTILINE):
        if not (folder / path).is_file():
            sys.exit(f"The built template names {path}, which is not there: make sam again.")
    return named


def checksums(folder: Path) -> str:
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--draft", action="store_true", help="from what is there, dated or not, committed or not"
    )
    arguments = parser.parse_args()
    wanted = version()
    if not arguments.draft:
        require_clean()
        notes = changes((ROOT / "CHANGELOG.md").read_text(), wanted)
    else:
        notes = "A draft.\n"
    built = sorted(path for path in BUILT.glob("*") if path.is_dir())
    if not built:
        sys.exit("There is nothing built: make sam first.")
    target = ROOT / "dist" / f"factbook-{wanted}{'-draft' if arguments.draft else ''}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "CHANGES.md").write_text(notes)
    for folder in built:
        archive(folder, target / f"{folder.name}.zip")
    template = (BUILT / "template.yaml").read_text()
    (target / "template.yaml").write_text(released_template(template, target))
    for bill in sorted((ROOT / "build").glob("sbom-*.json")):
        shutil.copy(bill, target / bill.name)
    wheel = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(target),
        str(ROOT / "cli"),
    ]
    subprocess.run(wheel, check=True)  # noqa: S603 - our own interpreter
    (target / "SHA256SUMS").write_text(checksums(target))
    then = "a draft, for nobody else" if arguments.draft else f"check them, then: git tag v{wanted}"
    print(f"{target.relative_to(ROOT)}: {len(list(target.iterdir()))} files; {then}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
