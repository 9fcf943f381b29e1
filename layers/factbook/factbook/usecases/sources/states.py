"""How the refreshing of one fact goes, for who asks."""

from dataclasses import dataclass

from factbook.domain.facts.fact import Fact
from factbook.domain.facts.freshness import UNTRIED, Failure, due_at, fresh_until
from factbook.domain.sources.circuits import State
from factbook.ports.sources.handlers import HandlerMissing
from factbook.usecases.sources.ports import StatePorts


@dataclass(frozen=True)
class RefreshProgress:
    """`next_due_at`: when its source is asked next, by the schedule or by the next reader after it."""

    next_due_at: str | None
    failures: int
    last_error: Failure | None
    circuit: State | None


def refresh_progress(ports: StatePorts, fact: Fact) -> RefreshProgress | None:
    """Of a current fact that mirrors something; None of another."""
    head = ports.facts.facts.head(fact.scope.tenant_id, fact.id)
    if head is None or fact.source is None or not fact.current:
        return None
    now = ports.facts.clock.now()
    head, circuit = head.settled(now), None
    state = head.refresh or UNTRIED
    try:
        host = ports.handlers.host(fact.source)
    except HandlerMissing:
        host = None
    if host is not None:
        circuit = ports.circuits.circuit(fact.scope.tenant_id, host).state(now)
    due = due_at(head.fact, state)
    if fact.source.refresh.strategy == "on-read" and state.asked_at is None:
        due = state.retry_at or fresh_until(head.fact)
    return RefreshProgress(due, state.failures, state.last_error, circuit)
