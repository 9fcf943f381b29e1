"""What the checkpoint function hears: the log's stream marks runs, a tick each minute and a call on demand put them into
the tree and sign it.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Protocol

from factbook.api.deadlines import deadline_of
from factbook.api.telemetry import Observation, kind_of, logger, observe
from factbook.domain.errors import FactbookError
from factbook.domain.log.runs import Leaf
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.checkpoints import CheckpointRefused, DirtyRun, LogRecord, TreeStore
from factbook.usecases.log import checkpoints
from factbook.usecases.log.adopting import adopt_leaves
from factbook.usecases.log.checkpoints import HOWEVER_LONG
from factbook.usecases.log.marks import MARKS, MarkPorts, sweep_marks
from factbook.usecases.log.proofs import note_json

Records = Sequence[dict[str, Any]]

STREAM_SECONDS = 1.0
"""How long a call on demand waits for the stream to have marked what was just appended."""

ON_DEMAND_SECONDS = 12.0
"""A call on demand is waited for, for 15 s (`wiring.clients`)."""

RESERVE_SECONDS = 13.0
"""Of an invocation: a call that the store lets hang (`wiring.clients` has the sum), and the answer. What its turns need
besides, a pass knows itself."""


SWEEP_SHARE = 0.2
"""Of a tick's time, for runs whose mark was lost."""


class CheckpointServices(Protocol):
    """What the events of the checkpoint function work with."""

    @property
    def tree(self) -> TreeStore: ...

    @property
    def checkpointing(self) -> checkpoints.CheckpointPorts: ...

    @property
    def marking(self) -> MarkPorts: ...


class CheckpointEvents:
    """The handler of the checkpoint function. `log_records` reads the records of the log table's stream."""

    def __init__(
        self,
        logs: Callable[[], CheckpointServices],
        log_records: Callable[[Records], Iterable[LogRecord]],
    ) -> None:
        self.logs = logs
        self._log_records = log_records

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """Stream records; or `{"factbook": "checkpoint", "tenant", "runIds"}`, which answers the note; or
        `{"factbook": "adopt", "tenant", "leaves"}`, of an import; or the tick.
        """
        with observe("checkpoint", event, context) as seen:
            logs = self.logs()
            if "Records" in event:
                return self.mark(logs, event["Records"], seen)
            if event.get("factbook") == "checkpoint":
                deadline = Deadline(min(ON_DEMAND_SECONDS, deadline_of(context, RESERVE_SECONDS).left))
                return checkpoint_now(logs, event["tenant"], event["runIds"], deadline)
            if event.get("factbook") == "adopt":
                return adopt(logs, event["tenant"], event["leaves"])
            return tick(logs, deadline_of(context, RESERVE_SECONDS), seen)

    def mark(
        self, logs: CheckpointServices, records: Records, seen: Observation | None = None
    ) -> dict[str, Any]:
        return mark(logs, list(self._log_records(records)), seen)


def mark(logs: CheckpointServices, found: list[LogRecord], seen: Observation | None = None) -> dict[str, Any]:
    """Note which runs have grown; the answer names the records to be sent again."""
    if seen is not None:
        seen.count(Contradictions=sum(record.foreign for record in found))
    for record in found:
        if record.foreign or record.run is None:
            logger.error("the log table was changed past the service", extra={"item": record.key})
    try:
        checkpoints.mark_runs(logs.tree, [record.run for record in found if record.run is not None])
    except FactbookError as error:
        logger.warning("runs not marked", extra={"code": error.code, "records": len(found)})
        return {"batchItemFailures": [{"itemIdentifier": found[0].position}]}
    return {"batchItemFailures": []}


def checkpoint_now(
    logs: CheckpointServices, tenant: str, run_ids: list[str], deadline: Deadline = NEVER
) -> dict[str, Any]:
    """The note; with `more` when the tenant has more marked runs than there was time for."""
    time.sleep(STREAM_SECONDS)
    asked = [DirtyRun(tenant, run_id, HOWEVER_LONG) for run_id in dict.fromkeys(run_ids)]
    others = (run for run in logs.tree.dirty_of(tenant, deadline) if run.run_id not in run_ids)
    try:
        done = checkpoints.checkpoint_tenant(logs.checkpointing, tenant, chain(asked, others), deadline)
    except CheckpointRefused as error:
        logger.error("checkpoint refused", extra={"tenant": tenant, "why": str(error)})
        return {"refused": str(error)}
    _report(tenant, done)
    if done.note is None:
        return {}
    return note_json(replace(done.note, more=done.more))


def adopt(logs: CheckpointServices, tenant: str, rows: list[list[Any]]) -> dict[str, Any]:
    """How many leaves of an imported log were new; why not, when they have no place in the tree."""
    try:
        return {"adopted": adopt_leaves(logs.tree, tenant, [Leaf(*row) for row in rows])}
    except CheckpointRefused as error:
        logger.error("leaves refused", extra={"tenant": tenant, "why": str(error)})
        return {"refused": str(error)}


def tick(
    logs: CheckpointServices, deadline: Deadline = NEVER, seen: Observation | None = None
) -> dict[str, Any]:
    try:
        _sweep(logs, deadline.share(SWEEP_SHARE))
    except Exception as error:  # noqa: BLE001 - what is marked is put into the tree all the same
        logger.warning("lost marks are not looked for", extra={"error": kind_of(error)})
    results = checkpoints.checkpoint_all(logs.checkpointing, deadline)
    if seen is not None:
        seen.count(**_counted(results.values()))
    for tenant, result in results.items():
        if isinstance(result, Exception):
            logger.error("checkpoint failed", extra={"tenant": tenant, "error": kind_of(result)})
        else:
            _report(tenant, result)
    more = sum(isinstance(result, checkpoints.Pass) and result.more for result in results.values())
    return {"tenants": len(results), "more": more}


def _counted(results: Iterable[checkpoints.Pass | Exception]) -> dict[str, float]:
    """What a tick came to: tenants whose tree was not signed, that have more to do, and what speaks against their log."""
    found = list(results)
    done = [result for result in found if isinstance(result, checkpoints.Pass)]
    return {
        "TenantsCheckpointed": len(done),
        "TenantsRefused": len(found) - len(done),
        "TenantsUnfinished": sum(result.more for result in done),
        "Contradictions": sum(len(result.broken) + len(result.missing) for result in done),
    }


def _sweep(logs: CheckpointServices, deadline: Deadline) -> None:
    before = logs.marking.jobs.job(MARKS)
    after = sweep_marks(logs.marking, deadline)
    if after is not None and after != before:
        logger.info("lost marks", extra={"phase": after.phase, **after.counters})


def _report(tenant: str, done: checkpoints.Pass) -> None:
    if done.broken:
        logger.error("runs contradict their leaves", extra={"tenant": tenant, "runs": done.broken})
    if done.missing:
        logger.error("marked runs have no entries", extra={"tenant": tenant, "runs": done.missing})
    size = done.note.size if done.note else 0
    logger.info("checkpointed", extra={"tenant": tenant, "size": size, "more": done.more})
