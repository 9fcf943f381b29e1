"""Streams, queues, time to live and schedules reach functions by Lambda's documented rules, on a real data plane."""

import json
import time
import uuid
from typing import Any

import pytest
from support.local_cloud import Cloud, eventually

TABLE = "factbook-Items"


def put(cloud: Cloud, *keys: str, **attributes: Any) -> None:
    dynamodb = cloud.ready.client("dynamodb")
    for key in keys:
        dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": key}, **attributes})


def keys_of(batch: list[Any]) -> list[str]:
    return [record["dynamodb"]["Keys"]["pk"]["S"] for record in batch]


def dead_letters(cloud: Cloud, name: str, mark: str) -> list[Any]:
    """The bodies in a dead-letter queue that hold a mark; they stay in the queue."""
    sqs = cloud.ready.client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    found = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1).get(
        "Messages"
    ):
        found += [message["Body"] for message in messages if mark in message["Body"]]
        for message in messages:
            if mark in message["Body"]:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4()}"


def test_changes_reach_the_function_in_order_and_once_with_both_images(cloud: Cloud, mark: str) -> None:
    dynamodb = cloud.ready.client("dynamodb")
    put(cloud, mark, n={"N": "1"}, b={"B": b"\x00\xff"})
    put(cloud, mark, n={"N": "2"})
    dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": mark}})

    records = eventually(
        lambda: (found := [r for batch in cloud.records(mark) for r in batch]) and len(found) == 3 and found
    )

    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]
    assert records[0]["dynamodb"]["NewImage"] == {"pk": {"S": mark}, "n": {"N": "1"}, "b": {"B": "AP8="}}
    assert records[1]["dynamodb"]["OldImage"]["n"] == {"N": "1"}
    assert "NewImage" not in records[2]["dynamodb"]
    assert all(
        record["eventSource"] == "aws:dynamodb" and record["awsRegion"] == "us-east-1" for record in records
    )
    assert all(f"table/{TABLE}/stream/" in record["eventSourceARN"] for record in records)
    assert isinstance(records[0]["dynamodb"]["ApproximateCreationDateTime"], float)
    numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
    assert numbers == sorted(set(numbers))
    assert not any("userIdentity" in record for record in records)


def test_a_batch_holds_no_more_than_the_batch_size(cloud: Cloud, mark: str) -> None:
    put(cloud, *(f"{mark}-{number:03}" for number in range(45)))
    eventually(lambda: sum(map(len, cloud.records(mark))) >= 45)
    batches = cloud.records(mark)
    assert max(map(len, batches)) <= 10
    assert [key for batch in batches for key in keys_of(batch)] == [
        f"{mark}-{number:03}" for number in range(45)
    ]


def test_a_partial_failure_goes_on_from_the_failed_record_and_gives_it_up_in_the_end(
    cloud: Cloud, mark: str
) -> None:
    put(cloud, f"{mark}-0", f"{mark}-1-fail", f"{mark}-2")
    letters = eventually(
        lambda: [
            letter
            for letter in dead_letters(cloud, "factbook-StreamDead", "RetryAttemptsExhausted")
            if within(cloud, mark, letter)
        ]
    )
    tries = [keys_of(batch) for batch in cloud.records(mark)]
    assert tries[-1] == [f"{mark}-1-fail", f"{mark}-2"] or tries[-1] == [f"{mark}-2"]
    assert sum(f"{mark}-0" in keys for keys in tries) == 1
    assert sum(f"{mark}-1-fail" in keys for keys in tries) == 2  # one try and one retry
    description = json.loads(letters[0])
    assert description["requestContext"]["functionArn"].endswith(":function:factbook-Streamed")
    assert description["requestContext"]["approximateInvokeCount"] == 2
    assert description["DDBStreamBatchInfo"]["batchSize"] == len(tries[-1])


def within(cloud: Cloud, mark: str, letter: str) -> bool:
    """Whether a given-up batch begins at one of the records with this mark."""
    numbers = {record["dynamodb"]["SequenceNumber"] for batch in cloud.records(mark) for record in batch}
    return json.loads(letter)["DDBStreamBatchInfo"]["startSequenceNumber"] in numbers


def test_a_failing_batch_is_bisected_until_only_the_culprit_is_given_up(cloud: Cloud, mark: str) -> None:
    names = [f"{mark}-{number}" for number in range(8)]
    names[5] += "-raise"
    put(cloud, *names)
    letters = eventually(
        lambda: [
            letter
            for letter in dead_letters(cloud, "factbook-StreamDead", "RetryAttemptsExhausted")
            if within(cloud, mark, letter)
        ]
    )
    eventually(lambda: any(names[7] in keys_of(batch) for batch in cloud.records(mark)))
    assert [json.loads(letter)["DDBStreamBatchInfo"]["batchSize"] for letter in letters] == [1]
    taken = [
        key for batch in cloud.records(mark) if "raise" not in json.dumps(batch) for key in keys_of(batch)
    ]
    assert sorted(taken) == sorted(name for name in names if "raise" not in name)
    assert json.loads(letters[0])["responseContext"]["functionError"] == "Unhandled"


def test_a_function_that_dies_on_a_record_does_not_stop_the_stream(cloud: Cloud, mark: str) -> None:
    put(cloud, f"{mark}-crash", f"{mark}-after")
    eventually(lambda: [f"{mark}-after"] in map(keys_of, cloud.records(mark)))


def test_an_item_past_its_time_is_removed_with_the_services_identity(cloud: Cloud, mark: str) -> None:
    now = int(time.time())
    put(cloud, f"{mark}-late", ttl={"N": str(now + 86_400)})
    put(cloud, f"{mark}-text", ttl={"S": str(now - 10)})
    put(cloud, f"{mark}-ancient", ttl={"N": str(now - 6 * 365 * 86_400)})
    put(cloud, f"{mark}-over", ttl={"N": str(now)}, content={"S": "words"})

    def removed() -> list[Any]:
        return [
            record
            for batch in cloud.records(f"{mark}-over")
            for record in batch
            if record["eventName"] == "REMOVE"
        ]

    record = eventually(removed)[0]
    assert record["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    assert record["dynamodb"]["OldImage"]["content"] == {"S": "words"}
    dynamodb = cloud.ready.client("dynamodb")
    left = [
        name
        for name in ("late", "text", "ancient", "over")
        if "Item" in dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"{mark}-{name}"}})
    ]
    assert left == ["late", "text", "ancient"]


def test_an_item_whose_time_was_prolonged_stays(cloud: Cloud, mark: str) -> None:
    put(cloud, mark, ttl={"N": str(int(time.time()) + 1)})
    put(cloud, mark, ttl={"N": str(int(time.time()) + 86_400)})
    put(cloud, f"{mark}-witness", ttl={"N": str(int(time.time()) + 1)})
    dynamodb = cloud.ready.client("dynamodb")
    eventually(lambda: "Item" not in dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": f"{mark}-witness"}}))
    assert "Item" in dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": mark}})


def send(cloud: Cloud, *bodies: str) -> None:
    sqs = cloud.ready.client("sqs")
    url = sqs.get_queue_url(QueueName="factbook-Jobs")["QueueUrl"]
    entries = [
        {
            "Id": str(place),
            "MessageBody": body,
            "MessageAttributes": {"kind": {"DataType": "String", "StringValue": "k"}},
        }
        for place, body in enumerate(bodies)
    ]
    sqs.send_message_batch(QueueUrl=url, Entries=entries)


def depth(cloud: Cloud, name: str = "factbook-Jobs") -> int:
    sqs = cloud.ready.client("sqs")
    attributes = sqs.get_queue_attributes(
        QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"], AttributeNames=["All"]
    )["Attributes"]
    return int(attributes["ApproximateNumberOfMessages"]) + int(
        attributes["ApproximateNumberOfMessagesNotVisible"]
    )


def test_messages_reach_the_function_and_leave_the_queue(cloud: Cloud, mark: str) -> None:
    send(cloud, *(f"{mark} {number}" for number in range(7)))
    eventually(lambda: sum(map(len, cloud.records(mark))) == 7)
    eventually(lambda: depth(cloud) == 0)
    batches = cloud.records(mark)
    assert max(map(len, batches)) <= 5
    record = batches[0][0]
    assert (record["eventSource"], record["awsRegion"]) == ("aws:sqs", "us-east-1")
    assert record["eventSourceARN"].endswith(":factbook-Jobs")
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert record["messageAttributes"]["kind"] == {
        "stringValue": "k",
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": "String",
    }
    assert len(record["md5OfBody"]) == 32


def test_only_the_failed_message_of_a_batch_comes_again_and_ends_in_the_dead_letter_queue(
    cloud: Cloud, mark: str
) -> None:
    send(cloud, f"{mark} good", f"{mark} fail")
    letters = eventually(lambda: dead_letters(cloud, "factbook-DeadJobs", mark))
    assert letters == [f"{mark} fail"]
    seen = [record["body"] for batch in cloud.records(mark) for record in batch]
    assert (seen.count(f"{mark} good"), seen.count(f"{mark} fail")) == (1, 2)  # maxReceiveCount is 2
    assert depth(cloud) == 0


def test_a_batch_that_raises_comes_again_whole_after_the_visibility_timeout(cloud: Cloud, mark: str) -> None:
    send(cloud, f"{mark} raise")
    assert eventually(lambda: dead_letters(cloud, "factbook-DeadJobs", mark)) == [f"{mark} raise"]
    first, second = (found for found in cloud.invocations() if mark in json.dumps(found["event"]))
    # From when the queue gave it: the first invocation may begin a while after that.
    given = int(first["event"]["Records"][0]["attributes"]["ApproximateFirstReceiveTimestamp"]) / 1000
    assert second["at"] - given >= 1.0  # the queue's visibility timeout


@pytest.mark.exhaustive  # the shortest rate is a minute
def test_a_schedule_fires(cloud: Cloud) -> None:
    event = eventually(
        lambda: [found["event"] for found in cloud.invocations() if found["event"].get("detail-type")], 90
    )[0]
    assert event["source"] == "aws.scheduler"
    assert event["detail"] == "{}"
    assert event["resources"][0].endswith("schedule/default/StreamedTick")
