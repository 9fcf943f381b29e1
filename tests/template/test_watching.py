"""What calls a person: each alarm has its section, looks at a metric that is there, and is not there unless it was asked for."""

import json
import re
from typing import Any

import pytest

from factbook_local.template import Template

from .conftest import PSEUDO, ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text()
TOPIC = "arn:aws:sns:eu-central-1:123456789012:on-call"
OURS = ("layers/factbook/factbook/api/**/*.py",)
OF_DOMAIN = ("ClientId", "DomainName")
AWS_METRICS: dict[str, dict[str, tuple[str, ...]]] = {
    "AWS/ApiGateway": {"5xx": ("ApiId",), "Count": ("ApiId",)},
    "AWS/Lambda": {"Errors": ("FunctionName",), "IteratorAge": ("FunctionName",), "Throttles": ()},
    "AWS/SQS": {
        "ApproximateNumberOfMessagesVisible": ("QueueName",),
        "ApproximateAgeOfOldestMessage": ("QueueName",),
    },
    "AWS/ES": dict.fromkeys(
        (
            "ClusterStatus.red",
            "ClusterStatus.yellow",
            "FreeStorageSpace",
            "JVMMemoryPressure",
            "CPUUtilization",
            "AutomatedSnapshotFailure",
        ),
        OF_DOMAIN,
    ),
}
"""Metrics of AWS that alarms look at, with the dimensions that they have samples under: under others there are none, and an
alarm over none is quiet for ever. `Throttles` without any is of all functions of the account.
"""
A_DAY = 86_400


@pytest.fixture(scope="module")
def watched() -> Template:
    return Template(ROOT / "template.yaml", PSEUDO, {"AlarmTopicArn": TOPIC, "Search": "new"})


def alarms(template: Template) -> dict[str, dict[str, Any]]:
    found = template.of_type("AWS::CloudWatch::Alarm")
    return {name: template.resolve(properties) for name, properties in found.items()}


def metrics_of(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """What it looks at: one metric, or those of its expression."""
    several = [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", []) if "MetricStat" in each]
    return several or [alarm]


def counted_by_us() -> set[str]:
    """The names of the metrics that handlers count."""
    text = "".join(path.read_text() for pattern in OURS for path in ROOT.glob(pattern))
    calls = " ".join(re.findall(r"\.count\((.*)\)$", text, re.MULTILINE))
    return set(re.findall(r"\b([A-Z]\w+)=", calls)) | set(
        re.findall(r'^        "([A-Z]\w+)": ', text, re.MULTILINE)
    )


def test_every_alarm_says_where_to_read_what_to_do(watched: Template) -> None:
    found = alarms(watched)
    sections = set(re.findall(r"^### (\w+)$", PAGE, re.MULTILINE))

    assert {name.removesuffix("Alarm") for name in found} == sections
    for name, alarm in found.items():
        assert alarm["AlarmDescription"].endswith(f"docs/operating.md#{name.removesuffix('Alarm').lower()}")
        assert alarm["AlarmActions"] == alarm["OKActions"] == [TOPIC]
        assert alarm["TreatMissingData"] == ("breaching" if name == "TicksMissingAlarm" else "notBreaching")


def test_every_alarm_looks_at_a_metric_that_somebody_counts(watched: Template) -> None:
    ours = counted_by_us()
    assert "Contradictions" in ours
    for name, alarm in alarms(watched).items():
        for metric in metrics_of(alarm):
            dimensions = tuple(sorted(each["Name"] for each in metric.get("Dimensions", [])))
            if metric["Namespace"] == "Factbook":  # which are made to ring in tests/functional/test_alarms.py
                assert metric["MetricName"] in ours, name
                assert dimensions == ("function", "service"), name
            else:
                assert AWS_METRICS[metric["Namespace"]][metric["MetricName"]] == dimensions, name


def test_every_alarm_of_a_function_or_a_queue_looks_at_the_one_that_it_is_named_after(
    watched: Template,
) -> None:
    checked = []
    for name, alarm in alarms(watched).items():
        for dimension in alarm.get("Dimensions", []):
            if dimension["Name"] in ("FunctionName", "QueueName"):
                resource = str(dimension["Value"]).removeprefix("factbook-").partition(".")[0]
                assert resource in watched.resources, name
                assert name.startswith(resource.removesuffix("Function").removesuffix("Queue")), name
                checked.append(name)
    assert len(checked) == 11


def test_every_alarm_can_ring_within_the_time_that_an_alarm_looks_back(watched: Template) -> None:
    """CloudWatch looks back a day; a sum or a count of a minute needs the minute to be one that has samples."""
    for name, alarm in alarms(watched).items():
        periods = [each["MetricStat"]["Period"] for each in alarm.get("Metrics", []) if "MetricStat" in each]
        period = alarm.get("Period") or max(periods)
        assert period % 60 == 0, name
        assert alarm["EvaluationPeriods"] * period <= A_DAY, name
        assert alarm.get("DatapointsToAlarm", 1) <= alarm["EvaluationPeriods"], name


def test_every_metric_that_we_count_is_explained_to_who_looks_at_it() -> None:
    assert {name for name in counted_by_us() if f"`{name}`" not in PAGE} == set()


def test_every_queue_of_what_was_given_up_has_an_alarm(watched: Template) -> None:
    queues = watched.of_type("AWS::SQS::Queue")
    given_up = {
        watched.resolve(queue["RedrivePolicy"])["deadLetterTargetArn"].removesuffix(".Arn")
        for queue in queues.values()
        if "RedrivePolicy" in queue
    } | {name for name in queues if name.endswith("DeadLetters")}
    assert len(given_up) == 4
    assert {f"{queue}Alarm" for queue in given_up} <= alarms(watched).keys()
    (dashboard,) = watched.of_type("AWS::CloudWatch::Dashboard").values()
    shown = watched.resolve(dashboard)["DashboardBody"]
    assert {queue for queue in given_up if queue not in shown} == set()


def test_what_waits_in_a_queue_for_too_long_is_heard_of(watched: Template) -> None:
    """By its age, or by what the tick of the function that takes it counts or runs into."""
    working = {name for name, queue in watched.of_type("AWS::SQS::Queue").items() if "RedrivePolicy" in queue}
    heard_by = {
        "RefreshQueue": "RefreshLagAlarm",
        "ErasureQueue": "ErasuresStuckAlarm",
        "IndexDiscards": "IndexErrorsAlarm",
    }
    assert heard_by.keys() == working
    assert set(heard_by.values()) <= alarms(watched).keys()


def test_every_function_that_a_stream_or_a_schedule_wakes_has_an_alarm_for_its_errors(
    watched: Template,
) -> None:
    woken = {
        name.removesuffix("Function")
        for name, function in watched.of_type("AWS::Serverless::Function").items()
        if any(event["Type"] in ("DynamoDB", "ScheduleV2") for event in function.get("Events", {}).values())
    }
    assert {f"{name}ErrorsAlarm" for name in woken} <= alarms(watched).keys()


def test_a_function_without_an_alarm_for_its_errors_answers_requests_alone_whose_failures_have_one(
    watched: Template,
) -> None:
    kinds = {
        name.removesuffix("Function"): {event["Type"] for event in function["Events"].values()}
        for name, function in watched.of_type("AWS::Serverless::Function").items()
    }
    without = {name for name in kinds if f"{name}ErrorsAlarm" not in alarms(watched)}
    assert without == {"Write", "Read", "Retrieve"}
    assert set().union(*(kinds[name] for name in without)) == {"HttpApi"}
    assert "ServerErrorsAlarm" in alarms(watched)


def test_a_schedule_that_wakes_nobody_is_heard_of(watched: Template) -> None:
    """By a metric that each tick counts, whatever it finds: the functions' own invocations come from streams as well."""
    woken = {
        name.removesuffix("Function").lower()
        for name, function in watched.of_type("AWS::Serverless::Function").items()
        if any(event["Type"] == "ScheduleV2" for event in function["Events"].values())
    }
    alarm = alarms(watched)["TicksMissingAlarm"]
    expression, *counted = alarm["Metrics"]
    assert {each["Id"]: each["MetricStat"]["Stat"] for each in counted} == dict.fromkeys(woken, "SampleCount")
    assert [each["MetricStat"]["Metric"]["Dimensions"][1]["Value"] for each in counted] == [
        each["Id"] for each in counted
    ]
    assert all(f"FILL({name}, 0)" in expression["Expression"] for name in woken)
    assert expression["Expression"].startswith("MIN([")


def test_without_a_topic_there_is_neither_alarm_nor_dashboard() -> None:
    document = (ROOT / "template.yaml").read_text()
    blocks = re.findall(r"^  (\w+):\n    Type: AWS::CloudWatch::\w+\n    (.*)\n", document, re.MULTILINE)
    assert len(blocks) > 20
    assert [name for name, following in blocks if not following.startswith("Condition: Alarms")] == []
    for search in ("none", "new"):
        quiet = Template(ROOT / "template.yaml", PSEUDO, {"Search": search})
        assert [name for name, each in quiet.resources.items() if "CloudWatch" in each["Type"]] == []


def test_the_dashboard_is_json_and_shows_metrics_that_are_there(watched: Template) -> None:
    (dashboard,) = watched.of_type("AWS::CloudWatch::Dashboard").values()
    body = json.loads(watched.resolve(dashboard)["DashboardBody"])
    shown = set(re.findall(r'MetricName=\\?"(\w+)\\?"', json.dumps(body).replace("\\\\", "\\")))
    listed = {
        metric[1]
        for widget in body["widgets"]
        for metric in widget["properties"]["metrics"]
        if metric[0] == "Factbook"
    }

    assert listed <= counted_by_us()
    assert shown == {"Requests", "Refusals", "Failures", "Duration"}
