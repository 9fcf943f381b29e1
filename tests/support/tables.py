"""Tables and buckets as template.yaml declares them, made in whatever AWS the clients talk to."""

from functools import cache
from typing import Any

from factbook.adapters.dynamodb_jobs import DynamoJobs
from factbook.ports.jobs import DONE, Job
from factbook.settings import Settings, read_settings
from factbook.usecases.facts.upgrading import FORMAT, UPGRADE
from factbook_local.dataplane.provision import sized
from factbook_local.stack import Stack, read_stack
from factbook_local.template import Template
from support.gateway import ROOT

REGION = "us-east-1"
PSEUDO = {
    "AWS::Region": REGION,
    "AWS::AccountId": "000000000000",
    "AWS::Partition": "aws",
    "AWS::StackName": "factbook",
    "AWS::URLSuffix": "amazonaws.com",
}
# Streams are left out: nothing here reads them, and an emulator that cancels a transaction may break them.
_TABLE_FIELDS = ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes")


@cache
def declared() -> Stack:
    return read_stack(Template(ROOT / "template.yaml", PSEUDO))


def make_tables(dynamodb: Any, prefix: str = "") -> list[str]:
    """Their names, each behind the prefix."""
    made = []
    for name, properties in declared().named("AWS::DynamoDB::Table").values():
        fields = {key: properties[key] for key in _TABLE_FIELDS if key in properties}
        made.append(prefix + name)
        dynamodb.create_table(TableName=made[-1], BillingMode="PAY_PER_REQUEST", **fields)
    return made


def make_vectors_table(dynamodb: Any, dimensions: int) -> str:
    """The table of vectors of a deployment that has one."""
    chosen = {"Search": "dynamodb", "VectorDimensions": str(dimensions), "Embeddings": "built-in"}
    stack = read_stack(Template(ROOT / "template.yaml", PSEUDO, chosen))
    name, properties = stack.named("AWS::DynamoDB::Table")["VectorsTable"]
    fields = {key: properties[key] for key in (*_TABLE_FIELDS, "VectorIndexes") if key in properties}
    dynamodb.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST", **sized(stack.template.resolve(fields))
    )
    return name


def note_upgraded(dynamodb: Any, access_table: str) -> None:
    """As after the index function's first tick: there is no fact of a former format."""
    done = Job(UPGRADE, FORMAT, DONE, "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z")
    assert DynamoJobs(dynamodb, access_table).keep(done)


def make_buckets(s3: Any) -> None:
    for name, properties in declared().named("AWS::S3::Bucket").values():
        s3.create_bucket(Bucket=name)
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"])


def settings() -> Settings:
    """What every function is told: the names of the tables and buckets made here."""
    stack = declared()
    kinds = ("AWS::DynamoDB::Table", "AWS::S3::Bucket")
    names = {logical: {"Ref": name} for logical, (name, _) in stack.named(*kinds).items()}
    stack.template.physical.update(names)
    environment: dict[str, Any] = {}
    for function in stack.functions.values():
        environment |= {
            key: str(stack.template.resolve(value)) for key, value in function.environment.items()
        }
    return read_settings(environment)


def index_fields(table: str) -> dict[str, set[str] | None]:
    """Index name → the attributes it holds besides the table's own key, None for all of them."""
    stack = declared()
    found: dict[str, set[str] | None] = {}
    for name, properties in stack.named("AWS::DynamoDB::Table").values():
        if name != table:
            continue
        for index in properties.get("GlobalSecondaryIndexes", []):
            keys = {key["AttributeName"] for key in index["KeySchema"]}
            projection = index["Projection"]
            kind = projection["ProjectionType"]
            found[index["IndexName"]] = (
                None if kind == "ALL" else keys | set(projection.get("NonKeyAttributes", []))
            )
    return found


def index_keys(table: str) -> dict[str, set[str]]:
    """Index name → its key attributes: an item without one of them is not in the index."""
    return {
        index["IndexName"]: {key["AttributeName"] for key in index["KeySchema"]}
        for name, properties in declared().named("AWS::DynamoDB::Table").values()
        if name == table
        for index in properties.get("GlobalSecondaryIndexes", [])
    }
