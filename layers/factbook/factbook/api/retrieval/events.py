"""What the index function hears: records of the tables' streams, what was given up of them, commands, and the tick.

What is left of a removed fact goes first and by itself, and what a fact came to name is kept: no search index, or one
that is down, holds that back.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from factbook.api.deadlines import deadline_of
from factbook.api.retrieval.services import IndexServices
from factbook.api.retrieval.views import index_job_json
from factbook.api.telemetry import kind_of, logger, observe
from factbook.domain.errors import SearchUnavailable, StorageUnavailable, Throttled
from factbook.domain.retrieval.searchable import index_version
from factbook.ports.deadline import Deadline
from factbook.ports.facts.store import Head
from factbook.ports.facts.walks import FactRecord
from factbook.ports.jobs import Job
from factbook.ports.log.walks import EntryRecord
from factbook.ports.retrieval.embeddings import EmbeddingsUnavailable
from factbook.usecases.facts.upgrading import upgrade_facts
from factbook.usecases.retrieval import index_jobs, indexing, messages
from factbook.usecases.retrieval.index_jobs import IndexJobPorts
from factbook.usecases.retrieval.index_state import index_progress

RESERVE_SECONDS = 20.0
JOB_SHARE = 0.7
"""Of the time of a tick; the rest is for what waits in the backlog."""
COMMANDS: dict[str, Callable[[IndexJobPorts, Deadline], Job | None]] = {
    "reconcile": index_jobs.repair,
    "rebuild": index_jobs.rebuild,
}
OUTAGES = (SearchUnavailable, StorageUnavailable, Throttled)

Records = Sequence[dict[str, Any]]


class IndexEvents:
    """The handler of the index function. `fact_records` and `entry_records` read a stream's records, table by table."""

    def __init__(
        self,
        services: Callable[[], IndexServices],
        fact_records: Callable[[Records], Iterable[FactRecord]],
        entry_records: Callable[[Records], Iterable[EntryRecord]],
    ) -> None:
        self.services = services
        self._fact_records = fact_records
        self._entry_records = entry_records

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """Records, or `{"factbook": <a command>}`, which answers its progress; anything else is the schedule's tick."""
        with observe("index", event, context):
            services, deadline = self.services(), deadline_of(context, RESERVE_SECONDS)
            if "Records" not in event:
                return work(services, str(event.get("factbook", "")), deadline)
            records = event["Records"]
            if records[0].get("eventSource") == "aws:sqs":
                return note_discards(services, records)
            of_log = f":table/{services.settings.log_table}/" in records[0].get("eventSourceARN", "")
            if of_log:
                failed = _follow_log(services, list(self._entry_records(records)), deadline)
            else:
                failed = _follow_facts(services, list(self._fact_records(records)), deadline)
            logger.info("indexed", extra={"records": len(records), "again": len(failed), "log": of_log})
            return {"batchItemFailures": [{"itemIdentifier": position} for position in failed]}


def work(services: IndexServices, command: str, deadline: Deadline) -> dict[str, Any]:
    """Spend some time on facts of the former format, on index jobs and on what waits; how far the index is.

    `progress` only looks.
    """
    problem = None
    if command != "progress":
        upgrading = _attempt(
            lambda: upgrade_facts(
                services.facts.upgrading, Deadline(deadline.left * JOB_SHARE), _report_set_aside
            )
        )
        run = COMMANDS.get(command, index_jobs.run_jobs)
        share = Deadline(deadline.left * JOB_SHARE)
        problem = _attempt(lambda: run(services.searching.jobs, share))
        late = _attempt(lambda: index_jobs.catch_up(services.searching.jobs, deadline))
        problem = upgrading or problem or late
    found = index_progress(services.jobs, services.searching.backlog, None)
    job = None if found.job is None else index_job_json(found.job)
    answer: dict[str, Any] = {"waiting": found.waiting, "job": job, "problem": problem}
    logger.info("index jobs", extra=answer)
    return answer


def _report_set_aside(fact_id: str) -> None:
    logger.error("a fact cannot be brought into the present format", extra={"fact": fact_id})


def note_discards(services: IndexServices, messages_: Records) -> dict[str, Any]:
    """A stream's records were given up: a repair finds what they would have changed. The description is kept."""
    index_jobs.ask_for_repair(services.jobs, services.clock)
    for message in messages_:
        services.searching.dead_letters.send("stream", message["body"])
    logger.error("stream records were given up", extra={"batches": len(messages_)})
    return {"batchItemFailures": []}


def _attempt(step: Callable[[], object]) -> str | None:
    """Why a step could not be done, if so: the steps of a tick do not wait for each other."""
    try:
        step()
    except (*OUTAGES, EmbeddingsUnavailable) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - the other step of the tick is to be done all the same
        logger.error("index work failed", extra={"error": kind_of(error)})
        return "Something failed on our side; see the function's log."
    return None


def _follow_facts(services: IndexServices, records: list[FactRecord], deadline: Deadline) -> list[str]:
    """The positions of the records that are to be sent again."""
    failed = {record.position for record in records if not _removed(services, record.ended, deadline)}
    failed |= {record.position for record in records if not _kept(services, record)}
    failed |= _bury_unreadable(services, records)
    if services.settings.searches:
        failed |= _index_facts(services, records, deadline)
    return [record.position for record in records if record.position in failed]


def _removed(services: IndexServices, last: Head | None, deadline: Deadline) -> bool:
    """Whether nothing is left of a life that ended with this head."""
    if last is None:
        return True
    if deadline.passed:
        return False
    try:
        services.facts.remains.remove(last.fact)
    except Exception as error:  # noqa: BLE001 - whatever one tenant's store says, the other facts are removed
        logger.warning("a removed fact's remains are still there", extra={"error": kind_of(error)})
        return False
    return True


def _kept(services: IndexServices, record: FactRecord) -> bool:
    """Whether the payload that a head came to name is kept for good, also when its writer did not live to claim it."""
    if record.named is None:
        return True
    try:
        services.facts.claim(record.named)
    except Exception as error:  # noqa: BLE001 - whatever one payload's store says, the other records go on
        logger.warning("a payload is still pending", extra={"error": kind_of(error)})
        return False
    return True


def _index_facts(services: IndexServices, records: list[FactRecord], deadline: Deadline) -> set[str]:
    readable = [record for record in records if record.head is not None]
    try:
        ports = services.searching.jobs.indexing
        heads = [record.head for record in readable if record.head is not None and not record.gone]
        outcome = indexing.index_heads(ports, heads, deadline)
        for record in readable:
            if record.gone and record.head is not None:
                version = index_version(record.head.fact, record.head.edition)
                outcome.add(indexing.forget(ports, *indexing.name_of(record.head), version))
        _report(services, outcome)
    except OUTAGES as error:
        logger.warning("facts not indexed", extra={"error": kind_of(error)})
        return {record.position for record in readable}
    return {
        record.position
        for record in readable
        if record.head is not None and indexing.name_of(record.head) in outcome.again
    }


def _follow_log(services: IndexServices, records: list[EntryRecord], deadline: Deadline) -> list[str]:
    failed = _bury_unreadable(services, records)
    if services.settings.searches:
        failed |= _index_entries(services, records, deadline)
    return [record.position for record in records if record.position in failed]


def _index_entries(services: IndexServices, records: list[EntryRecord], deadline: Deadline) -> set[str]:
    said = {
        record.position: record.entry
        for record in records
        if record.entry is not None and messages.is_message(record.entry)
    }
    try:
        outcome = messages.index_messages(services.searching.jobs.conversations, said.values(), deadline)
        _report(services, outcome)
    except OUTAGES as error:
        logger.warning("messages not indexed", extra={"error": kind_of(error)})
        return set(said)
    return {position for position, entry in said.items() if messages.name_of(entry) in outcome.again}


def _bury_unreadable(services: IndexServices, records: Sequence[FactRecord | EntryRecord]) -> set[str]:
    """Keep the keys of records that cannot be read; the positions of those whose keys could not be kept."""
    failed = set()
    for record in records:
        if record.problem is not None:
            try:
                services.searching.dead_letters.send(record.key, record.problem)
            except OUTAGES:
                failed.add(record.position)
    return failed


def _report(services: IndexServices, outcome: indexing.Outcome) -> None:
    """Say what could not be read, and have what the index refused looked at once more. Raises what the store raises."""
    if outcome.unread:
        logger.warning("records wait to be read", extra={"errors": sorted(set(outcome.unread.values()))})
    if outcome.refused:
        logger.error("the index refused records", extra={"records": len(outcome.refused)})
        index_jobs.ask_for_repair(services.jobs, services.clock)
