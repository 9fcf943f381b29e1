"""Append to a run: build on the tail this process remembers, put if absent, walk forward when another was faster.

A put that finds another entry in its place looks for its own id there first: the reply of its first try was lost. With
an Idempotency-Key the ids derive from it, so any try of the same request is recognised, in this process or another.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from factbook.canonical import log_canonical
from factbook.domain.access.erasing import NOTHING_ERASED, Erasing
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.access.rules import can_read, require_write
from factbook.domain.errors import (
    BadInput,
    ErasureInProgress,
    IdempotencyMismatch,
    LogChanged,
    NotFound,
    PermissionDenied,
    ScopeInvalid,
    Throttled,
)
from factbook.domain.log.chain import derived_seed, random_seed
from factbook.domain.log.entries import (
    MAX_PAYLOAD_BYTES,
    Draft,
    Kind,
    LogEntry,
)
from factbook.domain.log.runs import Tail
from factbook.domain.own_runs import OWN_PREFIX, is_own_run
from factbook.domain.scope import Scope
from factbook.domain.strict_json import parse_json
from factbook.ports.contention import Contended
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.clock import LogClock
from factbook.ports.log.entries import LogStore, StoredEntry
from factbook.usecases import tally
from factbook.usecases.caches import RecentValues
from factbook.usecases.log.chaining import MAX_TRANSACTION_BYTES, Chaining
from factbook.usecases.log.entries import answer_of, log_id_of, open_entry, tail_of
from factbook.usecases.log.sealing import Vault

ATTEMPTS = 200
WALKED = 2
"""Puts tried without a pause: the first, and one behind the entry that the first one met."""

LOOKED_BACK = 200
"""Entries of a run among which a request with an Idempotency-Key is looked for: these, or the last MB of them."""

CACHED_TAILS = 4096
SHORTEST_TRY_SECONDS = 0.002
WIDEST_WAIT = 64
"""A wait is drawn from up to this many times what a try takes: a few tries of each writer of a busy run."""


@dataclass(frozen=True)
class Request:
    """An entry as its caller asks for it."""

    kind: Kind
    payload: Any = None
    actor: str | None = None
    cause: str | None = None
    scope: Scope | None = None


@dataclass
class LogWriter:
    """The log of a deployment as one process sees it; it remembers the tails of the runs it wrote last."""

    store: LogStore
    vault: Vault
    clock: LogClock
    pause: Callable[[float], None] = time.sleep
    elapsed: Callable[[], float] = time.monotonic
    tails: RecentValues[tuple[str, str], Tail] = field(default_factory=lambda: RecentValues(CACHED_TAILS))
    erasing: Callable[[str], Erasing] = lambda _: NOTHING_ERASED
    """A tenant's erasures that are in force: to a run of what they name nothing is appended."""

    def remember(self, tenant: str, run_id: str, tail: Tail) -> None:
        self.tails.put((tenant, run_id), tail)


def append_entries(
    log: LogWriter,
    principal: Principal,
    run_id: str,
    requests: Sequence[Request],
    after: int | None = None,
    operation: str | None = None,
    deadline: Deadline = NEVER,
) -> list[LogEntry]:
    """Chain all of the requests, or none, in order.

    `after`: the first must get the sequence after + 1; a retry answers the entries it finds there. `operation`
    identifies the request (Idempotency-Key). Raises BadInput, ScopeInvalid, NotFound, PermissionDenied, ErasureInProgress,
    LogChanged, IdempotencyMismatch, RequestTooLarge, Throttled. Past the deadline nothing more is begun: Throttled among others'
    entries, else StorageUnavailable.
    """
    if is_own_run(run_id):
        raise BadInput(f"Runs that begin with {OWN_PREFIX} are the service's own. Use another run id.")
    return append_as(log, principal, run_id, requests, after, operation, deadline)


def append_as(
    log: LogWriter,
    principal: Principal,
    run_id: str,
    requests: Sequence[Request],
    after: int | None = None,
    operation: str | None = None,
    deadline: Deadline = NEVER,
) -> list[LogEntry]:
    """As `append_entries`, in the service's own runs too; no caller names the run."""
    drafts = _drafts(principal, requests, operation)
    return _Append(log, principal, run_id, drafts, _one_scope(principal, requests), operation, deadline).run(
        after
    )


Put = Callable[[Sequence[StoredEntry]], StoredEntry | None]
"""Puts entries as `LogStore.put` does, maybe with something else that belongs to them."""


def append_own(
    log: LogWriter,
    tenant: str,
    run_id: str,
    request: Request,
    operation: str,
    put: Put,
    deadline: Deadline = NEVER,
) -> LogEntry:
    """Chain one entry of the service's own to a run by `put`, which is asked again at each place that is tried.

    `operation` names what the entry records: a put whose reply was lost is known again by it. Whatever `put` raises ends
    the append. Raises Throttled and StorageUnavailable as `append_entries`; ScopeInvalid for another scope than the run's.
    """
    service = Principal(tenant, Actor(kind="service", id="factbook"), admin=True)
    drafts = [replace(each, seed=derived_seed(operation, 0)) for each in _drafts(service, [request], None)]
    (entry,) = _Append(log, service, run_id, drafts, request.scope, None, deadline, put).run(None)
    return entry


class _Append:
    """One request under way."""

    def __init__(
        self,
        log: LogWriter,
        principal: Principal,
        run_id: str,
        drafts: list[Draft],
        asked: Scope | None,
        operation: str | None,
        deadline: Deadline,
        put: Put | None = None,
    ) -> None:
        self.log = log
        self.principal = principal
        self.tenant = principal.tenant
        self.run_id = run_id
        self.drafts = drafts
        self.asked = asked
        self.operation = operation
        self.deadline = deadline
        self.earlier: int | None = None
        self.one_try = SHORTEST_TRY_SECONDS
        self.store_put = put or log.store.put
        self.chaining = Chaining(log.store, log.vault, log.clock, self.tenant, run_id, drafts, deadline)

    def run(self, after: int | None) -> list[LogEntry]:
        looks_back = self.operation is not None and after is None
        tail = None if looks_back else self.log.tails.get((self.tenant, self.run_id))
        tail = tail or self._read_tail(looks_back=looks_back)
        scope = self._permitted_scope(tail)
        if after is not None:
            return self._append_at(scope, tail, after)
        return self._append_next(scope, tail, looks_back=looks_back)

    def _append_next(self, scope: Scope, tail: Tail | None, *, looks_back: bool) -> list[LogEntry]:
        """Behind the last entry, wherever that is by now."""
        for attempt in range(1, ATTEMPTS + 1):
            if self.earlier is not None:
                return self._same_entries(self.earlier - 1)
            entries = self.chaining.behind(tail, scope)
            there = None
            try:
                there = self._put(entries)
                if there is None:
                    return self._kept(entries)
                if (position := self._position(there)) is not None:
                    return self._same_entries(there.sequence - position - 1)
            except Contended:
                pass
            if self.deadline.passed:
                break
            if there is not None and attempt % WALKED:
                tail = tail_of(there)
            else:
                self._wait(attempt)
                tail = self._read_tail(looks_back=looks_back)
            scope = self._permitted_scope(
                tail
            )  # another may have opened the run meanwhile, with its own scope
        raise Throttled

    def _append_at(self, scope: Scope, tail: Tail | None, after: int) -> list[LogEntry]:
        """Exactly behind `after`; what is there already must be what these drafts say."""
        if tail is None or tail.sequence < after:
            tail = self._read_tail()
        if (tail.sequence if tail else -1) < after:
            raise self._changed(tail)
        if tail is not None and tail.sequence > after:
            return self._same_entries(after)
        entries = self.chaining.behind(tail, scope)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                there = self._put(entries)
            except Contended:
                if self.deadline.passed:
                    break
                self._wait(attempt)
                if self.log.store.entry(self.tenant, self.run_id, after + 1) is not None:
                    return self._same_entries(after)
                continue
            return self._kept(entries) if there is None else self._same_entries(after)
        raise Throttled

    def _put(self, entries: list[StoredEntry]) -> StoredEntry | None:
        self.deadline.require()
        began = self.log.elapsed()
        try:
            return self.store_put(entries)
        finally:
            self.one_try = max(self.log.elapsed() - began, SHORTEST_TRY_SECONDS)

    def _read_tail(self, *, looks_back: bool = False) -> Tail | None:
        """The run's last entry, strongly read; looking back also finds where an earlier try of this request began."""
        self.deadline.require()
        newest = self.log.store.newest(self.tenant, self.run_id, LOOKED_BACK if looks_back else 1)
        if not newest:
            return None
        if looks_back:
            met = (
                (each, self._position(each)) for each in newest
            )  # any of ours: the first may lie further back
            self.earlier = next((each.sequence - at for each, at in met if at is not None), None)
        tail = tail_of(newest[0])
        self.log.remember(self.tenant, self.run_id, tail)
        return tail

    def _permitted_scope(self, tail: Tail | None) -> Scope:
        if tail is None:
            scope = self.asked or Scope(tenant_id=self.tenant)
        elif not can_read(self.principal, tail.scope):
            raise NotFound("No such run, or not one you may read. Check the run id and your token.")
        elif self.asked is not None and self.asked != tail.scope:
            raise ScopeInvalid("The run has another scope: all entries of a run share its first entry's.")
        else:
            scope = tail.scope
        require_write(self.principal, scope)
        if self.log.erasing(self.tenant).of_scope(scope) is not None:
            raise ErasureInProgress
        return scope

    def _kept(self, entries: list[StoredEntry]) -> list[LogEntry]:
        self.log.remember(self.tenant, self.run_id, tail_of(entries[-1]))
        return [
            answer_of(entry, parse_json(draft.text))
            for entry, draft in zip(entries, self.drafts, strict=True)
        ]

    def _position(self, there: StoredEntry) -> int | None:
        """Which of this request's entries `there` is; None: another's."""
        seed = log_id_of(there).seed
        return next((at for at, draft in enumerate(self.drafts) if draft.seed == seed), None)

    def _same_entries(self, after: int) -> list[LogEntry]:
        """The entries behind `after`, when they say what the drafts say; raises what tells a caller that they do not."""
        self.deadline.require()
        count = len(self.drafts)
        found, _ = self.log.store.entries(
            self.tenant, self.run_id, after + 1, count, 2 * MAX_TRANSACTION_BYTES
        )
        if found:
            self._permitted_scope(tail_of(found[0]))
        answers = [open_entry(self.log.vault, entry) for entry in found]
        same = len(answers) == count and all(map(_says, self.drafts, answers))
        if same and self.operation is not None:
            same = self._ends_there(found[-1])
        if same:
            tally.count("Replays")
            return answers
        if self.operation is not None and found and log_id_of(found[0]).seed == self.drafts[0].seed:
            raise IdempotencyMismatch
        raise self._changed(self._read_tail())

    def _ends_there(self, last: StoredEntry) -> bool:
        """Whether the earlier request had no more entries than this one."""
        following = self.log.store.entry(self.tenant, self.run_id, last.sequence + 1)
        return following is None or log_id_of(following).seed != derived_seed(
            self.operation or "", len(self.drafts)
        )

    def _changed(self, tail: Tail | None) -> LogChanged:
        if tail is None:
            return LogChanged("The run has no entries yet. Send afterSequence -1.", currentSequence=-1)
        current = tail.sequence
        return LogChanged(
            f"The run's last entry is {current}. Read it, then append with afterSequence {current}.",
            currentSequence=current,
        )

    def _wait(self, attempt: int) -> None:
        """Let the others finish: the longer this request has met them, and the longer a try takes, the longer."""
        window = self.one_try * min(2 ** (attempt // WALKED), WIDEST_WAIT)
        pause = random.uniform(0, window)  # noqa: S311 - spreads writers, guards nothing
        self.log.pause(min(pause, self.deadline.left / 2))  # so that another try follows


def _drafts(principal: Principal, requests: Sequence[Request], operation: str | None) -> list[Draft]:
    drafts = []
    for position, request in enumerate(requests):
        try:
            text = log_canonical(request.payload)
        except BadInput as error:
            raise BadInput(
                f"Entry {position}: {error.message}", path=f"/entries/{position}/payload"
            ) from error
        if len(text.encode()) > MAX_PAYLOAD_BYTES:
            raise BadInput(
                f"The payload of entry {position} has more than 256 KB. Store it as a fact and log its id.",
                path=f"/entries/{position}/payload",
            )
        seed = random_seed() if operation is None else derived_seed(operation, position)
        actor = request.actor or principal.name
        drafts.append(Draft(request.kind, actor, request.payload, text, request.cause, seed))
    return drafts


def _one_scope(principal: Principal, requests: Sequence[Request]) -> Scope | None:
    """The scope the requests name; None when none does."""
    named = {request.scope for request in requests if request.scope is not None}
    if len(named) > 1:
        raise ScopeInvalid("The entries name different scopes: all entries of a run share one.")
    scope = named.pop() if named else None
    if scope is not None:
        scope.check()
        if scope.tenant_id != principal.tenant:
            raise PermissionDenied("The scope names another tenant. Leave tenantId out.")
    return scope


def _says(draft: Draft, entry: LogEntry) -> bool:
    """Whether an entry that is there says what a draft would. Nobody can tell of one whose payload is erased or sealed."""
    unread = entry.payload_erased_at is not None or entry.payload_sealed is not None
    return not unread and (draft.kind, draft.actor, draft.cause, draft.text) == (
        entry.kind,
        entry.actor,
        entry.caused_by_log_id,
        log_canonical(entry.payload),
    )
