"""What AWS would ask of a function's role: the SDK's calls as IAM actions, and the template's grants."""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any, NamedTuple

from factbook.settings import Settings
from factbook_local.template import Template

Answer = dict[str, Any]

PASS: Answer = {}
"""The service answers this one itself."""


def refusal(code: str, **more: Any) -> Answer:
    """An answer of the service that says no."""
    return {"Error": {"Code": code, "Message": "as a test has it"}, **more}


class Access(NamedTuple):
    """One IAM action on one resource. `partition`: the key that is written, which a condition may ask for."""

    action: str
    resource: str
    partition: str = ""


class Grant(NamedTuple):
    action: str
    resource: str
    partitions: tuple[str, ...] = ("*",)

    def __str__(self) -> str:
        return f"{self.action} {self.resource} {'|'.join(self.partitions)}"

    def allows(self, access: Access) -> bool:
        return (
            self.action == access.action
            and fnmatchcase(access.resource, self.resource)
            and any(fnmatchcase(access.partition, pattern) for pattern in self.partitions)
        )


def grants_of(template: Template, function: str) -> list[Grant]:
    """The inline grants of a function's role, resources named by logical id (`FactsTable.Arn/index/admin`)."""
    properties = template.of_type("AWS::Serverless::Function")[function]
    role = template.resources[properties["Role"]["Fn::GetAtt"][0]]["Properties"]
    return [
        Grant(action, resource, partitions_of(statement))
        for policy in template.resolve(role["Policies"])
        for statement in policy["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    ]


def partitions_of(statement: dict[str, Any]) -> tuple[str, ...]:
    """Patterns of the partitions that may be written: a condition on leading keys, the only one there is."""
    if "Condition" not in statement:
        return ("*",)
    ((operator, asked),) = statement["Condition"].items()
    assert operator in ("ForAllValues:StringEquals", "ForAllValues:StringLike")
    assert asked.keys() == {"dynamodb:LeadingKeys"}
    return tuple(asked["dynamodb:LeadingKeys"])


def _queried(params: dict[str, Any]) -> str:
    """The partition that a query of a table reads."""
    named = re.search(r"\bpk = (:\w+)", params.get("KeyConditionExpression", ""))
    return str(params["ExpressionAttributeValues"][named[1]]["S"]) if named else ""


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class CallRecorder:
    """Makes the clients of one function and keeps what they are asked to do, presigned addresses included."""

    def __init__(self, make: Callable[[str], Any], settings: Settings) -> None:
        self.seen: set[Access] = set()
        self.failures: dict[str, list[Answer | Callable[[], Answer]]] = {}
        """Operation → what its next calls are answered instead of by the service, or what happens then and says it."""
        self._make = make
        self._names = {
            settings.facts_table: "FactsTable",
            settings.log_table: "LogTable",
            settings.keys_table: "KeysTable",
            settings.access_table: "AccessTable",
            settings.vectors_table: "VectorsTable",
            settings.blobs_bucket: "BlobsBucket",
            settings.checkpoints_bucket: "CheckpointsBucket",
            settings.kms_key_id: "DataKey",
            settings.checkpoint_function: "CheckpointFunction",
            settings.index_dead_letters: "IndexDeadLetters",
            settings.erasure_queue: "ErasureQueue",
            settings.refresh_function: "RefreshFunction",
            settings.refresh_queue: "RefreshQueue",
            settings.refresh_dead_letters: "RefreshDeadLetters",
        }

    def client(self, service: str) -> Any:
        client = self._make(service)
        client.meta.events.register("before-parameter-build", self._record)
        client.meta.events.register("before-call", self._fail)
        return client

    def _fail(self, model: Any, **_: Any) -> tuple[Any, Answer] | None:
        waiting = self.failures.get(model.name)
        if not waiting:
            return None
        told = waiting.pop(0)
        answer = told() if callable(told) else told
        if answer is PASS:
            return None
        return SimpleNamespace(status_code=400 if "Error" in answer else 200), answer

    def _record(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        service = model.service_model.service_name
        reads: dict[str, Callable[[str, dict[str, Any]], Iterator[Access]]] = {
            "dynamodb": self._table_accesses,
            "s3": self._bucket_accesses,
        }
        self.seen |= set(reads.get(service, self._other_accesses)(model.name, params))

    def _table_accesses(self, operation: str, params: dict[str, Any]) -> Iterator[Access]:
        if operation == "TransactWriteItems":
            for item in params["TransactItems"]:
                for kind, part in item.items():
                    one = "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item"
                    yield from self._table_accesses(one, part)
        elif operation == "BatchWriteItem":
            for table, requests in params["RequestItems"].items():
                for request in requests:
                    partition = request["DeleteRequest"]["Key"]["pk"]["S"]
                    yield Access("dynamodb:BatchWriteItem", self._arn(table), partition)
        elif operation == "BatchGetItem":
            for table in params["RequestItems"]:
                yield Access("dynamodb:BatchGetItem", self._arn(table))
        else:
            index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
            written = params.get("Item") or params.get("Key") or {}
            partition = written.get("pk", {}).get("S") or _queried(params)
            yield Access(f"dynamodb:{operation}", self._arn(params["TableName"]) + index, partition)

    def _bucket_accesses(self, operation: str, params: dict[str, Any]) -> Iterator[Access]:
        bucket = self._arn(params["Bucket"])
        place = f"{bucket}/{params['Key']}" if "Key" in params else bucket
        if operation == "DeleteObjects":
            for each in params["Delete"]["Objects"]:
                yield Access("s3:DeleteObjectVersion", f"{bucket}/{each['Key']}")
            return
        action = {
            "HeadObject": "GetObject",
            "ListObjectsV2": "ListBucket",
            "ListObjectVersions": "ListBucketVersions",
        }.get(operation, operation)
        if "VersionId" in params:
            action += "Version"
        yield Access(f"s3:{action}", place)
        if "Tagging" in params and operation == "PutObject":
            yield Access("s3:PutObjectTagging", place)

    def _other_accesses(self, operation: str, params: dict[str, Any]) -> Iterator[Access]:
        if operation == "Invoke":
            yield Access("lambda:InvokeFunction", self._arn(params["FunctionName"]))
        elif "QueueUrl" in params:
            yield Access(f"sqs:{operation.removesuffix('Batch')}", self._arn(params["QueueUrl"]))
        else:
            yield Access(f"kms:{operation}", self._arn(params["KeyId"]))

    def _arn(self, name: str) -> str:
        return f"{self._names[name]}.Arn"
