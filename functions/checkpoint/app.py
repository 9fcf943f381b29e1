"""Checkpoints: the log's stream marks runs, a tick each minute and a call on demand put them into the tree and sign it."""

import time
from typing import Any

from factbook.adapters.log.dynamodb_stream import log_records
from factbook.api.telemetry import kind_of, logger, observe
from factbook.domain.errors import FactbookError
from factbook.ports.log.checkpoints import CheckpointRefused, DirtyRun
from factbook.usecases.log import checkpoints
from factbook.usecases.log.proofs import note_json
from factbook.wiring.log.services import LogServices
from factbook.wiring.services import services

STREAM_SECONDS = 1.0
"""How long a call on demand waits for the stream to have marked what was just appended."""


def lambda_handler(event: dict[str, Any], context: Any = None) -> dict[str, Any]:
    """Stream records; or `{"factbook": "checkpoint", "tenant", "runIds"}`, which answers the note; or the tick."""
    with observe("checkpoint", event, context):
        logs = services().logs
        if "Records" in event:
            return mark(logs, event["Records"])
        if event.get("factbook") == "checkpoint":
            return checkpoint_now(logs, event["tenant"], event["runIds"])
        return tick(logs)


def mark(logs: LogServices, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Note which runs have grown; the answer names the records to be sent again."""
    found = list(log_records(records))
    for record in found:
        if record.foreign or record.run is None:
            logger.error("the log table was changed past the service", extra={"item": record.key})
    try:
        checkpoints.mark_runs(logs.tree, [record.run for record in found if record.run is not None])
    except FactbookError as error:
        logger.warning("runs not marked", extra={"code": error.code, "records": len(found)})
        return {"batchItemFailures": [{"itemIdentifier": found[0].position}]}
    return {"batchItemFailures": []}


def checkpoint_now(logs: LogServices, tenant: str, run_ids: list[str]) -> dict[str, Any]:
    time.sleep(STREAM_SECONDS)
    asked = [DirtyRun(tenant, run_id, 0) for run_id in run_ids]
    marked = logs.tree.dirty_of(tenant)
    known = {run.run_id for run in marked}
    runs = marked + [run for run in asked if run.run_id not in known]
    try:
        done = checkpoints.checkpoint_tenant(logs.checkpointing, tenant, runs)
    except CheckpointRefused as error:
        logger.error("checkpoint refused", extra={"tenant": tenant, "why": str(error)})
        return {"refused": str(error)}
    _report(tenant, done)
    return {} if done.note is None else note_json(done.note)


def tick(logs: LogServices) -> dict[str, Any]:
    results = checkpoints.checkpoint_all(logs.checkpointing)
    for tenant, result in results.items():
        if isinstance(result, Exception):
            logger.error("checkpoint failed", extra={"tenant": tenant, "error": kind_of(result)})
        else:
            _report(tenant, result)
    return {"tenants": len(results)}


def _report(tenant: str, done: checkpoints.Pass) -> None:
    if done.broken:
        logger.error("runs contradict their leaves", extra={"tenant": tenant, "runs": done.broken})
    logger.info("checkpointed", extra={"tenant": tenant, "size": done.note.size if done.note else 0})
