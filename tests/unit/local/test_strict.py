"""What a strict client refuses, at each limit: what is just under it passes, what is just over it does not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from support.emulators import Aws
from support.gateway import ROOT

from factbook.wiring.clients import OF_SERVICE
from factbook_local.limits import LIMITS, MIB
from factbook_local.strict.sizes import item_size, significant_digits

Item = dict[str, Any]


def item(pk: str, sk: str = "s", **more: Any) -> Item:
    return {"pk": {"S": pk}, "sk": {"S": sk}, **more}


def sized(size: int, pk: str, sk: str = "s") -> Item:
    """An item of exactly `size` bytes."""
    made = item(pk, sk, c={"S": ""})
    made["c"]["S"] = "x" * (size - item_size(made))
    assert item_size(made) == size
    return made


class Table:
    """The facts table, and what a client says to calls on it."""

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, name

    def put(self, made: Item, **more: Any) -> Any:
        return self.client.put_item(TableName=self.name, Item=made, **more)

    def transact(self, *puts: Item) -> Any:
        return self.client.transact_write_items(
            TransactItems=[{"Put": {"TableName": self.name, "Item": put}} for put in puts]
        )

    def query(self, pk: str, **more: Any) -> Any:
        values = {":pk": {"S": pk}} | more.pop("values", {})
        return self.client.query(
            TableName=self.name,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues=values,
            **more,
        )

    def walk(self, pk: str, **more: Any) -> Iterator[Any]:
        """Every page of a query."""
        resume: dict[str, Any] = {}
        while True:
            page = self.query(pk, **more, **resume)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            resume = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


@pytest.fixture
def aws(ministack: Aws) -> Aws:
    """Less strict than moto in nearly everything, so what is refused is the client's refusal."""
    return ministack


@pytest.fixture
def table(aws: Aws) -> Table:
    return Table(aws.client("dynamodb"), aws.settings.facts_table)


def refusal(call: Any, *arguments: Any, **named: Any) -> str:
    """The code that a call is refused with."""
    with pytest.raises(ClientError) as refused:
        call(*arguments, **named)
    return str(refused.value.response["Error"]["Code"])


def test_every_limit_names_the_page_of_aws_that_documents_it() -> None:
    assert [
        name for name, limit in LIMITS.items() if not limit.source.startswith("https://docs.aws.amazon.com/")
    ] == []
    assert [name for name, limit in LIMITS.items() if limit.most < 1 or not limit.what] == []


def test_every_limit_is_enforced_by_a_client_or_by_the_runner() -> None:
    others: list[Path] = [
        path for path in (ROOT / "local/factbook_local").rglob("*.py") if path.name != "limits.py"
    ]
    code = "".join(path.read_text(encoding="utf-8") for path in others)

    assert [name for name in LIMITS if f'"{name}"' not in code and f"'{name}'" not in code] == []


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "é"}, 2),
        ({"B": b"abc"}, 3),
        ({"N": "0"}, 2),
        ({"N": "-123"}, 4),
        ({"N": "1000"}, 2),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["a", "bc"]}, 3),
        ({"L": [{"S": "a"}, {"S": "b"}]}, 7),
        ({"M": {"k": {"S": "a"}}}, 6),
    ],
)
def test_an_item_is_measured_as_dynamodb_measures_it(value: Item, size: int) -> None:
    assert item_size({"name": value}) == 4 + size


def test_zeros_at_either_end_of_a_number_are_not_significant() -> None:
    assert [significant_digits(n) for n in ("0", "100", "0.001", "-12.5", "1e40")] == [1, 1, 1, 3, 1]


def test_an_item_above_400_kb_is_refused(table: Table, tenant: str) -> None:
    table.put(sized(400 * 1024, tenant))
    assert refusal(table.put, sized(400 * 1024 + 1, tenant)) == "ValidationException"


def test_a_refusal_is_the_clients_own_exception(table: Table, tenant: str) -> None:
    changes = [{"Delete": {"IndexName": name}} for name in ("due", "memory")]
    with pytest.raises(table.client.exceptions.LimitExceededException):
        table.client.update_table(TableName=table.name, GlobalSecondaryIndexUpdates=changes)


@pytest.mark.parametrize(("name", "most"), [("pk", 2048), ("sk", 1024), ("l", 2048), ("o", 1024)])
def test_a_key_that_is_too_long_or_empty_is_refused(table: Table, tenant: str, name: str, most: int) -> None:
    whole = item(tenant, l={"S": "l"}, o={"S": "o"})
    table.put(whole | {name: {"S": "é" * (most // 2)}})
    assert refusal(table.put, whole | {name: {"S": "x" * (most + 1)}}) == "ValidationException"
    assert refusal(table.put, whole | {name: {"S": ""}}) == "ValidationException"


def test_an_attribute_that_is_no_key_may_be_empty_and_long(table: Table, tenant: str) -> None:
    table.put(item(tenant, c={"S": ""}, d={"S": "x" * 5000}))


def test_a_number_of_more_than_38_digits_is_refused(table: Table, tenant: str) -> None:
    table.put(item(tenant, n={"N": "1" * 38}))
    assert refusal(table.put, item(tenant, n={"N": "1" * 39})) == "ValidationException"
    assert (
        refusal(table.query, tenant, FilterExpression="n > :n", values={":n": {"N": "1" * 60}})
        == "ValidationException"
    )


def test_a_transaction_takes_100_operations_of_4_mb_on_as_many_items(table: Table, tenant: str) -> None:
    table.transact(*(item(tenant, str(number)) for number in range(100)))
    assert refusal(table.transact, *(item(tenant, str(n)) for n in range(101))) == "ValidationException"
    large = [sized(262_000, tenant, str(number)) for number in range(16)]
    table.transact(*large)
    assert refusal(table.transact, *large[1:], sized(265_000, tenant, "0")) == "ValidationException"
    assert refusal(table.transact, item(tenant), item(tenant, l={"S": "x"})) == "ValidationException"
    table.transact(item(tenant, "a"), item(f"{tenant}-other", "a"))


def test_a_batch_of_reads_takes_100_keys_each_once(table: Table, tenant: str) -> None:
    def get(*keys: Item) -> Any:
        return table.client.batch_get_item(RequestItems={table.name: {"Keys": list(keys)}})

    keys = [item(tenant, str(number)) for number in range(101)]
    get(*keys[:100])
    assert refusal(get, *keys) == "ValidationException"
    assert refusal(get, keys[0], keys[0]) == "ValidationException"


def test_a_batch_of_reads_answers_16_mb_and_leaves_the_rest_unprocessed(table: Table, tenant: str) -> None:
    keys = [item(f"{tenant}-{number}") for number in range(44)]
    for key in keys:
        table.put(sized(390_000, key["pk"]["S"]))
    answer = table.client.batch_get_item(RequestItems={table.name: {"Keys": keys, "ConsistentRead": True}})
    left = answer["UnprocessedKeys"][table.name]

    assert len(answer["Responses"][table.name]) == 16 * MIB // 390_000
    assert left["ConsistentRead"] is True
    again = table.client.batch_get_item(RequestItems={table.name: left})
    found = [*answer["Responses"][table.name], *again["Responses"][table.name]]
    assert {each["pk"]["S"] for each in found} == {key["pk"]["S"] for key in keys}


def test_a_batch_of_reads_answers_1_mb_of_one_partition(table: Table, tenant: str) -> None:
    keys = [item(tenant, str(number)) for number in range(4)]
    for key in keys:
        table.put(sized(390_000, tenant, key["sk"]["S"]))
    answer = table.client.batch_get_item(RequestItems={table.name: {"Keys": keys}})

    assert len(answer["Responses"][table.name]) == 2
    assert len(answer["UnprocessedKeys"][table.name]["Keys"]) == 2


def test_a_batch_of_writes_takes_25_on_as_many_items(table: Table, tenant: str) -> None:
    def write(*items: Item) -> Any:
        puts = [{"PutRequest": {"Item": each}} for each in items]
        return table.client.batch_write_item(RequestItems={table.name: puts})

    items = [item(tenant, str(number)) for number in range(26)]
    write(*items[:25])
    assert refusal(write, *items) == "ValidationException"
    assert refusal(write, items[0], items[0] | {"l": {"S": "x"}}) == "ValidationException"
    assert refusal(write, sized(400 * 1024 + 1, tenant)) == "ValidationException"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"FilterExpression": "attribute_exists(nothing)"},
        {"Select": "COUNT"},
        {"ProjectionExpression": "pk"},
    ],
)
def test_a_page_ends_at_1_mb_of_what_was_read_whatever_is_answered(
    table: Table, tenant: str, more: dict[str, Any]
) -> None:
    for number in range(7):
        table.put(sized(300_000, tenant, str(number)))
    pages = list(table.walk(tenant, **more))

    assert [page["ScannedCount"] for page in pages] == [3, 3, 1]
    assert {page["Count"] for page in pages} == ({0} if "FilterExpression" in more else {3, 1})


def test_a_page_of_exactly_1_mb_is_answered_whole(table: Table, tenant: str) -> None:
    for number in range(4):
        table.put(sized(MIB // 4, tenant, str(number)))

    assert table.query(tenant)["Count"] == 4


def test_a_scan_ends_at_1_mb_too(table: Table, tenant: str) -> None:
    for number in range(5):
        table.put(sized(300_000, tenant, str(number)))
    pages = table.client.get_paginator("scan").paginate(
        TableName=table.name, FilterExpression="pk = :pk", ExpressionAttributeValues={":pk": {"S": tenant}}
    )

    assert sum(page["Count"] for page in pages) == 5
    assert table.client.scan(TableName=table.name)["ScannedCount"] <= 5 * 300_000


def test_nobody_sees_how_a_filtered_page_was_measured(table: Table, tenant: str) -> None:
    seen = []
    table.client.meta.events.register("before-send.dynamodb", lambda **_: seen.append(1))
    table.put(item(tenant))
    table.query(tenant, FilterExpression="attribute_exists(nothing)")

    assert len(seen) == 2


@pytest.mark.parametrize("name", ["listing", "memory"])
def test_an_index_is_never_read_consistently(table: Table, name: str) -> None:
    index = {"TableName": table.name, "IndexName": name}
    table.client.scan(**index)
    assert refusal(table.client.scan, **index, ConsistentRead=True) == "ValidationException"


def test_an_expression_takes_4_kb_300_operators_and_100_operands(table: Table, tenant: str) -> None:
    def put(condition: str, values: Any = None) -> Any:
        more = {"ExpressionAttributeValues": values} if values else {}
        return table.put(item(tenant), ConditionExpression=condition, **more)

    names = [f"attribute_not_exists(n{number:05})" for number in range(151)]
    put(" AND ".join(names[:100]))
    assert refusal(put, " AND ".join(names)) == "ValidationException"  # 301 operators and functions
    assert refusal(put, "attribute_not_exists(" + "n" * 4096 + ")") == "ValidationException"
    many = {f":v{number}": {"S": "x"} for number in range(101)}
    some = dict(list(many.items())[:100])
    put(f"NOT pk IN ({', '.join(some)})", some)
    assert refusal(put, f"NOT pk IN ({', '.join(many)})", many) == "ValidationException"


def test_the_substitutions_of_a_request_take_2_mb(table: Table, tenant: str) -> None:
    def put(size: int) -> Any:
        table.put(
            item(tenant),
            ConditionExpression="attribute_not_exists(pk) OR c <> :v",
            ExpressionAttributeValues={":v": {"S": "x" * size}},
        )

    put(2 * MIB - 2)
    assert refusal(put, 2 * MIB - 1) == "ValidationException"


def test_a_table_changes_one_index_at_a_time(table: Table) -> None:
    def drop(*names: str) -> Any:
        changes = [{"Delete": {"IndexName": name}} for name in names]
        return table.client.update_table(TableName=table.name, GlobalSecondaryIndexUpdates=changes)

    assert refusal(drop, "due", "memory") == "LimitExceededException"


def test_a_message_takes_1_mb_and_a_batch_as_much_in_all(aws: Aws, tenant: str) -> None:
    sqs = aws.client("sqs")
    url = sqs.create_queue(QueueName=tenant)["QueueUrl"]

    def send(*sizes: int) -> Any:
        entries = [{"Id": str(place), "MessageBody": "é" * (size // 2)} for place, size in enumerate(sizes)]
        return sqs.send_message_batch(QueueUrl=url, Entries=entries)

    assert refusal(sqs.send_message, QueueUrl=url, MessageBody="x" * (MIB + 1)) == "InvalidParameterValue"
    assert refusal(sqs.send_message, QueueUrl=url, MessageBody="\0") == "InvalidMessageContents"
    send(*[20_000] * 10)
    assert refusal(send, MIB // 2, MIB // 2 + 2) == "AWS.SimpleQueueService.BatchRequestTooLong"
    assert refusal(send, *[2] * 11) == "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"
    assert refusal(send) == "AWS.SimpleQueueService.EmptyBatchRequest"


def test_a_message_is_put_off_for_15_minutes_at_most(aws: Aws, tenant: str) -> None:
    sqs = aws.client("sqs")
    url = sqs.create_queue(QueueName=tenant)["QueueUrl"]

    def send(delay: int) -> Any:
        return sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)

    def send_batch(delay: int) -> Any:
        entries = [{"Id": "0", "MessageBody": "x", "DelaySeconds": delay}]
        return sqs.send_message_batch(QueueUrl=url, Entries=entries)

    for way in (send, send_batch):
        way(900)
        assert refusal(way, 901) == "InvalidParameterValue"


def test_a_presigned_url_lives_for_7_days_at_its_buckets_own_host() -> None:
    def sign(seconds: int, **more: Any) -> Any:
        client = boto3.client("s3", region_name="af-south-1", **more)
        return client.generate_presigned_url("get_object", {"Bucket": "blobs", "Key": "k"}, seconds)

    sign(7 * 86_400, config=OF_SERVICE["s3"])
    assert refusal(sign, 7 * 86_400 + 1, config=OF_SERVICE["s3"]) == "AuthorizationQueryParametersError"
    assert refusal(sign, 60) == "IllegalLocationConstraintException"


def test_a_search_of_vectors_gives_100_neighbours(aws: Aws) -> None:
    def search(most: int) -> str:
        """The code of the refusal: nobody has such a table."""
        return refusal(
            aws.client("dynamodb").search_vectors,
            TableName="nobodys",
            IndexName="vectors",
            TopK=most,
            SearchVector=[{"N": "1"}],
        )

    assert search(100) == "ResourceNotFoundException"
    assert search(101) == "ValidationException"


def test_an_invocation_takes_6_mb_and_an_asynchronous_one_1_mb(aws: Aws) -> None:
    client = aws.client("lambda")

    def invoke(kind: str, size: int) -> str:
        """The code of the refusal: nobody has such a function."""
        return refusal(
            client.invoke, FunctionName="nobody", InvocationType=kind, Payload=b'"' + b"1" * (size - 2) + b'"'
        )

    assert invoke("RequestResponse", 6 * MIB + 1) == "RequestTooLargeException"
    assert invoke("Event", MIB + 1) == "RequestTooLargeException"
    assert invoke("RequestResponse", MIB + 1) == "ResourceNotFoundException"
    assert invoke("Event", MIB) == "ResourceNotFoundException"


def test_an_object_has_a_name_of_1024_bytes(aws: Aws) -> None:
    def put(name: str) -> Any:
        return aws.client("s3").put_object(Bucket=aws.settings.blobs_bucket, Key=name, Body=b"")

    put("é" * 512)
    assert refusal(put, "é" * 512 + "x") == "KeyTooLongError"


def test_one_call_deletes_1000_objects(aws: Aws) -> None:
    def delete(count: int) -> Any:
        objects = [{"Key": str(number)} for number in range(count)]
        return aws.client("s3").delete_objects(Bucket=aws.settings.blobs_bucket, Delete={"Objects": objects})

    delete(1000)
    assert refusal(delete, 1001) == "MalformedXML"


def test_kms_encrypts_4096_bytes(aws: Aws) -> None:
    client = aws.client("kms")
    key = client.create_key()["KeyMetadata"]["KeyId"]

    client.encrypt(KeyId=key, Plaintext=b"x" * 4096)
    assert refusal(client.encrypt, KeyId=key, Plaintext=b"x" * 4097) == "ValidationException"
