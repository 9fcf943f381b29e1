"""What a function says of each invocation, and that it says nothing that is a caller's own."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from support.gateway import ROOT
from support.planted_requests import WORD

from factbook.api import telemetry
from factbook.api.errors import STATUSES

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


@dataclass(frozen=True)
class Exhibit:
    output: str
    planted: list[str]
    answers: list[dict[str, Any]]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [record for record in self.records if record.get("message") == "request"]

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return [record for record in self.records if "_aws" in record]


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Exhibit:
    """Everything a process wrote to both its streams while it served planted requests."""
    report = tmp_path_factory.mktemp("planted") / "report.json"
    roots = (ROOT / "layers/factbook", ROOT / "layers/search", ROOT / "local", ROOT / "tests")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, roots)),
        "_X_AMZN_TRACE_ID": TRACE,
        "POWERTOOLS_LOG_LEVEL": "DEBUG",
    }
    done = subprocess.run(
        [sys.executable, "-m", "support.planted_requests", str(report)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    kept = json.loads(report.read_text())
    return Exhibit(done.stdout, kept["planted"], kept["answers"])


def test_no_content_token_or_key_reaches_any_output(exhibit: Exhibit) -> None:
    assert len(exhibit.planted) > 25
    assert exhibit.planted[-1].startswith(WORD)
    assert [text for text in exhibit.planted if text in exhibit.output] == []


def test_the_planted_texts_did_reach_the_service(exhibit: Exhibit) -> None:
    content = next(text for text in exhibit.planted if text.startswith(f"{WORD}-content-"))

    assert content in exhibit.answers[0]["text"]


def test_every_request_is_one_line_that_says_who_what_how_long_and_how_it_ended(exhibit: Exhibit) -> None:
    lines = exhibit.lines

    assert Counter(line["status"] for line in lines) == Counter(
        answer["status"] for answer in exhibit.answers
    )
    codes = {error.code for error in STATUSES} | {"ok", "internal-error"}
    for line in lines:
        assert line["function"] in ("write", "read")
        assert line["route"] == "$default" or line["route"].startswith(("GET /", "POST /", "DELETE /"))
        assert line["outcome"] in codes
        assert line["duration_ms"] >= 0
        assert line["request_id"]
        assert line["xray_trace_id"] == "1-5759e988-bd862e3fe1be46a994272793"
        if line["outcome"] != "auth-missing":
            assert (line["tenant"], line["principal_kind"]) == ("acme", "user")


def test_every_request_is_one_metric_record_under_its_route(exhibit: Exhibit) -> None:
    metrics = exhibit.metrics

    assert [record["request_id"] for record in metrics] == [line["request_id"] for line in exhibit.lines]
    for record in metrics:
        (described,) = record["_aws"]["CloudWatchMetrics"]
        assert described["Namespace"] == "Factbook"
        assert described["Dimensions"] == [["function", "route", "service"], ["service", "function"]]
        assert record["Requests"] == [1.0]
        assert record["Failures"] == [float(record["status"] >= 500)]
        assert record["Refusals"] == [float(400 <= record["status"] < 500)]


def test_a_process_is_cold_once(exhibit: Exhibit) -> None:
    assert [line["cold_start"] for line in exhibit.lines] == [True] + [False] * (len(exhibit.lines) - 1)
    assert [record.get("ColdStarts") for record in exhibit.metrics].count([1.0]) == 1


def test_a_failure_nobody_foresaw_is_logged_by_its_type_and_place(exhibit: Exhibit) -> None:
    failures = [record for record in exhibit.records if record.get("message") == "request failed"]

    assert [failure["error"] for failure in failures] == [
        "RuntimeError",
        "ClientError AccessDeniedException",
        "ClientError InternalServerError",
    ]
    for failure in failures:
        assert failure["at"][-1].endswith(" fail")
        assert failure["request_id"]


def test_an_event_that_is_no_request_is_named_by_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    events = ({"Records": [{"eventSource": "aws:dynamodb"}]}, {"source": "aws.scheduler"}, {})
    for event in events:
        with telemetry.observe("index", event) as seen:
            seen.about["records"] = len(event.get("Records", []))

    found = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert [record["route"] for record in found] == ["aws:dynamodb", "aws.scheduler", "invoke"]
    assert [record["records"] for record in found] == [1, 0, 0]


def test_what_an_event_raises_is_counted_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), telemetry.observe("index", {}):
        raise ZeroDivisionError

    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert (record["status"], record["outcome"], record["Failures"]) == (500, "internal-error", [1.0])
