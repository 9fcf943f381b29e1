"""Runtime, events and logs of the functions, and that the template's routes are the code's."""

import re
from typing import Any

import pytest

from factbook.api.app import GATEWAY_SECONDS, RESERVE_SECONDS
from factbook.api.deadlines import deadline_of
from factbook.settings import Settings
from factbook_local.limits import LIMITS
from factbook_local.openapi import load_apps
from factbook_local.template import Template, TemplateError

from .conftest import OPTIONS, PSEUDO, ROOT, functions_of

STREAMS = [
    ("IndexFunction", "FactsTable.StreamArn", "IndexDiscards.Arn"),
    ("IndexFunction", "LogTable.StreamArn", "IndexDiscards.Arn"),
    ("CheckpointFunction", "LogTable.StreamArn", "CheckpointDeadLetters.Arn"),
]


def events_of(template: Template, kind: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, event["Properties"])
        for name, function in functions_of(template)
        for event in function["Events"].values()
        if event["Type"] == kind
    ]


def route_key(event: dict[str, Any]) -> str:
    return event["Path"] if event["Path"] == "$default" else f"{event['Method']} {event['Path']}"


def test_each_route_leads_to_the_function_whose_code_serves_it(template: Template) -> None:
    declared = [(route_key(event), name) for name, event in events_of(template, "HttpApi")]
    served = [(route.key, f"{app.name.capitalize()}Function") for app in load_apps() for route in app]

    assert sorted(declared) == sorted([*served, ("$default", "ReadFunction")])


def test_each_function_is_deployed_from_its_own_folder_with_our_layer(template: Template) -> None:
    for name, function in functions_of(template):
        folder = ROOT / function["CodeUri"]
        assert folder == ROOT / "functions" / name.removesuffix("Function").lower()
        assert (folder / "app.py").is_file()
        assert function["Handler"] == "app.lambda_handler"
        assert "factbook-FactbookLayer" in function["Layers"]


def test_only_what_searches_carries_the_search_layer(template: Template) -> None:
    carrying = {
        name for name, function in functions_of(template) if "factbook-SearchLayer" in function["Layers"]
    }

    assert carrying == {
        "RetrieveFunction",
        "IndexFunction",
        "EraseFunction",
        "ReadFunction",
    }  # read: only for include=indexState


def test_runtime_and_architecture_are_parameters(template: Template) -> None:
    for function in template.of_type("AWS::Serverless::Function").values():
        assert function["Runtime"] == {"Ref": "Runtime"}
        assert function["Architectures"] == [{"Ref": "Architecture"}]
    assert template.resolve([{"Ref": "Runtime"}, {"Ref": "Architecture"}]) == ["python3.13", "arm64"]


def test_no_runtime_escapes_its_answers_to_ascii() -> None:
    document = (ROOT / "template.yaml").read_text(encoding="utf-8")
    (allowed,) = re.findall(r"Default: python3.13\n    AllowedValues: \[([^\]]*)\]", document)

    assert allowed.split(", ") == ["python3.12", "python3.13"]


def test_no_request_outlives_the_gateways_thirty_seconds(template: Template) -> None:
    """A function that works on as well has longer: its requests end within `GATEWAY_SECONDS` whatever it has."""
    serving = {name for name, _ in events_of(template, "HttpApi")}

    assert serving
    assert [
        name for name, function in functions_of(template) if name in serving and function["Timeout"] >= 30
    ] == ["RefreshFunction", "EraseFunction"]
    assert GATEWAY_SECONDS < 30
    assert deadline_of(LongContext, RESERVE_SECONDS, GATEWAY_SECONDS).seconds == (
        GATEWAY_SECONDS - RESERVE_SECONDS
    )


class LongContext:
    """Of an invocation that may take a quarter of an hour."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 900_000


def test_functions_get_settings_that_the_code_reads(template: Template) -> None:
    known = {name.upper() for name in Settings.__dataclass_fields__}
    for name, function in functions_of(template):
        variables = function["Environment"]["Variables"].keys()
        own = {variable for variable in variables if not variable.startswith("POWERTOOLS_")}
        assert own - known == set(), name
        assert {"FACTS_TABLE", "LOG_TABLE", "KEYS_TABLE", "ACCESS_TABLE"} <= own


def test_the_environment_of_a_function_fits_with_every_parameter_at_its_longest() -> None:
    document = (ROOT / "template.yaml").read_text(encoding="utf-8")
    longest = {
        name: "x" * int(length)
        for name, length in re.findall(
            r"^  (\w+):\n(?:    .*\n)*?    MaxLength: (\d+)$", document, re.MULTILINE
        )
    }
    longest["OidcIssuer"] = "https://".ljust(len(longest["OidcIssuer"]), "x")
    longest["OidcAlgorithms"] = ",".join(["RS256"] * 10)
    domain = "arn:aws:es:eu-central-1:123456789012:domain/"
    longest["OpenSearchDomainArn"] = domain.ljust(len(longest["OpenSearchDomainArn"]), "x")
    longest |= dict.fromkeys(("RefreshObjectArns", "RefreshFunctionArns"), "arn")  # in no environment
    bounded = {"CheckpointOrigin", "OpenSearchUrl", "OpenSearchDomainArn", "EmbeddingsUrl", "EmbeddingsModel"}
    template = Template(
        ROOT / "template.yaml",
        PSEUDO,
        {
            "Search": "existing",
            "Embeddings": "openai-compat",
            "RefreshObjectArns": OPTIONS["RefreshObjectArns"],
            "RefreshFunctionArns": OPTIONS["RefreshFunctionArns"],
            **longest,
        },
    )
    template.physical = {name: {"Ref": "x" * 128} for name in template.resources}

    assert bounded | {"EmbeddingsApiKeyArn", "Build"} <= longest.keys()
    for name, function in functions_of(template):
        variables = function["Environment"]["Variables"].items()
        size = sum(len(variable) + len(str(value)) for variable, value in variables)
        assert size <= LIMITS["environment"].most, name


def test_a_parameter_that_a_function_gets_has_a_longest_value(template: Template) -> None:
    document = (ROOT / "template.yaml").read_text(encoding="utf-8")
    given = (
        set(re.findall(r"^ +[A-Z_]+: (?:!If .*)?!Ref (\w+)\]?$", document, re.MULTILINE))
        - template.resources.keys()
    )

    assert len(given) >= 16
    for name in given:
        (declared,) = re.findall(rf"^  {name}:\n((?:    .*\n)*)", document, re.MULTILINE)
        assert "MaxLength" in declared or "AllowedValues" in declared, name


def test_each_function_logs_to_a_group_that_forgets(template: Template) -> None:
    groups = {function["LoggingConfig"]["LogGroup"] for _, function in functions_of(template)}
    kept = template.of_type("AWS::Logs::LogGroup")

    assert len(groups) == len(dict(functions_of(template)))
    assert groups <= {f"factbook-{name}" for name in kept}
    assert [name for name, group in kept.items() if "RetentionInDays" not in group] == []


def test_what_sends_messages_to_its_own_queue_is_not_stopped_for_it(template: Template) -> None:
    """Lambda takes about sixteen invocations in a row for an endless loop, unless it is told that they are meant."""

    def may_send(function: dict[str, Any], queue: str) -> bool:
        role = template.resolve(
            template.resources[function["Role"].removeprefix("factbook-").removesuffix(".Arn")]
        )
        granted = [
            statement
            for policy in role["Properties"]["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
            if isinstance(statement, dict)
        ]
        return any("sqs:SendMessage" in each["Action"] and each["Resource"] == queue for each in granted)

    looping = {
        name
        for name, function in functions_of(template)
        for event in function["Events"].values()
        if event["Type"] == "SQS" and may_send(function, event["Properties"]["Queue"])
    }
    told = {name for name, function in functions_of(template) if function.get("RecursiveLoop") == "Allow"}

    assert looping == told == {"RefreshFunction", "EraseFunction"}


def test_streams_are_read_by_those_that_follow_them(template: Template) -> None:
    read = [
        (name, e["Stream"], e["DestinationConfig"]["OnFailure"]["Destination"])
        for name, e in events_of(template, "DynamoDB")
    ]

    assert read == STREAMS


@pytest.mark.parametrize("place", range(len(STREAMS)))
def test_one_bad_record_holds_up_no_stream_and_is_not_lost(template: Template, place: int) -> None:
    _, event = events_of(template, "DynamoDB")[place]

    assert event["StartingPosition"] == "TRIM_HORIZON"
    assert event["BisectBatchOnFunctionError"] is True
    assert event["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    # What they need is waited for: by age, and within the day that a stream keeps its records.
    assert (event["MaximumRetryAttempts"], event["MaximumRecordAgeInSeconds"]) == (-1, 23 * 3600)
    assert event["DestinationConfig"]["OnFailure"]["Type"] == "SQS"


def test_schedules_take_generated_names_so_that_two_stacks_can_live_in_one_account(
    template: Template,
) -> None:
    schedules = events_of(template, "ScheduleV2")

    assert [name for name, _ in schedules] == [
        "IndexFunction",
        "CheckpointFunction",
        "RefreshFunction",
        "EraseFunction",
    ]
    assert [event for _, event in schedules if event.get("OmitName") is not True] == []


def test_the_api_answers_other_origins_only_where_they_are_named(template: Template) -> None:
    origins = ["https://a.example", "http://localhost:3000"]
    named = Template(ROOT / "template.yaml", PSEUDO, {"CorsOrigin": ", ".join(origins)})

    assert "CorsConfiguration" not in template.resolve(template.resources["Api"]["Properties"])
    cors = named.resolve(named.resources["Api"]["Properties"])["CorsConfiguration"]
    assert cors["AllowOrigins"] == origins
    assert cors["AllowHeaders"] == ["authorization", "content-type", "idempotency-key"]
    assert "AllowCredentials" not in cors


@pytest.mark.parametrize("wrong", ["*", "a.example", "https://a.example/path", "https://a.example,*"])
def test_what_is_no_origin_is_refused(wrong: str) -> None:
    with pytest.raises(TemplateError, match="CorsOrigin must be origins"):
        Template(ROOT / "template.yaml", PSEUDO, {"CorsOrigin": wrong})


def test_access_logs_hold_neither_tokens_nor_addresses_of_content(template: Template) -> None:
    (api,) = template.of_type("AWS::Serverless::HttpApi").values()
    logged = api["AccessLogSettings"]["Format"]

    assert "$context.requestId" in logged
    assert [
        word for word in ("authorizer", "header", "path}", "querystring", "$context.path") if word in logged
    ] == []


def test_every_parameter_is_documented() -> None:
    document = (ROOT / "template.yaml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    parameters = re.findall(
        r"^  (\w+):$", document.partition("Parameters:")[2].partition("Conditions:")[0], re.MULTILINE
    )

    assert len(parameters) >= 15
    assert [name for name in parameters if f"`{name}`" not in page] == []
