"""The stores of refreshing on the fakes that other tests trust, on moto and on ministack."""

import json
from typing import Any

import pytest
from support.emulators import Aws
from support.fakes import FakeClock, FakeFacts
from support.sdk_calls import recorded
from support.source_world import FakeCircuits, FakeDue, FakeLeases

from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.sources.dynamodb_due import DynamoDue
from factbook.adapters.sources.dynamodb_leases import DynamoCircuits, DynamoLeases
from factbook.adapters.sources.sqs_refreshes import SqsRefreshLetters, SqsRefreshQueue
from factbook.domain.errors import StorageUnavailable
from factbook.domain.sources.circuits import CLOSED, Circuit
from factbook.ports.sources.stores import DeadLetter, Wanted

from .source_stores import CircuitsContract, DueIndexContract, LeasesContract


class TestFakeLeases(LeasesContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.clock = FakeClock()
        self.leases = FakeLeases(self.clock)


class TestDynamoLeases(LeasesContract):
    @pytest.fixture(autouse=True)
    def _store(self, emulator: Aws) -> None:
        self.clock = FakeClock()
        self.leases = DynamoLeases(emulator.client("dynamodb"), emulator.settings.access_table, self.clock)


class TestFakeCircuits(CircuitsContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.circuits = FakeCircuits()


class TestDynamoCircuits(CircuitsContract):
    @pytest.fixture(autouse=True)
    def _store(self, emulator: Aws) -> None:
        client = emulator.client("dynamodb")
        self.circuits = DynamoCircuits(client, emulator.settings.access_table, FakeClock())


class TestFakeDue(DueIndexContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        facts = FakeFacts()
        self.store, self.index = facts, FakeDue(facts)


class TestDynamoDue(DueIndexContract):
    @pytest.fixture(autouse=True)
    def _store(self, emulator: Aws) -> None:
        client, table = emulator.client("dynamodb"), emulator.settings.facts_table
        self.store, self.index = DynamoFacts(client, table), DynamoDue(client, table)


def test_what_is_over_is_stamped_so_that_dynamodb_removes_it_and_holds_ids_and_times_alone(moto: Aws) -> None:
    client, table, clock = moto.client("dynamodb"), moto.settings.access_table, FakeClock()
    DynamoLeases(client, table, clock).take(("lease", "stamped", "f"), "o", 30)
    DynamoCircuits(client, table, clock).keep("stamped", "h", CLOSED, Circuit(0, 1, clock.now()))

    found = client.scan(TableName=table)["Items"]
    items = [item for item in found if "stamped" in item["pk"]["S"]]
    assert [set(item) for item in items] in (
        [{"pk", "sk", "o", "u", "ttl"}, {"pk", "sk", "f", "n", "u", "ttl"}],
        [{"pk", "sk", "f", "n", "u", "ttl"}, {"pk", "sk", "o", "u", "ttl"}],
    )
    now = 1_767_225_600
    assert all(now < int(item["ttl"]["N"]) <= now + 25 * 3600 for item in items)


# -- queues


@pytest.fixture
def queue_url(ministack: Aws, tenant: str) -> str:
    url: str = ministack.client("sqs").create_queue(QueueName=f"q-{tenant[-12:]}")["QueueUrl"]
    return url


def test_messages_hold_ids_and_come_in_groups_by_tenant(ministack: Aws, queue_url: str) -> None:
    client = ministack.client("sqs")
    queue = SqsRefreshQueue(client, queue_url)
    wanted = [Wanted("ten ant|" + "x" * 300, f"f{number}", "due") for number in range(25)]

    queue.send(wanted)
    queue.send([Wanted("t", "late", "read", deferred=2)], delay=900)
    assert queue.waiting() == 25, "what is delayed keeps nobody waiting"
    bodies: list[Any] = []
    while messages := client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages"):
        bodies += [json.loads(message["Body"]) for message in messages]
    assert [body["factId"] for body in bodies] == [f"f{number}" for number in range(25)]
    assert set(bodies[0]) == {"tenant", "factId", "why"}


def test_what_is_taken_is_had_by_nobody_else_until_it_is_removed_or_comes_again(
    ministack: Aws, queue_url: str
) -> None:
    client = ministack.client("sqs")
    queue = SqsRefreshQueue(client, queue_url)
    wanted = [Wanted("t", f"f{number}", "due", deferred=number) for number in range(12)]
    queue.send(wanted)
    client.send_message(QueueUrl=queue_url, MessageBody="no JSON", MessageGroupId="t")
    client.send_message(QueueUrl=queue_url, MessageBody='{"tenant": "t"}', MessageGroupId="t")

    assert [each.wanted for each in queue.take(1)] == wanted[:1]
    with recorded(client) as calls:
        rest = queue.take(100)
    assert [each.wanted for each in rest] == wanted[1:11]
    assert calls.of("ReceiveMessage")[0].params["WaitTimeSeconds"] >= 1, "all servers of the queue are asked"
    assert [each.wanted for each in queue.take(10)] == wanted[11:]
    for each in rest:
        queue.remove(each)
    assert queue.waiting() == 4, "what is not removed comes again, and what nobody can read stays"


class Half:
    """An SQS client that takes every second message of a batch, or none."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.taken: list[str] = []

    def send_message_batch(self, **asked: Any) -> Any:
        entries = asked["Entries"]
        good = entries[:: self.takes] if self.takes else []
        self.taken += [entry["MessageBody"] for entry in good]
        failed = [entry for entry in entries if entry not in good]
        return {"Failed": [{"Id": entry["Id"]} for entry in failed]}


def test_what_the_queue_did_not_take_of_a_batch_is_sent_once_more_or_said() -> None:
    wanted = [Wanted("t", f"f{number}", "due") for number in range(2)]
    half = Half(2)
    SqsRefreshQueue(half, "url").send(wanted)
    assert len(half.taken) == 2
    with pytest.raises(StorageUnavailable):
        SqsRefreshQueue(Half(0), "url").send(wanted)


def test_all_servers_of_the_queue_are_asked_for_dead_letters(ministack: Aws, queue_url: str) -> None:
    """A short poll asks some of them alone, which no emulator does."""
    client = ministack.client("sqs")
    with recorded(client) as calls:
        assert SqsRefreshLetters(client, queue_url).receive(0) == []

    (call,) = calls.of("ReceiveMessage")
    assert call.params["WaitTimeSeconds"] >= 1


def test_dead_letters_are_read_and_removed_one_by_one(ministack: Aws, queue_url: str) -> None:
    client = ministack.client("sqs")
    letters = SqsRefreshLetters(client, queue_url)
    sent = DeadLetter("t", "f1", "http-api", None, "source-refused", "a private address", 1, "now")
    letters.send(sent)
    client.send_message(QueueUrl=queue_url, MessageBody="no JSON")

    found = {letter.said.get("factId"): letter for letter in letters.receive(0)}
    assert set(found) == {"f1", None}
    assert found["f1"].said == {
        "tenant": "t",
        "factId": "f1",
        "kind": "http-api",
        "why": "source-refused",
        "detail": "a private address",
        "failures": 1,
        "at": "now",
    }
    letters.remove(letters.receive(30)[0])
    assert len(letters.receive(0)) <= 1
