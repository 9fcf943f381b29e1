"""A data folder is used by one runner at a time, and only if it is one."""

import errno
import json
import multiprocessing
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from factbook.domain.erasure.ledger import read_keys
from factbook_local.folder import FORMAT, DataFolder, FolderError, TemporaryFolder
from factbook_local.signer import ensure_ledger_keys, ensure_signing_key

PUBLIC = (
    Ed25519PrivateKey.generate()
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


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


def test_the_ledgers_keys_are_made_once_for_their_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    ensure_ledger_keys(folder.ledger_keys)
    made = folder.ledger_keys.read_text()
    ensure_ledger_keys(folder.ledger_keys)
    folder.close()

    assert folder.ledger_keys.read_text() == made
    assert folder.ledger_keys.stat().st_mode & 0o077 == 0
    assert len(read_keys(json.loads(made)).keys) == 1
    DataFolder(tmp_path / "data", reset=True).close()
    assert not folder.ledger_keys.exists()


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


def test_a_folder_on_a_disk_that_is_full_is_said_and_can_be_used_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    told = f"{tmp_path} cannot be written: No space left on device. Make room, or give another --data folder."
    for name in ("factbook_local.folder.write_private", "factbook_local.folder.os.pwrite"):
        with monkeypatch.context() as patched:
            patched.setattr(name, full)
            with pytest.raises(FolderError) as refused:
                DataFolder(tmp_path)
            assert str(refused.value) == told
    DataFolder(tmp_path).close()


def test_a_temporary_folder_is_gone_at_the_end() -> None:
    folder = TemporaryFolder()
    assert folder.path.is_dir()
    folder.close()
    assert not folder.path.exists()


@pytest.mark.parametrize("kept", [b"", b"short", b"x" * 33], ids=["empty", "short", "long"])
def test_a_damaged_secret_is_refused_and_left_as_it_is(tmp_path: Path, kept: bytes) -> None:
    DataFolder(tmp_path).close()
    (tmp_path / "secret").write_bytes(kept)
    with pytest.raises(FolderError, match=rf"secret is damaged: it has {len(kept)} bytes, not 32"):
        DataFolder(tmp_path)
    assert (tmp_path / "secret").read_bytes() == kept


def test_a_folder_that_others_could_read_is_tightened_and_what_is_not_ours_is_let_alone(
    tmp_path: Path,
) -> None:
    first = DataFolder(tmp_path)
    for file in (first.state, first.search, first.signing_key, tmp_path / "notes.txt"):
        file.touch()
    first.close()
    ours = [tmp_path, *(each for each in tmp_path.rglob("*") if each.name != "notes.txt")]
    assert len(ours) == 8
    for place in (*ours, tmp_path / "notes.txt"):
        place.chmod(0o755)
    DataFolder(tmp_path).close()
    assert {place.name: oct(place.stat().st_mode & 0o077) for place in ours} == {
        place.name: "0o0" for place in ours
    }
    assert (tmp_path / "notes.txt").stat().st_mode & 0o777 == 0o755


def test_a_search_index_that_is_no_database_is_removed_and_said(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    first.search.write_bytes(b"no database" * 1000)
    first.close()
    second = DataFolder(tmp_path)
    assert second.mended == [f"{second.search} was damaged. It is made again from the tables."]
    assert not second.search.exists()
    second.close()


def test_a_sound_search_index_stays(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    with closing(sqlite3.connect(first.search)) as index:
        index.execute("CREATE TABLE kept (a)")
    first.close()
    second = DataFolder(tmp_path)
    assert (second.mended, second.search.exists()) == ([], True)
    second.close()


def test_a_file_where_the_folder_of_the_index_belongs_is_said(tmp_path: Path) -> None:
    DataFolder(tmp_path).close()
    (tmp_path / "search").rmdir()
    (tmp_path / "search").write_text("")
    with pytest.raises(FolderError, match=r"search is no folder\. Remove it"):
        DataFolder(tmp_path)


@pytest.mark.parametrize("text", ["", "no key", PUBLIC], ids=["empty", "text", "a public key"])
def test_a_damaged_signing_key_is_said_and_never_replaced(tmp_path: Path, text: str) -> None:
    file = tmp_path / "checkpoint-key.pem"
    file.write_text(text)
    with pytest.raises(
        FolderError, match=r"checkpoint-key.pem is damaged.*another key would sign another history"
    ):
        ensure_signing_key(file, "factbook.local")
    assert file.read_text() == text
