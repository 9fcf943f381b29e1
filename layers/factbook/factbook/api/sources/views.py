"""How the refreshing of a fact goes, as the API says it."""

from factbook.domain.facts.fact import Fact
from factbook.domain.strict_json import Json
from factbook.usecases.sources.ports import StatePorts
from factbook.usecases.sources.states import refresh_progress


def refresh_state_json(ports: StatePorts, fact: Fact) -> Json:
    """Fields of a fact that `include=refreshState` asks for; none of a fact that mirrors nothing."""
    found = refresh_progress(ports, fact)
    if found is None:
        return {}
    optional = {"nextDueAt": found.next_due_at, "lastError": found.last_error, "circuit": found.circuit}
    said = {name: value for name, value in optional.items() if value is not None}
    return {"refreshState": {"failures": found.failures, **said}}
