"""`factbook cost` against the service: the units it multiplies are those that a recorded workload takes."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.fakes import FakeFacts
from support.gateway import Gateway
from support.logs import LogService
from support.principals import TenantService
from support.sdk_calls import Calls, put_units, recorded
from support.search_world import World, admin

from factbook.usecases.policy.policies import KnownPolicies
from factbook_cli.cost import OPERATIONS

FACTS = "/v1/memory/facts"


@pytest.fixture
def writer(service: TenantService) -> Gateway:
    """A person whose token and policy this process knows: what is counted is the operation alone."""
    short = TenantService(service.services, f"t{uuid.uuid4().hex[:8]}")  # a name as long as tenants have
    service.services.policies = KnownPolicies(service.services.policies, lambda: 0.0)
    service.services.policies.policy(short.tenant)
    caller = short.of("ann", writes=["support"])
    caller.call("GET", "/v1/identity/whoami")
    return caller


def written(caller: Gateway) -> Any:
    body = {"type": "acme.preference", "scope": {"projectId": "support"}, "content": {"text": "tea"}}
    reply = caller.call("POST", FACTS, body)
    assert reply.status == 201, reply.text
    return reply.json


def units(calls: Calls) -> tuple[float, float]:
    """Write units and read units. A query of a small partition is half a unit, as it is eventually consistent."""
    queries = [
        call for call in calls.of("Query") if "AccessTable" not in call.params["TableName"]
    ]  # what is known for seconds
    return calls.write_units, len(calls.of("GetItem")) + calls.items_fetched + len(queries) / 2


def priced(operation: str) -> tuple[float, float]:
    counted = OPERATIONS[operation][1]
    return counted.writes, counted.reads


def test_writes_and_reads_of_facts_take_the_units_that_are_priced(
    service: TenantService, writer: Gateway
) -> None:
    client, fact = service.services._dynamodb, written(writer)
    with recorded(client) as calls:
        written(writer)
    assert units(calls) == priced("facts")
    for path, body in (("supersede", {"content": {"text": "milk"}}), ("verify", {})):
        with recorded(client) as calls:
            assert writer.call("POST", f"{FACTS}/{fact['id']}/{path}", body).status == 200
        assert units(calls) == priced("changes")
    with recorded(client) as calls:
        assert writer.call("GET", f"{FACTS}/{fact['id']}").status == 200
    assert units(calls) == priced("reads")


def test_a_memory_takes_the_units_that_are_priced(service: TenantService, writer: Gateway) -> None:
    said = {"agent": {"id": "copilot"}, "type": "acme.memory", "text": "Likes tea.", "key": "drink"}
    with recorded(service.services._dynamodb) as calls:
        assert writer.call("POST", "/v1/memory/remember", said).status == 201
    assert units(calls) == priced("remembers")


def test_a_message_takes_the_units_that_are_priced_with_the_mark_of_its_run(
    ministack: Aws, tmp_path: Path
) -> None:
    log = LogService(ministack, tmp_path)
    message = {
        "kind": "user-message",
        "payload": {"text": "tea"},
        "scope": {"projectId": "p", "threadId": "t"},
    }
    run = "/v1/memory/runs/r1/log"
    assert log.admin.call("POST", run, {"entries": [message]}).status == 201
    with recorded(log.services.logs._client("dynamodb")) as calls:
        assert log.admin.call("POST", run, {"entries": [message]}).status == 201
    (put,) = calls.of("PutItem")
    writes, reads = units(calls)
    mark = 1
    assert (put_units(put.params["TableName"], put.params["Item"]) + mark, reads) == priced("messages")
    assert writes == 2


def test_a_search_reads_back_as_many_facts_as_are_priced(
    new_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world: World = new_world()
    world.start()
    for number in range(40):
        world.write(admin(), f"tea number {number}")
    asked: list[int] = []
    heads = FakeFacts.heads

    def counted(facts: FakeFacts, tenant: str, ids: Any) -> Any:
        asked.append(len(ids))
        return heads(facts, tenant, ids)

    monkeypatch.setattr(FakeFacts, "heads", counted)
    assert len(world.find(admin(), "tea", mode="keyword", limit=10).facts) == 10
    assert (0, sum(asked)) == priced("searches")
