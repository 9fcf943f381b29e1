"""Records of the log table's stream: which runs have grown, and what nobody may do to the log."""

from collections.abc import Iterator, Sequence
from typing import Any

from factbook.adapters.dynamodb.client import Item, from_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import parse_json
from factbook.ports.log.checkpoints import DirtyRun, LogRecord


def log_records(records: Sequence[dict[str, Any]]) -> Iterator[LogRecord]:
    for record in records:
        change = record["dynamodb"]
        keys = from_item(change["Keys"])
        name = f"{keys['pk']} {keys['sk']}"
        run = _run(from_item(change.get("NewImage", {})), keys)
        yield LogRecord(change["SequenceNumber"], name, run, record["eventName"] != "INSERT")


def _run(item: Item, keys: Item) -> DirtyRun | None:
    """The run that the text names, when the item stands where that run's entry of that sequence does."""
    try:
        entry = parse_json(item["j"])
        tenant, run_id = entry["scope"]["tenantId"], entry["runId"]
        stands_there = key(tenant, run_id) == keys["pk"]
    except (BadInput, KeyError, TypeError, AttributeError):
        return None
    return DirtyRun(tenant, run_id, keys["sk"]) if stands_there else None
