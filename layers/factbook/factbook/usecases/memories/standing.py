"""Read standing sets: one query of the person's memories, and one of the account's for an administrator."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from factbook.domain.access.owners import owner_of
from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import can_write
from factbook.domain.errors import PermissionDenied, ScopeInvalid
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.reach import acts_for
from factbook.domain.memories.standing import StandingSet, oldest_first, standing_in_one_answer
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.merging import at_once

HEADS_AT_ONCE = 100


def standing_set(ports: MemoryPorts, principal: Principal, agent: str, scope: Scope | None) -> StandingSet:
    """What this agent remembers of the person in `scope`, or of the calling user, and what the account confirmed.

    Raises PermissionDenied for another user, or a participant of a project the caller does not write; ScopeInvalid when
    neither the scope nor the token is a person's and the caller does not administer the tenant.
    """
    person = scope or own_scope(principal)
    if person is not None:
        _require_acting(principal, person)
    elif not principal.admin:
        raise ScopeInvalid(
            "Name the person: a scope of exactly a userId, or a projectId with a participantId."
        )
    owner = None if person is None else owner_of(person)
    look = ports.facts.look(principal.tenant, "recalled", agent=agent, person=owner)
    reads: list[Callable[[], Sequence[Head]]] = []
    if owner is not None:
        reads.append(lambda: ports.index.of_owner(principal.tenant, owner, agent, look.now))
    if principal.admin:
        reads.append(lambda: ports.index.of_account(principal.tenant, agent, look.now))
    found = [*at_once(lambda read: read(), reads)]
    own = [] if owner is None else _shown(ports, principal, found[0], look)
    others = [head for head in found[-1] if head.fact.owner != owner] if principal.admin else []
    account = _shown(ports, principal, others, look, of_account=True)
    return standing_in_one_answer([*oldest_first(own), *oldest_first(account)])


def own_scope(principal: Principal) -> Scope | None:
    """The calling person's scope; None for a service or an agent."""
    if principal.user_id is None:
        return None
    return Scope(tenant_id=principal.tenant, user_id=principal.user_id)


def living(heads: Iterable[Head], now: str) -> list[Fact]:
    """The memories that take a place: current and unexpired, what waits or no longer holds included; each once, oldest
    first.
    """
    by_id: dict[str, Fact] = {}
    for head in heads:
        fact = head.fact
        if not fact.expired(now) and (fact.id not in by_id or not head.beside):
            by_id[fact.id] = fact
    return oldest_first(by_id.values())


def _shown(
    ports: MemoryPorts,
    principal: Principal,
    found: Sequence[Head],
    look: gate.Look,
    *,
    of_account: bool = False,
) -> list[Fact]:
    """Each memory once: its head, or the confirmed text beside it. `of_account`: of proposals that text in any case."""
    shown: list[Fact] = []
    for head in _whole(ports, principal.tenant, found):
        there = head.settled(look.now).marked(look.now)
        fact = gate.shown(principal, there.fact, there.confirmed_fact, look)
        if of_account and fact is not None and fact.reach != "account":
            fact = there.stands(look.now)
        if fact is not None and fact.valid_at(look.now):
            shown.append(fact)
    return shown


def _whole(ports: MemoryPorts, tenant: str, found: Sequence[Head]) -> list[Head]:
    """Each head with the text beside it. Of a proposal that others made the text alone was found, so the head is read: it
    knows when the proposal gives way to the text, and whom any revision is about.
    """
    beside = {each.fact.id: each for each in found if each.beside}
    whole = [replace(each, confirmed=beside.pop(each.fact.id, None)) for each in found if not each.beside]
    alone = [*beside]
    for start in range(0, len(alone), HEADS_AT_ONCE):
        whole += ports.facts.facts.heads(tenant, alone[start : start + HEADS_AT_ONCE]).values()
    return whole


def _require_acting(principal: Principal, person: Scope) -> None:
    if not (acts_for(principal, person) and can_write(principal, person)):
        raise PermissionDenied(
            "A user's memories are that user's alone, a participant's need write on the project. "
            "Use a token of the person, or of who acts for them."
        )


def standing_of_turn(
    ports: MemoryPorts, principal: Principal, agent: str, scope: dict[str, str]
) -> Sequence[Fact] | None:
    """The standing set for the person that a turn's scope names, or for the caller; None when there is neither.

    Raises PermissionDenied as `standing_set`.
    """
    person = None
    if "participantId" in scope and "projectId" in scope:
        person = Scope(
            tenant_id=principal.tenant,
            project_id=scope["projectId"],
            participant_id=scope["participantId"],
        )
    elif "userId" in scope:
        person = Scope(tenant_id=principal.tenant, user_id=scope["userId"])
    if person is None and own_scope(principal) is None and not principal.admin:
        return None
    found = standing_set(ports, principal, agent, person)
    return [*found.facts, *found.omitted]  # the block has its own room, and says what it left out
