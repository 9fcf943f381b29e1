"""The one way a write of a fact lands.

It reads the head and looks for its own mark there: a lost reply, a retry or a parallel twin is answered as the first
time. Else its rule decides what to commit, and the store commits that if the head is still the one that was decided on.
If it is not, the write pauses and begins again. What was stored for a write that came to nothing is removed.

A rule checks in the order that the API promises: not found and permission (`require_open`), hold and version
(`domain.facts.transitions.require_changeable`).
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_write
from factbook.domain.backoff import full_jitter
from factbook.domain.errors import (
    BadInput,
    Conflict,
    FactNotFound,
    IdempotencyMismatch,
    NotFound,
    PermissionDenied,
    RequestTooLarge,
    Throttled,
)
from factbook.domain.facts import gate
from factbook.domain.facts.fact import MAX_STORED_BYTES, Fact, Payload
from factbook.domain.facts.ids import short_digest
from factbook.domain.facts.reach import proposed
from factbook.domain.facts.transitions import reopened
from factbook.ports.contention import Contended
from factbook.ports.facts.store import Head, Mark
from factbook.ports.operations import Operation
from factbook.usecases.facts.payloads import Content, store_payload
from factbook.usecases.facts.ports import FactPorts

ATTEMPTS = 8
PAUSE_SECONDS = 0.01
_REFUSALS = (BadInput, Conflict, NotFound, PermissionDenied, RequestTooLarge)


@dataclass(frozen=True)
class Create:
    """The first revision of a fact that is not there, or of a new life in the place of a head whose life is over."""

    fact: Fact
    instead_of: Head | None = None


@dataclass(frozen=True)
class Advance:
    """The head's revision as it is closed, and the next one."""

    head: Head
    closed: Fact
    fact: Fact


@dataclass(frozen=True)
class Amend:
    """The head's revision as it is from now on, under the same version."""

    head: Head
    fact: Fact


@dataclass(frozen=True)
class Leave:
    """The fact says already what is to be written: nothing is committed, and nothing remembers the write."""

    fact: Fact


Decision = Create | Advance | Amend | Leave
Decide = Callable[[Head | None, str], Decision]
"""From the head as it was just read (None: there is none) and the time, what to commit. Raises what refuses the write.

It may be asked again, with a later head, and its decision's fact is the write's answer.
"""


def require_open(
    ports: FactPorts, principal: Principal, fact_id: str, head: Head | None, way: gate.Way = "write"
) -> Head:
    """The head, which is of a current fact that the principal may write. Raises FactNotFound, PermissionDenied.

    `way`: `write` for what replaces or ends the text; `by-id` for what keeps it, so that nobody who may not read what
    waits answers for it or gets it as the answer.
    """
    if head is None or not gate.can_see(principal, head.fact, ports.look(way)):
        raise FactNotFound(fact_id)
    require_write(principal, head.fact.scope, fact_id)
    return head


def with_room(advance: Advance) -> Advance:
    """The same, when the fact keeps room to be verified and ended. Raises RequestTooLarge.

    The subjects of all revisions count: they are kept with the head, so that an erasure of one finds the fact.
    """
    mark = Mark("", "", advance.fact.version)
    if advance.head.followed_by(advance.fact, mark).stored_bytes > MAX_STORED_BYTES:
        raise RequestTooLarge(
            "The fact and the subjects of all its revisions take more than 370 KB. Write what is about other subjects as "
            "another fact, or shorten this one."
        )
    return advance


class FactChange:
    """One write of one fact under way: what all its tries share."""

    def __init__(
        self,
        ports: FactPorts,
        principal: Principal,
        operation: Operation,
        fact_id: str,
        *,
        lives_again: bool = False,
        judged: bool | None = None,
    ) -> None:
        """`lives_again`: the write may begin a new life of the id, so that nothing of one that is over answers it.

        `judged`: new content waits for a person when it reads like an instruction; what agents write does, unless they
        administer the tenant.
        """
        self._ports = ports
        self._principal = principal
        self._key, self._body = short_digest(operation.key), short_digest(operation.body)
        self._former_bodies = tuple(map(short_digest, operation.former_bodies))
        self._deadline = operation.deadline
        self._fact_id = fact_id
        self._lives_again = lives_again
        agent = principal.actor.kind == "agent" and not principal.admin
        self._is_judged = agent if judged is None else judged
        self.left = False
        """Whether the answer was there already, and this write committed nothing."""
        self._payload: Payload | None = None
        self._object: str | None = None
        """Made by this write. An upload is its caller's, who may name it again."""

    def payload(self, content: Content) -> Payload:
        """What the write's content became: stored when a rule first asks, which is once it allows the write."""
        if self._payload is None:
            self._deadline.require()
            self._payload = store_payload(self._ports, self._principal.tenant, self._fact_id, content)
            self._object = self._payload.content_ref if content.ref is None else None
        return self._payload

    def run(self, decide: Decide, *, expect_new: bool = False) -> Fact:
        """Commit what `decide` makes of the head; the fact as it is now, or as an earlier try of this write left it.

        `expect_new`: the fact is not there, most likely, so the first try reads nothing; what it meets is the head.
        Raises what `decide` raises, IdempotencyMismatch, FactNotFound, Throttled after `ATTEMPTS` tries or when time is
        over among others' writes, and StorageUnavailable when it is over before the first.
        """
        head = None if expect_new else self._read()
        for attempt in range(1, ATTEMPTS + 1):
            first = self._first_answer(head)
            if first is not None:
                self._settle(first)
                return first
            try:
                decision = decide(head, self._ports.clock.now())
            except _REFUSALS:  # the head bears no mark of this write, so nothing of it landed
                self._settle(None)
                raise
            if isinstance(decision, Leave):
                self._settle(decision.fact)
                self.left = True
                return decision.fact
            decision = self._judged(decision)
            there: Head | None = None
            with suppress(Contended):
                there = self._commit(decision)
                if there is None:
                    self._settle(decision.fact)
                    return decision.fact
            if self._deadline.passed:
                break
            if head is None and there is not None and there.confirmed is None:
                head = there
            elif attempt < ATTEMPTS:
                _pause(attempt)
                head = self._read()
        raise Throttled

    def _read(self) -> Head | None:
        """The head as it is now. A proposal past its window gives way to the confirmed text first, in a transaction of its
        own. Raises Throttled when others are always faster.
        """
        store = self._ports.facts
        for attempt in range(1, ATTEMPTS + 1):
            head = store.head(self._principal.tenant, self._fact_id)
            settled = None if head is None else head.settled(self._ports.clock.now())
            if head is None or settled is None or settled.lapsed is None:
                return head
            with suppress(Contended):
                restored = replace(settled, lapsed=None)
                if store.advance(head, settled.lapsed, restored) is None:
                    return restored
            _pause(attempt)
        raise Throttled

    def _judged(self, decision: Create | Advance | Amend) -> Create | Advance | Amend:
        """What is to be committed; it waits for a person if its content is new and reads like an instruction."""
        if self._payload is None:
            return decision
        waits = self._is_judged and self._ports.reads_like_instruction(decision.fact)
        why = ("instruction-like",) if waits else None
        update = {"review": "pending" if waits else None, "review_why": why}
        fact = decision.fact.model_copy(update=update)
        if waits and isinstance(decision, Advance) and fact.reach == "account":
            fact = proposed(fact, fact.retention)  # what waits never takes the place of what was confirmed
        return replace(decision, fact=fact)

    def _commit(self, decision: Create | Advance | Amend) -> Head | None:
        """The head that was in the way, None if nothing was. Raises Contended."""
        self._deadline.require()
        store, mark = self._ports.facts, Mark(self._key, self._body, decision.fact.version)
        match decision:
            case Create(fact, former):
                if former is None:
                    return store.create(Head.first(fact, mark))
                return store.amend(former, former.reborn_as(fact, mark))
            case Advance(head, closed, fact):
                return store.advance(head, closed, head.followed_by(fact, mark))
            case Amend(head, fact):
                return store.amend(head, head.followed_by(fact, mark))

    def _first_answer(self, head: Head | None) -> Fact | None:
        """What this write answered if it landed before. Raises IdempotencyMismatch if its body was another then."""
        mark = None if head is None else head.mark_of(self._key)
        if head is None or mark is None:
            return None
        look = self._ports.look("write", past=True)
        if self._lives_again and head.fact.over(look.now):
            return None
        if not gate.can_see(self._principal, head.fact, look):
            raise FactNotFound(self._fact_id)
        require_write(self._principal, head.fact.scope, self._fact_id)
        if mark.body not in (self._body, *self._former_bodies):
            self._settle(None)
            raise IdempotencyMismatch
        if mark == head.marks[-1]:  # nothing has changed since, and a deletion answers the closed revision
            return head.fact
        if mark.version == head.fact.version:
            return reopened(head.fact)
        revision = self._ports.facts.revision(head, mark.version)
        if revision is None:
            raise FactNotFound(self._fact_id)
        return reopened(revision)

    def _settle(self, answer: Fact | None) -> None:
        """Keep the payload that the answer names; remove the object that this write stored and its answer does not name.

        A payload is pending before its fact's write and claimed after it, so that a write that dies leaves nothing for
        good. What dies between the write and the claim is claimed by whoever follows the table's stream, which is tried
        for a day; a pending payload lives for two.
        """
        if (
            self._deadline.passed
        ):  # the answer comes first: what is left to do, the follower and the bucket do
            return
        ref = None if self._payload is None else self._payload.content_ref
        try:
            if ref is not None and answer is not None and answer.content_ref == ref:
                self._ports.blobs.claim(ref)
            elif self._object is not None:
                self._ports.blobs.discard(self._object)
        except Exception as error:  # noqa: BLE001 - what was decided is decided, whatever the bucket says of it
            # The stream's follower claims, and nobody can reach what stays.
            self._ports.unsettled(error)


def _pause(attempt: int) -> None:
    time.sleep(full_jitter(attempt, PAUSE_SECONDS))
