"""What goes into a release, and what an audit says: the two scripts of .ci that others rely on."""

import hashlib
import importlib.util
import json
import os
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.gateway import ROOT

LOG = "# Changelog\n\n## [1.2.0] - 2026-12-01\n\n### Added\n\n- Tea.\n\n## [1.1.0] - not released yet\n\n- Milk.\n"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE, AUDIT = script("release"), script("audit")


def test_a_release_has_the_section_of_its_version_and_no_other() -> None:
    assert RELEASE.changes(LOG, "1.2.0") == "### Added\n\n- Tea.\n"


@pytest.mark.parametrize(("version", "said"), [("1.1.0", "give its day"), ("1.3.0", "no section")])
def test_a_version_without_its_day_or_its_section_is_not_released(version: str, said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        RELEASE.changes(LOG, version)


def test_the_same_files_give_the_same_archive_whatever_their_dates(tmp_path: Path) -> None:
    digests = set()
    for day in (1, 2):
        folder = tmp_path / str(day)
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "app.py").write_text("x = 1\n")
        (folder / "app.pyc").write_bytes(os.urandom(8))
        os.utime(folder / "sub" / "app.py", (day * 86_400, day * 86_400))
        RELEASE.archive(folder, tmp_path / f"{day}.zip")
        digests.add(hashlib.sha256((tmp_path / f"{day}.zip").read_bytes()).hexdigest())
    assert len(digests) == 1
    assert zipfile.ZipFile(tmp_path / "1.zip").namelist() == ["sub/app.py"]


def test_the_template_of_a_release_names_the_archives_beside_it(tmp_path: Path) -> None:
    template = (
        "    Properties:\n      CodeUri: WriteFunction\n      Handler: app.x\n      ContentUri: BaseLayer\n"
    )
    for name in ("WriteFunction.zip", "BaseLayer.zip"):
        (tmp_path / name).touch()
    said = RELEASE.released_template(template, tmp_path)
    assert said == template.replace("WriteFunction", "WriteFunction.zip").replace(
        "BaseLayer", "BaseLayer.zip"
    )
    (tmp_path / "BaseLayer.zip").unlink()
    with pytest.raises(SystemExit, match=r"BaseLayer.zip"):
        RELEASE.released_template(template, tmp_path)


def test_checksums_name_every_file_but_themselves(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"tea")
    (tmp_path / "SHA256SUMS").write_text("old")
    assert RELEASE.checksums(tmp_path) == f"{hashlib.sha256(b'tea').hexdigest()}  a\n"


def audit_of(
    packages: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    *options: str,
) -> tuple[int, str]:
    """What the script says when the tool answers this."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({'dependencies': packages})}\nEND\n")
    tool.chmod(0o755)
    monkeypatch.setattr("sys.argv", ["audit.py", *options, str(tool), str(tmp_path)])
    code = AUDIT.main()
    return code, capsys.readouterr().out


def test_a_known_fault_fails_an_audit_and_a_package_nobody_was_asked_about_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {"name": "tea", "version": "1", "vulns": []}
    bad = {"name": "milk", "version": "2", "vulns": [{"id": "CVE-1"}]}
    unasked = {"name": "sugar", "skip_reason": "not reached"}

    code, said = audit_of([good, bad, unasked], tmp_path, monkeypatch, capsys)
    assert code == 1
    assert "2 of 3 packages looked up, 1 of these with known faults" in said
    assert "milk 2: CVE-1" in said
    assert "NOT AUDITED" in said
    assert "(sugar)" in said
    assert audit_of([good], tmp_path, monkeypatch, capsys) == (
        0,
        "1 of 1 packages looked up, 0 of these with known faults\n",
    )


def test_an_audit_that_could_ask_nobody_is_no_audit_that_found_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unasked = {"name": "sugar", "skip_reason": "not reached"}
    bad = {"name": "milk", "version": "2", "vulns": [{"id": "CVE-1"}]}

    code, said = audit_of([unasked], tmp_path, monkeypatch, capsys)
    assert (code, "NOT AUDITED: of 1 packages" in said) == (3, True)
    code, said = audit_of([unasked], tmp_path, monkeypatch, capsys, "--pass-unaudited")
    assert (code, "NOT AUDITED: of 1 packages" in said) == (
        0,
        True,
    )  # where nobody can be asked, and it is said
    assert audit_of([unasked, bad], tmp_path, monkeypatch, capsys, "--pass-unaudited")[0] == 1
