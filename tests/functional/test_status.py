"""What the status tells any token: how the caller's own records fare, at the price of one query, and no credentials."""

from dataclasses import replace

import pytest
from support.emulators import Aws
from support.principals import TenantService
from support.sdk_calls import recorded

from factbook.ports.retrieval.upkeep import Troubled

STATUS = "/v1/memory/status"


@pytest.fixture
def members(moto: Aws, tenant: str) -> TenantService:
    return TenantService(moto.services(), tenant)


def test_only_the_callers_own_records_are_counted(members: TenantService, tenant: str) -> None:
    backlog = members.services.searching.backlog
    for name, count in ((tenant, 3), (f"{tenant}-other", 5), (f"{tenant}|", 7)):
        for number in range(count):
            backlog.note(Troubled(name, f"f{number}", "facts", 1, "embedding"))
    backlog.note(Troubled(tenant, "final", "facts", 1, "embedding-refused"))

    assert members.of("ann").call("GET", STATUS).json["index"]["waiting"] == 3


def test_it_costs_one_query_whatever_waits(members: TenantService, tenant: str) -> None:
    caller = members.of("ann")
    caller.call("GET", STATUS)
    for number in range(40):
        members.services.searching.backlog.note(Troubled(tenant, f"f{number}", "facts", 1, "payload"))

    with recorded(members.services._dynamodb) as calls:
        assert caller.call("GET", STATUS).json["index"]["waiting"] == 40
    assert len(calls.of("Query")) == 1
    assert calls.of("Scan") == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@models.example:8080/v1?key=secret#secret", "https://models.example:8080/v1"),
        ("https://secret@models.example/v1/", "https://models.example/v1/"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
    ],
)
def test_the_url_of_the_embeddings_is_shown_without_credentials(
    members: TenantService, url: str, shown: str
) -> None:
    members.services.settings = replace(
        members.services.settings,
        search_sqlite="index.sqlite",
        memory_embeddings="openai-compat",
        memory_embeddings_url=url,
        memory_embeddings_model="m",
    )
    answer = members.of("ann").call("GET", STATUS)

    assert "secret" not in answer.text
    assert answer.json["search"].endswith(f"(openai-compat m at {shown})")
