"""What callers send to refresh facts, and what they get."""

from typing import Literal

from factbook.domain.facts.fact import Fact
from factbook.domain.fields import CamelModel


class Refresh(CamelModel):
    """Nothing is to be said: `{}`, or no body."""


class Refreshed(CamelModel):
    """What happened: `held` content stays although its source changed, `asked` a person was."""

    outcome: Literal["unchanged", "changed", "held", "asked"]
    fact: Fact


class Sweep(CamelModel):
    """Nothing is to be said: `{}`, or no body."""


class Swept(CamelModel):
    """`queued` of the tenant's facts; `more`: others may be due, and follow with the schedule."""

    started_at: str
    queued: int
    more: bool
