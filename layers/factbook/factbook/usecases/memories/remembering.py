"""Remember: what an agent keeps of the person it works for, or of the account.

The id is made of the owner, the agent and the key, so there is one current memory for each key, always. What a write
meets under the id, and what it makes of it:

nothing, or a life that is over      a new life, at version 1, if the owner has room for one more with this agent
a memory that was deleted            reopened: the next version of the same life, if there is room
a current memory                     its next version; the same words restart its window alone
"""

from collections.abc import Sequence
from dataclasses import dataclass

from factbook.domain import times
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import require_write
from factbook.domain.errors import MemoryFull, PermissionDenied
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.ids import fact_id_for, memory_id
from factbook.domain.facts.reach import acts_for, may_decide
from factbook.domain.facts.transitions import ended_at, require_changeable
from factbook.domain.memories import statements
from factbook.domain.memories.keys import similar_keys
from factbook.domain.memories.statements import Statement
from factbook.domain.policy.retention import KeepLimits
from factbook.domain.strict_json import Json
from factbook.ports.facts.store import Head
from factbook.ports.operations import Operation
from factbook.usecases.facts.engine import (
    Advance,
    Amend,
    Create,
    Decision,
    FactChange,
    Leave,
    with_room,
)
from factbook.usecases.facts.payloads import Content, content_hash
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.memories.standing import living

FULL = "This agent remembers as much of this person as it may. Correct or delete a memory instead."


@dataclass(frozen=True)
class Remembered:
    """`created`: the write began a life. `similar`: keys of the same owner and agent that look like this one."""

    fact: Fact
    created: bool
    similar: Sequence[str]


def remember(ports: MemoryPorts, principal: Principal, operation: Operation, said: Statement) -> Remembered:
    """Raises PermissionDenied (another's agent or person, a confirmed key that is to be personal), ErasureInProgress,
    MemoryFull, LegalHold, IdempotencyMismatch; ValidationFailed for a `valid_until` that has passed, FactNotFound for a
    replay of what was erased; RequestTooLarge where the memory
    would have no room beside the subjects of all its revisions.
    """
    require_own_agent(principal, said.agent_id)
    require_own_person(principal, said)
    tenant = principal.tenant
    fact_id = (
        fact_id_for(operation.key)
        if said.key is None
        else memory_id(tenant, said.owner, said.agent_id, said.key)
    )
    ports.facts.require_place_spared(said.scope, "" if said.key is None else fact_id, said.owner)
    now = ports.facts.clock.now()
    there = named(ports, tenant, living(ports.index.of_owner(tenant, said.owner, said.agent_id, now), now))
    known = any(fact.id == fact_id for fact in there)
    full = len(there) >= ports.facts.policy(tenant).limits.memories_per_agent
    change = FactChange(
        ports.facts, principal, operation, fact_id, lives_again=True, judged=not may_decide(principal)
    )
    rule = _Rule(ports, principal, said, fact_id, change, there if full else ())
    fact = change.run(rule.decide, expect_new=not (known or full or statements.is_past(said, now)))
    others = [each.key for each in there if each.key is not None]
    similar = [] if said.key is None else similar_keys(said.key, others)
    return Remembered(fact, fact.version == 1 and not change.left and not rule.amended, similar)


def require_room(ports: MemoryPorts, fact: Fact) -> None:
    """Raises MemoryFull when the owner of a memory that is about to be written has no room for it."""
    tenant = fact.scope.tenant_id
    now = ports.facts.clock.now()
    found = ports.index.of_owner(tenant, fact.owner or "", fact.agent_id or "", now)
    there = named(ports, tenant, living(found, now))
    limit = ports.facts.policy(tenant).limits.memories_per_agent
    if len(there) >= limit:
        raise memory_full(FULL, limit, there)


def named(ports: MemoryPorts, tenant: str, memories: list[Fact]) -> list[Fact]:
    """Those that an answer may name: none that is being erased."""
    erasing = ports.facts.erasing(tenant)
    return [each for each in memories if gate.being_erased(each, erasing) is None]


def require_own_agent(principal: Principal, agent: str) -> None:
    """Raises PermissionDenied for an agent that is not the token's."""
    bound = principal.agent_id is not None or principal.actor.kind == "agent"
    if bound and principal.agent_id != agent:
        raise PermissionDenied("Your token belongs to another agent. Name its own agent id.")


def require_own_person(principal: Principal, said: Statement) -> None:
    """Raises PermissionDenied unless the caller is the person, or writes the project of the participant."""
    if not acts_for(principal, said.scope):
        raise PermissionDenied(
            "A user's memories are that user's alone, a participant's need write on the project. "
            "Use a token of the person, or of who acts for them."
        )
    require_write(principal, said.scope)


class _Rule:
    """What one remembering makes of the head it meets. `crowd`: the memories there are, when there is no room for more."""

    def __init__(
        self,
        ports: MemoryPorts,
        principal: Principal,
        said: Statement,
        fact_id: str,
        change: FactChange,
        crowd: Sequence[Fact],
    ) -> None:
        self._ports = ports
        self._principal = principal
        self._said = said
        self._fact_id = fact_id
        self._change = change
        self._crowd = crowd
        self._content = Content({"text": said.text})
        self.amended = False

    def decide(self, head: Head | None, now: str) -> Decision:
        self.amended = False
        statements.require_not_past(self._said, now)
        said, principal, keep = self._said, self._principal, self._keep
        if head is None or head.fact.over(now):
            self._require_room()
            start = now if head is None else times.later_than(now, ended_at(head.fact))
            fact = statements.first_remembered(
                said, self._fact_id, self._change.payload(self._content), principal, start, keep
            )
            return Create(fact, instead_of=head)
        if not head.fact.current:
            self._require_room()
            payload = self._change.payload(self._content)
            reopened = statements.reopened_by(said, head.fact, payload, principal, now, keep)
            return with_room(Advance(head, head.fact, reopened))
        return self._again(head, now)

    def _again(self, head: Head, now: str) -> Decision:
        said, principal, keep = self._said, self._principal, self._keep
        if said.about == "user" and head.stands(now) is not None:
            raise statements.confirmed_is_the_accounts(head.fact.id)
        if head.fact.reach == "account-rejected":
            self._require_room()
        statements.reach_again(said, head.fact, principal)
        self._ports.facts.require_spared(head.fact)
        require_changeable(head.fact, None)
        digest = content_hash(self._ports.facts, principal.tenant, head.fact.id, self._content)
        if statements.says_the_same(said, head.fact, digest):
            if head.fact.reach == "account" or statements.window_ended(head.fact):
                return Leave(head.fact)
            self.amended = True
            return Amend(head, statements.kept_longer(said, head.fact, now, keep))
        payload = self._change.payload(self._content)
        again = statements.remembered_again(said, head.fact, payload, principal, now, keep)
        return with_room(Advance(head, *again))

    def _require_room(self) -> None:
        if self._crowd:
            raise memory_full(
                FULL,
                self._ports.facts.policy(self._principal.tenant).limits.memories_per_agent,
                self._crowd,
            )

    @property
    def _keep(self) -> KeepLimits | None:
        return self._ports.facts.policy(self._principal.tenant).retention_of(self._said.type)


def memory_full(message: str, limit: int, crowd: Sequence[Fact]) -> MemoryFull:
    memories: list[Json] = [
        {"factId": each.id, "recordedAt": each.updated_at} | ({} if each.key is None else {"key": each.key})
        for each in crowd
    ]
    return MemoryFull(message, limit=limit, memories=memories)
