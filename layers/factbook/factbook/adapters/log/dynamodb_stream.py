"""Records of the log table's stream: which runs have grown, and what nobody may do to the log."""

from collections.abc import Iterator, Sequence
from typing import Any

from factbook.adapters.dynamodb.client import from_item
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import parse_json
from factbook.ports.log.checkpoints import DirtyRun, LogRecord


def log_records(records: Sequence[dict[str, Any]]) -> Iterator[LogRecord]:
    for record in records:
        change = record["dynamodb"]
        keys = from_item(change["Keys"])
        name = f"{keys['pk']} {keys['sk']}"
        run = _run(from_item(change.get("NewImage", {})), keys["sk"])
        yield LogRecord(change["SequenceNumber"], name, run, record["eventName"] != "INSERT")


def _run(item: dict[str, Any], sequence: int) -> DirtyRun | None:
    try:
        entry = parse_json(item["j"])
        return DirtyRun(entry["scope"]["tenantId"], entry["runId"], sequence)
    except (BadInput, KeyError, TypeError):
        return None
