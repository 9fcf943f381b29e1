"""The search index follows the tables: stream records, a tick each minute, and a reconcile on demand."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from aws_lambda_powertools import Logger

from factbook.adapters.dynamodb.streams import FactRecord, fact_records
from factbook.bootstrap import services
from factbook.domain.errors import SearchUnavailable
from factbook.domain.searchable import index_version
from factbook.embedding_ports import EmbeddingsUnavailable
from factbook.index_ports import IndexJob
from factbook.search_bootstrap import SearchServices
from factbook.usecases import index_jobs, indexing

WORK_SECONDS = 40.0
"""What a run spends on a job; the rest of the function's minute is for the last step."""

logger = Logger(service="factbook", log_uncaught_exceptions=False)


def lambda_handler(event: dict[str, Any], _: Any = None) -> dict[str, Any]:
    """Stream records; or `{"factbook": "reconcile" | "rebuild"}`, which answers its progress; or the schedule's tick."""
    wired = services().searching
    if "Records" in event:
        return follow(wired, event["Records"])
    command = str(event.get("factbook", ""))
    work = {"reconcile": index_jobs.repair, "rebuild": index_jobs.rebuild}.get(command, index_jobs.run_jobs)
    return _progress(wired, work)


def _progress(
    wired: SearchServices, work: Callable[[index_jobs.Jobs, float], IndexJob | None]
) -> dict[str, Any]:
    caught_up, problem, job = 0, None, None
    try:
        job = work(wired.jobs, WORK_SECONDS)
        caught_up = index_jobs.catch_up(wired.jobs)
    except (SearchUnavailable, EmbeddingsUnavailable) as error:
        problem = str(error)
    answer = {"caughtUp": caught_up, "job": None if job is None else asdict(job), "problem": problem}
    logger.info("index jobs", extra=answer)
    return answer


def follow(wired: SearchServices, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Index a batch of stream records; the answer names those to be sent again."""
    found = list(fact_records(records))
    for record in found:
        if record.problem is not None:
            wired.indexing.dead_letters.send(record.key, record.problem)
    present = [record.head for record in found if record.head is not None and not record.gone]
    try:
        again = indexing.index_heads(wired.indexing, present)
        for record in found:
            if record.gone and record.head is not None:
                _forget(wired, record)
    except SearchUnavailable:
        again = {record.name for record in found if record.name is not None}
    failed = [record.sequence for record in found if record.name in again]
    logger.info("indexed", extra={"records": len(records), "heads": len(found), "again": len(failed)})
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in failed]}


def _forget(wired: SearchServices, record: FactRecord) -> None:
    head = record.head
    assert head is not None
    fact = head.fact
    indexing.forget(wired.indexing, fact.scope.tenant_id, fact.id, index_version(fact, head.edition))
    wired.remains.remove(fact)
