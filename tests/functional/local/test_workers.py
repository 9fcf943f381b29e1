"""Functions run as on Lambda: one event at a time each, with their own environment, replaced when they die."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from support.local_cloud import Cloud, eventually

from factbook_local.testing import descendants


def test_a_function_has_its_own_environment_and_context(cloud: Cloud) -> None:
    seen = cloud.do("describe").json
    environment = seen["environment"]
    assert environment["AWS_LAMBDA_FUNCTION_NAME"] == seen["name"] == "factbook-Probe"
    assert seen["arn"].endswith(":function:factbook-Probe")
    assert environment["GREETING"] == "hello, us-east-1"
    assert environment["ITEMS_TABLE"] == "factbook-Items"
    assert environment["AWS_ENDPOINT_URL"] == cloud.ready.aws["endpoint"]
    assert environment["JOBS_URL"].startswith(cloud.ready.aws["endpoint"])
    assert cloud.ready.client("kms").describe_key(KeyId=environment["KMS_KEY_ID"])["KeyMetadata"]["Enabled"]
    assert seen["memory"] == "128"
    assert 0 < seen["remaining"] <= 3_000
    assert "PYTHONPATH" not in environment


def test_no_two_events_are_in_one_process_at_a_time(cloud: Cloud) -> None:
    with ThreadPoolExecutor(12) as clients:
        replies = list(clients.map(lambda _: cloud.do("sleep", seconds=0.5), range(12)))
    assert [reply.status for reply in replies] == [200] * 12
    spans = [
        (found["pid"], found["at"])
        for found in cloud.invocations()
        if found["event"].get("rawPath") == "/do" and '"seconds": 0.5' in found["event"]["body"]
    ]
    by_process: dict[int, list[float]] = {}
    for pid, began in spans:
        by_process.setdefault(pid, []).append(began)
    assert len(by_process) > 1
    for starts in by_process.values():
        starts.sort()
        assert all(later - earlier >= 0.5 for earlier, later in pairwise(starts))


def test_a_module_is_imported_once_for_all_workers(cloud: Cloud) -> None:
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda _: cloud.do("sleep", seconds=0.3), range(8)))
        seen = [reply.json for reply in clients.map(lambda _: cloud.do("describe"), range(8))]
    assert len({each["imported"] for each in seen}) == 1


def test_a_worker_that_died_idle_is_replaced_unnoticed(cloud: Cloud) -> None:
    for _ in range(10):
        os.kill(cloud.do("describe").json["pid"], 9)
        assert cloud.do("describe").status == 200


def test_a_bound_on_concurrency_is_kept(cloud: Cloud) -> None:
    payload = {"do": "sleep", "seconds": 0.3}
    with ThreadPoolExecutor(4) as clients:
        replies = list(
            clients.map(
                lambda _: cloud.do("invoke", "/slow", function="factbook-Single", payload=payload), range(4)
            )
        )
    assert len({reply.json["body"]["pid"] for reply in replies}) == 1


def test_a_function_invokes_another_and_gets_its_answer(cloud: Cloud) -> None:
    reply = cloud.do("invoke", function="factbook-Single", payload={"do": "return", "value": {"a": 1}})
    assert reply.json == {"status": 200, "error": None, "body": {"a": 1}}


def test_an_invoked_function_that_fails_is_an_error_of_the_invocation(cloud: Cloud) -> None:
    failed = cloud.do("invoke", function="factbook-Single", payload={"do": "raise"}).json
    assert (failed["status"], failed["error"]) == (200, "Unhandled")
    assert (failed["body"]["errorType"], failed["body"]["errorMessage"]) == ("ValueError", "as asked")
    crashed = cloud.do("invoke", function="factbook-Single", payload={"do": "kill"}).json
    assert (crashed["error"], crashed["body"]["errorType"]) == ("Unhandled", "Runtime.ExitError")
    late = cloud.do("invoke", "/slow", function="factbook-Single", payload={"do": "sleep", "seconds": 9}).json
    assert (late["error"], late["body"]["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    assert "Task timed out after 3.00 seconds" in late["body"]["errorMessage"]


def test_an_unknown_function_is_not_found(cloud: Cloud) -> None:
    answer = cloud.do("invoke", function="nobody", payload={})
    assert answer.status == 500  # boto3 raised ResourceNotFoundException inside the probe
    assert "ResourceNotFoundException" in eventually(lambda: cloud.ready.output.read_text())


def test_an_asynchronous_event_is_taken_at_once_and_tried_three_times(cloud: Cloud) -> None:
    mark = f"asynchronous {time.time()}"
    reply = cloud.do(
        "invoke", function="factbook-Single", payload={"do": "raise", "mark": mark}, type="Event"
    )
    assert reply.json == {"status": 202, "error": None, "body": None}

    def tries() -> list[object]:
        return [found for found in cloud.invocations() if found["event"].get("mark") == mark]

    eventually(lambda: len(tries()) == 3)
    time.sleep(1)
    assert len(tries()) == 3


def test_the_remaining_time_of_a_context_runs_out(cloud: Cloud) -> None:
    assert cloud.do("sleep", seconds=1).json["remaining"] <= 2_000


def test_a_functions_clients_refuse_what_aws_refuses(cloud: Cloud) -> None:
    assert cloud.do("put", size=400 * 1024).json == {"code": None}
    assert cloud.do("put", size=400 * 1024 + 1).json == {"code": "ValidationException"}


def test_every_process_is_below_the_runner(cloud: Cloud) -> None:
    assert cloud.do("describe").json["pid"] in descendants(cloud.ready.process.pid)
