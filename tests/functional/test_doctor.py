"""`factbook doctor`: each thing that can be wrong is one line that says what to do, and the exit code says whether one is."""

import base64
import http.server
import json
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from support.emulators import Aws

from factbook_cli.main import main
from factbook_local.folder import DataFolder
from factbook_local.testing import Ready

SECRET = "s3cr3t"


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Answers whatever it is asked with what the test wants."""

    status = 200
    body: Any = None
    date = ""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        text = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        self.send_response_only(self.status)
        self.send_header("Date", self.date or formatdate(usegmt=True))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET  # noqa: N815 - the name is the library's

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def answering(body: Any, status: int = 200, date: str = "") -> Iterator[str]:
    handler = type("Answer", (Endpoint,), {"body": body, "status": status, "date": date})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Doctor:
    """The command with a free port, in an environment of the test's; what it found by subject."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._environment, self._capsys = monkeypatch, capsys
        for name in list(os.environ):
            if name.startswith(("MEMORY_", "KINDGI_", "OPENSEARCH_", "OIDC_", "FACTBOOK_")):
                monkeypatch.delenv(name)

    def __call__(self, *words: str, code: int, **environment: str) -> dict[str, tuple[str, str]]:
        for name, value in environment.items():
            self._environment.setenv(name, value)
        port = () if "--port" in words else ("--port", str(free_port()))
        assert main(["doctor", *port, "--json", *words]) == code
        self.printed = self._capsys.readouterr()
        assert self.printed.err == ""
        found = json.loads(self.printed.out)
        assert all("\n" not in each["said"] for each in found)
        assert (code == 1) == any(each["state"] == "wrong" for each in found)
        return {each["subject"]: (each["state"], each["said"]) for each in reversed(found)}


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(monkeypatch, capsys)


def test_without_options_it_looks_at_the_settings_and_the_port_and_says_what_it_did_not_see(
    doctor: Doctor,
) -> None:
    found = doctor(code=0)
    assert {subject: state for subject, (state, _) in found.items()} == {
        "version": "ok",
        "settings": "ok",
        "folder": "unseen",
        "port": "ok",
        "service": "unseen",
        "account": "unseen",
        "clock": "unseen",
    }
    assert found["account"] == ("unseen", "give --stack")


def test_it_says_each_finding_in_a_line_and_how_many_are_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDINGS", "true")
    assert main(["doctor", "--port", str(free_port())]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[1]
        == "wrong   settings    MEMORY_EMBEDDINGS must be openai-compat, bedrock, built-in or none, or be left out."
    )
    assert lines[-1] == "1 of this is wrong."


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"MEMORY_EMBEDDINGS": "openai-compat"}, "MEMORY_EMBEDDINGS is on without MEMORY_EMBEDDINGS_URL"),
        (
            {"MEMORY_EMBEDINGS": "openai-compat"},
            "There is no setting MEMORY_EMBEDINGS: is it MEMORY_EMBEDDINGS?",
        ),
        ({"OPENSEARCH_URL": "localhost:9200"}, "OPENSEARCH_URL is no http or https URL"),
    ],
)
def test_a_setting_that_cannot_be_used_is_wrong(
    doctor: Doctor, environment: dict[str, str], said: str
) -> None:
    state, told = doctor(code=1, **environment)["settings"]
    assert state == "wrong"
    assert told.startswith(said)


VECTOR = {"data": [{"index": 0, "embedding": [0.1, 0.2, 0.3]}]}
EMBEDDINGS = [
    (VECTOR, 200, "ok", "m at {url}/v1: 3 dimensions"),
    (SECRET, 401, "wrong", "{url}/v1 refuses the key (401). Correct MEMORY_EMBEDDINGS_API_KEY."),
    (
        SECRET,
        404,
        "wrong",
        (
            "{url}/v1 has no such route or no such model (404). Correct MEMORY_EMBEDDINGS_URL, which mostly ends in /v1, "
            "or MEMORY_EMBEDDINGS_MODEL."
        ),
    ),
    (SECRET, 500, "wrong", "{url}/v1 answers 500. Look at its log, and at the name of the model."),
    (SECRET, 200, "wrong", "{url}/v1 answers no embedding. Is it an endpoint of OpenAI's form?"),
    (b"[" * 100_000, 200, "wrong", "{url}/v1 answers no embedding. Is it an endpoint of OpenAI's form?"),
    (b"<html>", 200, "wrong", "{url}/v1 answers no embedding. Is it an endpoint of OpenAI's form?"),
    ({"data": [{"embedding": SECRET}]}, 200, "wrong", "{url}/v1 answers no embedding."),
]


@pytest.mark.parametrize(("body", "status", "state", "said"), EMBEDDINGS)
def test_the_embeddings_endpoint_is_asked_for_one_vector(
    doctor: Doctor, body: Any, status: int, state: str, said: str
) -> None:
    with answering(body, status) as url:
        found = doctor(
            code=int(state == "wrong"),
            MEMORY_EMBEDDINGS="openai-compat",
            MEMORY_EMBEDDINGS_URL=f"{url.replace('//', f'//user:{SECRET}@')}/v1",
            MEMORY_EMBEDDINGS_MODEL="m",
            MEMORY_EMBEDDINGS_API_KEY=SECRET,
        )
    assert found["embeddings"][0] == state
    assert found["embeddings"][1].startswith(said.format(url=url))
    assert SECRET not in doctor.printed.out


def test_an_endpoint_that_does_not_answer_is_wrong(doctor: Doctor) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    found = doctor(
        code=1,
        MEMORY_EMBEDDINGS="openai-compat",
        MEMORY_EMBEDDINGS_URL=f"{url}/v1",
        MEMORY_EMBEDDINGS_MODEL="m",
        OPENSEARCH_URL=url,
    )
    assert found["embeddings"] == (
        "wrong",
        f"{url}/v1 does not answer: Connection refused. Start it, or correct MEMORY_EMBEDDINGS_URL.",
    )
    assert found["search"] == (
        "wrong",
        f"{url} does not answer: Connection refused. Start it, or correct OPENSEARCH_URL.",
    )


def test_a_key_that_is_a_secrets_arn_is_left_to_the_functions(doctor: Doctor) -> None:
    found = doctor(
        code=0,
        MEMORY_EMBEDDINGS="openai-compat",
        MEMORY_EMBEDDINGS_URL="http://127.0.0.1:9/v1",
        MEMORY_EMBEDDINGS_MODEL="m",
        MEMORY_EMBEDDINGS_API_KEY="arn:aws:secretsmanager:eu-west-1:1:secret:k",
    )
    assert found["embeddings"][0] == "unseen"


def version(number: str, distribution: str = "opensearch") -> Any:
    return {"version": {"number": number, "distribution": distribution}}


SEARCHES = [
    (version("2.19.6"), 200, "ok", "OpenSearch 2.19.6 at {url}"),
    (version("1.3.0"), 200, "wrong", "{url} is OpenSearch 1.3.0: version 2 or later is needed."),
    (version("8.1", "default"), 200, "wrong", "{url} is no OpenSearch service (it answers 200)."),
    (version("x" + SECRET), 200, "wrong", "{url} is no OpenSearch service (it answers 200)."),
    (SECRET, 401, "wrong", "{url} refuses the request (401). Look at its access policy."),
    (b"<html>", 404, "wrong", "{url} is no OpenSearch service (it answers 404). Correct OPENSEARCH_URL."),
]


@pytest.mark.parametrize(("body", "status", "state", "said"), SEARCHES)
def test_the_search_index_is_asked_who_it_is(
    doctor: Doctor, body: Any, status: int, state: str, said: str
) -> None:
    with answering(body, status) as url:
        found = doctor(code=int(state == "wrong"), OPENSEARCH_URL=url)
    assert found["search"][0] == state
    assert found["search"][1].startswith(said.format(url=url))
    assert SECRET not in doctor.printed.out


def public_key() -> dict[str, str]:
    modulus = rsa.generate_private_key(65537, 2048).public_key().public_numbers().n
    return {
        "kty": "RSA",
        "kid": "r",
        "e": "AQAB",
        "n": base64.urlsafe_b64encode(modulus.to_bytes(256)).decode().rstrip("="),
    }


RSA = public_key()
KEYS = [
    ([RSA], "ok", "{url}: 1 of 1 keys can sign access tokens"),
    ([RSA | {"use": "enc"}, RSA | {"alg": "RS256"}, {"kty": SECRET}], "ok", "{url}: 1 of 3 keys can sign"),
    ([], "wrong", "{url} publishes no key for signatures by RS256,ES256 (0 keys in all). Have it sign"),
    (
        [RSA | {"use": "enc"}],
        "wrong",
        "{url} publishes no key for signatures by RS256,ES256 (1 keys in all).",
    ),
    ([RSA | {"alg": "PS512"}], "wrong", "{url} publishes no key for signatures by RS256,ES256 (1 keys"),
    ([{"kty": "oct", "k": SECRET}], "wrong", "{url} publishes no key for signatures by RS256,ES256 (1 keys"),
    (
        SECRET,
        "wrong",
        "{document} leads to no keys: the issuer publishes no list of keys. Start the issuer, or correct",
    ),
]


def signed_on(issuer: str) -> dict[str, str]:
    return {"OIDC_ISSUER": issuer, "OIDC_AUDIENCE": "me", "OIDC_CLAIMS": '{"tenant": "tid"}'}


@contextmanager
def issuing(**said: Any) -> Iterator[str]:
    """An issuer whose discovery document says where it is and where its keys are: in the same document."""
    body: dict[str, Any] = {}
    with answering(body) as url:
        issuer = f"{url}/realms/acme"
        body |= {"issuer": issuer, "jwks_uri": f"{url}/keys"} | said
        yield issuer


def document(issuer: str) -> str:
    return f"{issuer}/.well-known/openid-configuration"


@pytest.mark.parametrize(("keys", "state", "said"), KEYS)
def test_the_issuer_is_asked_for_its_keys(doctor: Doctor, keys: Any, state: str, said: str) -> None:
    with issuing(keys=keys) as issuer:
        found = doctor(code=int(state == "wrong"), **signed_on(issuer))
    assert found["sign-on"][0] == state
    assert found["sign-on"][1].startswith(said.format(url=issuer, document=document(issuer)))
    assert SECRET not in doctor.printed.out


def test_an_issuer_that_names_itself_otherwise_is_wrong(doctor: Doctor) -> None:
    with issuing(issuer=f"https://{SECRET}.example", keys=[RSA]) as issuer:
        found = doctor(code=1, **signed_on(issuer))
    assert found["sign-on"] == (
        "wrong",
        f"{document(issuer)} is of another issuer. Give OIDC_ISSUER to the letter as issuer stands there.",
    )
    assert SECRET not in doctor.printed.out


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"jwks_uri": "http://keys.example/"}, "the issuer names an address that is not https"),
        ({"keys": "none"}, "the issuer publishes no list of keys"),
    ],
)
def test_an_issuer_whose_document_leads_to_no_keys_is_wrong(
    doctor: Doctor, said: dict[str, str], why: str
) -> None:
    with issuing(**said) as issuer:
        found = doctor(code=1, **signed_on(issuer))
    assert found["sign-on"] == (
        "wrong",
        (
            f"{document(issuer)} leads to no keys: {why}. Start the issuer, or correct OIDC_ISSUER; "
            "the document is to name the keys' address as jwks_uri."
        ),
    )


def test_an_issuer_that_does_not_answer_is_wrong(doctor: Doctor) -> None:
    issuer = f"http://user:{SECRET}@127.0.0.1:{free_port()}"
    state, said = doctor(code=1, **signed_on(issuer))["sign-on"]
    assert state == "wrong"
    assert "leads to no keys: the issuer cannot be reached (NewConnectionError). Start the issuer" in said
    assert SECRET not in doctor.printed.out


def test_an_issuer_with_settings_that_cannot_work_is_not_asked(doctor: Doctor) -> None:
    found = doctor(code=1, OIDC_ISSUER="https://login.example")
    assert "sign-on" not in found
    assert found["settings"][1].startswith("OIDC_AUDIENCE and OIDC_CLAIMS is missing")


def test_a_running_service_is_asked_who_the_token_is_and_what_it_says_of_itself(
    doctor: Doctor, local_service: Ready
) -> None:
    port = local_service.url.rpartition(":")[2]
    found = doctor(
        "--url", local_service.url, "--token", local_service.tokens["demo"], "--port", port, code=0
    )
    assert found["service"] == ("ok", f"{local_service.url} answers")
    assert found["token"] == ("ok", "user:admin of tenant demo, an administrator")
    assert found["search"][1].startswith("Memory search: keyword")
    assert found["port"] == ("ok", f"{port} is that of a Factbook that runs")
    assert found["clock"][0] == "ok"
    assert local_service.tokens["demo"] not in doctor.printed.out


def test_a_ready_file_names_the_service(doctor: Doctor, local_service: Ready, tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    tenants = {"demo": {"token": local_service.tokens["demo"]}}
    ready_file.write_text(json.dumps({"url": local_service.url, "tenants": tenants}))
    assert doctor("--ready-file", str(ready_file), code=0)["token"][0] == "ok"


def test_a_wrong_token_is_wrong_and_never_shown(doctor: Doctor, local_service: Ready) -> None:
    found = doctor("--url", local_service.url, "--token", SECRET, code=1)
    assert found["token"] == (
        "wrong",
        (
            "The token (--token or FACTBOOK_TOKEN) is not one of this service; ask an administrator for one. "
            "(auth-missing)"
        ),
    )
    assert SECRET not in doctor.printed.out


def test_another_server_is_no_factbook(doctor: Doctor) -> None:
    with answering({"hello": 1}, 404) as url:
        found = doctor("--url", url, "--token", SECRET, code=1)
    assert found["service"] == (
        "wrong",
        f"{url} is no Factbook: GET /health answers 404. Correct the URL.",
    )


def test_a_clock_that_is_off_is_said_with_how_much_and_which_way(doctor: Doctor) -> None:
    for away, said in ((-3600, "ahead of"), (3600, "behind")):
        with answering({"ok": True}, date=formatdate(time.time() + away, usegmt=True)) as url:
            state, told = doctor("--url", url, "--token", SECRET, code=1)["clock"]
        assert state == "wrong"
        assert f" s {said} that of the service. Set the clock" in told


def test_a_port_that_another_program_has_is_wrong(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        found = doctor("--port", port, code=1)
    assert found["port"] == (
        "wrong",
        (
            f"{port} cannot be used: Address already in use. Stop what holds it, or give `factbook local` another "
            "--port."
        ),
    )


def test_a_data_folder_that_is_whole_is_ok_and_says_who_has_it(doctor: Doctor, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert doctor("--data", str(data), code=0)["folder"] == ("ok", f"{data}: the first start makes it")
    folder = DataFolder(data)
    assert doctor("--data", str(data), code=0)["folder"] == ("ok", f"{data}: in use by process {os.getpid()}")
    folder.close()
    assert doctor("--data", str(data), code=0)["folder"] == ("ok", f"{data}: not in use")


FAULTS = {
    "secret": (b"", "is damaged: it has 0 bytes, not 32."),
    "format": (b"factbook local data 99", "holds 'factbook local data 99'"),
    "state.sqlite": (b"x" * 5000, "is damaged (file is not a database). Put it back from a copy"),
    "search/index.sqlite": (b"x" * 5000, "is damaged (file is not a database). Remove it"),
    "checkpoint-key.pem": (b"no key", "is damaged: it holds no Ed25519 key in PEM."),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_of_a_data_folder_that_is_damaged_is_wrong_and_stays_as_it_is(
    doctor: Doctor, tmp_path: Path, name: str
) -> None:
    DataFolder(tmp_path / "data").close()
    file = tmp_path / "data" / name
    text, said = FAULTS[name]
    file.write_bytes(text)
    file.chmod(0o600)
    state, told = doctor("--data", str(tmp_path / "data"), code=1)["folder"]
    assert state == "wrong"
    assert said in told
    assert file.read_bytes() == text


def test_a_folder_of_another_or_one_that_others_may_read_is_wrong(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert (
        "is not empty and not a Factbook data folder" in doctor("--data", str(tmp_path), code=1)["folder"][1]
    )
    data = tmp_path / "data"
    DataFolder(data).close()
    (data / "secret").chmod(0o644)
    assert doctor("--data", str(data), code=1)["folder"] == (
        "wrong",
        "others may read secret. The next start takes that right away.",
    )
    shutil.rmtree(data)
    assert "cannot be made" in doctor("--data", "/nowhere/data", code=1)["folder"][1]


@pytest.fixture
def stack(ministack: Aws, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(ministack.endpoint))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    name = f"stack-{uuid.uuid4().hex[:8]}"
    outputs = {each: {"Value": "v"} for each in ("AccessTable", "IndexFunction", "SigningKeyId")}
    topic = {"Topic": {"Type": "AWS::SNS::Topic"}}
    client = ministack.client("cloudformation")
    client.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": topic, "Outputs": outputs}))
    client.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    return name


def test_a_stack_its_credentials_and_the_clock_are_looked_at(doctor: Doctor, stack: str) -> None:
    found = doctor("--stack", stack, code=0)
    assert found["credentials"][0] == "ok"
    assert found["stack"] == ("ok", f"{stack} is there")
    assert SECRET not in doctor.printed.out


def test_a_stack_that_is_not_there_is_wrong(doctor: Doctor, stack: str) -> None:
    state, told = doctor("--stack", f"{stack}-x", code=1)["stack"]
    assert state == "wrong"
    assert told.endswith("Check the name and AWS_REGION.")


def test_missing_credentials_are_wrong(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    nowhere = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    found = doctor("--stack", "s", code=1, **nowhere)
    assert found["credentials"] == ("wrong", "Unable to locate credentials. Sign in, or set AWS_PROFILE.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--url", "http://127.0.0.1:9"], "--url and --token belong together"),
        (["--ready-file", "/nowhere/ready.json"], "cannot be read: No such file or directory."),
        (["--ready-file", "pyproject.toml"], "is not what `factbook local` wrote."),
    ],
)
def test_half_a_service_or_another_file_is_a_command_line_that_cannot_be_meant(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FACTBOOK_URL", "FACTBOOK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["doctor", *words]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert said in printed.err
