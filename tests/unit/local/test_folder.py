"""A data folder is used by one runner at a time, and only if it is one."""

import multiprocessing
import os
from pathlib import Path

import pytest

from factbook_local.folder import FORMAT, DataFolder, FolderError, TemporaryFolder


def test_a_folder_is_made_with_its_version_and_secret_for_its_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "new" / "data")
    assert (folder.path / "format").read_text() == FORMAT
    assert len(folder.secret) == 32
    assert folder.path.stat().st_mode & 0o077 == 0
    assert (folder.path / "secret").stat().st_mode & 0o077 == 0
    folder.close()


def test_the_secret_stays(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data")
    first.close()
    second = DataFolder(tmp_path / "data")
    assert second.secret == first.secret
    second.close()


def test_a_second_runner_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    with pytest.raises(FolderError, match=rf"in use by another runner \(process {os.getpid()}\)"):
        DataFolder(tmp_path)
    folder.close()
    DataFolder(tmp_path).close()


def _hold_and_die(path: Path, ready: "multiprocessing.synchronize.Event") -> None:
    DataFolder(path)
    ready.set()
    os._exit(0)


def test_the_lock_of_a_runner_that_died_is_free(tmp_path: Path) -> None:
    ready = multiprocessing.get_context("spawn").Event()
    process = multiprocessing.get_context("spawn").Process(target=_hold_and_die, args=(tmp_path, ready))
    process.start()
    assert ready.wait(30)
    process.join()
    DataFolder(tmp_path).close()


def test_another_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    DataFolder(tmp_path).close()
    (tmp_path / "format").write_text("factbook local data 999")
    (tmp_path / "state.sqlite").write_text("precious")
    with pytest.raises(FolderError, match=r"'factbook local data 999'.*--reset"):
        DataFolder(tmp_path)
    assert (tmp_path / "state.sqlite").read_text() == "precious"


def test_reset_empties_a_folder_of_any_version_but_keeps_what_is_not_ours(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    first.state.write_text("old")
    first.search.write_text("old")
    first.close()
    (tmp_path / "format").write_text("factbook local data 0")
    (tmp_path / "notes.txt").write_text("mine")
    second = DataFolder(tmp_path, reset=True)
    assert not second.state.exists()
    assert not second.search.exists()
    assert second.secret != first.secret
    assert (tmp_path / "notes.txt").read_text() == "mine"
    second.close()


def test_a_folder_with_other_files_is_no_data_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    for reset in (False, True):
        with pytest.raises(FolderError, match="not a Factbook data folder"):
            DataFolder(tmp_path, reset=reset)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]  # no lock is left there


def test_a_first_start_that_was_killed_in_the_midst_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("")
    (tmp_path / "format.new").write_text("fact")
    folder = DataFolder(tmp_path)
    assert (tmp_path / "format").read_text() == FORMAT
    folder.close()


def test_a_path_that_cannot_be_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot be used: it is no folder"):
        DataFolder(tmp_path / "file")


def test_a_temporary_folder_is_gone_at_the_end() -> None:
    folder = TemporaryFolder()
    assert folder.path.is_dir()
    folder.close()
    assert not folder.path.exists()
