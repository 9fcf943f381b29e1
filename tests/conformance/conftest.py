"""One local service for the schema's public client and command line."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
from support.official import Client, CommandLine

from factbook_local.testing import Ready, running

NewToken = Callable[..., str]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    quick = {"ERASURE_SETTLE_SECONDS": "1"}  # an erasure is seen to its end
    with running(tmp_path_factory.mktemp("service"), ["sync", "async", "cli"], quick) as ready:
        yield ready


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, service: Ready) -> Iterator[Client]:
    """An administrator's client, in a tenant of its kind."""
    with Client(request.param, service.url, service.tokens[request.param], set()) as made:
        yield made


@pytest.fixture(scope="session")
def cli(service: Ready, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(service.url, service.tokens["cli"], tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="session")
def new_token(service: Ready) -> NewToken:
    """Make a token in a tenant: `new_token("sync", "user", "ann", projects={"read": ["p"]})`."""
    http = urllib3.PoolManager()

    def make(tenant: str, kind: str, name: str, **grants: Any) -> str:
        body = {"actor": {"kind": kind, "id": name}, **grants}
        headers = {"Authorization": f"Bearer {service.tokens[tenant]}"}
        answer = http.request(
            "POST", f"{service.url}/v1/access/tokens", body=json.dumps(body), headers=headers
        )
        assert answer.status == 201, answer.data
        return str(answer.json()["token"])

    return make


@pytest.fixture
def tenant(client: Client) -> str:
    return client._kind
