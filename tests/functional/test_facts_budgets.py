"""What each operation may cost, counted at the SDK: calls, bytes, rows and write units computed from item sizes."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import Gateway
from support.principals import TenantService
from support.sdk_calls import KILOBYTE, Calls, index_entries, item_size, put_units, recorded

from factbook.adapters.dynamodb.client import to_item
from factbook.adapters.facts.dynamodb_items import head_item
from factbook.domain import times
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import FactChanges, Payload, Retention
from factbook.domain.facts.transitions import open_fact
from factbook.domain.scope import Scope
from factbook.domain.strict_json import dump_json
from factbook.ports.facts.store import Head, Mark

FACTS = "/v1/memory/facts"
NEW_YEAR = "2026-01-01T00:00:00.000Z"
SCOPE = {"projectId": "support", "participantId": "end-7"}
LISTS = {"listing", "admin", "listing-type", "admin-type"}
SOURCE = {
    "kind": "http-api",
    "uri": "https://h/",
    "freshness": {"ttlSeconds": 60},
    "refresh": {"strategy": "background"},
}


@pytest.fixture
def writer(service: TenantService) -> Gateway:
    """A person with write on a project, whose token and policy this process knows, and what is being erased."""
    service.know()
    caller = service.of("ann", writes=["support"])
    caller.call("GET", "/v1/identity/whoami")
    return caller


def write(caller: Gateway, text: str = "x", key: str | None = None, **fields: Any) -> Any:
    body = {"type": "acme.preference", "scope": SCOPE, "content": {"text": text}, **fields}
    reply = caller.call("POST", FACTS, body, key=key)
    assert reply.status == 201, reply.text
    return reply.json


def stored(calls: Calls) -> dict[str, Any]:
    (put,) = calls.of("PutItem")
    item: dict[str, Any] = put.params["Item"]
    return item


def test_a_new_fact_of_a_kilobyte_is_one_round_trip_and_five_write_units(
    service: TenantService, writer: Gateway, ministack: Aws
) -> None:
    with recorded(service.services._dynamodb) as calls:
        write(writer, "x", key="k")
    room = KILOBYTE - item_size(stored(calls))
    with recorded(service.services._dynamodb) as calls:
        write(writer, "x" * (room - 1), key="l")  # two more digits say how long it is
    item = stored(calls)
    assert (calls.operations, calls.attempts) == (["PutItem"], 1)
    assert KILOBYTE - 2 <= item_size(item) <= KILOBYTE
    # The item, and newest first and by type, each by container and by tenant.
    assert set(index_entries(ministack.settings.facts_table, item)) == LISTS
    assert calls.write_units == 5
    assert calls.made[0].sent_bytes < 2 * KILOBYTE
    assert room > KILOBYTE // 4, "what a fact is kept with leaves room for what it says"


def test_the_store_keeps_little_more_of_a_fact_than_the_api_answers() -> None:
    tenant = "acme"
    scope = Scope(tenantId=tenant, **SCOPE)
    holder = Principal(tenant, Actor(kind="user", id="ann"))
    payload = Payload(text='{"text":"x"}', content_hash="sha256:" + "0" * 64, size=12)
    fact = open_fact(
        str(uuid.uuid4()), "note", scope, FactChanges(), payload, holder, "2026-01-01T00:00:00.000Z"
    )
    assert (
        item_size(to_item(head_item(Head(fact, life=1, subjects=())))) <= len(dump_json(fact.to_json())) + 64
    )


def test_a_source_costs_at_most_one_unit_more(service: TenantService, writer: Gateway) -> None:
    with recorded(service.services._dynamodb) as calls:
        write(writer, source=SOURCE)
    assert calls.operations == ["PutItem"]
    assert calls.write_units <= 6


@pytest.mark.parametrize(
    ("fields", "more"),
    [({"review": "pending"}, {"reviews"}), ({"retention": Retention(legal_hold=True)}, {"held"})],
    ids=["in review", "held"],
)
def test_what_waits_and_what_is_held_costs_one_unit_more(
    ministack: Aws, fields: dict[str, Any], more: set[str]
) -> None:
    scope = Scope(tenantId="acme", **SCOPE)
    holder = Principal("acme", Actor(kind="agent", id="scribe"))
    payload = Payload(text='{"text":"x"}', content_hash="sha256:" + "0" * 64, size=12)
    plain = open_fact(str(uuid.UUID(int=1)), "note", scope, FactChanges(), payload, holder, NEW_YEAR)
    table = ministack.settings.facts_table
    units = {}
    for fact in (plain, plain.model_copy(update=fields)):
        item = to_item(head_item(Head.first(fact, Mark("k" * 12, "b" * 12, 1))))
        units[frozenset(index_entries(table, item))] = put_units(table, item)
    assert units == {frozenset(LISTS): 5, frozenset(LISTS | more): 6}


def test_a_change_is_one_read_and_one_transaction(service: TenantService, writer: Gateway) -> None:
    fact = write(writer)["id"]
    for path, body in (("supersede", {"content": {"text": "y"}}), ("verify", {})):
        with recorded(service.services._dynamodb) as calls:
            assert writer.call("POST", f"{FACTS}/{fact}/{path}", body, key=path).status == 200
        assert (calls.operations, calls.attempts) == (["GetItem", "TransactWriteItems"], 2)
        puts = calls.made[1].params["TransactItems"]
        assert [set(put) for put in puts] == [{"Put"}, {"Put"}]
        # The closed revision, and the head with its entries in four indexes, each twice for the transaction.
        assert calls.write_units == 2 * (1 + 5)
    with recorded(service.services._dynamodb) as calls:
        assert writer.call("DELETE", f"{FACTS}/{fact}").status == 200
    assert calls.operations == ["GetItem", "PutItem"]


def test_a_refused_change_is_one_read_and_no_write(service: TenantService, writer: Gateway) -> None:
    fact = write(writer)["id"]
    with recorded(service.services._dynamodb) as calls:
        assert (
            writer.call("POST", f"{FACTS}/{fact}/supersede", {"content": 1, "expectVersion": 9}).status == 409
        )
        assert writer.call("POST", f"{FACTS}/{fact}/supersede", {"contents": 1}).status == 400
    assert calls.operations == ["GetItem"]


def test_a_replay_costs_one_call(service: TenantService, writer: Gateway) -> None:
    fact = write(writer, key="k")
    with recorded(service.services._dynamodb) as calls:
        assert write(writer, key="k") == fact
    assert (calls.operations, calls.attempts) == (["PutItem"], 1)
    writer.call("POST", f"{FACTS}/{fact['id']}/supersede", {"content": 1}, key="s")
    with recorded(service.services._dynamodb) as calls:
        writer.call("POST", f"{FACTS}/{fact['id']}/supersede", {"content": 1}, key="s")
    assert calls.operations == ["GetItem"]


def test_reading_by_id_is_one_read_for_a_version_too_and_a_search_by_time_takes_its_logarithm(
    service: TenantService, writer: Gateway
) -> None:
    fact = write(writer)
    for number in range(16):
        writer.call("POST", f"{FACTS}/{fact['id']}/supersede", {"content": number})
    for query, expected in (
        ({}, ["GetItem"]),
        ({"version": 17}, ["GetItem"]),
        ({"version": 3}, ["GetItem", "GetItem"]),  # the head tells of which life the revision is
    ):
        with recorded(service.services._dynamodb) as calls:
            assert writer.call("GET", f"{FACTS}/{fact['id']}", query=query).status == 200
        assert (calls.operations, calls.attempts) == (expected, len(expected))
    with recorded(service.services._dynamodb) as calls:
        assert (
            writer.call("GET", f"{FACTS}/{fact['id']}", query={"asOf": fact["updatedAt"]}).json["version"]
            == 1
        )
    assert set(calls.operations) == {"GetItem"}
    assert len(calls.operations) <= 1 + 5
    assert all(call.params["ConsistentRead"] for call in calls.made)


def test_a_token_is_one_look_up_in_its_first_use_and_none_after(service: TenantService) -> None:
    caller = service.of("bob")
    for expected in (["GetItem"], []):
        with recorded(service.services._dynamodb) as calls:
            caller.call("GET", "/v1/identity/whoami")
        assert calls.operations == expected


# -- lists


def seed(aws: Aws, tenant: str, projects: list[str], start: int = 0, kind: str = "note") -> None:
    """One fact in each of these projects, written past the API: their number is what matters."""
    holder = Principal(tenant, Actor(kind="service", id="seed"), admin=True)
    payload = Payload(text="1", content_hash="sha256:0", size=1)
    models = {}
    for project in set(projects):
        scope = Scope(tenantId=tenant, projectId=project)
        models[project] = open_fact(
            str(uuid.UUID(int=0)), kind, scope, FactChanges(), payload, holder, NEW_YEAR
        )
    requests = []
    for number, project in enumerate(projects, start):
        now = times.add(NEW_YEAR, milliseconds=number)
        fact = models[project].model_copy(update={"id": str(uuid.UUID(int=number)), "created_at": now})
        requests.append({"PutRequest": {"Item": to_item(head_item(Head(fact)))}})
    client, table = aws.client("dynamodb"), aws.settings.facts_table

    def put(at: int) -> None:
        answer = client.batch_write_item(RequestItems={table: requests[at : at + 25]})
        assert not answer["UnprocessedItems"]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(0, len(requests), 25)))


def page_cost(service: TenantService, caller: Gateway) -> tuple[int, int, int]:
    """Rows, queries and facts fetched of a first page."""
    caller.call("GET", FACTS)
    with recorded(service.services._dynamodb) as calls:
        assert len(caller.call("GET", FACTS).json["data"]) == 25
    assert len(calls.of("BatchGetItem")) == 1
    return calls.rows_read, len(calls.of("Query")), calls.items_fetched


@pytest.mark.parametrize("facts", [2_000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_a_page_costs_the_same_in_a_tenant_of_a_hundred_facts_and_of_many(
    service: TenantService, ministack: Aws, facts: int
) -> None:
    reader = service.of("ann", reads=["p0", "p1"])
    seed(ministack, service.tenant, ["p0", "p1"] * 50)
    small = page_cost(service, reader), page_cost(service, service.admin)
    seed(ministack, service.tenant, [f"elsewhere{number % 9}" for number in range(facts - 100)], start=100)
    large = page_cost(service, reader), page_cost(service, service.admin)
    assert large[0] == small[0]
    for rows, queries, fetched in (*small, *large):
        assert fetched == 25
        assert rows <= 100
        assert queries <= 32
    with recorded(service.services._dynamodb) as calls:
        page = service.admin.call("GET", FACTS, query={"scope": '{"sessionId":"none"}', "limit": 1}).json
    assert (page["data"], page["hasMore"]) == ([], True)
    assert 500 < calls.rows_read <= 1000
    assert set(calls.operations) == {"Query"}
    with recorded(service.services._dynamodb) as calls:
        page = service.admin.call("GET", FACTS, query={"type": "other"}).json
    assert (page["data"], page["hasMore"], calls.rows_read) == ([], False, 0)


def test_a_list_of_a_hundred_containers_as_of_an_instant_stays_in_its_budget(
    service: TenantService, ministack: Aws
) -> None:
    projects = [f"p{number}" for number in range(98)]
    seed(ministack, service.tenant, projects * 5)
    reader = service.of("ann", reads=projects)
    reader.call("GET", "/v1/identity/whoami")
    service.services._signing_key()  # its first use comes on top
    with recorded(service.services._dynamodb) as calls:
        assert len(reader.call("GET", FACTS, query={"asOf": "2027-01-01T00:00:00Z"}).json["data"]) == 25
    assert calls.rows_read <= 1000
    assert calls.items_fetched == 25
    assert set(calls.operations) == {"Query", "BatchGetItem"}


@pytest.mark.parametrize("facts", [2_000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_a_page_by_type_reads_two_hundred_rows_at_most_in_two_requests(
    service: TenantService, ministack: Aws, facts: int
) -> None:
    seed(ministack, service.tenant, ["p"] * facts)
    seed(ministack, service.tenant, ["p"] * 3, start=facts // 2, kind="rare")
    member = service.of("ann", writes=["p"])
    service.services._signing_key()  # its first use comes on top
    for caller in (member, service.admin):
        caller.call("GET", FACTS, query={"type": "rare"})  # a token, and that all facts are in their indexes
        for query, count in (({"type": "rare"}, 3), ({"type": "note"}, 25), ({"typePrefix": "ra"}, 3)):
            with recorded(service.services._dynamodb) as calls:
                page = caller.call("GET", FACTS, query=query).json
            assert len(page["data"]) == count
            assert calls.rows_read <= 200
            assert set(calls.operations) == {"Query", "BatchGetItem"}
        with recorded(service.services._dynamodb) as calls:
            page = caller.call("GET", "/v1/memory/types").json
        assert page == {"data": [{"type": "note"}, {"type": "rare"}], "hasMore": False}
        assert calls.rows_read <= 50


def test_a_run_costs_two_units_more_at_its_first_entry_and_none_after(service: TenantService) -> None:
    units = []
    for _ in range(2):
        with recorded(service.services._dynamodb) as calls:
            body = {"entries": [{"kind": "tool-call", "payload": 1}]}
            assert service.admin.call("POST", "/v1/memory/runs/r/log", body).status == 201
        units.append(calls.write_units)
    assert units == [3, 1]
    runs = service.admin.call("GET", "/v1/memory/runs").json["data"]
    assert [(run["runId"], run["scope"]) for run in runs] == [("r", {"tenantId": service.tenant})]
