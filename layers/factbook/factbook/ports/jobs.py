"""Long work that many invocations do one after another, and where it is kept between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

DONE = "done"
"""The phase of a job that has nothing left to do."""


@dataclass(frozen=True)
class Job:
    """How far a job is. There is one of a name in each tenant, or one of a name for all tenants (`tenant` is None)."""

    name: str
    kind: str
    """Which work this is, of those that go by the name: a build or a repair of the index."""
    phase: str
    started_at: str
    updated_at: str
    tenant: str | None = None
    cursor: str | None = None
    """Where in its phase the job is; only the phase reads it."""
    counters: Mapping[str, int] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    """What it works on, the same from start to end."""
    step: int = 0
    """Grows by one each time a job of this name is kept, from job to job: two runners notice each other by it."""

    def at(self, cursor: str | None, **counted: int) -> "Job":
        """The same job further on in its phase; `counted` is added to the counters."""
        counters = {**self.counters}
        for name, count in counted.items():
            counters[name] = counters.get(name, 0) + count
        return replace(self, cursor=cursor, counters=counters)

    def turned(self, phase: str) -> "Job":
        """The same job at the start of another phase."""
        return replace(self, phase=phase, cursor=None)


class JobStore(Protocol):
    """Every operation may raise Throttled or StorageUnavailable."""

    def job(self, name: str, tenant: str | None = None) -> Job | None:
        """The last job of that name, running or done; strongly consistent."""
        ...

    def keep(self, job: Job) -> bool:
        """Replaces the job of the step before; there must be none for step 0. False when another runner was faster."""
        ...

    def ask(self, name: str, at: str, tenant: str | None = None) -> None:
        """Somebody wants a job of that name to start after the instant `at`; the last who asks is remembered."""
        ...

    def asked(self, name: str, tenant: str | None = None) -> str | None:
        """When a job of that name was last asked for."""
        ...
