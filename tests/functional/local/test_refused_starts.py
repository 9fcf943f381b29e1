"""A start with a setting, a folder or a file that cannot be used: one line that says what to do, and exit code 2."""

import importlib.util
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.local_cloud import TEMPLATE, eventually, probe_cloud, refused

from factbook_cli.main import main

ON = {
    "MEMORY_EMBEDDINGS": "openai-compat",
    "MEMORY_EMBEDDINGS_URL": "http://localhost:11434/v1",
    "MEMORY_EMBEDDINGS_MODEL": "m",
}
SETTINGS = {
    "true": (
        {"MEMORY_EMBEDDINGS": "true"},
        "MEMORY_EMBEDDINGS must be openai-compat, bedrock, built-in or none, or be left out.",
    ),
    "openai": (
        {"KINDGI_MEMORY_EMBEDDINGS": "openai"},
        "MEMORY_EMBEDDINGS must be openai-compat, bedrock, built-in or none, or be left out.",
    ),
    "no URL": (
        {"MEMORY_EMBEDDINGS": "openai-compat"},
        "MEMORY_EMBEDDINGS is on without MEMORY_EMBEDDINGS_URL: give it, or leave MEMORY_EMBEDDINGS out.",
    ),
    "no model": (
        ON | {"MEMORY_EMBEDDINGS_MODEL": ""},
        "MEMORY_EMBEDDINGS is on without MEMORY_EMBEDDINGS_MODEL: give it, or leave MEMORY_EMBEDDINGS out.",
    ),
    "no scheme": (
        ON | {"MEMORY_EMBEDDINGS_URL": "localhost:11434/v1"},
        "MEMORY_EMBEDDINGS_URL is no http or https URL: give one such as http://localhost:11434/v1.",
    ),
    "no search URL": (
        {"OPENSEARCH_URL": "localhost:9200"},
        "OPENSEARCH_URL is no http or https URL: give one such as https://search.example:443.",
    ),
    "no such engine": ({"OPENSEARCH_ENGINE": "nmslib"}, "OPENSEARCH_ENGINE must be lucene or faiss."),
    "no such log level": (
        {"POWERTOOLS_LOG_LEVEL": "loud"},
        "POWERTOOLS_LOG_LEVEL must be a level of logs, such as DEBUG, INFO or ERROR.",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_a_setting_that_cannot_be_used_is_said_before_anything_starts(tmp_path: Path, case: str) -> None:
    environment, told = SETTINGS[case]
    assert refused(tmp_path, env=environment, data=tmp_path / "data") == f"factbook: {told}"
    assert not (tmp_path / "data").exists()


def test_every_setting_that_cannot_be_used_is_said_at_once(tmp_path: Path) -> None:
    environment = {"MEMORY_EMBEDDINGS": "true", "OPENSEARCH_URL": "localhost:9200"}
    done = subprocess.run(
        [sys.executable, "-m", "factbook_cli", "local", "--port", "0", "--template", str(TEMPLATE)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["MEMORY_EMBEDDINGS", "OPENSEARCH_URL"]


def test_a_limit_of_open_files_that_is_too_low_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "factbook_cli", "local", "--port", "0"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", *command, "--data", str(tmp_path / "data")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    told = "factbook: a process may open too few files here. Allow more: ulimit -n 1024"
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (2, "", told)


def noise(file: Path) -> None:
    file.write_bytes(b"no database" * 10_000)


def cut(file: Path) -> None:
    with file.open("r+b") as state:
        state.truncate(file.stat().st_size // 2)


def scrambled(file: Path) -> None:
    """Whole as a database, and a record of it no JSON."""
    with closing(sqlite3.connect(file, isolation_level=None)) as state:
        state.execute("UPDATE documents SET body = '{' WHERE name = 'kms'")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that a runner has left."""
    folder = tmp_path_factory.mktemp("kept")
    with probe_cloud(folder, data=folder / "data"):
        pass
    return folder / "data"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (noise, "is damaged. Put it back from a copy, or start with --reset, which empties the folder."),
        (cut, "is damaged. Put it back from a copy, or start with --reset, which empties the folder."),
        (scrambled, "is damaged. Put it back from a copy, or start with --reset, which empties the folder."),
        (a_folder, "cannot be opened and written. Make it yours to write, or give another --data folder."),
    ],
)
def test_a_state_that_cannot_be_read_is_said(
    tmp_path: Path, kept: Path, damage: Callable[[Path], None], told: str
) -> None:
    data = copy(kept, tmp_path / "data")
    damage(data / "state.sqlite")
    assert refused(tmp_path, data=data) == f"factbook: {data / 'state.sqlite'} {told}"


def test_a_state_that_may_not_be_written_is_said(tmp_path: Path, kept: Path) -> None:
    data = copy(kept, tmp_path / "data")
    with closing(sqlite3.connect(data / "state.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        message = refused(tmp_path, data=data)
        holder.execute("ROLLBACK")
    assert message.endswith(
        "cannot be opened and written. Make it yours to write, or give another --data folder."
    )


def test_a_secret_that_is_empty_is_no_secret(tmp_path: Path, kept: Path) -> None:
    data = copy(kept, tmp_path / "data")
    (data / "secret").write_bytes(b"")
    assert refused(tmp_path, data=data) == (
        f"factbook: {data / 'secret'} is damaged: it has 0 bytes, not 32. Put it back from a copy, or remove it: "
        "the next start makes another, and prints new tokens."
    )


def test_a_signing_key_that_is_none_is_said_and_stays(tmp_path: Path, kept: Path) -> None:
    data = copy(kept, tmp_path / "data")
    (data / "checkpoint-key.pem").write_text("no key")
    assert refused(tmp_path, data=data) == (
        f"factbook: {data / 'checkpoint-key.pem'} is damaged: it holds no Ed25519 key in PEM. Put it back from a copy: "
        "another key would sign another history."
    )
    assert (data / "checkpoint-key.pem").read_text() == "no key"


def copy(kept: Path, to: Path) -> Path:
    to.mkdir()
    for file in kept.iterdir():
        if file.is_file():
            (to / file.name).write_bytes(file.read_bytes())
    return to


def test_a_start_with_a_variable_that_is_nearly_a_setting_says_so_and_serves(tmp_path: Path) -> None:
    with probe_cloud(tmp_path, env={"MEMORY_EMBEDINGS": "openai-compat"}) as cloud:
        assert cloud.do("describe").status == 200
        told = cloud.ready.output.read_text()
    assert "factbook: There is no setting MEMORY_EMBEDINGS: is it MEMORY_EMBEDDINGS?\n" in told


def test_what_a_start_writes_is_for_its_owner_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    with probe_cloud(tmp_path, data=data):
        pass
    assert (data / "state.sqlite").exists()
    assert {place.name for place in (data, *data.rglob("*")) if place.stat().st_mode & 0o077} == set()


def test_a_demo_without_its_model_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else found(name)
    )
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == (
        "factbook demo: the demo searches with an embedding model that is not installed. Run make demo.\n"
    )


def test_an_endpoint_of_the_settings_that_does_not_answer_is_said_once_the_service_is_ready(
    tmp_path: Path,
) -> None:
    nowhere = "http://127.0.0.1:9"
    environment = {"OPENSEARCH_URL": nowhere, **ON, "MEMORY_EMBEDDINGS_URL": f"{nowhere}/v1"}
    with probe_cloud(tmp_path, env=environment) as cloud:
        for line in (
            f"factbook: {nowhere} does not answer: Connection refused. Start it, or correct OPENSEARCH_URL.\n",
            f"factbook: {nowhere}/v1 does not answer: Connection refused. Start it, or correct MEMORY_EMBEDDINGS_URL.\n",
        ):
            eventually(lambda line=line: line in cloud.ready.output.read_text())
