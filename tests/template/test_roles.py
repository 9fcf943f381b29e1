"""What each function may do: nothing but what is written here. That all of it is needed, functional tests show."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from factbook_local.template import Template

from .conftest import DOMAIN, OPTIONS, PSEUDO, ROOT, functions_of

STREAM = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}
LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
CHANGES = {
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:PartiQLUpdate",
    "dynamodb:PartiQLDelete",
}


def items(*actions: str) -> set[str]:
    return {f"dynamodb:{action}" for action in actions}


QUERY = items("Query")
SECRETS = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:factbook/*"
GRANTS = {
    "WriteFunction": {
        "WriteLogs.Arn": LOGS,
        "FactsTable.Arn": items("GetItem", "BatchGetItem", "Query", "PutItem", "DeleteItem"),
        "FactsTable.Arn/index/memory": QUERY,
        "FactsTable.Arn/index/account": QUERY,
        "LogTable.Arn": items("GetItem", "BatchGetItem", "Query", "PutItem"),
        "LogTable.Arn/index/runs-admin": QUERY,
        "KeysTable.Arn": items("GetItem", "Query", "PutItem"),
        "AccessTable.Arn": items(
            "GetItem",
            "BatchGetItem",
            "Query if the key is erasing|*",
            "Query if the key is leaf|*",
            "PutItem if the key is token|* or policy|* or system",
            "PutItem if the key is evidence|* or job|import or job|index",
            "PutItem if the key is issuer",
        ),
        "BlobsBucket.Arn/facts/*": {
            "s3:GetObject",
            "s3:PutObject",
            "s3:DeleteObjectVersion",
            "s3:PutObjectTagging",
            "s3:DeleteObjectTagging",
        },
        "BlobsBucket.Arn": {"s3:ListBucket", "s3:ListBucketVersions"},
        "DataKey.Arn": {"kms:GenerateDataKey", "kms:Decrypt", "kms:Encrypt"},
        "CheckpointFunction.Arn": {"lambda:InvokeFunction"},
    },
    "ReadFunction": {
        "ReadLogs.Arn": LOGS,
        "FactsTable.Arn": items("GetItem", "BatchGetItem", "Query"),
        "FactsTable.Arn/index/listing": QUERY,
        "FactsTable.Arn/index/admin": QUERY,
        "FactsTable.Arn/index/listing-type": QUERY,
        "FactsTable.Arn/index/admin-type": QUERY,
        "FactsTable.Arn/index/memory": QUERY,
        "FactsTable.Arn/index/account": QUERY,
        "FactsTable.Arn/index/reviews": QUERY,
        "LogTable.Arn": items("GetItem", "BatchGetItem", "Query"),
        "LogTable.Arn/index/thread": QUERY,
        "LogTable.Arn/index/runs": QUERY,
        "LogTable.Arn/index/runs-admin": QUERY,
        "KeysTable.Arn": items("GetItem", "Query"),
        "AccessTable.Arn": items(
            "GetItem",
            "BatchGetItem",
            "Query",
            "PutItem if the key is system or lease|*",
            "DeleteItem if the key is lease|*",
            "PutItem if the key is issuer",
        ),
        "AccessTable.Arn/index/tenant": QUERY,
        "RefreshFunction.Arn": {"lambda:InvokeFunction"},
        "RefreshQueue.Arn": {"sqs:SendMessage"},
        "BlobsBucket.Arn/facts/*": {"s3:GetObject"},
        "CheckpointsBucket.Arn/*": {"s3:GetObject"},
        "CheckpointsBucket.Arn": {"s3:ListBucket"},
        "DataKey.Arn": {"kms:Decrypt"},
        f"{DOMAIN}/*": {"es:ESHttpGet", "es:ESHttpPost"},
    },
    "RetrieveFunction": {
        "RetrieveLogs.Arn": LOGS,
        "FactsTable.Arn": items("BatchGetItem"),
        "FactsTable.Arn/index/listing": QUERY,
        "FactsTable.Arn/index/admin": QUERY,
        "FactsTable.Arn/index/listing-type": QUERY,
        "FactsTable.Arn/index/admin-type": QUERY,
        "FactsTable.Arn/index/memory": QUERY,
        "FactsTable.Arn/index/account": QUERY,
        "LogTable.Arn": items("BatchGetItem"),
        "LogTable.Arn/index/thread": QUERY,
        "KeysTable.Arn": items("GetItem"),
        "AccessTable.Arn": items("GetItem", "Query if the key is erasing|*", "PutItem if the key is issuer"),
        "RefreshQueue.Arn": {"sqs:SendMessage"},
        "DataKey.Arn": {"kms:Decrypt"},
        f"{DOMAIN}/*": {"es:ESHttpGet", "es:ESHttpPost"},
        "secret-arn": {"secretsmanager:GetSecretValue"},
        "secret-key-arn": {"kms:Decrypt"},
    },
    "IndexFunction": {
        "IndexLogs.Arn": LOGS,
        "FactsTable.StreamArn": STREAM,
        "LogTable.StreamArn": STREAM,
        "FactsTable.Arn/stream/*": items("ListStreams"),
        "LogTable.Arn/stream/*": items("ListStreams"),
        "IndexDeadLetters.Arn": {"sqs:SendMessage"},
        "IndexDiscards.Arn": {
            "sqs:SendMessage",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
        },
        "FactsTable.Arn": items("GetItem", "BatchGetItem", "Query", "Scan", "DeleteItem", "PutItem"),
        "FactsTable.Arn/index/admin": items("Scan"),
        "LogTable.Arn": items("BatchGetItem", "Query", "Scan"),
        "LogTable.Arn/index/thread": QUERY,
        "KeysTable.Arn": items("GetItem"),
        "AccessTable.Arn": items("GetItem", "Query")
        | items(*(f"{act} if the key is backlog|* or job|*" for act in ("PutItem", "DeleteItem"))),
        "BlobsBucket.Arn/facts/*": {
            "s3:GetObject",
            "s3:DeleteObjectVersion",
            "s3:PutObjectTagging",
            "s3:DeleteObjectTagging",
        },
        "BlobsBucket.Arn": {"s3:ListBucket", "s3:ListBucketVersions"},
        "DataKey.Arn": {"kms:Decrypt"},
        f"{DOMAIN}/*": {"es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost", "es:ESHttpPut", "es:ESHttpDelete"},
        "secret-arn": {"secretsmanager:GetSecretValue"},
        "secret-key-arn": {"kms:Decrypt"},
    },
    "EraseFunction": {
        "EraseLogs.Arn": LOGS,
        "FactsTable.Arn": items(
            "GetItem", "BatchGetItem", "Query", "PutItem", "DeleteItem", "BatchWriteItem"
        ),
        "FactsTable.Arn/index/admin": QUERY,
        "FactsTable.Arn/index/held": QUERY,
        "LogTable.Arn": items("GetItem", "Query", "PutItem if the key is *|_erasures"),
        "LogTable.Arn/index/runs-admin": QUERY,
        "KeysTable.Arn": items("GetItem", "Query", "PutItem"),
        "AccessTable.Arn": items(
            "GetItem",
            "BatchGetItem",
            "Query",
            "PutItem if the key is erasures|* or erasures-by-time|* or erasing|* or erasing-work|* or replay|* or "
            "replays-waiting|* or job|* or system",
            "PutItem if the key is issuer",
            "DeleteItem if the key is erasures|* or erasures-by-time|* or erasing|* or erasing-work|* or replays-waiting|*",
        ),
        "BlobsBucket.Arn/facts/*": {"s3:DeleteObjectVersion"},
        "BlobsBucket.Arn": {"s3:ListBucketVersions"},
        "ErasureQueue.Arn": {
            "sqs:SendMessage",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
        },
        "CheckpointFunction.Arn": {"lambda:InvokeFunction"},
        "factbook-LedgerKeys": {"secretsmanager:GetSecretValue"},
        f"{DOMAIN}/*": {"es:ESHttpGet", "es:ESHttpPost"},
    },
    "CheckpointFunction": {
        "CheckpointLogs.Arn": LOGS,
        "LogTable.StreamArn": STREAM,
        "LogTable.Arn/stream/*": items("ListStreams"),
        "CheckpointDeadLetters.Arn": {"sqs:SendMessage"},
        "LogTable.Arn": items("GetItem", "Query"),
        "LogTable.Arn/index/runs-admin": items("Scan"),
        "AccessTable.Arn": items(
            "GetItem",
            "Query",
            "PutItem if the key is tree|* or leaf|* or node|* or head|* or dirty|* or note|* or job|marks",
            "DeleteItem if the key is dirty|*",
        ),
        "CheckpointsBucket.Arn/*": {"s3:GetObject", "s3:PutObject"},
        "CheckpointsBucket.Arn": {"s3:ListBucket"},
        "SigningKey.Arn": {"kms:Sign", "kms:GetPublicKey"},
    },
    "RefreshFunction": {
        "RefreshLogs.Arn": LOGS,
        "FactsTable.Arn": items("GetItem", "PutItem", "DeleteItem"),
        "FactsTable.Arn/index/due": QUERY,
        "LogTable.Arn": items("Query", "PutItem"),
        "KeysTable.Arn": items("Query", "PutItem"),
        "AccessTable.Arn": items(
            "GetItem",
            "Query if the key is erasing|*",
            "PutItem if the key is lease|* or place|* or circuit|* or job|*",
            "DeleteItem if the key is lease|* or circuit|*",
            "PutItem if the key is issuer",
        ),
        "BlobsBucket.Arn/facts/*": {
            "s3:PutObject",
            "s3:DeleteObjectVersion",
            "s3:PutObjectTagging",
            "s3:DeleteObjectTagging",
        },
        "BlobsBucket.Arn": {"s3:ListBucketVersions"},
        "DataKey.Arn": {"kms:GenerateDataKey", "kms:Decrypt"},
        "RefreshQueue.Arn": {
            "sqs:SendMessage",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
        },
        "RefreshDeadLetters.Arn": {"sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage"},
        SECRETS: {"secretsmanager:GetSecretValue"},
        "tenants-key-arn": {"kms:Decrypt"},
        "objects-arn": {"s3:GetObject"},
        "function-arn": {"lambda:InvokeFunction"},
    },
}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements_of(template: Template, role: str) -> Iterator[dict[str, Any]]:
    for policy in template.resolve(template.resources[role]["Properties"])["Policies"]:
        yield from policy["PolicyDocument"]["Statement"]


def role_of(function: dict[str, Any]) -> str:
    return str(function["Role"]).removesuffix(".Arn")


def grants_of(template: Template, role: str) -> dict[str, set[str]]:
    """Resource → actions. A condition that is not expected shows up in the action's name."""
    grants: dict[str, set[str]] = defaultdict(set)
    for statement in statements_of(template, role):
        assert statement["Effect"] == "Allow"
        condition = ""
        if "Condition" in statement:
            ((test, keys),) = statement["Condition"].items()
            assert test in ("ForAllValues:StringEquals", "ForAllValues:StringLike")
            assert keys.keys() == {"dynamodb:LeadingKeys"}
            condition = f" if the key is {' or '.join(keys['dynamodb:LeadingKeys'])}"
        for resource in as_list(statement["Resource"]):
            grants[resource] |= {action + condition for action in as_list(statement["Action"])}
    return dict(grants)


def test_every_function_has_a_role_of_its_own_and_nothing_but_inline_policies(template: Template) -> None:
    functions = dict(functions_of(template))

    assert functions.keys() == GRANTS.keys()
    assert len({role_of(function) for function in functions.values()}) == len(functions)
    assert {name for name, function in functions.items() if "Policies" in function} == set()


@pytest.mark.parametrize("function", GRANTS)
def test_a_role_may_do_exactly_what_its_function_does(template: Template, function: str) -> None:
    role = role_of(dict(functions_of(template))[function])

    assert grants_of(template, role) == GRANTS[function]


def test_every_function_that_authenticates_may_keep_the_keys_of_the_issuer_where_there_is_one(
    template: Template,
) -> None:
    plain = Template(ROOT / "template.yaml", PSEUDO)
    for name, function in functions_of(template):
        serves = any(event["Type"] == "HttpApi" for event in function.get("Events", {}).values())
        keeps = "dynamodb:PutItem if the key is issuer"
        assert (keeps in grants_of(template, role_of(function)).get("AccessTable.Arn", ())) == serves, name
        assert keeps not in grants_of(plain, role_of(function)).get("AccessTable.Arn", ()), name


def test_no_statement_names_every_resource_or_every_action(template: Template) -> None:
    roles = template.of_type("AWS::IAM::Role")
    named = [
        word
        for role in roles
        for statement in statements_of(template, role)
        for word in as_list(statement["Resource"]) + as_list(statement["Action"])
    ]

    assert len(named) > len(roles)
    assert [word for word in named if word == "*" or word.endswith(":*")] == []


def test_no_role_may_change_or_remove_what_is_in_the_log(template: Template) -> None:
    for role in template.of_type("AWS::IAM::Role"):
        for resource, actions in grants_of(template, role).items():
            if resource.startswith("LogTable"):
                assert actions & CHANGES == set(), role


def test_only_writes_put_into_the_log(template: Template) -> None:
    putting = {
        function
        for function, properties in functions_of(template)
        if "dynamodb:PutItem" in grants_of(template, role_of(properties)).get("LogTable.Arn", set())
    }

    assert putting == {"WriteFunction", "RefreshFunction"}


def test_tracing_is_the_only_reason_for_a_managed_policy(template: Template) -> None:
    for role in template.of_type("AWS::IAM::Role"):
        properties = template.resources[role]["Properties"]
        assert template.resolve(properties["ManagedPolicyArns"]) == [
            "arn:aws:iam::aws:policy/AWSXRayDaemonWriteAccess"
        ]
        condition, _, otherwise = properties["ManagedPolicyArns"][0]["Fn::If"]
        assert condition == "Traces"
        assert otherwise == {"Ref": "AWS::NoValue"}


def test_whoever_writes_the_access_table_is_told_which_keys(template: Template) -> None:
    changing = {"dynamodb:PutItem", *CHANGES}
    for role in template.of_type("AWS::IAM::Role"):
        assert grants_of(template, role).get("AccessTable.Arn", set()) & changing == set(), role


def test_whoever_reads_a_secret_may_decrypt_it_where_it_has_a_key_of_its_own(template: Template) -> None:
    for role in template.of_type("AWS::IAM::Role"):
        grants = grants_of(template, role)
        assert ("secret-arn" in grants) == ("secret-key-arn" in grants), role
        assert (SECRETS in grants) == ("tenants-key-arn" in grants), role


def test_a_model_of_bedrock_may_be_asked_where_one_was_chosen_by_those_that_embed_and_no_other_model() -> (
    None
):
    model = "amazon.titan-embed-text-v2:0"
    embeds = {"Embeddings": "bedrock", "EmbeddingsModel": model}
    chosen = Template(ROOT / "template.yaml", PSEUDO, embeds)
    arn = f"arn:aws:bedrock:eu-central-1::foundation-model/{model}"
    asking = {
        name: grants_of(chosen, role_of(function)).get(arn)
        for name, function in functions_of(chosen)
        if "bedrock:" in str(grants_of(chosen, role_of(function)))
    }
    assert asking == {name: {"bedrock:InvokeModel"} for name in ("RetrieveFunction", "IndexFunction")}
    for others in ({}, OPTIONS, {"Embeddings": "built-in"}):
        other = Template(ROOT / "template.yaml", PSEUDO, others)
        assert "bedrock:" not in str([grants_of(other, role) for role in other.of_type("AWS::IAM::Role")])


def test_the_table_of_vectors_is_searched_by_retrieve_written_by_index_and_looked_up_by_read() -> None:
    vectors = Template(
        ROOT / "template.yaml",
        PSEUDO,
        {"Search": "dynamodb", "VectorDimensions": "8", "Embeddings": "built-in"},
    )
    table, looked_up = "VectorsTable.Arn", items("Query", "BatchGetItem")
    found = {
        name: {
            where: actions
            for where, actions in grants_of(vectors, role_of(function)).items()
            if table in where
        }
        for name, function in functions_of(vectors)
    }
    assert {name: grants for name, grants in found.items() if grants} == {
        "ReadFunction": {table: looked_up},
        "RetrieveFunction": {
            table: looked_up,
            f"{table}/index/by-container": items("SearchVectors"),
            f"{table}/index/by-tenant": items("SearchVectors"),
        },
        "IndexFunction": {table: looked_up | items("PutItem", "DeleteItem", "BatchWriteItem")},
        "EraseFunction": {table: items("Query", "PutItem", "DeleteItem", "BatchWriteItem")},
    }
