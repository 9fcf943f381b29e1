"""Circuits: a host that fails again and again is left alone for a while, whatever facts it has.

closed      asks go through; so many failures in a row open it
open        no ask goes through until a time, which doubles at each opening
half-open   that time has passed: one ask goes through, and its answer closes the circuit or opens it again
"""

from dataclasses import dataclass, replace
from typing import Literal

from factbook.domain import times
from factbook.domain.sources.waits import doubled

FAILURES = 5
FIRST_SECONDS, MOST_SECONDS = 60.0, 3600.0
PROBE_SECONDS = 30.0
"""For how long nobody else asks while one ask decides; who asks may die."""

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True)
class Circuit:
    """`failures` in a row since it was last closed or opened; `opened`: how often in a row; `until`: not asked before."""

    failures: int = 0
    opened: int = 0
    until: str | None = None

    def state(self, now: str) -> State:
        if self.until is None:
            return "closed"
        return "open" if now < self.until else "half-open"

    def probed(self, now: str) -> "Circuit":
        """The circuit while one ask decides about it."""
        return Circuit(self.failures, self.opened, times.add(now, seconds=PROBE_SECONDS))

    def failed(
        self, now: str, draw: float, asked: float | None = None, *, decides: bool = False
    ) -> "Circuit":
        """The circuit after one more failure. `asked`: seconds for which the host asked to be left alone, whoever comes.

        `decides`: of the one ask that went through. Others that fail while it is open were under way when it opened, or
        somebody's by hand: they open it no further.
        """
        alone = None if asked is None else times.add(now, seconds=min(asked, MOST_SECONDS))
        if self.state(now) == "open" and not decides:
            return replace(self, until=max(self.until or "", alone or ""))
        opens = self.opened > 0 or self.failures + 1 >= FAILURES
        if not opens:
            return Circuit(self.failures + 1, self.opened, alone)
        wait = doubled(FIRST_SECONDS, MOST_SECONDS, self.opened + 1, draw)
        return Circuit(0, self.opened + 1, max(times.add(now, seconds=wait), alone or ""))


CLOSED = Circuit()
