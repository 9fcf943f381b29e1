"""What the status tells any token: how the caller's own records fare, at the price of one query, and no credentials."""

from dataclasses import replace

import pytest
from support.emulators import Aws
from support.principals import House
from support.sdk_calls import recorded

from factbook.ports.retrieval.upkeep import Troubled

STATUS = "/v1/memory/status"


@pytest.fixture
def own_house(moto: Aws, tenant: str) -> House:
    return House(moto.services(), tenant)


def test_only_the_callers_own_records_are_counted(own_house: House, tenant: str) -> None:
    backlog = own_house.services.searching.backlog
    for name, count in ((tenant, 3), (f"{tenant}-other", 5), (f"{tenant}|", 7)):
        for number in range(count):
            backlog.note(Troubled(name, f"f{number}", "facts", 1, "embedding"))
    backlog.note(Troubled(tenant, "final", "facts", 1, "embedding-refused"))

    assert own_house.of("ann").call("GET", STATUS).json["index"]["waiting"] == 3


def test_it_costs_one_query_whatever_waits(own_house: House, tenant: str) -> None:
    caller = own_house.of("ann")
    caller.call("GET", STATUS)
    for number in range(40):
        own_house.services.searching.backlog.note(Troubled(tenant, f"f{number}", "facts", 1, "payload"))

    with recorded(own_house.services._dynamodb) as calls:
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
    own_house: House, url: str, shown: str
) -> None:
    own_house.services.settings = replace(
        own_house.services.settings,
        memory_embeddings="openai-compat",
        memory_embeddings_url=url,
        memory_embeddings_model="m",
    )
    answer = own_house.of("ann").call("GET", STATUS)

    assert "secret" not in answer.text
    assert answer.json["search"].endswith(f"(openai-compat m at {shown})")
