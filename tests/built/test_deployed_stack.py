"""The template deployed whole, by an emulator's CloudFormation: what it makes, a story over it, updates, and its deletion.

What there has to be is what the conditions of the template leave of it under the parameters that were given. The emulator's gateway gets no routes and its Lambda runs nothing of ours, so routes are read from the transformed template and
the handlers run here, over the deployed tables, buckets, keys and queues.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gateway import ROOT, Gateway
from support.stacks import SECONDS, Cloud, Deployed, services_of

from factbook.verify.judges import audit
from factbook.verify.notes import read_key
from factbook_cli.main import main
from factbook_local.template import Template

DOMAIN = "arn:aws:es:eu-west-1:123456789012:domain/facts"
SEARCHES = {
    "none": {},
    "dynamodb": {"VectorDimensions": "512", "Embeddings": "built-in"},
    "existing": {"OpenSearchUrl": "https://search.example", "OpenSearchDomainArn": DOMAIN},
    "new": {"SearchInstanceCount": "3", "SearchVolumeGiB": "20"},
}


@pytest.fixture(scope="module")
def stack(aws_like: Cloud, today: Path) -> Deployed:
    return aws_like.stack(today)


@pytest.fixture(scope="module", params=SEARCHES)
def searching(request: pytest.FixtureRequest, aws_like: Cloud, today: Path) -> Iterator[Deployed]:
    """A stack of each `Search`."""
    made = aws_like.stack(today, Search=request.param, **SEARCHES[request.param])
    yield made
    made.client.delete_stack(StackName=made.name)


def variables_of(stack: Deployed, function: str) -> dict[str, str]:
    told = stack.aws.client("lambda").get_function_configuration(FunctionName=stack.physical[function])
    variables: dict[str, str] = told["Environment"]["Variables"]
    return variables


def test_everything_that_the_template_declares_is_there(searching: Deployed) -> None:
    asked, left_out = searching.document["Parameters"], searching.document["Resources"].keys()

    # The alarms are there because they were asked for, and of what searches what was chosen.
    assert asked["AlarmTopicArn"]["Default"] == ""
    assert left_out - searching.template.resources.keys()
    assert set(searching.physical) == set(searching.template.resources)
    assert set(searching.outputs) == searching.declared_outputs


def test_functions_that_search_are_told_of_the_index_that_there_is(searching: Deployed) -> None:
    told, outputs = variables_of(searching, "RetrieveFunction"), searching.outputs
    where = {
        "none": ("", "", "", ""),
        "dynamodb": ("", "", f"{searching.name}-vectors-512", "512"),
        "existing": ("https://search.example", DOMAIN, "", ""),
        "new": (outputs.get("SearchUrl"), outputs.get("SearchDomainArn"), "", ""),
    }[searching.given["Search"]]
    names = ("OPENSEARCH_URL", "OPENSEARCH_DOMAIN_ARN", "VECTORS_TABLE", "VECTOR_DIMENSIONS")

    assert tuple(told[name] for name in names) == where
    assert not variables_of(searching, "WriteFunction").keys() & set(names)
    assert searching.physical.get("VectorsTable", "") == where[2]


def test_a_new_domain_is_as_it_was_asked_for_and_lets_in_the_stacks_roles(
    aws_like: Cloud, today: Path
) -> None:
    stack = aws_like.stack(today, Search="new", SearchDomainName="facts-of-ours", **SEARCHES["new"])
    domain = stack.aws.client("opensearch").describe_domain(DomainName="facts-of-ours")["DomainStatus"]
    (let_in,) = json.loads(domain["AccessPolicies"])["Statement"]
    roles = ("RetrieveRole", "IndexRole", "ReadRole", "EraseRole", "SearchAdminRole")

    assert domain["ClusterConfig"]["ZoneAwarenessConfig"] == {"AvailabilityZoneCount": 3}
    assert (int(domain["ClusterConfig"]["InstanceCount"]), int(domain["EBSOptions"]["VolumeSize"])) == (3, 20)
    assert domain["EncryptionAtRestOptions"]["Enabled"]
    assert domain["NodeToNodeEncryptionOptions"]["Enabled"]
    assert domain["DomainEndpointOptions"]["EnforceHTTPS"]
    assert domain["AdvancedSecurityOptions"]["Enabled"]
    assert {arn.rpartition("/")[2] for arn in let_in["Principal"]["AWS"]} == {
        stack.physical[role] for role in roles
    }
    assert let_in["Resource"] == f"{domain['ARN']}/*" == f"{stack.outputs['SearchDomainArn']}/*"
    alarms = stack.aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    watched = {each["MetricName"] for each in alarms if each["Namespace"] == "AWS/ES"}
    assert {"ClusterStatus.red", "JVMMemoryPressure"} <= watched
    # The domain is kept when nothing of the stack asks for it any more, and goes on costing.
    assert stack.update(Search="none") == "UPDATE_COMPLETE"
    assert "SearchDomain" not in stack.physical
    assert stack.aws.client("opensearch").describe_domain(DomainName="facts-of-ours")


def test_tables_have_the_indexes_the_recovery_and_the_streams_of_the_template(searching: Deployed) -> None:
    client = searching.aws.client("dynamodb")
    for name, declared in searching.template.of_type("AWS::DynamoDB::Table").items():
        table = client.describe_table(TableName=searching.physical[name])["Table"]
        indexes = {each["IndexName"] for each in table.get("GlobalSecondaryIndexes", [])}
        assert indexes == {each["IndexName"] for each in declared.get("GlobalSecondaryIndexes", [])}
        assert ("LatestStreamArn" in table) == ("StreamSpecification" in declared)
        assert table["KeySchema"] == declared["KeySchema"]


def test_roles_are_what_the_template_says_and_nothing_more(searching: Deployed) -> None:
    iam = searching.aws.client("iam")
    for name, declared in searching.template.of_type("AWS::IAM::Role").items():
        role = searching.physical[name]
        policies = iam.list_role_policies(RoleName=role)["PolicyNames"]
        assert policies == [each["PolicyName"] for each in declared.get("Policies", [])]
        for policy in declared.get("Policies", []):
            document = iam.get_role_policy(RoleName=role, PolicyName=policy["PolicyName"])["PolicyDocument"]
            made = [statement for statement in document["Statement"] if statement != "AWS::NoValue"]
            said = searching.template.resolve(policy["PolicyDocument"]["Statement"])
            assert [each["Action"] for each in made] == [each["Action"] for each in said], name
            assert "AWS::NoValue" not in json.dumps(document)


def test_the_transformed_template_has_every_route_of_the_functions(stack: Deployed) -> None:
    (api,) = stack.template.of_type("AWS::ApiGatewayV2::Api").values()
    shown = {
        f"{method.upper()} {path}"
        for path, methods in api["Body"]["paths"].items()
        for method in methods
        if method != "options"
    }
    local = Template(
        ROOT / "template.yaml",
        {
            "AWS::StackName": "s",
            "AWS::Partition": "aws",
            "AWS::Region": "us-east-1",
            "AWS::AccountId": "000000000000",
        },
    )
    events = [
        event["Properties"]
        for function in local.of_type("AWS::Serverless::Function").values()
        for event in function.get("Events", {}).values()
        if event["Type"] == "HttpApi"
    ]
    named = {f"{each['Method']} {each['Path']}" for each in events if each["Path"] != "$default"}

    assert len(named) > 30
    assert shown - {"X-AMAZON-APIGATEWAY-ANY-METHOD /$default"} == named


def test_a_story_over_the_deployed_tables_ends_in_an_audit_with_the_stacks_key(
    stack: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(stack.aws.endpoint))
    capsys.readouterr()
    assert main(["token", "--stack", stack.name, "--tenant", "acme", "--user", "alice"]) == 0
    token = capsys.readouterr().out.strip()
    services = services_of(stack)
    alice = Gateway(services, token)
    fact = alice.call("POST", "/v1/memory/facts", {"type": "note", "content": "x" * 70_000})
    assert fact.status == 201, fact.text
    one = f"/v1/memory/facts/{fact.json['id']}"
    assert alice.call("POST", f"{one}/supersede", {"content": "tea"}).json["version"] == 2
    assert alice.call("GET", one, query={"version": 1}).json["contentRef"].startswith("blob://s3/")
    assert [each["id"] for each in alice.call("GET", "/v1/memory/facts").json["data"]] == [fact.json["id"]]
    sealed = {"kind": "user-message", "payload": {"text": "tea"}, "scope": {"threadId": "t"}}
    assert alice.call("POST", "/v1/memory/runs/r1/log", {"entries": [sealed]}).status == 201
    assert alice.call("POST", "/v1/memory/checkpoints", {"runIds": ["r1"]}).status == 201
    assert main(["vkey", "--stack", stack.name]) == 0
    key = read_key(capsys.readouterr().out.splitlines()[-1])  # behind what the functions log
    verdict = audit(exported(alice, tmp_path), key)
    assert (verdict.holds, verdict.entries) == (True, 1)


def exported(caller: Gateway, folder: Path) -> Path:
    """The log of the caller's tenant, written down through its routes."""
    from factbook_cli.export import Export

    class Direct:
        def get(self, *path: str, **query: Any) -> Any:
            given = {name: value for name, value in query.items() if value is not None}
            return caller.call("GET", "/" + "/".join(path), query=given).json

    path = folder / "log.jsonl"
    with path.open("wb") as file:
        Export(Direct(), file, lambda _: None).everything()  # type: ignore[arg-type]
    return path


def test_a_second_deploy_of_the_same_changes_nothing_and_a_parameter_changes_what_it_names(
    stack: Deployed,
) -> None:
    before = stack.physical
    with pytest.raises(stack.client.exceptions.ClientError, match="No updates"):
        stack.update()
    assert stack.update(LogRetentionDays="60") == "UPDATE_COMPLETE"
    assert stack.physical == before
    groups = stack.aws.client("logs").describe_log_groups()["logGroups"]
    kept = {group["logGroupName"]: group.get("retentionInDays") for group in groups}
    assert kept[stack.physical["WriteLogs"]] == 60


def test_deleting_the_stack_keeps_tables_buckets_and_keys(stack: Deployed) -> None:
    physical = stack.physical
    stack.client.delete_stack(StackName=stack.name)
    until = time.monotonic() + SECONDS
    functions = stack.aws.client("lambda")
    while physical["WriteFunction"] in [f["FunctionName"] for f in functions.list_functions()["Functions"]]:
        assert time.monotonic() < until
        time.sleep(0.2)
    tables = stack.aws.client("dynamodb").list_tables()["TableNames"]
    buckets = {each["Name"] for each in stack.aws.client("s3").list_buckets()["Buckets"]}
    keys = {each["KeyId"] for each in stack.aws.client("kms").list_keys()["Keys"]}

    assert {physical[name] for name in stack.template.of_type("AWS::DynamoDB::Table")} <= set(tables)
    assert {physical[name] for name in stack.template.of_type("AWS::S3::Bucket")} <= buckets
    assert {physical[name] for name in ("DataKey", "SigningKey")} <= keys
