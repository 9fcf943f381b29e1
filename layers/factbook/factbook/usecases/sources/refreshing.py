"""Refresh one fact: ask its source, and write what the answer makes of it.

One process at a time refreshes a fact (a lease). What is written goes through the one change engine, on the condition
that the fact is still what its source was asked about: a fact that was changed meanwhile is asked about once more, one
that was deleted, erased or expired is left alone.
"""

import secrets
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Literal

from factbook.domain import times
from factbook.domain.errors import (
    BadInput,
    ErasureInProgress,
    FactChanged,
    FactNotFound,
    RequestTooLarge,
    StorageUnavailable,
    Throttled,
)
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact, Source
from factbook.domain.facts.freshness import UNTRIED, Failure, RefreshState, due_at, is_mirrored, stale_reason
from factbook.domain.own_runs import REFRESH_RUNS
from factbook.domain.sources import answers
from factbook.domain.sources.answers import Validators
from factbook.domain.sources.handler_ids import handler_id
from factbook.domain.strict_json import parse_json
from factbook.ports.deadline import Deadline
from factbook.ports.facts.joint import OwnEntry
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.ports.sources import handlers as asking
from factbook.ports.sources.handlers import Answer, Asked, Fetched, Unchanged
from factbook.ports.sources.large import in_turn
from factbook.ports.sources.stores import DeadLetter, Why
from factbook.usecases.facts.engine import Advance, Decision, FactChange, Recheck, with_room
from factbook.usecases.facts.payloads import Content, content_hash
from factbook.usecases.sources.hosts import (
    AskFailed,
    CircuitOpen,
    Host,
    NoPlace,
    a_place,
    asked_in_turn,
    unless_it_runs_out,
)
from factbook.usecases.sources.ports import RefreshPorts

LEASE_SECONDS = 30.0
"""Longer than an ask over HTTP. Where a refresh takes longer still, another may ask as well: one of them writes."""
ASK_SECONDS = 10.0
ASKED_ABOUT = 2
"""How often a source is asked in one refresh, when the fact is changed while it answers."""
PUT_OFF_SECONDS = 60.0

Outcome = Literal[
    "unchanged", "changed", "held", "asked", "failed", "put-off", "gone", "not-wanted", "busy", "no-place"
]
How = Why | Literal["hand"]
"""Why a fact is refreshed; by hand it is tried whatever is known of its source and its host."""


@dataclass(frozen=True)
class Refreshed:
    """What became of a refresh. `fact`: as it is now; `why`: of a failure; `detail`: in the handler's words, and no content.

    `answered`: what was refused is the answer, not the address.
    """

    outcome: Outcome
    fact: Fact | None = None
    why: Failure | None = None
    detail: str = ""
    retry_at: str | None = None
    answered: bool = False


def lease_of(tenant: str, fact_id: str) -> tuple[str, ...]:
    return ("lease", tenant, fact_id)


def refresh_fact(
    ports: RefreshPorts, tenant: str, fact_id: str, how: How, deadline: Deadline, lease: str | None = None
) -> Refreshed:
    """`lease`: who has the fact's lease already. Raises Throttled, StorageUnavailable when nothing is known of the write."""
    owner = lease or secrets.token_hex(8)
    if lease is None and not ports.leases.take(lease_of(tenant, fact_id), owner, LEASE_SECONDS):
        return Refreshed("busy")
    try:
        return _Refresh(ports, tenant, fact_id, how, deadline).run()
    finally:
        with unless_it_runs_out(ports, fact_id):
            ports.leases.give_back(lease_of(tenant, fact_id), owner)


class _Refresh:
    """One refresh under way."""

    def __init__(self, ports: RefreshPorts, tenant: str, fact_id: str, how: How, deadline: Deadline) -> None:
        self._ports = ports
        self._tenant = tenant
        self._fact_id = fact_id
        self._how = how
        self._deadline = deadline
        self._outcome: Outcome = "unchanged"

    def run(self) -> Refreshed:
        for _ in range(ASKED_ABOUT):
            head = self._read()
            if head is None or head.fact.source is None:
                return Refreshed("gone")
            if not self._is_wanted(head):
                return Refreshed("not-wanted", head.fact)
            with suppress(FactChanged):
                try:
                    return self._asked(head, head.fact.source)
                except (FactNotFound, ErasureInProgress):
                    return Refreshed("gone")
        raise Throttled

    def _read(self) -> Head | None:
        """The head as it is now; None for one that is not to be refreshed, or not any more."""
        facts = self._ports.facts
        head = facts.facts.head(self._tenant, self._fact_id)
        head = None if head is None else head.settled(facts.clock.now())
        return head if head is not None and self._is_there(head) else None

    def _is_there(self, head: Head) -> bool:
        own, look = answers.refresher(self._tenant), self._ports.facts.look(self._tenant, "by-id")
        return gate.can_see(own, head.fact, look) and is_mirrored(head.fact)

    def _is_wanted(self, head: Head) -> bool:
        """Whether the reason still holds: another may have refreshed the fact since, or found its source down."""
        state, now = head.refresh or UNTRIED, self._ports.facts.clock.now()
        if self._how == "due":
            due = due_at(head.fact, state)
            return due is not None and due <= now
        if self._how == "read":
            stale = stale_reason(head.fact, state, now) is not None
            return stale and is_asked_by_reads(head, now)
        return True

    def _asked(self, head: Head, source: Source) -> Refreshed:
        try:
            answer = self._answer(head, source)
        except CircuitOpen as closed_until:
            return self._put_off(head, closed_until.until)
        except NoPlace:
            return Refreshed("no-place", head.fact)
        except AskFailed as failed:
            return self._note_failure(head, failed)
        try:
            with in_turn(len(answer.content_text) if isinstance(answer, Fetched) else 0, self._deadline):
                fact = self._write(head, answer)
        except (BadInput, RequestTooLarge) as refused:
            return self._note_failure(head, AskFailed("source-refused", refused.code, answered=True))
        if self._outcome in ("unchanged", "changed"):  # seen just now, however short its time to live
            fact = fact.model_copy(update={"stale": None, "stale_reason": None})
        return Refreshed(self._outcome, fact)

    def _answer(self, head: Head, source: Source) -> Answer:
        """Raises CircuitOpen, NoPlace, AskFailed."""
        ports = self._ports
        try:
            handler, name = ports.handlers.handler(source), ports.handlers.host(source)
        except asking.HandlerMissing as missing:
            raise AskFailed("refresh-handler-missing", str(missing)) from missing
        host = None if name is None else Host(self._tenant, name)
        ask = asking.Ask(self._tenant, self._fact_id, source, head.fact.content_hash, self._place_at)
        if host is None:
            return self._one_ask(handler, ask)
        mended = self._how in ("hand", "resend")
        return asked_in_turn(ports, host, lambda: self._one_ask(handler, ask), mended=mended)

    def _place_at(self, name: str) -> AbstractContextManager[None]:
        """For a host that the source leads to: it is asked no more than if facts named it."""
        return a_place(self._ports, Host(self._tenant, name))

    def _one_ask(self, handler: asking.Handler, ask: asking.Ask) -> Answer:
        self._deadline.require()
        try:
            return handler.ask(ask, Deadline(min(ASK_SECONDS, self._deadline.left)))
        except asking.SourceUnavailable as unavailable:
            raise AskFailed(
                "source-unavailable", unavailable.reason, unavailable.retry_after
            ) from unavailable
        except asking.SourceRefused as refused:
            answered = isinstance(refused, asking.AnswerRefused)
            raise AskFailed("source-refused", refused.reason, answered=answered) from refused
        except asking.HandlerMissing as missing:
            raise AskFailed("refresh-handler-missing", str(missing)) from missing
        except (NoPlace, StorageUnavailable, Throttled):  # its turn did not come: the source is well
            raise
        except Exception as error:
            self._ports.unforeseen(self._fact_id, error)
            raise AskFailed("source-unavailable", type(error).__name__) from error

    def _write(self, head: Head, answer: Answer) -> Fact:
        """The fact after the answer. Raises FactChanged, FactNotFound, BadInput, RequestTooLarge."""
        judged = answers.is_judged(head.fact, head.refresh)
        change = self._change(judged=judged)

        def decide(there: Head | None, now: str) -> Decision:
            found = self._same(head, there)
            match answer:
                case Asked():
                    self._outcome = "asked"
                    return Recheck(found, found.fact, answers.asked(found.fact, found.refresh, now))
                case Unchanged():
                    return self._agreed(found, _validators(answer), now)
                case Fetched():
                    return self._fetched(found, answer, change, now)

        return change.run(decide)

    def _agreed(self, head: Head, told: Validators, now: str) -> Decision:
        self._outcome = "unchanged"
        return Recheck(head, *answers.agreed(head.fact, head.refresh, told, now))

    def _fetched(self, head: Head, answer: Fetched, change: FactChange, now: str) -> Decision:
        facts, told = self._ports.facts, _validators(answer)
        content = Content(parse_json(answer.content_text))
        content.check()
        if content_hash(facts, self._tenant, self._fact_id, content) == head.fact.content_hash:
            return self._agreed(head, told, now)
        if head.fact.held:
            self._outcome = "held"
            return Recheck(head, head.fact, answers.held_back(head.fact, head.refresh, told, now))
        keep = facts.keep(head.fact)
        payload = change.payload(content)
        closed, fact, known = answers.replaced(head.fact, head.refresh, payload, told, now, keep)
        self._outcome = "changed"
        return with_room(Advance(head, closed, fact, self._entry(fact), known))

    def _entry(self, fact: Fact) -> OwnEntry:
        source = fact.source
        told = {
            "factId": fact.id,
            "version": fact.version,
            "contentHash": fact.content_hash,
            "handler": None if source is None else handler_id(source),
            "status": "changed",
        }
        by, run = answers.refresher(self._tenant).name, REFRESH_RUNS + fact.id
        return OwnEntry(run, fact.scope, "tool-result", told, by, is_cause=True)

    def _put_off(self, head: Head, until: str) -> Refreshed:
        """The host is left alone, so the fact is too: until then nobody asks for it in vain."""
        # Not all at the same instant: what was put off together would meet at the host again.
        at = times.add(until, seconds=PUT_OFF_SECONDS * self._ports.draw())
        state = replace(head.refresh or UNTRIED, retry_at=at, last_error="source-unavailable")
        return self._noted(head, state, Refreshed("put-off", retry_at=at, why="source-unavailable"))

    def _note_failure(self, head: Head, failed: AskFailed) -> Refreshed:
        now = self._ports.facts.clock.now()
        state = answers.failed(head.refresh, failed.why, now, self._ports.draw(), failed.wait)
        told = Refreshed("failed", None, failed.why, failed.detail, state.retry_at, failed.answered)
        noted = self._noted(head, state, told)
        again = self._how == "resend"  # its letter is gone, and whoever sent it again wants to know
        if noted.outcome == "failed" and self._how != "hand" and (again or answers.is_told_of(state)):
            self._tell(head.fact, state, failed)
        return noted

    def _noted(self, head: Head, state: RefreshState, told: Refreshed) -> Refreshed:
        """What is known of the source, kept with the head, in place. Raises FactChanged, FactNotFound."""

        def decide(there: Head | None, _: str) -> Decision:
            found = self._same(head, there)
            return Recheck(found, found.fact, state)

        return replace(told, fact=self._change().run(decide))

    def _tell(self, fact: Fact, state: RefreshState, failed: AskFailed) -> None:
        source = fact.source
        assert source is not None, "only facts with a source are refreshed"
        host = None
        with suppress(asking.HandlerMissing):
            host = self._ports.handlers.host(source)
        at = self._ports.facts.clock.now()
        letter = DeadLetter(
            self._tenant, fact.id, source.kind, host, failed.why, failed.detail, state.failures, at
        )
        try:
            self._ports.dead_letters.send(letter)
        except (StorageUnavailable, Throttled) as error:  # the fact says the same of itself
            self._ports.unforeseen(fact.id, error)

    def _change(self, *, judged: bool = False) -> FactChange:
        operation = Operation(secrets.token_hex(16), "", deadline=self._deadline)
        own = answers.refresher(self._tenant)
        return FactChange(self._ports.facts, own, operation, self._fact_id, judged=judged)

    def _same(self, asked_about: Head, there: Head | None) -> Head:
        """The head, which is still of the revision that the source was asked about. Raises FactNotFound, FactChanged."""
        if there is None or not self._is_there(there):
            raise FactNotFound(self._fact_id)
        if (there.life, there.fact.version) != (asked_about.life, asked_about.fact.version):
            raise FactChanged(self._fact_id, there.fact.version)
        return there


def is_asked_by_reads(head: Head, now: str) -> bool:
    """Whether a read may ask the source of a stale fact: it says so, nobody was asked, and it is not left alone for now."""
    state, source = head.refresh or UNTRIED, head.fact.source
    if source is None or source.refresh.strategy != "on-read" or not is_mirrored(head.fact):
        return False
    return state.asked_at is None and (state.retry_at is None or state.retry_at <= now)


def _validators(answer: Unchanged | Fetched) -> Validators:
    return Validators(answer.etag, answer.source_version, answer.max_age_seconds)
