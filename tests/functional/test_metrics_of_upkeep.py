"""What alarms look at: each of our own metrics is counted when what it stands for happens."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.emulators import Aws
from support.logs import LogService

from factbook.adapters.dynamodb.key_parts import key
from factbook.adapters.log.dynamodb_stream import log_records
from factbook.api.log.events import CheckpointEvents
from factbook.usecases import tally
from factbook.usecases.merging import at_once

RUN = "/v1/memory/runs/r1/log"
ENTRY = {"kind": "event-emitted", "payload": {"n": 1}}


def metrics(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The metric records written since the last look."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    return [record for record in map(json.loads, lines) if "_aws" in record]


def counted(capsys: pytest.CaptureFixture[str], name: str) -> float:
    (value,) = [record[name][0] for record in metrics(capsys) if name in record]
    return float(value)


@pytest.fixture
def log(ministack: Aws, tmp_path: Any) -> LogService:
    made = LogService(ministack, tmp_path)
    assert made.admin.call("POST", RUN, {"entries": [ENTRY, ENTRY]}).status == 201
    return made


def checkpoint(log: LogService) -> CheckpointEvents:
    """The checkpoint function over this service."""
    return CheckpointEvents(lambda: log.services.logs, log_records)


def edit(log: LogService, aws: Aws) -> None:
    """Change an entry past the service, as its role could not."""
    where = {
        "TableName": aws.settings.log_table,
        "Key": {"pk": {"S": key(log.tenant, "r1")}, "sk": {"N": "1"}},
    }
    text = aws.client("dynamodb").get_item(**where)["Item"]["j"]["S"]
    aws.client("dynamodb").update_item(
        **where,
        UpdateExpression="SET j = :other",
        ExpressionAttributeValues={":other": {"S": text.replace('{"n":1}', '{"n":2}')}},
    )


def test_a_verification_that_finds_an_edited_entry_is_counted(
    log: LogService, ministack: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert log.admin.call("GET", f"{RUN}/verify").json["holds"] is True
    assert counted(capsys, "VerificationFailures") == 0
    edit(log, ministack)
    assert log.admin.call("GET", f"{RUN}/verify").json["holds"] is False
    assert counted(capsys, "VerificationFailures") == 1


@pytest.mark.parametrize(
    ("route", "body"),
    [("/v1/memory/facts", {"type": "acme.note", "content": "tea"}), (RUN, {"entries": [ENTRY]})],
)
def test_a_write_that_is_answered_by_an_earlier_try_of_it_is_counted(
    log: LogService, capsys: pytest.CaptureFixture[str], route: str, body: dict[str, Any]
) -> None:
    capsys.readouterr()
    for replays in (0, 1, 1):
        assert log.admin.call("POST", route, body, key="once").status == 201
        assert [record.get("Replays", [0])[0] for record in metrics(capsys)] == [replays]


def test_each_item_of_a_batch_that_was_written_before_is_counted(
    log: LogService, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [{"type": "acme.note", "content": number} for number in range(3)]
    capsys.readouterr()
    for replays in (0, 3):
        assert log.admin.call("POST", "/v1/memory/facts/batch", {"items": items}, key="once").status == 200
        assert [record.get("Replays", [0])[0] for record in metrics(capsys)] == [replays]


def test_what_threads_of_an_invocation_count_is_its_own() -> None:
    def work(_: int) -> None:
        tally.count("Replays")

    with tally.counting() as outer:
        with tally.counting() as inner, ThreadPoolExecutor(max_workers=2) as pool:
            list(at_once(work, range(40)))
            list(pool.map(tally.counted(work), range(10)))
            list(pool.map(work, range(5)))  # the threads have kept nothing
        list(at_once(work, range(2)))
    list(at_once(work, range(3)))  # nobody observes these
    assert (inner["Replays"], outer["Replays"]) == (50, 2)


def test_a_change_of_the_log_that_is_no_append_is_a_contradiction(
    log: LogService, ministack: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    item = ministack.client("dynamodb").get_item(
        TableName=ministack.settings.log_table,
        Key={"pk": {"S": key(log.tenant, "r1")}, "sk": {"N": "0"}},
    )["Item"]
    record = {
        "eventName": "INSERT",
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:1:table/{ministack.settings.log_table}/stream/s",
        "dynamodb": {"Keys": {"pk": item["pk"], "sk": item["sk"]}, "NewImage": item, "SequenceNumber": "1"},
    }
    capsys.readouterr()
    for event, expected in (("INSERT", 0), ("MODIFY", 1)):
        checkpoint(log)({"Records": [{**record, "eventName": event}]})
        assert counted(capsys, "Contradictions") == expected


def test_a_tick_counts_what_it_signed_and_what_it_could_not(
    log: LogService, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    checkpoint(log)({"factbook": "tick"})
    (record,) = [each for each in metrics(capsys) if "TenantsRefused" in each]
    assert (
        record["TenantsCheckpointed"][0] + record["TenantsRefused"][0] >= 1
    )  # others' tenants are in this emulator too
    assert ["service", "function"] in record["_aws"]["CloudWatchMetrics"][0]["Dimensions"]
