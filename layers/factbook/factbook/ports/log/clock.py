"""The time as the log writes it."""

from typing import Protocol


class LogClock(Protocol):
    def micros(self) -> str:
        """The current instant as the log writes it (`domain.log.runs.format_micros`)."""
        ...
