"""Read standing sets: one query of the person's memories, and one of the account's for an administrator."""

from collections.abc import Callable, Iterable, Sequence

from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import can_write
from factbook.domain.errors import PermissionDenied, ScopeInvalid
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.facts.owners import owner_of
from factbook.domain.facts.reach import acts_for
from factbook.domain.memories.standing import StandingSet, oldest_first
from factbook.domain.scope import Scope
from factbook.domain.wire import fitting
from factbook.ports.facts.store import Head
from factbook.usecases.memories.ports import MemoryPorts
from factbook.usecases.merging import at_once


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
    reads: list[Callable[[], Sequence[Head]]] = []
    if owner is not None:
        reads.append(lambda: ports.index.of_owner(principal.tenant, owner, agent))
    if principal.admin:
        reads.append(lambda: ports.index.of_account(principal.tenant, agent))
    found = [*at_once(lambda read: read(), reads)]
    look = ports.facts.look("recalled", agent=agent)
    own = [] if owner is None else _shown(principal, found[0], look)
    account = _shown(principal, found[-1], look) if principal.admin else []
    others = [fact for fact in account if fact.owner != owner]
    return StandingSet(fitting([*oldest_first(own), *oldest_first(others)], lambda fact: fact.wire_bytes))


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


def _shown(principal: Principal, heads: Iterable[Head], look: gate.Look) -> list[Fact]:
    """Each memory once: its head, or the confirmed text beside it."""
    heads = list(heads)
    beside = {head.fact.id: head.fact for head in heads if head.beside}
    shown: dict[str, Fact] = {}
    for head in heads:
        if not head.beside:
            fact = gate.shown(principal, head.fact, beside.pop(head.fact.id, None), look)
            shown |= {} if fact is None else {fact.id: fact}
    for fact_id, fact in beside.items():  # of proposals that others made
        if gate.can_see(principal, fact, look):
            shown.setdefault(fact_id, fact)
    return [fact for fact in shown.values() if fact.valid_at(look.now)]


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
    return standing_set(ports, principal, agent, person).facts
