"""The RunWalk contract on the fake that other tests trust, on moto and on ministack."""

import json
import uuid

import pytest
from support.emulators import Aws
from support.log_fakes import FakeLog, FakeRuns

from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.adapters.log.dynamodb_runs import SEGMENTS, DynamoRunWalk
from factbook.domain.scope import Scope
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.ports.log.walks import RunName, RunWalk

AT = "2026-01-01T00:00:00.000001Z"


class RunWalkContract:
    """Subclasses give `log`, through which runs are begun, and `runs`. Others' runs may be there too."""

    log: LogStore
    runs: RunWalk

    def begin(self, tenant: str, run: str, entries: int = 1) -> RunName:
        for sequence in range(entries):
            opens = Scope(tenant_id=tenant) if sequence == 0 else None
            text = json.dumps({"runId": run, "scope": {"tenantId": tenant}})
            entry = StoredEntry(tenant, run, sequence, text, "sha256:0", "f", None, None, AT, opens)
            assert self.log.put([entry]) is None
        return RunName(tenant, run)

    def pages(self, limit: int) -> list[list[RunName]]:
        found, after = [], None
        while True:
            page = self.runs.walk(after, limit)
            assert len(page.stops) <= limit
            found.append(page.records)
            after = page.next
            if after is None:
                return found

    @pytest.mark.parametrize("limit", [1, 7, 100])
    def test_a_walk_meets_every_run_once_whatever_a_page_holds(self, tenant: str, limit: int) -> None:
        tenants = [tenant, tenant + "|%~", tenant + "é" * 120]
        begun = [self.begin(each, f"run-{number}", 1 + number % 2) for each in tenants for number in range(6)]
        met = [run for page in self.pages(limit) for run in page if run.tenant.startswith(tenant)]
        assert sorted(met, key=str) == sorted(begun, key=str)

    def test_a_walk_goes_on_behind_any_run(self, tenant: str) -> None:
        begun = {self.begin(tenant, f"run-{number}") for number in range(9)}
        met: set[RunName] = set()
        after: str | None = None
        while not begun <= met:
            page = self.runs.walk(after, 5)
            met |= {stop.record for stop in page.stops[:1]}
            after = page.stops[0].cursor if page.stops else page.next
            assert after is not None

    def test_a_tenant_with_many_runs_does_not_keep_the_others_waiting(self, tenant: str) -> None:
        many = [self.begin(tenant, f"run-{number}") for number in range(160)]
        others = {self.begin(f"{tenant}-{uuid.uuid4()}", "run") for _ in range(16)}
        first_round = [run for page in self.pages(4)[: 16 + 1] for run in page]
        assert others.intersection(first_round)
        assert len(set(many).intersection(first_round)) <= 17 * 4 < len(many)


class TestFakeRuns(RunWalkContract):
    @pytest.fixture(autouse=True)
    def _stores(self) -> None:
        self.log = FakeLog()
        self.runs = FakeRuns(self.log)


class OnDynamo(RunWalkContract):
    def connect(self, aws: Aws) -> None:
        self.client, self.table = aws.client("dynamodb"), aws.settings.log_table
        self.log, self.runs = DynamoLog(self.client, self.table), DynamoRunWalk(self.client, self.table)
        assert SEGMENTS == 16

    def test_a_row_that_was_put_past_the_service_is_left_out_and_ends_no_walk(self, tenant: str) -> None:
        begun = self.begin(tenant, "run")
        key = {"pk": {"S": f"{tenant}|run"}, "sk": {"N": "0"}}
        item = self.client.get_item(TableName=self.table, Key=key)["Item"]
        for number, broken in enumerate(
            ({"sc": {"S": "no JSON"}}, {"sc": {"S": "[]"}}, {"ro": {"S": f"{AT}|another"}})
        ):
            put = item | broken | {"pk": {"S": f"{tenant}|broken-{number}"}}
            self.client.put_item(TableName=self.table, Item=put)
        met = [run for page in self.pages(3) for run in page if run.tenant == tenant]
        assert met == [begun]


class TestDynamoRuns(OnDynamo):
    @pytest.fixture(autouse=True)
    def _stores(self, emulator: Aws) -> None:
        self.connect(emulator)
