"""The time, as the use cases ask for it."""

from typing import Protocol


class Clock(Protocol):
    def now(self) -> str:
        """The current instant as canonical text (`domain.times`)."""
        ...
