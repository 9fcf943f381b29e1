"""`factbook index roles`: what is asked of a search domain so that the functions of a stack get in, and who asks."""

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from support.emulators import Aws

from factbook_cli.main import main

ADMIN = "arn:aws:iam::000000000000:role/search-admin"
DOMAIN = "arn:aws:es:eu-west-1:000000000000:domain/factbook"
FUNCTIONS = ("Retrieve", "Read", "Erase", "Index")


@dataclass
class Domain:
    """Takes what is put, and answers `status`."""

    url: str = ""
    status: int = 201
    put: dict[str, Any] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def serving(domain: Domain) -> Iterator[Domain]:
    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            domain.put[self.path] = json.loads(body)
            domain.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(domain.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    domain.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield domain
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def domain(ministack: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Domain]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(ministack.endpoint))
    with serving(Domain()) as made:
        yield made


def stack(aws: Aws, **outputs: str) -> str:
    """A stack with these outputs."""
    name = f"stack-{uuid.uuid4().hex[:8]}"
    roles = {f"{each}RoleArn": f"arn:aws:iam::000000000000:role/{each}" for each in FUNCTIONS}
    template = {
        "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {output: {"Value": value} for output, value in (roles | outputs).items()},
    }
    client = aws.client("cloudformation")
    client.create_stack(StackName=name, TemplateBody=json.dumps(template))
    client.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    return name


def test_each_function_gets_a_role_that_reaches_factbooks_indexes_alone(
    domain: Domain, ministack: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    name = stack(ministack, SearchUrl=domain.url, SearchDomainArn=DOMAIN, SearchAdminRoleArn=ADMIN)
    assert main(["index", "roles", "--stack", name]) == 0

    api = "/_plugins/_security/api"
    assert domain.put.keys() == {
        f"{api}/{kind}/factbook_{name}_{each.lower()}"
        for each in FUNCTIONS
        for kind in ("roles", "rolesmapping")
    }
    for each in FUNCTIONS:
        role = domain.put[f"{api}/roles/factbook_{name}_{each.lower()}"]
        mapped = domain.put[f"{api}/rolesmapping/factbook_{name}_{each.lower()}"]
        assert mapped == {"backend_roles": [f"arn:aws:iam::000000000000:role/{each}"]}
        (allowed,) = role["index_permissions"]
        assert allowed["index_patterns"] == ["factbook*"]
        assert ("indices_all" in allowed["allowed_actions"]) == (each == "Index")
        assert ("crud" in allowed["allowed_actions"]) == (each == "Erase")
    assert capsys.readouterr().out.count("has the role") == len(FUNCTIONS)


def test_it_asks_as_the_administrator_of_the_domain_in_the_domains_region(
    domain: Domain, ministack: Aws
) -> None:
    name = stack(ministack, SearchUrl=domain.url, SearchDomainArn=DOMAIN, SearchAdminRoleArn=ADMIN)
    assert main(["index", "roles", "--stack", name]) == 0
    for headers in domain.headers:
        assert "/eu-west-1/es/aws4_request" in headers["authorization"]
        assert headers["x-amz-security-token"]  # of the role: the shell has none


def test_a_domain_that_was_there_is_asked_by_the_shell_or_by_the_role_that_is_named(
    domain: Domain, ministack: Aws
) -> None:
    name = stack(ministack, OpenSearchUrl=domain.url, OpenSearchDomainArn=DOMAIN)
    assert main(["index", "roles", "--stack", name]) == 0
    assert not any("x-amz-security-token" in headers for headers in domain.headers)
    domain.headers.clear()
    assert main(["index", "roles", "--stack", name, "--admin-role", ADMIN]) == 0
    assert all("x-amz-security-token" in headers for headers in domain.headers)


@pytest.mark.parametrize(
    ("status", "told"), [(403, "--admin-role"), (401, "--admin-role"), (404, "fine-grained access control")]
)
def test_a_domain_that_refuses_is_told_of_in_one_line(
    domain: Domain, ministack: Aws, capsys: pytest.CaptureFixture[str], status: int, told: str
) -> None:
    domain.status = status
    name = stack(ministack, SearchUrl=domain.url, SearchDomainArn=DOMAIN)
    assert main(["index", "roles", "--stack", name]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert told in line


def test_a_stack_without_a_domain_and_a_domain_that_is_away_are_told_of(
    domain: Domain, ministack: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "roles", "--stack", stack(ministack)]) == 1
    assert "searches in no domain" in capsys.readouterr().err
    away = stack(ministack, SearchUrl="http://127.0.0.1:1", SearchDomainArn=DOMAIN)
    assert main(["index", "roles", "--stack", away]) == 1
    assert "does not answer" in capsys.readouterr().err
