"""The operator's commands against a deployed stack: ministack's CloudFormation, KMS and tables."""

import http.server
import json
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import Mock

import pytest
from cryptography.hazmat.primitives.serialization import load_der_public_key
from support.emulators import Aws
from support.gateway import ROOT

from factbook.verify.notes import read_key
from factbook_cli.api import Api
from factbook_cli.main import COMMANDS, main
from factbook_local.testing import Ready

ORIGIN = "factbook.acme"


@dataclass(frozen=True)
class Deployed:
    """A stack with the parameter and the outputs that the commands read."""

    name: str
    aws: Aws
    signing_key: str


@pytest.fixture
def deployed(ministack: Aws, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(ministack.endpoint))
    name = f"stack-{uuid.uuid4().hex[:8]}"
    template = {
        "Parameters": {"CheckpointOrigin": {"Type": "String"}},
        "Resources": {
            "SigningKey": {
                "Type": "AWS::KMS::Key",
                "Properties": {"KeySpec": "ECC_NIST_EDWARDS25519", "KeyUsage": "SIGN_VERIFY"},
            }
        },
        "Outputs": {
            "SigningKeyId": {"Value": {"Ref": "SigningKey"}},
            "AccessTable": {"Value": ministack.settings.access_table},
        },
    }
    client = ministack.client("cloudformation")
    client.create_stack(
        StackName=name,
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": "CheckpointOrigin", "ParameterValue": ORIGIN}],
    )
    client.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    (stack,) = client.describe_stacks(StackName=name)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
    return Deployed(name, ministack, outputs["SigningKeyId"])


def test_the_verifier_key_of_a_stack_is_its_origin_and_the_public_half_of_its_signing_key(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vkey", "--stack", deployed.name]) == 0
    key = read_key(capsys.readouterr().out)
    der = deployed.aws.client("kms").get_public_key(KeyId=deployed.signing_key)["PublicKey"]

    assert key.name == ORIGIN
    assert key.public == load_der_public_key(der).public_bytes_raw()  # type: ignore[union-attr]


def test_the_key_and_the_origin_may_be_given_where_the_stack_may_not_be_read(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vkey", "--stack", deployed.name]) == 0
    assert main(["vkey", "--key", deployed.signing_key, "--origin", ORIGIN]) == 0
    of_stack, of_key = capsys.readouterr().out.splitlines()
    assert of_stack == of_key


def test_the_verifier_key_of_a_running_service_is_the_one_its_checkpoints_are_signed_with(
    local_service: Ready, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    where = ["--url", local_service.url, "--token", local_service.tokens["demo"]]
    entries = {"entries": [{"kind": "tool-call", "payload": {}}]}
    Api(local_service.url, local_service.tokens["demo"]).post(entries, "v1", "memory", "runs", "r1", "log")
    assert main(["log", "checkpoint", "--out", str(tmp_path / "note"), *where]) == 0
    capsys.readouterr()
    assert main(["vkey", *where]) == 0
    assert capsys.readouterr().out == local_service.vkey + "\n"


def test_the_first_token_goes_into_the_access_table_of_the_stack(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["token", "--stack", deployed.name, "--tenant", "acme", "--user", "alice"]) == 0
    token = capsys.readouterr().out.strip()
    holder = deployed.aws.services().authenticator.authenticate({"authorization": f"Bearer {token}"})
    assert (holder.tenant, holder.name, holder.admin) == ("acme", "user:alice", True)


REFUSED = {
    "no such stack": (["vkey", "--stack", "nowhere"], "nowhere"),
    "no such key": (["vkey", "--key", str(uuid.uuid4()), "--origin", ORIGIN], "AWS_REGION"),
    "no such table": (["token", "--table", "nowhere", "--tenant", "acme"], "AWS_REGION"),
    "no ready file": (["index", "status", "--ready-file", "/nowhere"], "`factbook local"),
    "another file": (["index", "status", "--ready-file", str(ROOT / "README.md")], "no ready file"),
    "JSON that is none": (["index", "status", "--ready-file", str(ROOT / "openapi.json")], "no ready file"),
}
EXPORT = ["log", "export", "--url", "http://127.0.0.1:1", "--token", "t"]
NOT_MEANT = {
    "a key without its name": (["vkey", "--key", "k"], "--origin"),
    "a name without its key": (["vkey", "--origin", ORIGIN], "--key"),
    "no service": (["vkey"], "FACTBOOK_URL"),
    "no deployment": (["vkey"], "--stack"),
    "no address": (["log", "export", "--all", "--out", "o", "--url", "x", "--token", "t"], "http://"),
    "no folder": ([*EXPORT, "--all", "--out", "/nowhere/o"], "no folder /nowhere"),
    "a folder": ([*EXPORT, "--all", "--out", "/tmp"], "is a folder"),
    "a device": ([*EXPORT, "--all", "--out", "/dev/null"], "no regular file"),
    "the terminal": ([*EXPORT, "--all", "--out", "/dev/stdout"], "no regular file"),
    "a pipe": ([*EXPORT, "--all", "--out", "-"], "no regular file"),
    "a note's folder": (["log", "checkpoint", *EXPORT[2:], "--out", "/nowhere/o"], "no folder /nowhere"),
    "a note for all": ([*EXPORT, "--all", "--out", "o", "--checkpoint", "n"], "goes with --run"),
    "no note": ([*EXPORT, "--run", "r", "--out", "o", "--checkpoint", "/nowhere"], "cannot be read"),
    "another file as a note": (
        [*EXPORT, "--run", "r", "--out", "o", "--checkpoint", str(ROOT / "README.md")],
        "no checkpoint",
    ),
}


@pytest.mark.parametrize("case", [*REFUSED, *NOT_MEANT])
def test_what_is_in_the_way_is_one_line_and_exit_code_1_or_2_where_the_line_cannot_be_meant(
    deployed: Deployed, capsys: pytest.CaptureFixture[str], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FACTBOOK_URL", "FACTBOOK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    words, told = REFUSED.get(case) or NOT_MEANT[case]
    assert main(words) == (1 if case in REFUSED else 2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"factbook {words[0]}: ")
    assert printed.err.count("\n") == 1
    assert told in printed.err


@pytest.mark.parametrize("name", ["token", "user"])
def test_a_token_is_made_for_somebody(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["token", "--table", "t", "--tenant", "acme", f"--{name.replace('token', 'tenant')}", ""])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_runners_commands_are_said_to_need_the_repository(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factbook_cli.main.known_commands", lambda: COMMANDS)
    with pytest.raises(SystemExit) as ended:
        main(["local"])
    assert ended.value.code == 2
    assert "need the repository: make install" in capsys.readouterr().err


def test_a_failed_export_is_told_once_and_leaves_no_file(
    local_service: Ready, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = local_service.tokens["demo"]
    strangers = f"fb_{'0' * 16}_{'s' * 43}"
    for what, given, told in (
        (["--all"], strangers, "ask an administrator"),
        (["--run", "r"], "nope", "ask an administrator"),
        (["--run", "bad id!"], token, "cannot stand in a path"),
        (["--run", "bad id!", "--as-is"], token, "cannot stand in a path"),
        (["--run", "no-such-run"], token, "No such run"),
    ):
        where = ["--out", str(tmp_path / "out"), "--url", local_service.url, "--token", given]
        assert main(["log", "export", *what, *where]) == 1
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1), printed.err
        assert told in printed.err
        assert list(tmp_path.iterdir()) == []


def test_an_export_to_a_link_is_written_where_it_points_and_the_link_stays(
    local_service: Ready, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    where = ["--url", local_service.url, "--token", local_service.tokens["demo"]]
    assert main(["log", "export", "--all", "--as-is", "--quiet", "--out", str(link), *where]) == 0
    assert link.is_symlink()
    assert (tmp_path / "target").read_text().startswith('{"format":')
    assert {each.name for each in tmp_path.iterdir()} == {"link", "target"}


def test_a_service_that_is_another_server_is_said_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = ["--url", f"http://127.0.0.1:{server.server_address[1]}", "--token", "t"]
        assert main(["log", "export", "--all", "--out", str(tmp_path / "out"), *where]) == 1
        server.shutdown()
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("factbook")]
    assert told == ["factbook log: The service answered 501. Is it the service's URL? (unknown)"]
    assert list(tmp_path.iterdir()) == []


def test_a_ready_file_of_a_service_that_has_ended_is_told_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    functions = {"endpoint": "http://127.0.0.1:9", "index": "factbook-IndexFunction"}
    aws = {"region": "us-east-1", "accessKeyId": "x", "secretAccessKey": "y", "functions": functions}
    ready_file = tmp_path / "ready.json"
    ready_file.write_text(json.dumps({"aws": aws}))
    assert main(["index", "status", "--ready-file", str(ready_file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"Is `factbook local --ready-file {ready_file}` still running?")


def test_an_option_in_the_place_of_a_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--verison"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "factbook: there is no option --verison. See factbook --help.\n"


def test_an_export_that_cannot_be_written_leaves_the_former_one(
    local_service: Ready, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_text("former")
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr("factbook_cli.export.Export.everything", full)
    where = ["--url", local_service.url, "--token", local_service.tokens["demo"]]
    assert main(["log", "export", "--all", "--out", str(tmp_path / "out"), *where]) == 1
    assert (
        capsys.readouterr().err
        == f"factbook log: {tmp_path / 'out'} cannot be written: No space left on device.\n"
    )
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("out", "former")]


def test_a_symmetric_key_is_no_signing_key(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    other = deployed.aws.client("kms").create_key()["KeyMetadata"]["KeyId"]
    assert main(["vkey", "--key", other, "--origin", ORIGIN]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_stack_that_lacks_what_a_command_needs_is_named(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "status", "--stack", deployed.name]) == 1
    assert "no output IndexFunction" in capsys.readouterr().err


def test_the_template_has_every_value_that_the_commands_read() -> None:
    parameters, _, outputs = (ROOT / "template.yaml").read_text().partition("\nOutputs:\n")
    assert "\n  CheckpointOrigin:\n" in parameters
    for line in (
        "  SigningKeyId: {Value: !Ref SigningKey}",
        "  AccessTable: {Value: !Ref AccessTable}",
        "  IndexFunction: {Value: !Ref IndexFunction}",
    ):
        assert line in outputs.splitlines()
