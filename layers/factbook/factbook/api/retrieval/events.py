"""What the index function hears: records of the tables' streams, what was given up of them, commands, and the tick.

What is left of a removed fact goes first and by itself, and what a fact came to name is kept: no search index, or one
that is down, holds that back.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from factbook.api.deadlines import deadline_of
from factbook.api.retrieval.services import IndexServices
from factbook.api.retrieval.views import index_job_json
from factbook.api.telemetry import kind_of, logger, observe
from factbook.domain.errors import SearchUnavailable, StorageUnavailable, Throttled
from factbook.ports.deadline import Deadline
from factbook.ports.facts.walks import FactRecord
from factbook.ports.jobs import Job
from factbook.ports.log.walks import EntryRecord
from factbook.ports.retrieval.embeddings import EmbeddingsUnavailable
from factbook.ports.retrieval.upkeep import Backlog, Troubled
from factbook.usecases.facts.orphans import ORPHANS, sweep_orphans
from factbook.usecases.facts.upgrading import upgrade_facts
from factbook.usecases.retrieval import index_jobs, indexing, messages
from factbook.usecases.retrieval.index_jobs import IndexJobPorts
from factbook.usecases.retrieval.index_state import index_progress
from factbook.usecases.retrieval.leftovers import (
    LeftoverPorts,
    claim_of,
    remains_of,
    work_off,
)
from factbook.usecases.retrieval.turns import HUNG_SECONDS

RESERVE_SECONDS = 20.0
JOB_SHARE = 0.7
"""Of the time of a tick; the rest is for what waits in the backlog."""
LEFTOVERS_SHARE = ORPHANS_SHARE = 0.3
NOTE_SECONDS = 10.0
"""Of the reserve, for noting what the index could not take."""
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
        with observe("index", event, context) as seen:
            services, deadline = self.services(), deadline_of(context, RESERVE_SECONDS)
            if "Records" not in event:
                done = work(services, str(event.get("factbook", "")), deadline)
                seen.count(IndexWaiting=done["waiting"], IndexProblems=int(done["problem"] is not None))
                return done
            records = event["Records"]
            if records[0].get("eventSource") == "aws:sqs":
                seen.count(BatchesGivenUp=len(records))
                return note_discards(services, records)
            of_log = f":table/{services.settings.log_table}/" in records[0].get("eventSourceARN", "")
            if of_log:
                failed = _follow_log(services, list(self._entry_records(records)), deadline)
            else:
                failed = _follow_facts(services, list(self._fact_records(records)), deadline)
            seen.count(Records=len(records), RecordsAgain=len(failed))
            logger.info("indexed", extra={"records": len(records), "again": len(failed), "log": of_log})
            return {"batchItemFailures": [{"itemIdentifier": position} for position in failed]}


def work(services: IndexServices, command: str, deadline: Deadline) -> dict[str, Any]:
    """Spend some time on leftovers, orphans, facts of the former format, index jobs and what waits; how far the index is.

    `progress` only looks.
    """
    problem = None
    if command != "progress":
        left_over = Deadline(deadline.left * LEFTOVERS_SHARE)
        undone = _attempt(lambda: work_off(_leftovers(services), left_over))
        lost = _attempt(lambda: _sweep(services, deadline.share(ORPHANS_SHARE)))
        upgrading = _attempt(
            lambda: upgrade_facts(
                services.facts.upgrading, Deadline(deadline.left * JOB_SHARE), _report_set_aside
            )
        )
        problem = undone or lost or upgrading
        if (
            services.settings.searches or command in COMMANDS
        ):  # that there is to be no index is no problem of a tick
            run = COMMANDS.get(command, index_jobs.run_jobs)
            share = Deadline(deadline.left * JOB_SHARE)
            built = _attempt(lambda: run(services.searching.jobs, share))
            late = _attempt(lambda: index_jobs.catch_up(services.searching.jobs, deadline))
            problem = problem or built or late
    found = index_progress(services.jobs, services.searching.backlog, None)
    job = None if found.job is None else {**index_job_json(found.job), **found.job.counters}
    problem = problem or next(iter(services.settings.problems), None)
    answer: dict[str, Any] = {"waiting": found.waiting, "job": job, "problem": problem}
    logger.info("index jobs", extra=answer)
    return answer


def _report_set_aside(fact_id: str) -> None:
    logger.error("a fact cannot be brought into the present format", extra={"fact": fact_id})


def _sweep(services: IndexServices, deadline: Deadline) -> None:
    before = services.jobs.job(ORPHANS)
    after = sweep_orphans(services.facts.orphans, deadline)
    if after is not None and after != before:
        logger.info("orphans", extra={"phase": after.phase, **after.counters})


def note_discards(services: IndexServices, messages_: Records) -> dict[str, Any]:
    """A stream's records were given up: a repair finds what they would have changed in the index, and a walk of orphans
    what they would have removed. The description is kept.
    """
    index_jobs.ask_for_repair(services.jobs, services.clock)
    services.jobs.ask(ORPHANS, services.clock.now())
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
    removals: list[_Duty] = [
        (record.position, remains_of(last.fact), partial(services.facts.remains.remove, last.fact, deadline))
        for record in records
        if (last := record.ended) is not None
    ]
    claims: list[_Duty] = [
        (record.position, claim_of(head.fact, record.named), partial(services.facts.claim, record.named))
        for record in records
        if record.named is not None and (head := record.head) is not None
    ]
    failed = _done_or_noted(services, [*removals, *claims], deadline)
    failed |= _bury_unreadable(services, records, deadline)
    if services.settings.searches:
        failed |= _index_facts(services, records, deadline)
    return [record.position for record in records if record.position in failed]


_Duty = tuple[str, Troubled, Callable[[], object]]
"""A record's position, the note that something is still to be done for it, and that step."""


def _leftovers(services: IndexServices) -> LeftoverPorts:
    searching, facts = services.searching, services.facts
    return LeftoverPorts(searching.leftovers, searching.dead_letters, facts.remains, facts.claim)


def _done_or_noted(services: IndexServices, wanted: Iterable[_Duty], deadline: Deadline) -> set[str]:
    """Do each step, or note it where its store fails; the positions of those for which neither was possible."""
    failed, hung = set(), False
    for position, note, step in wanted:
        if deadline.passed:
            failed.add(position)
            continue
        before = deadline.left
        try:
            if not hung:
                step()
                continue
        except Exception as error:  # noqa: BLE001 - whatever one tenant's store says, the other facts' turn comes
            logger.warning("a step waits", extra={"step": note.trouble, "error": kind_of(error)})
            hung = before - deadline.left > HUNG_SECONDS
        if not _noted(services.searching.leftovers, note):
            failed.add(position)
    return failed


def _noted(backlog: Backlog, note: Troubled) -> bool:
    try:
        backlog.note(note)
    except Exception as error:  # noqa: BLE001 - then the record itself is to be sent again
        logger.warning("nothing can be noted", extra={"error": kind_of(error)})
        return False
    return True


def _index_facts(services: IndexServices, records: list[FactRecord], deadline: Deadline) -> set[str]:
    readable = [
        (record, record.head) for record in records if record.head is not None and not record.same_to_search
    ]
    notes = [(record.position, indexing.note_of(head, "index")) for record, head in readable]

    def index() -> indexing.Outcome:
        ports = services.searching.jobs.indexing
        outcome = indexing.index_heads(
            ports, [head for record, head in readable if not record.gone], deadline
        )
        for (record, _), (_, note) in zip(readable, notes, strict=True):
            if record.gone and deadline.passed:
                outcome.put_off([(note.tenant, note.id)])
            elif record.gone:
                outcome.add(indexing.forget(ports, note.tenant, note.id, note.version))
        return outcome

    return _indexed_or_noted(services, notes, index)


def _indexed_or_noted(
    services: IndexServices, notes: Sequence[tuple[str, Troubled]], index: Callable[[], indexing.Outcome]
) -> set[str]:
    """Index records, and note those that the index cannot take now: the stream behind them does not wait for it.

    The positions of those that there was no time for, or that could not be noted either.
    """
    try:
        outcome = index()
        _report(services, outcome)
    except OUTAGES as error:
        logger.warning("records not indexed", extra={"error": kind_of(error)})
        outcome = indexing.Outcome(again={(note.tenant, note.id) for _, note in notes})
    latest: dict[indexing.Name, Troubled] = {}
    for _, note in sorted(notes, key=lambda each: each[1].version):
        latest[note.tenant, note.id] = note
    failed, deadline = set(outcome.late), Deadline(NOTE_SECONDS)
    is_up = True
    for name in outcome.again - outcome.late:
        is_up = is_up and not deadline.passed and _noted(services.searching.backlog, latest[name])
        if not is_up:
            failed.add(name)
    return {position for position, note in notes if (note.tenant, note.id) in failed}


def _follow_log(services: IndexServices, records: list[EntryRecord], deadline: Deadline) -> list[str]:
    failed = _bury_unreadable(services, records, deadline)
    if services.settings.searches:
        failed |= _index_entries(services, records, deadline)
    return [record.position for record in records if record.position in failed]


def _index_entries(services: IndexServices, records: list[EntryRecord], deadline: Deadline) -> set[str]:
    said = {
        record.position: record.entry
        for record in records
        if record.entry is not None and messages.is_message(record.entry)
    }
    notes = [(position, messages.note_of(entry, "index")) for position, entry in said.items()]

    def index() -> indexing.Outcome:
        return messages.index_messages(services.searching.jobs.conversations, said.values(), deadline)

    return _indexed_or_noted(services, notes, index)


def _bury_unreadable(
    services: IndexServices, records: Sequence[FactRecord | EntryRecord], deadline: Deadline
) -> set[str]:
    """Keep the keys of records that cannot be read; the positions of those whose keys could not be kept."""
    failed, is_up = set(), True
    for record in records:
        if record.problem is not None:
            is_up = is_up and not deadline.passed and _buried(services, record.key, record.problem)
            if not is_up:
                failed.add(record.position)
    return failed


def _buried(services: IndexServices, key: str, problem: str) -> bool:
    try:
        services.searching.dead_letters.send(key, problem)
    except OUTAGES:
        return False
    return True


def _report(services: IndexServices, outcome: indexing.Outcome) -> None:
    """Say what could not be read, and have what the index refused looked at once more. Raises what the store raises."""
    if outcome.unread:
        logger.warning("records wait to be read", extra={"errors": sorted(set(outcome.unread.values()))})
    if outcome.refused:
        logger.error("the index refused records", extra={"records": len(outcome.refused)})
        index_jobs.ask_for_repair(services.jobs, services.clock)
