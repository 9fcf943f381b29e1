"""Keyed facts: (tenant, exact scope, type, key) is the identity, so there is one current fact for each key.

The id is made of the identity. So finding the fact is one read, and creating it twice meets the store's condition. What
a write meets under the id, and what it makes of it:

nothing, or a life that is over (it expired or was erased)   a new life, at version 1
a deleted fact                                               reopened: the next version of the same life
a current fact                                               refused, or its next version when the write may supersede
"""

from dataclasses import dataclass

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_write
from factbook.domain.errors import FactExists
from factbook.domain.facts.fact import Fact, FactChanges
from factbook.domain.facts.ids import keyed_fact_id
from factbook.domain.facts.reach import changed
from factbook.domain.facts.transitions import (
    ended_at,
    has_time_left,
    open_fact,
    reopen,
    require_changeable,
    require_time_left,
    says_nothing_new,
    supersede,
)
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import (
    Advance,
    Create,
    Decision,
    FactChange,
    Leave,
    require_open,
    with_room,
)
from factbook.usecases.facts.payloads import Content, content_hash, summary_of
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.facts.reading import current_fact


@dataclass(frozen=True)
class Key:
    """The identity of a keyed fact."""

    scope: Scope
    type: str
    key: str

    @property
    def fact_id(self) -> str:
        return keyed_fact_id(self.scope, self.type, self.key)


@dataclass(frozen=True)
class Written:
    """The revision a write made or found. `created`: the write began a life of the fact."""

    fact: Fact
    created: bool


def write_keyed_fact(
    ports: FactPorts,
    principal: Principal,
    operation: Operation,
    key: Key,
    changes: FactChanges,
    content: Content,
    *,
    may_supersede: bool = False,
) -> Written:
    """Write the fact that has this key.

    `may_supersede`: a current one gets a next revision, in which what is not said keeps its value; it is left as it is
    when it says all this already. Raises PermissionDenied, ErasureInProgress, FactExists, LegalHold, IdempotencyMismatch,
    BadInput, and FactNotFound for one that waits in review for somebody else, or a replay of what was erased.
    """
    content.check()
    key.scope.check()
    require_write(principal, key.scope)
    ports.require_place_spared(key.scope, key.fact_id, about=changes.about)
    keep = ports.policy(principal.tenant).retention_of(key.type)
    change = FactChange(ports, principal, operation, key.fact_id, lives_again=True)
    rule = _Rule(ports, principal, key, changes, content, change, may_supersede, keep)
    # One that has no time left now may have had some when it was sent first: then its fact is there.
    now = ports.clock.now()
    in_time = has_time_left(now, changes.retention, keep, now)
    fact = change.run(rule.decide, expect_new=in_time and not may_supersede)
    return Written(fact, created=fact.version == 1 and not change.left)


def get_keyed_fact(ports: FactPorts, principal: Principal, key: Key, *, require_fresh: bool = False) -> Fact:
    """The current fact that has this key, in one read. Raises FactNotFound, also for one that is not shown; SourceUnavailable
    for a stale one that must not be.
    """
    head = ports.facts.head(principal.tenant, key.fact_id)
    return current_fact(ports, principal, None, head, require_fresh=require_fresh)


@dataclass(frozen=True)
class _Rule:
    """What one keyed write makes of the head it meets."""

    ports: FactPorts
    principal: Principal
    key: Key
    changes: FactChanges
    content: Content
    change: FactChange
    may_supersede: bool
    keep: KeepLimits | None

    def decide(self, head: Head | None, now: str) -> Decision:
        if head is None or head.fact.over(now):
            return self._begin(head, now)
        if not head.fact.current:
            return self._reopen(head, now)
        require_open(self.ports, self.principal, head.fact.id, head)
        self.ports.require_spared(head.fact, self.changes.about)
        if not self.may_supersede:
            raise FactExists(head.fact.id, head.fact.version)
        return self._supersede(head, now)

    def _begin(self, former: Head | None, now: str) -> Create:
        start = now if former is None else times.later_than(now, ended_at(former.fact))
        require_time_left(start, self.changes.retention, self.keep, start)
        fact = open_fact(
            self.key.fact_id,
            self.key.type,
            self.key.scope,
            self.changes,
            self.change.payload(self.content, self.key.scope),
            self.principal,
            start,
            self.key.key,
            self.keep,
        )
        return Create(fact, instead_of=former)

    def _reopen(self, head: Head, now: str) -> Advance:
        payload = self.change.payload(self.content)
        fact = reopen(head.fact, self.changes, payload, self.principal, now, self.keep)
        return with_room(Advance(head, head.fact, fact))

    def _supersede(self, head: Head, now: str) -> Decision:
        require_changeable(head.fact, None)
        digest = content_hash(self.ports, self.principal.tenant, head.fact.id, self.content)
        if says_nothing_new(head.fact, self.changes, digest, summary_of(self.content)):
            return Leave(head.fact)
        payload = self.change.payload(self.content)
        closed, fact = supersede(head.fact, self.changes, payload, self.principal, now, self.keep)
        return with_room(Advance(head, closed, changed(head.fact, fact, self.principal, self.keep)))
