"""A stack of a former template, with something in its tables, brought to today's as docs/deploy.md says: nothing is lost.

The emulator takes several changes of a table's indexes at once, which DynamoDB refuses: here each update is held to one.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.gateway import ROOT, Gateway
from support.principals import issue, principal
from support.stacks import TRANSLATOR, Cloud, Deployed, services_of

sys.path.insert(0, str(ROOT / ".ci"))
from index_steps import steps

KEPT = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key")
ITEM = {"pk": {"S": "kept"}, "word": {"S": "tea"}}


@pytest.fixture(scope="module")
def former(aws_like: Cloud) -> Path:
    return aws_like.transformed(Path(__file__).with_name("former-template.yaml"))


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def tables_of(stack: Deployed) -> dict[str, str]:
    kinds = stack.template.of_type("AWS::DynamoDB::Table")
    return {name: stack.physical[name] for name in kinds}


def indexes_of(stack: Deployed) -> dict[str, set[str]]:
    client = stack.aws.client("dynamodb")
    described = {
        name: client.describe_table(TableName=table)["Table"] for name, table in tables_of(stack).items()
    }
    return {
        name: {index["IndexName"] for index in table.get("GlobalSecondaryIndexes", [])}
        for name, table in described.items()
    }


def kept_of(stack: Deployed, names: set[str]) -> dict[str, str]:
    return {name: physical for name, physical in stack.physical.items() if name in names}


def fill(stack: Deployed) -> None:
    client = stack.aws.client("dynamodb")
    for name, table in tables_of(stack).items():
        sort = {"N": "1"} if name == "LogTable" else {"S": "1"}
        client.put_item(TableName=table, Item={**ITEM, "sk": sort})
    for bucket in ("BlobsBucket", "CheckpointsBucket"):
        stack.aws.client("s3").put_object(Bucket=stack.physical[bucket], Key="kept", Body=b"tea")


def contents(stack: Deployed) -> list[Any]:
    client, s3 = stack.aws.client("dynamodb"), stack.aws.client("s3")
    return [
        *(client.scan(TableName=table)["Items"] for table in tables_of(stack).values()),
        *(
            s3.get_object(Bucket=stack.physical[bucket], Key="kept")["Body"].read()
            for bucket in ("BlobsBucket", "CheckpointsBucket")
        ),
    ]


def test_a_former_stack_comes_to_todays_template_one_index_of_a_table_an_update_and_keeps_all_it_holds(
    aws_like: Cloud, former: Path, today: Path
) -> None:
    stack = aws_like.stack(former)
    stateful = {name for name, each in stack.document["Resources"].items() if each["Type"] in KEPT}
    fill(stack)
    before, held, functions = kept_of(stack, stateful), contents(stack), stack.document["Resources"]
    assert len(before) >= 8
    deployed = [indexes_of(stack)]
    for step in steps(read(former), read(today)):
        others = {name: each for name, each in step["Resources"].items() if name not in tables_of(stack)}
        assert others == {name: each for name, each in functions.items() if name in others}
        path = aws_like.folder / f"step-{len(deployed)}.json"
        path.write_text(json.dumps(step), encoding="utf-8")
        assert stack.update(path) == "UPDATE_COMPLETE", stack.failures()
        deployed.append(indexes_of(stack))
        for name, indexes in deployed[-1].items():
            assert len(indexes ^ deployed[-2][name]) <= 1, name
    assert len(deployed) > 2

    assert stack.update(today) == "UPDATE_COMPLETE", stack.failures()
    assert (
        indexes_of(stack)
        == deployed[-1]
        == {
            name: {index["IndexName"] for index in each.get("GlobalSecondaryIndexes", [])}
            for name, each in stack.template.of_type("AWS::DynamoDB::Table").items()
        }
    )
    assert set(stack.physical) == set(stack.template.resources)
    assert kept_of(stack, stateful) == before
    assert contents(stack) == held
    with pytest.raises(stack.client.exceptions.ClientError, match="No updates"):
        stack.update()
    services = services_of(stack)
    alice = Gateway(services, issue(services, principal("acme", "alice", admin=True)))
    fact = alice.call("POST", "/v1/memory/facts", {"type": "note", "content": "tea"})
    assert fact.status == 201, fact.text
    listed = alice.call("GET", "/v1/memory/facts", query={"type": "note"}).json["data"]
    assert [each["id"] for each in listed] == [fact.json["id"]]


def test_a_table_with_another_key_is_no_update(today: Path) -> None:
    other = read(today)
    other["Resources"]["KeysTable"]["Properties"]["AttributeDefinitions"][1]["AttributeType"] = "N"
    with pytest.raises(ValueError, match="KeysTable"):
        list(steps(other, read(today)))


def test_the_command_writes_a_file_for_each_update(former: Path, today: Path, tmp_path: Path) -> None:
    def run(deployed: Path) -> tuple[list[str], str]:
        words = [TRANSLATOR, ROOT / ".ci" / "index_steps.py", "--deployed", deployed, today, "--to", tmp_path]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.split(), done.stderr

    written, _ = run(former)
    assert [read(Path(each)) for each in written] == list(steps(read(former), read(today)))
    assert sorted(map(str, tmp_path.iterdir())) == sorted(written)
    nothing, told = run(today)
    assert (nothing, told.startswith("No index has to change")) == ([], True)
    assert list(tmp_path.iterdir()) == []
