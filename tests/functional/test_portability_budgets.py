"""What an export and an import ask of the stores, counted; and an import whose process ends at any call of them."""

import itertools
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.sdk_calls import recorded
from support.two_services import FACTS, OneService, ok

from factbook_cli.tenant_check import check_file
from factbook_cli.tenant_export import TenantExport
from factbook_cli.tenant_import import TenantImport


@pytest.fixture
def source(ministack: Aws, tmp_path: Path) -> OneService:
    return OneService(ministack, tmp_path, f"t-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def target(ministack: Aws, tmp_path: Path, source: OneService) -> OneService:
    return OneService(ministack, tmp_path, source.tenant)


def exported(service: OneService, path: Path) -> Path:
    TenantExport(service.api, path, quiet=True).run()  # type: ignore[arg-type]
    return path


def imported(service: OneService, path: Path) -> TenantImport:
    done = TenantImport(service.api, path, check_file(path), dry_run=False, quiet=True)  # type: ignore[arg-type]
    done.run([])
    return done


def test_an_export_scans_no_table_and_costs_calls_by_the_hundred(source: OneService, tmp_path: Path) -> None:
    for part in range(2):
        said = {"entries": [{"kind": "tool-call", "payload": number} for number in range(100)]}
        ok(source.admin.call("POST", f"/v1/memory/runs/r{part}/log", said))
        written = {"items": [{"type": "n", "scope": {}, "content": number} for number in range(100)]}
        ok(source.admin.call("POST", f"{FACTS}/batch", written))
    source.checkpoint()
    with recorded(source.client("dynamodb")) as calls:
        path = exported(source, tmp_path / "tenant")

    counts = check_file(path).counts
    assert (counts["entry"], counts["fact"], counts["leaf"]) == (200, 200, 2)
    assert {call.operation for call in calls.made} == {"GetItem", "Query", "BatchGetItem"}
    log = [call for call in calls.of("Query") if call.params["TableName"] == source.settings.log_table]
    assert len([call for call in log if "IndexName" not in call.params]) == 2  # one of each run's entries
    heads = [
        call
        for call in calls.of("BatchGetItem")
        if source.settings.facts_table in call.params["RequestItems"]
    ]
    assert len(heads) <= 24  # 25 at a time, of eight shards
    assert len(calls.made) < 100


def test_an_import_writes_a_hundred_records_by_one_read_and_one_transaction(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    said = {"entries": [{"kind": "tool-call", "payload": number} for number in range(100)]}
    ok(source.admin.call("POST", "/v1/memory/runs/r/log", said))
    written = {"items": [{"type": "n", "scope": {}, "content": number} for number in range(100)]}
    ok(source.admin.call("POST", f"{FACTS}/batch", written))
    source.checkpoint()
    path = exported(source, tmp_path / "tenant")
    with recorded(target.client("dynamodb")) as calls:
        imported(target, path)
    assert (
        len(calls.of("TransactWriteItems")) == 4
    )  # note, entries, heads; the leaf, by the checkpoint function
    assert (
        len(calls.of("BatchGetItem")) == 4
    )  # of the entries what is there is asked before, too: are they chained?
    assert (
        len(calls.of("PutItem")) == 3
    )  # the job, begun and kept, and the repair of the index that is asked for

    with recorded(target.client("dynamodb")) as again:
        imported(target, path)
    assert again.of("TransactWriteItems") == []
    assert len(again.of("BatchGetItem")) == 3


class Ended(BaseException):
    """The process ends here."""


def struck(client: Any, at: int) -> Any:
    """The client, whose call of that number ends the process: before it is sent, or once it has taken effect."""
    numbers = itertools.count(1)

    def strike(event_name: str, **_: Any) -> None:
        if next(numbers) == at:
            raise Ended

    for service in ("dynamodb", "s3"):
        for event in ("before-call", "after-call"):
            client(service).meta.events.register(f"{event}.{service}", strike)
    return strike


def unstruck(client: Any, strike: Any) -> None:
    for service in ("dynamodb", "s3"):
        for event in ("before-call", "after-call"):
            client(service).meta.events.unregister(f"{event}.{service}", strike)


def test_an_import_whose_process_ends_at_any_call_goes_on_and_loses_nothing(
    source: OneService, target: OneService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ok(source.admin.call("POST", FACTS, {"type": "n", "scope": {}, "content": "large " * 20_000}))
    ok(source.admin.call("POST", f"{FACTS}/{made['id']}/supersede", {"content": 2}))
    said = {"entries": [{"kind": "user-message", "payload": 1, "scope": {"threadId": "t"}}] * 3}
    ok(source.admin.call("POST", "/v1/memory/runs/r/log", said))
    source.checkpoint()
    path = exported(source, tmp_path / "tenant")
    monkeypatch.setattr("factbook_cli.tenant_import.AT_ONCE", 2)
    ends = 0
    for at in itertools.count(1):
        target.services = target.admin.services = target.process()
        strike = struck(target.client, at)
        try:
            imported(target, path)
            break
        except Ended:
            ends += 1
        finally:
            unstruck(target.client, strike)

    assert ends > 10
    assert target.stored() == source.stored()
    assert target.objects() == source.objects()
    target.checkpoint()
    assert target.audit(tmp_path / "log").holds
