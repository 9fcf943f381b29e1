"""Starting, ending, and what a data folder keeps over both."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.gateway import ROOT
from support.local_cloud import TEMPLATE, Cloud, eventually, probe_cloud, refused

from factbook_cli.main import main
from factbook_local.dataplane.process import control
from factbook_local.testing import descendants, running

TABLE = "factbook-Items"


def items(cloud: Cloud) -> set[str]:
    dynamodb = cloud.ready.client("dynamodb")
    pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE)
    return {item["pk"]["S"] for page in pages for item in page["Items"]}


def put(cloud: Cloud, key: str, **attributes: Any) -> None:
    cloud.ready.client("dynamodb").put_item(TableName=TABLE, Item={"pk": {"S": key}, **attributes})


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        message = refused(tmp_path, "--port", str(port))
    assert f"port {port} cannot be used" in message
    assert "--port" in message


def test_a_refused_start_leaves_the_ready_file_of_the_runner_that_serves(
    cloud: Cloud, tmp_path: Path
) -> None:
    (ready_file,) = cloud.ready.output.parent.glob("ready-*.json")
    before = ready_file.read_bytes()
    port = cloud.ready.url.rpartition(":")[2]
    message = refused(tmp_path, "--port", port, "--ready-file", str(ready_file))
    assert f"port {port} cannot be used" in message
    assert ready_file.read_bytes() == before


def test_a_ready_file_that_another_runner_has_replaced_is_left(tmp_path: Path) -> None:
    with probe_cloud(tmp_path) as cloud:
        (ready_file,) = tmp_path.glob("ready-*.json")
        ready_file.write_text("another's")
        cloud.ready.process.terminate()
        assert cloud.ready.process.wait(30) == 0
        assert ready_file.read_text() == "another's"


@pytest.mark.parametrize(("place", "told"), [("nowhere/r.json", "there is no folder"), ("", "is a folder")])
def test_a_ready_file_that_cannot_be_written_is_said_before_anything_starts(
    tmp_path: Path, place: str, told: str
) -> None:
    message = refused(tmp_path, "--ready-file", str(tmp_path / place), data=tmp_path / "data")
    assert told in message
    assert not (tmp_path / "data").exists()


def test_the_ready_file_is_there_when_the_runner_says_that_it_is_ready(tmp_path: Path) -> None:
    ready_file = tmp_path / "r.json"
    arguments = ["--port", "0", "--ready-file", str(ready_file), "--template", str(TEMPLATE)]
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "factbook_cli",
            "local",
            *arguments,
            "--parameter",
            f"SeenFile={tmp_path / 's'}",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Factbook is ready at ")
        assert json.loads(ready_file.read_text())["url"].startswith("http://127.0.0.1:")
        process.terminate()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "99999"], "0 (a free one) to 65535"),
        (["--port", "-1"], "0 (a free one) to 65535"),
        (["--port", "http"], "0 (a free one) to 65535"),
        (["--tenant", ""], "1 to 256"),
        (["--parameter", "Days"], "NAME=VALUE"),
        (["--bogus"], "--bogus"),
    ],
)
def test_an_option_that_cannot_be_is_said_in_one_line_of_the_command(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["local", *arguments])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("factbook local: ")
    assert line.endswith("See factbook local --help.")
    assert told in line


def test_a_parameter_that_is_none_or_has_no_such_value_is_said(tmp_path: Path) -> None:
    assert "it has Greeting, SeenFile" in refused(tmp_path, "--parameter", "X=1")
    product = ["--template", str(ROOT / "template.yaml"), "--parameter", "CheckpointLockDays=abc"]
    completed = subprocess.run(
        [sys.executable, "-m", "factbook_cli", "local", *product],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert completed.returncode == 2
    assert (
        completed.stderr == "factbook: the parameter CheckpointLockDays must be a whole number, not 'abc'\n"
    )


def test_a_folder_that_another_runner_holds_is_said(tmp_path: Path) -> None:
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        message = refused(tmp_path, data=tmp_path / "data")
        assert f"in use by another runner (process {cloud.ready.process.pid})" in message
        assert cloud.do("describe").status == 200


def test_a_folder_of_another_version_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "format").write_text("factbook local data 99")
    message = refused(tmp_path, data=tmp_path / "data")
    assert "'factbook local data 99'" in message
    assert "--reset" in message


def test_reset_without_a_folder_and_a_template_that_is_none_are_said(tmp_path: Path) -> None:
    assert "--reset needs --data" in refused(tmp_path, "--reset")
    assert "no-such-template" in refused(tmp_path, "--template", str(tmp_path / "no-such-template.yaml"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly_and_ends_every_process(tmp_path: Path, number: signal.Signals) -> None:
    with probe_cloud(tmp_path) as cloud:
        processes = descendants(cloud.ready.process.pid)
        assert len(processes) > 5
        ready_files = list(tmp_path.glob("ready-*.json"))
        assert len(ready_files) == 1
        assert ready_files[0].stat().st_mode & 0o077 == 0  # it holds tokens
        cloud.ready.process.send_signal(number)
        assert cloud.ready.process.wait(30) == 0
        assert not ready_files[0].exists()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes))
        assert "Traceback" not in cloud.ready.output.read_text()


def test_a_killed_runner_takes_its_processes_with_it(tmp_path: Path) -> None:
    with probe_cloud(tmp_path) as cloud:
        processes = descendants(cloud.ready.process.pid)
        cloud.ready.process.kill()
        cloud.ready.process.wait()
        eventually(lambda: not any(alive(pid) for pid in processes))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_data_plane_that_dies_ends_the_runner_with_a_message(tmp_path: Path) -> None:
    with probe_cloud(tmp_path) as cloud:
        (plane,) = [
            pid
            for pid in descendants(cloud.ready.process.pid)
            if b"dataplane.emulator" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        os.kill(plane, signal.SIGKILL)
        assert cloud.ready.process.wait(30) == 1
        assert "factbook: the data plane ended (exit code -9)" in cloud.ready.output.read_text()


def test_all_services_are_kept_over_a_restart(tmp_path: Path) -> None:
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        put(cloud, "kept", n={"N": "1.50"}, b={"B": b"\x00"})
        put(cloud, "gone")
        cloud.ready.client("dynamodb").delete_item(TableName=TABLE, Key={"pk": {"S": "gone"}})
        s3, kms, sqs = (cloud.ready.client(service) for service in ("s3", "kms", "sqs"))
        first = s3.put_object(Bucket="factbook-blobs", Key="a/b c+é", Body=b"one", Tagging="pending=true")[
            "VersionId"
        ]
        s3.put_object(Bucket="factbook-blobs", Key="a/b c+é", Body=b"two", Metadata={"m": "v"})
        s3.put_object(Bucket="factbook-blobs", Key="deleted", Body=b"x")
        s3.delete_object(Bucket="factbook-blobs", Key="deleted")
        erased = s3.put_object(Bucket="factbook-blobs", Key="erased", Body=b"x")["VersionId"]
        s3.delete_object(Bucket="factbook-blobs", Key="erased", VersionId=erased)
        locked = s3.put_object(Bucket="factbook-locked", Key="l", Body=b"x")["VersionId"]
        key = cloud.do("describe").json["environment"]["KMS_KEY_ID"]
        wrapped = kms.encrypt(KeyId=key, Plaintext=b"secret", EncryptionContext={"a": "b"})["CiphertextBlob"]
        url = sqs.get_queue_url(QueueName="factbook-DeadJobs")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="letter")
        eventually(lambda: cloud.records("kept"))

    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        item = cloud.ready.client("dynamodb").get_item(TableName=TABLE, Key={"pk": {"S": "kept"}})["Item"]
        assert item == {"pk": {"S": "kept"}, "n": {"N": "1.5"}, "b": {"B": b"\x00"}}
        assert items(cloud) == {"kept"}
        s3, kms, sqs = (cloud.ready.client(service) for service in ("s3", "kms", "sqs"))
        current = s3.get_object(Bucket="factbook-blobs", Key="a/b c+é")
        assert (current["Body"].read(), current["Metadata"]) == (b"two", {"m": "v"})
        assert s3.get_object(Bucket="factbook-blobs", Key="a/b c+é", VersionId=first)["Body"].read() == b"one"
        tags = s3.get_object_tagging(Bucket="factbook-blobs", Key="a/b c+é", VersionId=first)["TagSet"]
        assert tags == [{"Key": "pending", "Value": "true"}]
        versions = s3.list_object_versions(Bucket="factbook-blobs")
        assert [marker["Key"] for marker in versions["DeleteMarkers"]] == ["deleted"]
        assert sorted(version["Key"] for version in versions["Versions"]) == ["a/b c+é", "a/b c+é", "deleted"]
        retention = s3.get_object_retention(Bucket="factbook-locked", Key="l", VersionId=locked)["Retention"]
        assert retention["Mode"] == "COMPLIANCE"
        assert cloud.do("describe").json["environment"]["KMS_KEY_ID"] == key
        assert kms.decrypt(CiphertextBlob=wrapped, EncryptionContext={"a": "b"})["Plaintext"] == b"secret"
        url = sqs.get_queue_url(QueueName="factbook-DeadJobs")["QueueUrl"]
        assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "letter"
        put(cloud, "after")  # the stream goes on, and does not begin anew
        eventually(lambda: cloud.records("after"))
        assert len(cloud.records("kept")) == 1


def test_what_one_request_removes_of_many_objects_is_gone_after_a_restart_too(tmp_path: Path) -> None:
    """Such a request names the bucket in its path, and its objects in the body alone."""
    data, words = tmp_path / "data", b"words that are to be forgotten"
    with probe_cloud(tmp_path, data=data) as cloud:
        s3 = cloud.ready.client("s3")
        made = {
            (name, s3.put_object(Bucket="factbook-blobs", Key=name, Body=words + body)["VersionId"])
            for name in ("one", "two", "three")
            for body in (b"", b" again")
        }
        s3.put_object(Bucket="factbook-blobs", Key="kept", Body=b"kept")
    with probe_cloud(tmp_path, data=data) as cloud:
        doomed = [{"Key": name, "VersionId": version} for name, version in made]
        cloud.ready.client("s3").delete_objects(Bucket="factbook-blobs", Delete={"Objects": doomed})
    assert words not in (data / "state.sqlite").read_bytes()
    with probe_cloud(tmp_path, data=data) as cloud:
        left = cloud.ready.client("s3").list_object_versions(Bucket="factbook-blobs")["Versions"]
        assert [version["Key"] for version in left] == ["kept"]


def test_reset_starts_from_nothing(tmp_path: Path) -> None:
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        put(cloud, "old")
    with running(
        tmp_path,
        template=TEMPLATE,
        data=tmp_path / "data",
        arguments=["--reset", "--parameter", f"SeenFile={tmp_path / 'seen'}"],
    ) as ready:
        assert items(Cloud(ready, tmp_path / "seen")) == set()


def test_without_a_folder_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    with running(
        tmp_path,
        template=TEMPLATE,
        env={"TMPDIR": str(tmp_path / "temporary")},
        arguments=["--parameter", f"SeenFile={tmp_path / 'seen'}"],
    ):
        assert len(list((tmp_path / "temporary").glob("factbook-*"))) == 1
    assert list((tmp_path / "temporary").glob("factbook-*")) == []


def test_stream_records_that_no_function_took_come_after_a_kill(tmp_path: Path) -> None:
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        put(cloud, "taken")
        eventually(lambda: cloud.records("taken"))
        put(cloud, "0-raise")  # keeps the function busy failing
        put(cloud, "late")
        time.sleep(2)
        cloud.ready.kill()
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        eventually(lambda: [batch for batch in cloud.records("late") if "raise" not in json.dumps(batch)])


@pytest.mark.exhaustive
def test_a_kill_at_any_moment_loses_nothing_acknowledged_two_seconds_before(tmp_path: Path) -> None:
    acknowledged: dict[str, float] = {}
    killed_at = 0.0
    for round_number in range(4):
        with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
            there = items(cloud)
            assert {key for key, moment in acknowledged.items() if moment < killed_at - 2.0} <= there
            acknowledged = dict.fromkeys(there, 0.0)
            dynamodb = cloud.ready.client("dynamodb")
            until = time.monotonic() + 2.6 + 0.31 * round_number
            number = 0
            while time.monotonic() < until:
                pair = [f"{round_number}-{number}-a", f"{round_number}-{number}-b"]
                dynamodb.transact_write_items(
                    TransactItems=[{"Put": {"TableName": TABLE, "Item": {"pk": {"S": key}}}} for key in pair]
                )
                acknowledged.update(dict.fromkeys(pair, time.monotonic()))
                number += 1
            killed_at = time.monotonic()
            cloud.ready.kill()
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        there = items(cloud)
        assert {key for key, moment in acknowledged.items() if moment < killed_at - 2.0} <= there
        assert {key[:-1] for key in there if key.endswith("a")} == {
            key[:-1] for key in there if key.endswith("b")
        }


def test_the_command_says_what_it_can_do() -> None:
    def factbook(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "factbook_cli", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    assert factbook("--help").returncode == 0
    assert "local" in factbook("--help").stdout
    assert (factbook().returncode, factbook("nonsense").returncode) == (2, 2)
    assert "no command 'nonsense'" in factbook("nonsense").stderr
    help_text = factbook("local", "--help").stdout
    for option in ("--port", "--data", "--tenant", "--ready-file", "--reset", "--verbose", "--parameter"):
        assert option in help_text


@pytest.mark.exhaustive
def test_what_could_not_be_saved_is_part_of_the_next_save(tmp_path: Path) -> None:
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        endpoint = cloud.ready.aws["endpoint"]
        control(endpoint, "save")
        holder = sqlite3.connect(tmp_path / "data" / "state.sqlite", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        put(cloud, "unsaved")
        eventually(
            lambda: (
                "factbook: the state cannot be saved: database is locked" in cloud.ready.output.read_text()
            )
        )
        before = control(endpoint, "saves")["count"]
        assert cloud.do("describe").status == 200
        holder.execute("ROLLBACK")
        holder.close()
        eventually(lambda: control(endpoint, "saves")["count"] > before)
        cloud.ready.kill()
    with probe_cloud(tmp_path, data=tmp_path / "data") as cloud:
        assert items(cloud) == {"unsaved"}
        eventually(lambda: cloud.records("unsaved"))
