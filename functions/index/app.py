"""The search index follows the tables: stream records, a tick each minute, and a reconcile on demand."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from factbook.adapters.facts.dynamodb_stream import fact_records
from factbook.adapters.log.dynamodb_entries import entry_records
from factbook.api.telemetry import kind_of, logger, observe
from factbook.domain.errors import SearchUnavailable, StorageUnavailable, Throttled
from factbook.domain.retrieval.searchable import index_version
from factbook.ports.facts.store import Head
from factbook.ports.retrieval.embeddings import EmbeddingsUnavailable
from factbook.ports.retrieval.upkeep import IndexJob
from factbook.usecases.log.entries import log_id_of
from factbook.usecases.retrieval import index_jobs, indexing, messages
from factbook.usecases.retrieval.index_state import index_progress
from factbook.wiring.retrieval.services import SearchServices
from factbook.wiring.services import services

WORK_SECONDS = 40.0
"""What a run spends on a job; the rest of the function's minute is for the last step."""


COMMANDS = {
    "reconcile": index_jobs.repair,
    "rebuild": index_jobs.rebuild,
    "progress": index_jobs.look,
}


def lambda_handler(event: dict[str, Any], context: Any = None) -> dict[str, Any]:
    """Stream records; or `{"factbook": <a command>}`, which answers its progress; anything else is the schedule's tick."""
    with observe("index", event, context):
        wired = services().searching
        if "Records" in event:
            return follow(wired, event["Records"])
        return work(wired, COMMANDS.get(str(event.get("factbook", "")), index_jobs.run_jobs))


def work(
    wired: SearchServices, command: Callable[[index_jobs.IndexJobPorts, float], IndexJob | None]
) -> dict[str, Any]:
    """Spend some time on index jobs and on what waits for its embedding; how far they are."""
    problem, job = None, None
    try:
        job = command(wired.jobs, WORK_SECONDS)
        if command is not index_jobs.look:
            index_jobs.catch_up(wired.jobs)
    except (SearchUnavailable, EmbeddingsUnavailable) as error:
        problem = str(error)
    waiting = index_progress(wired.job_store, wired.backlog).waiting
    answer = {"waiting": waiting, "job": None if job is None else asdict(job), "problem": problem}
    logger.info("index jobs", extra=answer)
    return answer


def follow(wired: SearchServices, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Index a batch of one table's stream records; the answer names those to be sent again."""
    of_log = f":table/{wired.settings.log_table}/" in records[0].get("eventSourceARN", "")
    failed = _follow_log(wired, records) if of_log else _follow_facts(wired, records)
    logger.info("indexed", extra={"records": len(records), "again": len(failed), "log": of_log})
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in failed]}


def _follow_facts(wired: SearchServices, records: list[dict[str, Any]]) -> list[str]:
    found = list(fact_records(records))
    for record in found:
        if record.problem is not None:
            wired.indexing.dead_letters.send(record.key, record.problem)
    present = [record.head for record in found if record.head is not None and not record.gone]
    try:
        again = indexing.index_heads(wired.indexing, present)
        for record in found:
            if record.gone and record.head is not None and not _forgotten(wired, record.head):
                again.add((record.head.fact.scope.tenant_id, record.head.fact.id))
    except SearchUnavailable:
        again = {record.name for record in found if record.name is not None}
    return [record.sequence for record in found if record.name in again]


def _follow_log(wired: SearchServices, records: list[dict[str, Any]]) -> list[str]:
    found = list(entry_records(records))
    for record in found:
        if record.problem is not None:
            wired.indexing.dead_letters.send(record.key, record.problem)
    try:
        again = messages.index_messages(wired.conversations, [each.entry for each in found if each.entry])
    except (SearchUnavailable, StorageUnavailable, Throttled):
        return [record.position for record in found]
    failed = {log_id for _, log_id in again}
    return [
        each.position for each in found if each.entry is not None and str(log_id_of(each.entry)) in failed
    ]


def _forgotten(wired: SearchServices, head: Head) -> bool:
    """Whether nothing is left of a removed fact. Raises SearchUnavailable."""
    fact = head.fact
    indexing.forget(wired.indexing, fact.scope.tenant_id, fact.id, index_version(fact, head.edition))
    try:
        wired.remains.remove(fact)
    except (StorageUnavailable, Throttled) as error:
        logger.warning("a removed fact has left something", extra={"fact": fact.id, "why": kind_of(error)})
        return False
    return True
