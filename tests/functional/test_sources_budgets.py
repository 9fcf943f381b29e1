"""What reading and refreshing a mirrored fact may cost, counted at the SDK."""

from collections.abc import Iterator

import pytest
from support.emulators import Aws
from support.mirrors import FACTS, Mirrors, mirrors, reply
from support.sdk_calls import Calls, index_entries, recorded

LISTS = {"listing", "admin", "listing-type", "admin-type"}


@pytest.fixture
def world(ministack: Aws, tenant: str) -> Iterator[Mirrors]:
    with mirrors(ministack, tenant) as made:
        made.says("/price", "new", etag='"2"')
        made.read("none")  # the token's look-up comes on top
        made.services.policies.policy(tenant)
        yield made


def stale(world: Mirrors) -> None:
    world.clock.advance(seconds=61)
    world.services.policies.policy(world.service.tenant)  # what a process knows of it does not count


def written(calls: Calls) -> list[tuple[str, str]]:
    """Writes in order: the operation, and the kind of item by its key's first word; of the facts table `fact`."""
    kinds = []
    for call in calls.made:
        for item in call.params.get("TransactItems", [{"": call.params}]):
            for kind, each in item.items():
                if "Item" not in each and call.operation != "DeleteItem":
                    continue
                key = (each.get("Item") or each["Key"])["pk"]["S"]
                table = each["TableName"].rpartition("-")[2]
                name = {"FactsTable": "fact", "LogTable": "entry"}.get(table, key.partition("|")[0])
                kinds.append((kind or call.operation, name))
    return kinds


def test_a_fresh_mirrored_fact_is_read_like_any_other(world: Mirrors) -> None:
    fact = world.mirror("/price", key="k")
    by_key = {"type": "acme.price", "key": "k"}
    for path, query in ((f"{FACTS}/{fact['id']}", {}), (f"{FACTS}/by-key", by_key)):
        with recorded(world.services._dynamodb) as calls:
            assert world.admin.call("GET", path, query=query | {"requireFresh": "true"}).status == 200
        assert (calls.operations, calls.attempts) == (["GetItem"], 1)
    with recorded(world.services._client("sqs")) as messages:
        world.admin.call("GET", FACTS)
    assert messages.operations == []


def test_an_unchanged_refresh_writes_the_fact_once_in_place_and_moves_no_list(world: Mirrors) -> None:
    fact = world.mirror("/price", "new", strategy="background")["id"]
    stale(world)
    with recorded(world.services._dynamodb) as calls:
        assert world.refresh(fact).json["outcome"] == "unchanged"

    writes = [name for _, name in written(calls)]
    assert writes.count("fact") == 1
    assert sorted(writes) == ["fact", "lease", "lease", "place", "place"]
    assert calls.of("TransactWriteItems") == []
    (put,) = [call for call in calls.of("PutItem") if call.params["TableName"].endswith("FactsTable")]
    assert set(index_entries(put.params["TableName"], put.params["Item"])) == LISTS | {"due"}
    reads = [call.params["TableName"].rpartition("-")[2] for call in calls.of("GetItem")]
    assert sorted(reads) == ["AccessTable"] + ["FactsTable"] * 3, (
        "asked for, refreshed and written; and the circuit"
    )


def test_a_changed_refresh_is_one_transaction_over_facts_and_log(world: Mirrors) -> None:
    fact = world.mirror("/price", "old", strategy="background")["id"]
    stale(world)
    with recorded(world.services._dynamodb) as calls:
        assert world.refresh(fact).json["outcome"] == "changed"

    (transaction,) = calls.of("TransactWriteItems")
    tables = [put["Put"]["TableName"].rpartition("-")[2] for put in transaction.params["TransactItems"]]
    assert tables == ["LogTable", "FactsTable", "FactsTable"]
    assert [name for operation, name in written(calls) if operation == "PutItem"] == [
        "lease",
        "place",
        "place",
    ]
    assert len(calls.of("Query")) == 1, "the run's end"


def test_the_queue_pays_what_somebody_pays_who_refreshes_by_hand(world: Mirrors) -> None:
    world.mirror("/price", "new", strategy="background")
    stale(world)
    world.sweep()
    with recorded(world.services._dynamodb) as calls:
        world.work()

    writes = [name for _, name in written(calls)]
    assert sorted(writes) == ["fact", "lease", "lease", "place", "place"]


def test_a_failure_writes_the_fact_in_place_and_the_circuit(world: Mirrors) -> None:
    fact = world.mirror("/price")["id"]
    world.says("/price", reply(500))
    with recorded(world.services._dynamodb) as calls:
        assert world.refresh(fact).status == 503

    assert sorted(name for _, name in written(calls)) == [
        "circuit",
        "fact",
        *("lease", "lease", "place", "place"),
    ]


def test_a_stale_fact_whose_source_is_left_alone_is_read_like_a_fresh_one(world: Mirrors) -> None:
    fact = world.mirror("/price")["id"]
    world.says("/price", reply(500))
    stale(world)
    world.read(fact)
    with recorded(world.services._dynamodb) as calls:
        assert world.read(fact).json["staleReason"] == "source-unavailable"
    assert calls.operations == ["GetItem"]


def test_a_list_of_stale_facts_is_one_batch_of_messages_more_and_a_second_one_none(world: Mirrors) -> None:
    for number in range(8):
        world.mirror(f"/{number}")
    stale(world)
    for expected in (["SendMessageBatch"], []):
        with (
            recorded(world.services._dynamodb) as calls,
            recorded(world.services._client("sqs/met-stale")) as sent,
        ):
            assert len(world.admin.call("GET", FACTS).json["data"]) == 8
        assert [name for _, name in written(calls)] == []
        assert sent.operations == expected
