"""Every alarm is made to ring. One of our own metrics by what it is for: the real handlers fail or wait, and what they then write
is held against the alarm as the template has it: namespace, name, dimensions, statistic, threshold. One of AWS's metrics in the
emulator, by what AWS would report in its own unit.
"""

import json
import operator
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import ROOT, load_app
from support.tables import PSEUDO
from support.two_services import OneService, ok, with_erasures

from factbook.adapters.dynamodb.client import to_item
from factbook.adapters.facts.dynamodb_stream import fact_records
from factbook.adapters.log.dynamodb_entries import entry_records
from factbook.adapters.log.dynamodb_stream import log_records
from factbook.api.erasure.events import ErasureEvents
from factbook.api.log.events import CheckpointEvents
from factbook.api.retrieval.events import IndexEvents
from factbook.api.sources.events import RefreshEvents
from factbook.domain import times
from factbook_local.template import Template

TOPIC = "arn:aws:sns:eu-central-1:123456789012:on-call"
RUN = "/v1/memory/runs/r/log"
ENTRY = {"kind": "event-emitted", "payload": {"n": 1}}
NOBODY = "http://127.0.0.1:9"
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
STATISTIC: dict[str, Callable[[list[float]], float]] = {"Sum": sum, "Maximum": max, "SampleCount": len}

Alarm = Mapping[str, Any]


def _alarms() -> dict[str, Alarm]:
    template = Template(
        ROOT / "template.yaml", PSEUDO, {"AlarmTopicArn": TOPIC, "Search": "new", "SearchVolumeGiB": "100"}
    )
    found = template.of_type("AWS::CloudWatch::Alarm")
    return {name: template.resolve(properties) for name, properties in found.items()}


ALARMS = _alarms()
OURS = {name for name, alarm in ALARMS.items() if alarm.get("Namespace") == "Factbook"}
TICKS = {
    each["Id"]: each["MetricStat"] for each in ALARMS["TicksMissingAlarm"]["Metrics"] if "MetricStat" in each
}


class Watched:
    """A service, its functions, and what they have written about themselves."""

    def __init__(self, service: OneService, capsys: pytest.CaptureFixture[str]) -> None:
        self.service = service
        self._capsys = capsys

    def function(self, name: str, event: Any) -> list[Any]:
        """Wake a function; the metric records that it wrote."""
        services = self.service.services
        erase, refresh = load_app("erase"), load_app("refresh")
        handlers: dict[str, Callable[[], Callable[[Any], Any]]] = {
            "index": lambda: IndexEvents(lambda: services, fact_records, entry_records),
            "checkpoint": lambda: CheckpointEvents(lambda: services.logs, log_records),
            "erase": lambda: ErasureEvents(erase, lambda: services.erasures),
            "refresh": lambda: RefreshEvents(refresh, lambda: services),
        }
        return self.heard(lambda: handlers[name]()(event))

    def verification(self) -> list[Any]:
        return self.heard(lambda: ok(self.service.admin.call("GET", f"{RUN}/verify")))

    def heard(self, act: Callable[[], object]) -> list[Any]:
        self._capsys.readouterr()
        act()
        lines = self._capsys.readouterr().out.splitlines()
        return [record for record in map(json.loads, lines) if "_aws" in record]


TICK = {"source": "aws.scheduler"}


@pytest.fixture
def watched(ministack: Aws, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Watched:
    service = OneService(ministack, tmp_path, f"t-{uuid.uuid4().hex[:12]}")
    queues = [
        service.client("sqs").create_queue(QueueName=f"{service.name}-{name}")["QueueUrl"] for name in "ab"
    ]
    service.settings = replace(service.settings, refresh_queue=queues[0], refresh_dead_letters=queues[1])
    service.services = service.process()
    ok(service.admin.call("POST", RUN, {"entries": [ENTRY, ENTRY]}))
    return Watched(service, capsys)


def measured(metric: Alarm, statistic: str, records: list[Any]) -> float | None:
    """What CloudWatch makes of records for a metric; None where none of them is a sample of it."""
    dimensions = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
    samples: list[float] = []
    for record in records:
        (said,) = record["_aws"]["CloudWatchMetrics"]
        names = [each["Name"] for each in said["Metrics"]]
        counted = (
            said["Namespace"] == metric["Namespace"]
            and metric["MetricName"] in names
            and sorted(dimensions) in map(sorted, said["Dimensions"])
            and all(record[name] == value for name, value in dimensions.items())
        )
        samples += record[metric["MetricName"]] if counted else []
    return STATISTIC[statistic](samples) if samples else None


def rings(name: str, records: list[Any]) -> bool:
    alarm = ALARMS[name]
    found = measured(alarm, alarm["Statistic"], records)
    return found is not None and COMPARE[alarm["ComparisonOperator"]](found, alarm["Threshold"])


# -- what each is for

MINUTE = 60
MILLISECONDS = 1000
PERCENT_OF_DISK = 1024 * 100 / 100
"""In MiB, as AWS reports what is left of it: one of the 100 GiB that `_alarms` asks for."""

REPORTED: dict[str, tuple[float, float]] = {
    "ThrottlesAlarm": (0, 1),
    "IndexErrorsAlarm": (0, 1),
    "IndexLagAlarm": (9 * MINUTE * MILLISECONDS, 10 * MINUTE * MILLISECONDS),
    "IndexDeadLettersAlarm": (0, 1),
    "CheckpointErrorsAlarm": (0, 1),
    "CheckpointLagAlarm": (9 * MINUTE * MILLISECONDS, 10 * MINUTE * MILLISECONDS),
    "CheckpointDeadLettersAlarm": (0, 1),
    "RefreshErrorsAlarm": (0, 1),
    "RefreshDeadLettersAlarm": (0, 1),
    "RefreshLagAlarm": (59 * MINUTE, 60 * MINUTE),
    "EraseErrorsAlarm": (0, 1),
    "ErasureDeadLettersAlarm": (0, 1),
    "SearchRedAlarm": (0, 1),
    "SearchYellowAlarm": (0, 1),
    "SearchMemoryAlarm": (94, 95),
    "SearchCpuAlarm": (79, 80),
    "SearchSnapshotsAlarm": (0, 1),
}
"""What AWS reports while nobody need act, and when somebody must: counts, milliseconds of Lambda, seconds of SQS, percent of a domain."""

RECKONED: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "ServerErrorsAlarm": ({"errors": 1, "requests": 101}, {"errors": 1, "requests": 100}),
    "SearchStorageAlarm": ({"left": 26 * PERCENT_OF_DISK}, {"left": 25 * PERCENT_OF_DISK}),
}
"""The same of alarms over an expression, which no emulator reckons."""


def contradictions(watched: Watched) -> list[Any]:
    """An entry of the log is changed past the service."""
    service, table = watched.service, watched.service.settings.log_table
    (where, item) = next(iter(service.items(table).items()))
    record = {
        "eventSource": "aws:dynamodb",
        "eventName": "MODIFY",
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:1:table/{table}/stream/s",
        "dynamodb": {
            "Keys": to_item({"pk": where[0], "sk": where[1]}),
            "NewImage": to_item(item),
            "SequenceNumber": "1",
        },
    }
    assert not rings(
        "ContradictionsAlarm",
        watched.function("checkpoint", {"Records": [{**record, "eventName": "INSERT"}]}),
    )
    return watched.function("checkpoint", {"Records": [record]})


def verification_failures(watched: Watched) -> list[Any]:
    """A run that was edited is verified on the server."""
    service, table = watched.service, watched.service.settings.log_table
    assert not rings("VerificationFailuresAlarm", watched.verification())
    ((pk, sk), item) = next((at, item) for at, item in service.items(table).items() if at[1] == 1)
    edited = item | {"j": item["j"].replace('{"n":1}', '{"n":2}')}
    service.client("dynamodb").put_item(TableName=table, Item=to_item({"pk": pk, "sk": sk, **edited}))
    return watched.verification()


def unsigned(watched: Watched) -> list[Any]:
    """The bucket of checkpoints cannot be written."""
    service = watched.service
    service.hear_the_log()
    quiet = watched.function("checkpoint", TICK)
    assert not rings("UnsignedAlarm", quiet)
    ok(service.admin.call("POST", RUN, {"entries": [ENTRY]}))
    service.hear_the_log()
    service.settings = replace(service.settings, checkpoints_bucket=f"{service.name}-gone")
    service.services = service.process()
    return watched.function("checkpoint", TICK)


def index_problems(watched: Watched) -> list[Any]:
    """Where there is to be no search nobody is called; where there is to be one, it cannot be reached."""
    service = watched.service
    assert not rings("IndexProblemsAlarm", watched.function("index", TICK))
    service.settings = replace(service.settings, opensearch_url=NOBODY)
    service.services = service.process()
    return watched.function("index", TICK)


def erasures_stuck(watched: Watched) -> list[Any]:
    """An erasure was asked for, and nobody takes it from the queue."""
    assert not rings("ErasuresStuckAlarm", watched.function("erase", TICK))
    service = watched.service
    made = ok(with_erasures(service).call("POST", "/v1/memory/erasures", {"conversationId": "t1"}))
    assert not rings("ErasuresStuckAlarm", watched.function("erase", TICK))  # its message is on its way
    an_hour_ago = times.add(service.services.clock.now(), hours=-1)
    service.services.erasures.records.put_off(service.tenant, made["id"], an_hour_ago)
    return watched.function("erase", TICK)


RINGING: dict[str, Callable[[Watched], list[Any]]] = {
    "ContradictionsAlarm": contradictions,
    "VerificationFailuresAlarm": verification_failures,
    "UnsignedAlarm": unsigned,
    "IndexProblemsAlarm": index_problems,
    "ErasuresStuckAlarm": erasures_stuck,
}


@pytest.mark.parametrize("name", RINGING)
def test_an_alarm_rings_at_what_it_is_for_and_not_before(watched: Watched, name: str) -> None:
    assert rings(name, RINGING[name](watched))


@pytest.mark.parametrize("name", REPORTED)
def test_an_alarm_of_what_aws_reports_rings_in_the_emulator(ministack: Aws, name: str) -> None:
    cloudwatch, alarm = ministack.client("cloudwatch"), dict(ALARMS[name])
    metric = {key: alarm[key] for key in ("MetricName", "Dimensions") if key in alarm}

    def state_after(value: float) -> str:
        # Of its own, since the emulator looks at all samples of a metric, whatever their dimensions.
        namespace, own = f"{alarm['Namespace']}/{uuid.uuid4().hex}", f"{name}-{uuid.uuid4().hex}"
        cloudwatch.put_metric_alarm(**alarm | {"AlarmName": own, "Namespace": namespace, "AlarmActions": []})
        cloudwatch.put_metric_data(Namespace=namespace, MetricData=[metric | {"Value": value}])
        (found,) = cloudwatch.describe_alarms(AlarmNames=[own])["MetricAlarms"]
        return str(found["StateValue"])

    assert [state_after(value) for value in REPORTED[name]] == ["OK", "ALARM"]


@pytest.mark.parametrize("name", RECKONED)
def test_an_alarm_over_an_expression_rings_at_what_it_is_for_and_not_before(name: str) -> None:
    alarm = ALARMS[name]
    expression, *metrics = alarm["Metrics"]
    compare, ringing = COMPARE[alarm["ComparisonOperator"]], []
    for reported in RECKONED[name]:
        assert reported.keys() == {each["Id"] for each in metrics}
        value = eval(expression["Expression"], {}, reported)
        ringing.append(compare(value, alarm["Threshold"]))
    assert ringing == [False, True]


def test_every_alarm_is_made_to_ring() -> None:
    assert RINGING.keys() == OURS
    assert {*OURS, *REPORTED, *RECKONED, "TicksMissingAlarm"} == ALARMS.keys()


@pytest.mark.parametrize("function", TICKS)
def test_a_tick_is_a_sample_of_what_says_that_it_came(watched: Watched, function: str) -> None:
    found = measured(TICKS[function]["Metric"], TICKS[function]["Stat"], watched.function(function, TICK))
    alarm = ALARMS["TicksMissingAlarm"]
    assert found is not None
    assert not COMPARE[alarm["ComparisonOperator"]](found, alarm["Threshold"])
    assert COMPARE[alarm["ComparisonOperator"]](0, alarm["Threshold"])  # what FILL makes of none
