"""Records of the log table's stream: which runs have grown, and what nobody may do to the log."""

from collections.abc import Iterator, Sequence
from typing import Any

from factbook.adapters.dynamodb.client import from_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.domain.strict_json import parse_json
from factbook.ports.log.checkpoints import DirtyRun, LogRecord


def log_records(records: Sequence[dict[str, Any]]) -> Iterator[LogRecord]:
    for record in records:
        change = record["dynamodb"]
        keys = from_item(change["Keys"])
        name = f"{keys['pk']} {keys['sk']}"
        run = _run(keys, change)
        yield LogRecord(change["SequenceNumber"], name, run, record["eventName"] != "INSERT")


def _run(keys: dict[str, Any], change: dict[str, Any]) -> DirtyRun | None:
    """None when the item is not as an append writes one: its text must name the run in whose partition it stands."""
    try:
        entry = parse_json(from_item(change["NewImage"])["j"])
        tenant, run_id = entry["scope"]["tenantId"], entry["runId"]
        is_own = isinstance(keys["sk"], int) and keys["pk"] == key(tenant, run_id)
    except Exception:  # noqa: BLE001 - whatever is wrong with one item, the rest of the batch goes on
        return None
    return DirtyRun(tenant, run_id, keys["sk"]) if is_own else None
