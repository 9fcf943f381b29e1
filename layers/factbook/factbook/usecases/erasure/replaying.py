"""Replay a ledger after a restore: find again whom it is about, and erase again what a restore brought back.

A ledger has no names, only keyed hashes. So a walk over all of the tenant's facts and sealing keys makes the hashes of
whom each of them names, and looks them up. What it finds is erased as any erasure is, from then on by its selector, but
takes only what began before every process knew of the erasure: nobody's later words go because of an earlier request.

A ledger is kept before the walk begins, and the walk is a job: whatever ends a request, the worker goes on behind it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from factbook.domain.access.erasing import Selector, selectors_of, selectors_of_scope
from factbook.domain.erasure.ledger import KeyedHash, Lookup
from factbook.domain.errors import IdempotencyMismatch, Throttled
from factbook.domain.log.sealing import KeyName
from factbook.domain.strict_json import dump_json, parse_json
from factbook.ports.clock import Clock
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.erasure.records import Erasure, ErasureStore
from factbook.ports.erasure.replays import LedgerEntry, Replay, ReplayStore
from factbook.ports.facts.store import Head
from factbook.ports.facts.walks import FactWalk
from factbook.ports.jobs import DONE, Job, JobStore
from factbook.ports.log.sealing import KeyStore, SealedKey
from factbook.usecases import jobs
from factbook.usecases.erasure.ledger import Ledger
from factbook.usecases.erasure.outcomes import (
    LOOKING,
    Outcome,
    Reason,
    ended,
    goes_again,
    key_ids,
    mark_of,
    outcome_of,
    record_of,
    refusal_of,
    tells_of,
    under_way,
)
from factbook.usecases.erasure.ports import known_from

JOB, KIND = "replay", "replay-1"
PAGE = 100
RECORDS_AT_ONCE = 50
MOST_KNOWN = 50_000
"""Selectors whose look-up a walk remembers: those of a person or a project come again and again."""

LONG_AGO = ""
"""When a sealing key began that does not say: before any instant."""

REPLAYS_AT_ONCE = 5
"""Ledgers that one walk looks up in; the others wait for the next one."""


@dataclass(frozen=True)
class ReplayPorts:
    replays: ReplayStore
    erasures: ErasureStore
    ledger: Ledger
    walk: FactWalk
    keys: KeyStore
    jobs: JobStore
    clock: Clock
    again: Callable[[Erasure], None]
    """Puts an erasure in force again and to work, as one that was asked for; safe to repeat. Raises Throttled while very many
    of the tenant are in force.
    """
    wake: Callable[[str], None]
    """Has the worker go on with a tenant's replays in a while, whatever becomes of this process."""
    settle: Callable[[], None]
    """Waits until every process knows what is in force."""


def replay_ledger(ports: ReplayPorts, replay: Replay, deadline: Deadline = NEVER) -> Outcome:
    """Keep the ledger and look for what it is about until the deadline; what is known by then.

    The same replay may be asked for again, to hear what became of it. Raises IdempotencyMismatch for another ledger under
    its id, Throttled, StorageUnavailable.
    """
    kept = ports.replays.replay(replay.tenant, replay.id)
    if kept is None:
        ports.replays.keep(replay)
        ports.wake(replay.tenant)
        kept = replay
    elif kept.entries != replay.entries:
        raise IdempotencyMismatch
    # What became of ten thousand entries takes its time to read, too; the worker goes on with what is left.
    work_on_replays(ports, replay.tenant, deadline.share(0.5), until=replay.id)
    outcome = outcome_of(ports.erasures, ports.ledger, ports.replays.replay(kept.tenant, kept.id) or kept)
    if outcome.replayed:
        ports.settle()
    return outcome


def work_on_replays(
    ports: ReplayPorts, tenant: str, deadline: Deadline = NEVER, until: str | None = None
) -> bool:
    """Go on with a tenant's replays, until the deadline or until that one has ended; whether any still wait."""
    engine = jobs.JobPorts(ports.jobs, ports.clock)
    while True:
        waiting = ports.replays.waiting(tenant)
        if not waiting or (until is not None and until not in waiting) or deadline.passed:
            return bool(waiting)
        job = ports.jobs.job(JOB, tenant)
        if job is None or job.kind != KIND or job.phase == DONE:
            about = {"replays": ",".join(waiting[:REPLAYS_AT_ONCE])}
            job = jobs.start(engine, Job(JOB, KIND, "records", "", "", tenant, about=about))
        try:
            if job is None or jobs.work(engine, job, _phases(_Finding(ports, job)), deadline).phase != DONE:
                return True  # time is over, or another runner is at it
        except Throttled:
            return True


class _Finding:
    """The ledgers of one walk, and what of them is still looked for."""

    def __init__(self, ports: ReplayPorts, job: Job) -> None:
        self.ports = ports
        self.tenant = job.tenant or ""
        ids = job.about["replays"].split(",")
        found = (ports.replays.replay(self.tenant, each) for each in ids)
        self.replays = [replay for replay in found if replay is not None]
        self.entries = [(replay, entry) for replay in self.replays for entry in replay.entries]
        self.keys = ports.ledger.keys(key_ids([entry for _, entry in self.entries]))
        self._lookup = Lookup(
            (KeyedHash(entry.key_id or "", entry.selector_hmac or ""), (replay, entry))
            for replay, entry in self.entries
            if refusal_of(entry, self.keys) is None
        )
        self._known: dict[Selector, list[tuple[Replay, LedgerEntry]]] = {}
        self._done: set[tuple[str, str]] = set()

    def meet(self, selectors: frozenset[Selector], began: str) -> int:
        """Run again every erasure that one of these selectors is of, and that not every process knew of at `began`; how many."""
        count = 0
        for selector in selectors:
            for replay, entry in self._matches(selector):
                if (
                    began < min(known_from(entry.created_at), replay.asked_at)
                    and (replay.id, entry.id) not in self._done
                ):
                    count += self._again(replay, entry, selector)
                    self._done.add((replay.id, entry.id))
        return count

    def _matches(self, selector: Selector) -> list[tuple[Replay, LedgerEntry]]:
        found = self._known.get(selector)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = [
                (replay, entry)
                for replay, entry in self._lookup.find(self.keys, self.tenant, selector)
                if entry.selector_kind == selector.kind
            ]
            self._known[selector] = found
        return found

    def _again(self, replay: Replay, entry: LedgerEntry, selector: Selector) -> int:
        record = self.ports.erasures.several(self.tenant, [entry.id]).get(entry.id)
        if record is not None and (goes_again(record, replay) or not tells_of(entry, record)):
            return 0
        if record is not None and under_way(record):
            # Its walk may be behind what the restore brought back. It has been in force all the time, so nothing is of later.
            again = replace(record, resumed_by=mark_of(replay))
        else:
            before = record or record_of(self.tenant, replay, entry, None)
            again = replace(
                before,
                selector=selector,
                attempts=0,
                replayed_at=self.ports.clock.now(),
                replayed_by=replay.asked_by,
                warnings=tuple(each for each in before.warnings if each != LOOKING),
            )
        begins: dict[str, Any] = {"status": "pending", "phase": "seed", "counts": {}, "last_error": None}
        self.ports.again(replace(again, started_at=None, completed_at=None, **begins))
        return 1


def _phases(finding: _Finding) -> Mapping[str, jobs.Phase]:
    return {
        "records": partial(_put_back, finding),
        "facts": partial(_facts, finding),
        "keys": partial(_keys, finding),
        "end": partial(_end, finding),
    }


def _put_back(finding: _Finding, job: Job, _: Deadline) -> Iterator[Job]:
    """Records that the restore lost."""
    entries, job = _portion(finding, job, "facts")
    finding.ports.erasures.put_back(
        [
            record_of(finding.tenant, replay, entry, refusal_of(entry, finding.keys))
            for replay, entry in entries
        ]
    )
    yield job


def _facts(finding: _Finding, job: Job, _: Deadline) -> Iterator[Job]:
    page = finding.ports.walk.heads(finding.tenant, job.cursor, PAGE)
    found = sum(map(partial(_meet_fact, finding), page.records))
    job = job.at(page.next, facts=len(page.stops), found=found, unreadable=page.unreadable)
    yield job if page.next else job.turned("keys")


def _meet_fact(finding: _Finding, head: Head) -> int:
    fact = head.fact
    if fact.invalidation_reason == "erased":
        return 0  # its tombstone: nothing is left to erase
    return finding.meet(selectors_of(fact.id, fact.scope, fact.owner, fact.about), fact.created_at)


def _keys(finding: _Finding, job: Job, _: Deadline) -> Iterator[Job]:
    """Sealing keys name the persons and conversations of every run whose payloads can still be opened."""
    after = None if job.cursor is None else _key(finding.tenant, job.cursor)
    keys = list(islice(finding.ports.keys.walk(finding.tenant, after), PAGE))
    alive = [key for key in keys if key.destroyed_at is None]
    found = sum(finding.meet(selectors_of_scope(key.scope), key.begun_at or LONG_AGO) for key in alive)
    job = job.at(_cursor(keys[-1]) if keys else None, keys=len(keys), found=found)
    yield job if len(keys) == PAGE else job.turned("end")


def _end(finding: _Finding, job: Job, _: Deadline) -> Iterator[Job]:
    """What nothing matched is as done as it was; then the ledgers wait no more."""
    unreadable = job.counters.get("unreadable", 0)
    reason: Reason = "unreadable" if unreadable else "nothing-matched"
    entries, job = _portion(finding, job, DONE)
    for _replay, entry in entries:
        record = finding.ports.erasures.erasure(finding.tenant, entry.id)
        if record is not None and record.selector is None and LOOKING in record.warnings:
            finding.ports.erasures.replace(ended(record, entry, reason, finding.ports.clock.now()))
    if job.phase == DONE:
        for replay in finding.replays:
            finding.ports.replays.end(replace(replay, unreadable=unreadable))
    yield job


def _portion(finding: _Finding, job: Job, following: str) -> tuple[list[tuple[Replay, LedgerEntry]], Job]:
    """The next entries of the ledgers, and the job behind them, in the `following` phase when they were the last."""
    start = int(job.cursor or 0)
    entries = finding.entries[start : start + RECORDS_AT_ONCE]
    job = job.at(str(start + len(entries)))
    return entries, job if start + len(entries) < len(finding.entries) else job.turned(following)


def _cursor(key: SealedKey) -> str:
    return dump_json([*astuple(key.name), key.generation])


def _key(tenant: str, cursor: str) -> SealedKey:
    *names, generation = parse_json(cursor)
    return SealedKey(tenant, KeyName(*names), generation, None)
