"""A SAM template is read as CloudFormation reads it, as far as local mode needs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from factbook_local.environment import function_environment
from factbook_local.stack import Route, Stack, read_stack
from factbook_local.template import Template, TemplateError

PSEUDO = {"AWS::Region": "r", "AWS::AccountId": "1", "AWS::Partition": "aws", "AWS::StackName": "factbook"}
FUNCTION = "Type: AWS::Serverless::Function\n    Properties: {CodeUri: code, Handler: app.handler"


def template(folder: Path, text: str, **parameters: str) -> Template:
    file = folder / "template.yaml"
    file.write_text(text)
    return Template(file, PSEUDO, parameters)


def resolved(folder: Path, value: str, **parameters: str) -> Any:
    """What a YAML value resolves to beside a table, two parameters and a condition."""
    read = template(
        folder,
        f"""
Parameters: {{Name: {{Type: String, Default: n}}, Flag: {{Type: String, Default: "true"}}}}
Conditions: {{Shown: !Equals [!Ref Flag, "true"], Hidden: !Not [!Equals [!Ref Flag, "true"]], Both: !And [!Equals [!Ref Flag, "true"], !Equals [a, b]], Either: !Or [!Equals [!Ref Flag, "true"], !Equals [a, b]]}}
Resources:
  Table: {{Type: AWS::DynamoDB::Table, Properties: {{Value: {value}}}}}
  Role: {{Type: AWS::IAM::Role}}
""",
        **parameters,
    )
    read.physical["Table"] = {"Ref": "t", "Arn": "arn:t"}
    return read.resolve(read.of_type("AWS::DynamoDB::Table")["Table"]["Value"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("!Ref Name", "n"),
        ("!Ref AWS::Region", "r"),
        ("!Ref Table", "t"),
        ("!GetAtt Table.Arn", "arn:t"),
        ("{'Fn::GetAtt': [Table, Arn]}", "arn:t"),
        ("!Sub 'a ${Name} ${Table.Arn} ${AWS::AccountId}'", "a n arn:t 1"),
        ("!If [Shown, yes-on, no-off]", "yes-on"),
        ("!If [Hidden, 1, {a: !Ref Name}]", {"a": "n"}),
        ("!If [Both, 1, {a: !Ref Name}]", {"a": "n"}),
        ("!If [Either, yes-on, no-off]", "yes-on"),
        ("[1, !Ref AWS::NoValue, 2]", [1, 2]),
        ("{a: !Ref AWS::NoValue, b: 1}", {"b": 1}),
        ("!Ref Role", "factbook-Role"),
        ("!Join ['/', [a, !Ref Name]]", "a/n"),
    ],
)
def test_an_intrinsic_function_resolves(tmp_path: Path, value: str, expected: Any) -> None:
    assert resolved(tmp_path, value) == expected


def test_a_given_parameter_wins_over_its_default(tmp_path: Path) -> None:
    assert resolved(tmp_path, "!If [Shown, !Ref Name, none]", Name="given", Flag="false") == "none"
    assert resolved(tmp_path, "!Ref Name", Name="given") == "given"


def test_a_parameter_that_the_template_does_not_have_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="no parameter 'flag': is it 'Flag'"):
        resolved(tmp_path, "!Ref Name", flag="1")
    with pytest.raises(TemplateError, match="no parameter 'Unknown'; it has Name, Flag"):
        resolved(tmp_path, "!Ref Name", Unknown="1")


DECLARED = """
Parameters:
  Days: {Type: Number, Default: 7, MinValue: 1, MaxValue: 30}
  Kind: {Type: String, Default: a, AllowedValues: ["", a, b]}
  Name: {Type: String, Default: n, MaxLength: 3}
  Place: {Type: String, Default: p, AllowedPattern: "[a-z]+"}
  Key: {Type: String, Default: "", AllowedPattern: "|k[0-9]", ConstraintDescription: must be a key}
Resources: {Table: {Type: AWS::DynamoDB::Table}}
"""


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("Days", "abc", "must be a whole number"),
        ("Days", "1.5", "must be a whole number"),
        ("Days", "0", "must be 1 or more"),
        ("Days", "31", "must be 30 or less"),
        ("Kind", "c", "must be one of (empty), a, b"),
        ("Name", "four", "must have 3 characters or fewer"),
        ("Place", "A", "must match [a-z]+"),
        ("Key", "x", "must be a key"),
    ],
)
def test_a_parameters_value_that_cloudformation_would_refuse_is_refused(
    tmp_path: Path, name: str, value: str, told: str
) -> None:
    with pytest.raises(TemplateError) as refused:
        template(tmp_path, DECLARED, **{name: value})
    assert str(refused.value) == f"the parameter {name} {told}, not {value!r}"


def test_a_list_of_values_is_a_list_each_of_which_is_held_to_the_pattern(tmp_path: Path) -> None:
    text = """
Parameters: {Places: {Type: CommaDelimitedList, Default: "", AllowedPattern: "|[a-z]+"}}
Resources: {Table: {Type: AWS::DynamoDB::Table}}
"""
    assert template(tmp_path, text).resolve({"Ref": "Places"}) == [""]
    assert template(tmp_path, text, Places="a, b").resolve({"Ref": "Places"}) == ["a", "b"]
    with pytest.raises(TemplateError, match="Places must match"):
        template(tmp_path, text, Places="a,B")


def test_a_search_domain_is_not_made_on_this_machine(tmp_path: Path) -> None:
    read = template(tmp_path, "Resources: {Domain: {Type: AWS::OpenSearchService::Domain}}")
    with pytest.raises(TemplateError, match="no search domain"):
        read_stack(read)


def test_values_at_the_edge_of_what_a_parameter_allows_are_taken(tmp_path: Path) -> None:
    given = {"Days": "30", "Kind": "", "Name": "abc", "Place": "z", "Key": "k1"}
    read = template(tmp_path, DECLARED, **given)
    assert {name: read.resolve({"Ref": name}) for name in given} == given


@pytest.mark.parametrize(
    "value",
    [
        "!Ref Nobody",
        "!Transform x",
        "!GetAtt Nobody.Arn",
        "!ImportValue x",
        "!Split ['/', a/b]",
        "!Sub 'a ${!Name}'",
    ],
)
def test_what_cannot_be_resolved_is_said(tmp_path: Path, value: str) -> None:
    with pytest.raises(TemplateError):
        resolved(tmp_path, value)


@pytest.mark.parametrize("text", ["a: [", "[]", "Resources: []", "{}"])
def test_what_is_no_template_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(TemplateError, match=r"template\.yaml"):
        template(tmp_path, text)


def test_a_resource_whose_condition_is_false_is_not_there(tmp_path: Path) -> None:
    read = template(
        tmp_path,
        """
Conditions: {Never: !Equals [a, b]}
Resources:
  Gone: {Type: AWS::SQS::Queue, Condition: Never}
  There: {Type: AWS::SQS::Queue}
""",
    )
    assert list(read.of_type("AWS::SQS::Queue")) == ["There"]


def test_globals_merge_maps_append_lists_and_give_way(tmp_path: Path) -> None:
    read = template(
        tmp_path,
        """
Globals: {Function: {Timeout: 3, Layers: [!Ref A], Environment: {Variables: {ONE: "1", TWO: !Ref AWS::Region}}}}
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties: {Timeout: 9, Layers: [!Ref B], Environment: {Variables: {TWO: "2", THREE: "3"}}}
""",
    )
    properties = read.of_type("AWS::Serverless::Function")["F"]
    assert properties["Timeout"] == 9
    assert properties["Layers"] == [{"Ref": "A"}, {"Ref": "B"}]
    assert properties["Environment"]["Variables"] == {"ONE": "1", "TWO": "2", "THREE": "3"}


def stack(folder: Path, events: str, more: str = "") -> Stack:
    return read_stack(
        template(
            folder,
            f"""
Resources:
  F:
    {FUNCTION}, Events: {events}}}
  T: {{Type: AWS::DynamoDB::Table}}
  Q: {{Type: AWS::SQS::Queue}}
{more}""",
        )
    )


def test_routes_are_the_http_events(tmp_path: Path) -> None:
    read = stack(
        tmp_path,
        "{A: {Type: HttpApi, Properties: {Method: get, Path: '/a/{id}'}}, B: {Type: HttpApi}, C: {Type: HttpApi, Properties: {Path: $default}}}",
    )
    assert read.routes == [Route("GET /a/{id}", "F"), Route("$default", "F"), Route("$default", "F")]


def test_a_stream_source_takes_over_its_properties(tmp_path: Path) -> None:
    read = stack(
        tmp_path,
        """{S: {Type: DynamoDB, Properties: {Stream: !GetAtt T.StreamArn, BatchSize: 7, StartingPosition: TRIM_HORIZON,
      MaximumRetryAttempts: 3, BisectBatchOnFunctionError: true, FunctionResponseTypes: [ReportBatchItemFailures],
      DestinationConfig: {OnFailure: {Destination: !GetAtt Q.Arn}}}}}""",
    )
    (source,) = read.streams
    assert (source.function, source.table, source.name) == ("F", "T", "FS")
    assert (source.batch_size, source.retries, source.partial, source.bisect) == (7, 3, True, True)
    assert source.on_failure == {"Fn::GetAtt": ["Q", "Arn"]}


def test_a_queue_source_takes_over_its_properties(tmp_path: Path) -> None:
    read = stack(
        tmp_path,
        "{J: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn, BatchSize: 3, ScalingConfig: {MaximumConcurrency: 2}}}}",
    )
    assert [(source.queue, source.name, source.batch_size, source.partial) for source in read.queues] == [
        ("Q", "FJ", 3, False)
    ]


@pytest.mark.parametrize(
    ("expression", "every"),
    [
        ("rate(1 minute)", timedelta(minutes=1)),
        ("rate(5 minutes)", timedelta(minutes=5)),
        ("rate(1 hour)", timedelta(hours=1)),
        ("rate(2 days)", timedelta(days=2)),
    ],
)
def test_a_schedule_runs_at_its_rate(tmp_path: Path, expression: str, every: timedelta) -> None:
    read = stack(tmp_path, f"{{S: {{Type: ScheduleV2, Properties: {{ScheduleExpression: {expression}}}}}}}")
    assert [(schedule.name, schedule.every) for schedule in read.schedules] == [("FS", every)]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("{Type: ScheduleV2, Properties: {ScheduleExpression: cron(0 10 * * ? *)}}", "cron"),
        ("{Type: ScheduleV2, Properties: {ScheduleExpression: rate(minutes)}}", "rate"),
        ("{Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 day), Input: x}}", "Input"),
        (
            "{Type: DynamoDB, Properties: {Stream: !GetAtt T.StreamArn, StartingPosition: LATEST}}",
            "TRIM_HORIZON",
        ),
        (
            "{Type: DynamoDB, Properties: {Stream: !GetAtt T.StreamArn, StartingPosition: TRIM_HORIZON, FilterCriteria: {}}}",
            "FilterCriteria",
        ),
        (
            "{Type: SQS, Properties: {Queue: !GetAtt Q.Arn, MaximumBatchingWindowInSeconds: 1}}",
            "MaximumBatching",
        ),
        ("{Type: HttpApi, Properties: {Method: ANY, Path: '/files/{path+}'}}", "greedy"),
        ("{Type: Kinesis, Properties: {}}", "Kinesis"),
    ],
)
def test_what_local_mode_would_not_follow_is_said(tmp_path: Path, event: str, told: str) -> None:
    with pytest.raises(TemplateError, match=told):
        stack(tmp_path, f"{{E: {event}}}")


def test_names_are_the_templates_or_made_of_the_logical_id(tmp_path: Path) -> None:
    read = stack(
        tmp_path,
        "{}",
        "  B: {Type: AWS::S3::Bucket}\n  N: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub 'x-${AWS::Region}'}}",
    )
    names = {logical: name for logical, (name, _) in read.named("AWS::S3::Bucket", "AWS::SQS::Queue").items()}
    assert names == {"B": "factbook-b", "N": "x-r", "Q": "factbook-Q"}


def test_the_products_own_template_is_read_whole() -> None:
    root = Path(__file__).parents[3]
    read = read_stack(Template(root / "template.yaml", PSEUDO))
    assert {function.paths[0].name for function in read.functions.values()} >= {"write", "read"}
    assert Route("GET /health", "ReadFunction") in read.routes
    assert Route("$default", "ReadFunction") in read.routes
    assert all(root / "layers" / "factbook" in function.paths for function in read.functions.values())


def test_a_rule_that_is_broken_is_said_in_its_own_words(tmp_path: Path) -> None:
    text = """
Parameters: {A: {Type: String, Default: ""}, B: {Type: String, Default: ""}}
Rules:
  Both:
    RuleCondition: !Not [!Equals [!Ref A, ""]]
    Assertions: [{Assert: !Not [!Equals [!Ref B, ""]], AssertDescription: A needs B.}]
Resources: {Table: {Type: AWS::DynamoDB::Table}}
"""
    template(tmp_path, text)
    template(tmp_path, text, A="a", B="b")
    with pytest.raises(TemplateError, match=r"A needs B\."):
        template(tmp_path, text, A="a")


@pytest.mark.parametrize(
    ("kind", "said", "allowed"),
    [
        ("DynamoDB", "BatchSize: 10001", "BatchSize: 10000"),
        ("SQS", "BatchSize: 11", "BatchSize: 10"),
        ("SQS", "BatchSize: 0", "BatchSize: 1"),
    ],
)
def test_an_event_source_that_lambda_refuses_is_refused(
    tmp_path: Path, kind: str, said: str, allowed: str
) -> None:
    def read(properties: str) -> Stack:
        source = (
            "Stream: !GetAtt Source.StreamArn, StartingPosition: TRIM_HORIZON"
            if kind == "DynamoDB"
            else "Queue: !GetAtt Source.Arn"
        )
        text = f"""
Resources:
  Source: {{Type: {"AWS::DynamoDB::Table" if kind == "DynamoDB" else "AWS::SQS::Queue"}}}
  F:
    {FUNCTION}, Events: {{E: {{Type: {kind}, Properties: {{{source}, {properties}}}}}}}}}
"""
        return read_stack(template(tmp_path, text))

    read(allowed)
    with pytest.raises(TemplateError):
        read(said)


def test_an_environment_that_lambda_refuses_is_refused(tmp_path: Path) -> None:
    def environment(size: int) -> None:
        text = f"""
Resources:
  F:
    {FUNCTION}, Environment: {{Variables: {{NAME: {"x" * (size - 4)}}}}}}}
"""
        read = template(tmp_path, text)
        function = read_stack(read).functions["F"]
        function_environment(function, read, endpoint="", invoke_url="", local={"SEARCH_SQLITE": "x" * 5000})

    environment(4096)
    with pytest.raises(TemplateError, match="F: its environment variables are 4097 bytes"):
        environment(4097)
