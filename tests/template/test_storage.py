"""Tables, buckets, keys and queues: their shape, and that they keep and hide what they hold."""

import json
from typing import Any

import pytest

from factbook.domain.erasure.ledger import read_keys
from factbook.usecases.erasure.stating import BACKUP_DAYS
from factbook_local.template import Template

from .conftest import PSEUDO, ROOT, functions_of

STATEFUL = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SecretsManager::Secret")

# Table → (partition key, sort key), index → (partition key, sort key, projection).
SHAPES: dict[str, tuple[tuple[str, str], dict[str, tuple[str, str, Any]]]] = {
    "FactsTable": (
        ("pk S", "sk S"),
        {
            "listing": ("l S", "o S", ["t", "s", "x", "rv", "ag", "ow"]),
            "admin": ("a S", "o S", ["t", "s", "x", "rv", "ag", "ow"]),
            "listing-type": ("l S", "y S", ["o", "t", "s", "x", "rv", "ag", "ow"]),
            "admin-type": ("a S", "y S", ["o", "t", "s", "x", "rv", "ag", "ow"]),
            "due": ("du S", "do S", "KEYS_ONLY"),
            "memory": ("m S", "mk S", "ALL"),
            "account": ("am S", "mk S", "ALL"),
            "reviews": ("rw S", "rs S", "KEYS_ONLY"),
            "held": ("hd S", "o S", ["s", "ow", "sj"]),
        },
    ),
    "LogTable": (
        ("pk S", "sk N"),
        {
            "thread": ("th S", "to S", "ALL"),
            "runs": ("rl S", "ro S", ["sc"]),
            "runs-admin": ("ra S", "ro S", ["sc"]),
        },
    ),
    "KeysTable": (("pk S", "sk S"), {}),
    "AccessTable": (("pk S", "sk S"), {"tenant": ("tn S", "ts S", "ALL")}),
}


def keys_of(schema: list[dict[str, str]], types: dict[str, str]) -> tuple[str, ...]:
    assert [key["KeyType"] for key in schema] == ["HASH", "RANGE"]
    return tuple(f"{key['AttributeName']} {types[key['AttributeName']]}" for key in schema)


def projection_of(index: dict[str, Any]) -> Any:
    projection = index["Projection"]
    return projection.get("NonKeyAttributes", projection["ProjectionType"])


def properties_of(template: Template, name: str) -> dict[str, Any]:
    properties = template.resolve(template.resources[name]["Properties"])
    assert isinstance(properties, dict)
    return properties


def test_there_are_the_tables_of_the_architecture_and_no_others(template: Template) -> None:
    assert template.of_type("AWS::DynamoDB::Table").keys() == SHAPES.keys()


@pytest.mark.parametrize("name", SHAPES)
def test_a_table_has_its_keys_and_indexes(template: Template, name: str) -> None:
    table = properties_of(template, name)
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    indexes = {
        index["IndexName"]: (*keys_of(index["KeySchema"], types), projection_of(index))
        for index in table.get("GlobalSecondaryIndexes", [])
    }

    assert (keys_of(table["KeySchema"], types), indexes) == SHAPES[name]


@pytest.mark.parametrize("name", SHAPES)
def test_a_table_is_billed_by_request_encrypted_and_recoverable(template: Template, name: str) -> None:
    table = properties_of(template, name)

    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["SSESpecification"] == {"SSEEnabled": True}
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


def test_what_an_erasure_removes_cannot_be_recovered_after_the_days_that_its_statement_names(
    template: Template,
) -> None:
    """Facts and sealing keys; the log's entries and the access table hold no words of a person that a key does not seal."""
    days = {
        name: properties_of(template, name)["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"]
        for name in SHAPES
    }

    assert days == {"FactsTable": BACKUP_DAYS, "KeysTable": BACKUP_DAYS, "LogTable": 35, "AccessTable": 35}


def test_the_ledgers_first_key_is_generated_and_can_be_read(template: Template) -> None:
    generated = properties_of(template, "LedgerKeys")["GenerateSecretString"]
    password = "aZ09" * 16

    keys = read_keys(
        json.loads(generated["SecretStringTemplate"]) | {generated["GenerateStringKey"]: password}
    )

    assert (generated["PasswordLength"], generated["ExcludePunctuation"]) == (len(password), True)
    assert len(keys.keys[keys.current]) == 48


def test_streams_and_times_to_live_are_where_something_depends_on_them(template: Template) -> None:
    tables = {name: properties_of(template, name) for name in SHAPES}
    streams = {
        n: t["StreamSpecification"]["StreamViewType"] for n, t in tables.items() if "StreamSpecification" in t
    }
    lives = {n: t["TimeToLiveSpecification"] for n, t in tables.items() if "TimeToLiveSpecification" in t}

    assert streams == {"FactsTable": "NEW_AND_OLD_IMAGES", "LogTable": "NEW_IMAGE"}
    assert lives == dict.fromkeys(("FactsTable", "AccessTable"), {"AttributeName": "ttl", "Enabled": True})


@pytest.mark.parametrize("name", ["BlobsBucket", "CheckpointsBucket"])
def test_a_bucket_is_versioned_encrypted_and_closed_to_the_public(template: Template, name: str) -> None:
    bucket = properties_of(template, name)
    encryption = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert encryption == [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}


@pytest.mark.parametrize("name", ["BlobsBucket", "CheckpointsBucket"])
def test_a_bucket_refuses_requests_that_are_not_encrypted(template: Template, name: str) -> None:
    (statement,) = properties_of(template, f"{name}Policy")["PolicyDocument"]["Statement"]

    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert statement["Resource"] == [f"{name}.Arn", f"{name}.Arn/*"]


def test_uploads_that_no_fact_names_go_away(template: Template) -> None:
    rules = properties_of(template, "BlobsBucket")["LifecycleConfiguration"]["Rules"]
    pending = [rule for rule in rules if rule.get("TagFilters") == [{"Key": "pending", "Value": "true"}]]

    assert [(rule["Status"], rule["ExpirationInDays"]) for rule in pending] == [("Enabled", 2)]
    assert [rule["Id"] for rule in rules if "ExpirationInDays" in rule and rule not in pending] == []


def test_checkpoints_are_locked_for_as_long_as_the_parameters_say(template: Template) -> None:
    properties = template.resources["CheckpointsBucket"]["Properties"]
    retention = properties["ObjectLockConfiguration"]["Rule"]["DefaultRetention"]

    assert properties["ObjectLockEnabled"] is True
    assert properties["ObjectLockConfiguration"]["ObjectLockEnabled"] == "Enabled"
    assert retention == {"Mode": {"Ref": "CheckpointLockMode"}, "Days": {"Ref": "CheckpointLockDays"}}


def test_checkpoints_are_signed_by_an_ed25519_key_that_never_leaves_kms(template: Template) -> None:
    key = properties_of(template, "SigningKey")

    assert (key["KeySpec"], key["KeyUsage"]) == ("ECC_NIST_EDWARDS25519", "SIGN_VERIFY")


def test_what_holds_data_outlives_the_stack_unless_told_otherwise(template: Template) -> None:
    stateful = [r for r in template.resources.values() if r["Type"] in STATEFUL]

    assert len(stateful) == 9
    assert [r for r in stateful if r.get("DeletionPolicy") != {"Ref": "StatefulDeletion"}] == []
    assert [r for r in stateful if r.get("UpdateReplacePolicy") != "Retain"] == []
    assert template.resolve({"Ref": "StatefulDeletion"}) == "Retain"


def test_dead_letters_are_encrypted_and_wait_two_weeks(template: Template) -> None:
    queues = {name: properties_of(template, name) for name in template.of_type("AWS::SQS::Queue")}

    dead = {
        "IndexDeadLetters",
        "IndexDiscards",
        "CheckpointDeadLetters",
        "RefreshDeadLetters",
        "ErasureQueue",
        "ErasureDeadLetters",
    }
    assert queues.keys() == {*dead, "RefreshQueue"}
    for name in dead:
        queue = queues[name]
        kept = {"MessageRetentionPeriod": 14 * 24 * 3600, "SqsManagedSseEnabled": True}
        assert {**queue, **kept} == queue
        assert queue == kept or name in ("IndexDiscards", "ErasureQueue")


def test_an_erasure_that_nobody_can_take_up_is_heard_of(template: Template) -> None:
    queue = properties_of(template, "ErasureQueue")

    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == "ErasureDeadLetters.Arn"
    assert queue["VisibilityTimeout"] >= 6 * properties_of(template, "EraseFunction")["Timeout"]


def test_facts_to_refresh_wait_encrypted_and_lie_with_the_dead_letters_when_they_end_their_process(
    template: Template,
) -> None:
    queue = properties_of(template, "RefreshQueue")

    assert queue["SqsManagedSseEnabled"] is True
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == "RefreshDeadLetters.Arn"
    assert queue["VisibilityTimeout"] >= 6 * dict(functions_of(template))["RefreshFunction"]["Timeout"]


def test_what_the_index_gave_up_is_heard_of_and_then_lies_with_the_dead_letters(template: Template) -> None:
    discards = properties_of(template, "IndexDiscards")

    assert discards["RedrivePolicy"]["deadLetterTargetArn"] == "IndexDeadLetters.Arn"
    assert discards["VisibilityTimeout"] >= 6 * properties_of(template, "IndexFunction")["Timeout"]


VECTORS = {"Search": "dynamodb", "VectorDimensions": "384", "Embeddings": "built-in"}


def test_a_deployment_that_searches_in_dynamodb_has_one_table_more_a_cache_that_goes_with_the_stack() -> None:
    template = Template(ROOT / "template.yaml", PSEUDO, VECTORS)
    assert template.of_type("AWS::DynamoDB::Table").keys() == {*SHAPES, "VectorsTable"}
    resource, table = template.resources["VectorsTable"], properties_of(template, "VectorsTable")

    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Delete", "Delete")
    assert table["TableName"] == "factbook-vectors-384"  # another size is another table
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["SSESpecification"] == {"SSEEnabled": True}
    found = {
        index["IndexName"]: (
            [(each["AttributeName"], each["SearchSchemaElementType"]) for each in index["SearchSchema"]],
            index["VectorAttribute"]["AttributeName"],
            (index["Dimensions"], index["DistanceFunction"]),
            projection_of(index),
        )
        for index in table["VectorIndexes"]
    }
    within = [("s", "INLINE_FILTER"), ("y", "INLINE_FILTER")]
    assert found == {
        name: ([(partition, "HASH"), *within], "v", ("384", "COSINE"), ["id", "n", "f"])
        for name, partition in (("by-container", "c"), ("by-tenant", "t"))
    }
