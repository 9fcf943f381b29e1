"""Ports that fail at one chosen call: before it took effect, after it did, or by the death of the process."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from factbook.domain.errors import StorageUnavailable


class Death(BaseException):
    """The process ends here."""


class Blow(Enum):
    FAILS = "fails"
    FAILS_BUT_PERSISTED = "fails but persisted"
    DIES_BEFORE = "dies before it"
    DIES_AFTER = "dies after it"


@dataclass
class Blows:
    """Counts the calls of all ports struck by it; `at` is the call to strike, -1 none."""

    blow: Blow = Blow.FAILS
    at: int = -1
    calls: list[str] = field(default_factory=list)


class Struck:
    """A port behind blows. Attributes that are no methods pass through."""

    def __init__(self, port: Any, blows: Blows) -> None:
        self._port = port
        self._blows = blows

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            blows = self._blows
            struck = len(blows.calls) == blows.at
            blows.calls.append(f"{type(self._port).__name__}.{name}")
            if not struck:
                return found(*arguments, **named)
            if blows.blow is Blow.DIES_BEFORE:
                raise Death
            if blows.blow is Blow.FAILS:
                raise StorageUnavailable
            found(*arguments, **named)
            raise Death if blows.blow is Blow.DIES_AFTER else StorageUnavailable

        return call
