"""Whether a principal may be shown a fact."""

from factbook.domain.access.principals import Principal
from factbook.domain.access.rules import can_read
from factbook.domain.facts.fact import Fact


def can_see(principal: Principal, fact: Fact) -> bool:
    """Whether a fact may be shown: its scope is readable, and an agent sees memories of its own definition only."""
    if principal.actor.kind == "agent" and fact.agent_id is not None and fact.agent_id != principal.agent_id:
        return False
    return can_read(principal, fact.scope)
