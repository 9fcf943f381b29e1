"""Making a template's resources on the data plane, where they are not there already from an earlier start."""

import json
from typing import Any

from botocore.exceptions import ClientError

from factbook_local.clients import Clients
from factbook_local.dataplane.process import ACCOUNT, REGION
from factbook_local.stack import Stack

_TABLE_FIELDS = ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "VectorIndexes")
_QUEUE_FIELDS = ("VisibilityTimeout", "MessageRetentionPeriod")


def function_arn(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def provision(stack: Stack, clients: Clients, api_url: str) -> None:
    """Create what is missing and note every name, ARN and id in `stack.template.physical`."""
    physical = stack.template.physical
    for logical, function in stack.functions.items():
        physical[logical] = {"Ref": function.name, "Arn": function_arn(function.name)}
    for logical in stack.template.of_type("AWS::Serverless::HttpApi"):
        physical[logical] = {"Ref": "local", "ApiEndpoint": api_url}
    for logical, (name, properties) in stack.named("AWS::KMS::Key").items():
        physical[logical] = _key(clients.kms, name, stack.template.resolve(_without(properties, "KeyPolicy")))
    for logical, (name, properties) in stack.named("AWS::DynamoDB::Table").items():
        fields = {
            field: properties[field]
            for field in (*_TABLE_FIELDS, "StreamSpecification")
            if field in properties
        }
        physical[logical] = _table(clients.dynamodb, name, sized(stack.template.resolve(fields)))
    for logical, (name, properties) in stack.named("AWS::S3::Bucket").items():
        physical[logical] = _bucket(
            clients.s3,
            name,
            stack.template.resolve(_without(properties, "LifecycleConfiguration")),
        )
    queues = stack.named("AWS::SQS::Queue")
    for logical, (name, properties) in queues.items():
        physical[logical] = _queue(
            clients.sqs,
            name,
            stack.template.resolve(_without(properties, "RedrivePolicy")),
        )
    for logical, (_, properties) in queues.items():
        if redrive := stack.template.resolve(properties.get("RedrivePolicy")):
            clients.sqs.set_queue_attributes(
                QueueUrl=physical[logical]["Ref"], Attributes={"RedrivePolicy": json.dumps(redrive)}
            )


def sized(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a table whose vector indexes have their dimensions as a number: parameters are texts."""
    found = [{**index, "Dimensions": int(index["Dimensions"])} for index in fields.get("VectorIndexes", [])]
    return fields | {"VectorIndexes": found} if found else fields


def expiring_tables(stack: Stack) -> dict[str, str]:
    """Table name → the attribute that holds its items' end. The data plane's own time to live is never turned on."""
    found = {}
    for name, properties in stack.named("AWS::DynamoDB::Table").values():
        setting = stack.template.resolve(properties.get("TimeToLiveSpecification") or {})
        if setting.get("Enabled") in (True, "true"):
            found[name] = setting["AttributeName"]
    return found


def _without(properties: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in names}


def _key(kms: Any, name: str, properties: dict[str, Any]) -> dict[str, str]:
    alias = f"alias/{name}"
    try:
        found = kms.describe_key(KeyId=alias)["KeyMetadata"]
    except ClientError:
        found = kms.create_key(
            KeySpec=properties.get("KeySpec", "SYMMETRIC_DEFAULT"),
            KeyUsage=properties.get("KeyUsage", "ENCRYPT_DECRYPT"),
        )["KeyMetadata"]
        kms.create_alias(AliasName=alias, TargetKeyId=found["KeyId"])
    return {"Ref": found["KeyId"], "KeyId": found["KeyId"], "Arn": found["Arn"]}


def _table(dynamodb: Any, name: str, fields: dict[str, Any]) -> dict[str, str]:
    if stream := fields.get("StreamSpecification"):
        fields["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream["StreamViewType"]}
    try:
        found = dynamodb.describe_table(TableName=name)["Table"]
    except dynamodb.exceptions.ResourceNotFoundException:
        found = dynamodb.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **fields)[
            "TableDescription"
        ]
    else:
        found = _brought_up_to_date(dynamodb, name, fields, found)
    attributes = {"Ref": name, "Arn": found["TableArn"]}
    if "LatestStreamArn" in found:
        attributes["StreamArn"] = found["LatestStreamArn"]
    return attributes


def _brought_up_to_date(
    dynamodb: Any, name: str, fields: dict[str, Any], found: dict[str, Any]
) -> dict[str, Any]:
    """A table of an earlier start gets the indexes and the stream that the template has meanwhile."""
    there = {index["IndexName"] for index in found.get("GlobalSecondaryIndexes", [])}
    for index in fields.get("GlobalSecondaryIndexes", []):
        if index["IndexName"] not in there:
            dynamodb.update_table(
                TableName=name,
                AttributeDefinitions=fields["AttributeDefinitions"],
                GlobalSecondaryIndexUpdates=[{"Create": index}],
            )
    if "StreamSpecification" in fields and not found.get("StreamSpecification", {}).get("StreamEnabled"):
        dynamodb.update_table(TableName=name, StreamSpecification=fields["StreamSpecification"])
    return dynamodb.describe_table(TableName=name)["Table"]  # type: ignore[no-any-return]


def _bucket(s3: Any, name: str, properties: dict[str, Any]) -> dict[str, str]:
    locked = properties.get("ObjectLockEnabled") in (True, "true")
    try:
        s3.head_bucket(Bucket=name)
    except ClientError:
        s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=locked)
    if properties.get("VersioningConfiguration", {}).get("Status") == "Enabled" or locked:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    if rule := properties.get("ObjectLockConfiguration", {}).get("Rule"):
        retention = {
            field: int(value) if field != "Mode" else value
            for field, value in rule["DefaultRetention"].items()
        }
        s3.put_object_lock_configuration(
            Bucket=name,
            ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": retention}},
        )
    return {"Ref": name, "Arn": f"arn:aws:s3:::{name}"}


def _queue(sqs: Any, name: str, properties: dict[str, Any]) -> dict[str, str]:
    attributes = {field: str(properties[field]).lower() for field in _QUEUE_FIELDS if field in properties}
    try:
        url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
        if attributes:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
    except sqs.exceptions.QueueDoesNotExist:
        url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return {"Ref": url, "Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"}
