"""The one way a write of a fact lands.

It reads the head and looks for its own mark there: a lost reply, a retry or a parallel twin is answered as the first
time. Else its rule decides what to commit, and the store commits that if the head is still the one that was decided on.
If it is not, the write pauses and begins again. What was stored for a write that came to nothing is removed.

A rule checks in the order that the API promises: not found and permission (`require_open`), what is being erased
(`FactPorts.require_spared`), hold and version (`domain.facts.transitions.require_changeable`). What it makes of the head is
asked once more for erasures before it is committed: a new revision may be about somebody whom the fact did not name before.
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
from factbook.domain.facts.fact import MAX_STORED_BYTES, Fact, Payload, ReviewWhy
from factbook.domain.facts.freshness import RefreshState
from factbook.domain.facts.ids import short_digest
from factbook.domain.facts.reach import proposed
from factbook.domain.facts.transitions import reopened
from factbook.domain.scope import Scope
from factbook.ports.contention import Contended
from factbook.ports.facts.joint import Change, OwnEntry
from factbook.ports.facts.store import Head, Mark
from factbook.ports.operations import Operation
from factbook.usecases import tally
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
    """The head's revision as it is closed, and the next one. `entry`: of the log, which is written with it or not at all.

    `refresh`: what is known of the source that the new content came from.
    """

    head: Head
    closed: Fact
    fact: Fact
    entry: OwnEntry | None = None
    refresh: RefreshState | None = None


@dataclass(frozen=True)
class Amend:
    """The head's revision as it is from now on, under the same version. `beside`: the confirmed text beside it, when that
    changes too. `entry`: as of `Advance`.
    """

    head: Head
    fact: Fact
    beside: Fact | None = None
    entry: OwnEntry | None = None


@dataclass(frozen=True)
class Recheck:
    """The head's revision after its source was asked: nothing but its freshness differs, and what is known of the source.

    Nothing remembers the write: to do it twice is to do it once.
    """

    head: Head
    fact: Fact
    refresh: RefreshState


@dataclass(frozen=True)
class Leave:
    """The fact says already what is to be written: nothing is committed, and nothing remembers the write."""

    fact: Fact


_Write = Create | Advance | Amend | Recheck
Decision = _Write | Leave
Decide = Callable[[Head | None, str], Decision]
"""From the head as it was just read (None: there is none) and the time, what to commit. Raises what refuses the write.

It may be asked again, with a later head, and its decision's fact is the write's answer.
"""


def _as_it_is(fact: Fact) -> Fact:
    return fact


def require_open(
    ports: FactPorts, principal: Principal, fact_id: str, head: Head | None, way: gate.Way = "write"
) -> Head:
    """The head, which is of a current fact that the principal may write. Raises FactNotFound, PermissionDenied.

    `way`: `write` for what replaces or ends the text; `by-id` for what keeps it, so that nobody who may not read what
    waits answers for it or gets it as the answer.
    """
    if head is None or not gate.can_see(principal, head.fact, ports.look_to_write(way)):
        raise FactNotFound(fact_id)
    require_write(principal, head.fact.scope, fact_id)
    return head


SHORTEN = "Write what is about other subjects as another fact, or shorten this one."


def with_room(advance: Advance, advice: str = SHORTEN) -> Advance:
    """The same, when the fact keeps room to be verified and ended. Raises RequestTooLarge, which says what to do instead.

    The subjects of all revisions count: they are kept with the head, so that an erasure of one finds the fact.
    """
    mark = Mark("", "", advance.fact.version)
    if advance.head.followed_by(advance.fact, mark).stored_bytes > MAX_STORED_BYTES:
        raise RequestTooLarge(
            f"The fact and the subjects of all its revisions take more than 370 KB. {advice}"
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
        made: Callable[[Fact], Fact] = _as_it_is,
    ) -> None:
        """`lives_again`: the write may begin a new life of the id, so that nothing of one that is over answers it.

        `judged`: new content waits for a person when it reads like an instruction; what agents write does, unless they
        administer the tenant. `made`: of a revision that was changed in place since, what this write had made of it.
        """
        self._ports = ports
        self._principal = principal
        self._operation = operation
        self._key, self._body = short_digest(operation.key), short_digest(operation.body)
        self._former_bodies = tuple(map(short_digest, operation.former_bodies))
        self._deadline = operation.deadline
        self._fact_id = fact_id
        self._lives_again = lives_again
        self._made = made
        agent = principal.actor.kind == "agent" and not principal.admin
        self._is_judged = agent if judged is None else judged
        self.left = False
        """Whether the answer was there already, and this write committed nothing."""
        self._payload: Payload | None = None
        self._object: str | None = None
        """Made by this write. An upload is its caller's, who may name it again."""

    def payload(self, content: Content, scope: Scope | None = None) -> Payload:
        """What the write's content became: stored when a rule first asks, which is once it allows the write.

        `scope`: of a fact that is to come; whom it is about is told by the object alone until the fact is there.
        """
        if self._payload is None:
            self._deadline.require()
            tenant = self._principal.tenant
            self._payload = store_payload(self._ports, tenant, self._fact_id, content, scope)
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
                tally.count("Replays")
                self._settle(first)
                return first
            try:
                decision = decide(head, self._ports.clock.now())
                self._ports.require_spared(decision.fact)
                if isinstance(decision, Create) and decision.instead_of is not None:
                    self._ports.require_life_spared(decision.instead_of)
            except _REFUSALS:  # the head bears no mark of this write, so nothing of it landed
                self._settle(None)
                raise
            if isinstance(decision, Leave):
                self._settle(decision.fact)
                self.left = True
                return self._as_answered(head, decision.fact)
            decision = self._judged(decision)
            there: Head | None = None
            with suppress(Contended):
                after, there = self._commit(decision)
                if there is None or self._landed(after, there):
                    self._settle(after.fact)
                    return self._as_answered(after, after.fact)
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

    def _judged(self, decision: _Write) -> _Write:
        """What is to be committed; it waits for a person if its content is new and reads like an instruction.

        What derives from something erased waits on, whatever takes its place, until somebody decides. So does what comes to
        name a cause that is being erased: the walk of that erasure may have been here already.
        """
        if self._payload is None or isinstance(decision, Recheck):
            return decision
        derives = self._derives(decision)
        why: list[ReviewWhy] = []
        if self._is_judged and self._ports.reads_like_instruction(decision.fact):
            why.append("instruction-like")
        waits = bool(why) or derives
        if derives or "derived-from-erased" in (decision.fact.review_why or ()):
            why.append("derived-from-erased")
        update = {"review": "pending" if why else None, "review_why": tuple(why) or None}
        fact = decision.fact.model_copy(update=update)
        if waits and isinstance(decision, Advance) and fact.reach == "account":
            fact = proposed(fact, fact.retention)  # what waits never takes the place of what was confirmed
        return replace(decision, fact=fact)

    def _derives(self, decision: Create | Advance | Amend) -> bool:
        """By the causes that the fact did not name before: of the others the erasure's walk judges, and somebody decided."""
        causes = set(decision.fact.caused_by_log_id or ())
        if not isinstance(decision, Create):
            causes -= set(decision.head.fact.caused_by_log_id or ())
        return bool(causes) and self._ports.derives(self._principal.tenant, causes)

    def _commit(self, decision: _Write) -> tuple[Head, Head | None]:
        """The head as it is committed, and the one that was in the way, None if nothing was. Raises Contended."""
        self._deadline.require()
        store = self._ports.facts
        match decision:
            case Create(fact, None):
                after = Head.first(fact, self._mark(fact))
                return after, store.create(after)
            case Create(fact, Head() as former):
                after = former.reborn_as(fact, self._mark(fact))
                return after, store.amend(former, after)
            case Recheck(head, fact, refresh):
                after = head.rechecked(fact, refresh)
                return after, store.amend(head, after)
            case Advance() | Amend():
                return self._commit_change(decision)
        raise AssertionError(decision)

    def _commit_change(self, decision: Advance | Amend) -> tuple[Head, Head | None]:
        change = self._change(decision, decision.fact)
        if decision.entry is not None:
            return self._commit_with(decision, decision.entry, change.after)
        if change.closed is None:
            return change.after, self._ports.facts.amend(change.before, change.after)
        return change.after, self._ports.facts.advance(change.before, change.closed, change.after)

    def _commit_with(
        self, decision: Advance | Amend, entry: OwnEntry, after: Head
    ) -> tuple[Head, Head | None]:
        """As `_commit`; the entry's id is known as late as its place, so a fact that names it is, too."""

        def change(log_id: str) -> Change:
            nonlocal after
            fact = decision.fact
            if entry.is_cause:
                fact = fact.model_copy(update={"caused_by_log_id": [log_id]})
            made = self._change(decision, fact)
            after = made.after
            return made

        there = self._ports.commit_with_entry(self._principal.tenant, entry, self._operation, change)
        return after, there

    def _change(self, decision: Advance | Amend, fact: Fact) -> Change:
        head, mark = decision.head, self._mark(fact)
        if isinstance(decision, Advance):
            by_agent = self._principal.actor.kind == "agent"
            after = head.followed_by(fact, mark, refresh=decision.refresh, by_agent=by_agent)
            return Change(head, after, decision.closed)
        return Change(head, head.followed_by(fact, mark, decision.beside))

    def _mark(self, fact: Fact) -> Mark:
        return Mark(self._key, self._body, fact.version)

    def _landed(self, after: Head, there: Head) -> bool:
        """Whether what was in the way is what this write has just committed: its reply was lost."""
        return there.fact == after.fact and there.marks[-1:] == (self._mark(after.fact),)

    def _as_answered(self, head: Head | None, fact: Fact) -> Fact:
        """A revision of the head, which says whether it is stale."""
        return fact if head is None else replace(head, fact=fact).marked(self._ports.clock.now()).fact

    def _first_answer(self, head: Head | None) -> Fact | None:
        """What this write answered if it landed before. Raises IdempotencyMismatch if its body was another then."""
        mark = None if head is None else head.mark_of(self._key)
        if head is None or mark is None:
            return None
        if mark.gone:
            raise FactNotFound(self._fact_id)
        look = self._ports.look_to_write(past=True)
        if self._lives_again and head.fact.over(look.now):
            return None
        if not gate.can_see(self._principal, head.fact, look):
            raise FactNotFound(self._fact_id)
        require_write(self._principal, head.fact.scope, self._fact_id)
        self._ports.require_spared(head.fact)
        if mark.body not in (self._body, *self._former_bodies):
            self._settle(None)
            raise IdempotencyMismatch
        if mark == head.marks[-1]:  # nothing has changed since, and a deletion answers the closed revision
            return self._as_answered(head, head.fact)
        if mark.version == head.fact.version:
            return self._as_answered(head, self._made(reopened(head.fact)))
        revision = self._ports.facts.revision(head, mark.version)
        if revision is None:
            raise FactNotFound(self._fact_id)
        return self._made(reopened(revision))

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
