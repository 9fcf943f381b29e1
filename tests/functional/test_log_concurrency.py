"""Many processes write the log at once, on a store that is as atomic as DynamoDB."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import asdict

import pytest
from support.emulators import Aws
from support.gateway import ROOT
from support.log_writers import Plan, spoken

from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.verify.chain import Chain

SOURCES = [str(ROOT / folder) for folder in ("tests", "layers/factbook", "layers/search", "local")]


def run_writers(aws: Aws, tenant: str, runs: list[str], each: int, batch: int = 1) -> list[list[int]]:
    """The attempts of each request, by writer."""
    plan = Plan(aws.endpoint or "", asdict(aws.settings), tenant, runs, each, batch)
    program = f"import sys; sys.path[:0] = {SOURCES!r}; from support.log_writers import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], input=spoken(plan), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    attempts: list[list[int]] = json.loads(done.stdout)
    return attempts


def read_run(aws: Aws, tenant: str, run: str) -> list[dict[str, object]]:
    """The payloads of a run whose chain holds without a gap."""
    store = DynamoLog(aws.client("dynamodb"), aws.settings.log_table)
    chain, payloads, more = Chain(run, tenant), [], True
    while more:
        entries, more = store.entries(tenant, run, len(payloads), 1000)
        for entry in entries:
            assert entry.sequence == len(payloads)
            chain.follow(entry.text.encode(), entry.entry_hash[7:].encode(), entry.cause)
            payloads.append(json.loads(entry.text)["payload"])
    return payloads


@pytest.mark.exhaustive
def test_sixteen_processes_append_to_one_run_without_a_gap_or_a_duplicate(
    ministack: Aws, tenant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    writers, each = 16, 200
    attempts = run_writers(ministack, tenant, ["shared"] * writers, each)
    payloads = read_run(ministack, tenant, "shared")
    assert len(payloads) == writers * each
    written = Counter((payload["writer"], payload["number"]) for payload in payloads)
    assert set(written) == {(writer, number) for writer in range(writers) for number in range(each)}
    assert set(written.values()) == {1}
    for writer in range(writers):  # what one writer appends stays in its order
        own = [payload["number"] for payload in payloads if payload["writer"] == writer]
        assert own == sorted(own)
    taken = sorted(count for counts in attempts for count in counts)
    with capsys.disabled():
        sys.stdout.write(
            f"\nattempts per entry: mean {statistics.mean(taken):.2f}, median {taken[len(taken) // 2]}, "
            f"p95 {taken[len(taken) * 95 // 100]}, p99 {taken[len(taken) * 99 // 100]}, most {taken[-1]}\n"
        )


def test_batches_of_several_processes_stay_whole(ministack: Aws, tenant: str) -> None:
    run_writers(ministack, tenant, ["shared"] * 4, 100, batch=10)
    payloads = read_run(ministack, tenant, "shared")
    assert len(payloads) == 400
    for start in range(0, 400, 10):
        batch = payloads[start : start + 10]
        assert len({payload["writer"] for payload in batch}) == 1
        first = batch[0]["number"]
        assert [payload["number"] for payload in batch] == list(range(first, first + 10))


@pytest.mark.exhaustive
def test_sixty_four_runs_written_at_once_do_not_touch_each_other(ministack: Aws, tenant: str) -> None:
    runs = [f"run-{number}" for number in range(64)]
    attempts = run_writers(ministack, tenant, runs, 10)
    assert {count for counts in attempts for count in counts} == {1}
    for writer, run in enumerate(runs):
        payloads = read_run(ministack, tenant, run)
        assert payloads == [{"writer": writer, "number": number} for number in range(10)]
