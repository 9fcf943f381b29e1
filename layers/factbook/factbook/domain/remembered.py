"""What a process was told and trusts for a while."""

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")
"""May include None, for look-ups that find nothing."""

MOST = 2048


class Remembered(Generic[Value]):
    """A look-up by key whose answers are trusted for some seconds, `MOST` of them; None is asked for again each time.

    `elapsed` is a monotonic clock in seconds.
    """

    def __init__(self, look_up: Callable[[str], Value], seconds: float, elapsed: Callable[[], float]) -> None:
        self._look_up = look_up
        self._seconds = seconds
        self._elapsed = elapsed
        self._known: dict[str, tuple[float, Value]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, key: str) -> Value:
        now = self._elapsed()
        known = self._known.get(key)
        if known is not None and now - known[0] < self._seconds:
            return known[1]
        found = self._look_up(key)
        self._known.pop(key, None)
        if found is not None:
            if len(self._known) >= MOST:
                self._known.pop(next(iter(self._known)))
            self._known[key] = (now, found)
        return found
