"""How long work may go on: taken from what an invocation has left, and asked after every bounded piece of work."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from factbook.domain.errors import StorageUnavailable


@dataclass(frozen=True)
class Deadline:
    """Work stops `seconds` after it was made. A piece of work that has begun is finished."""

    seconds: float
    elapsed: Callable[[], float] = time.monotonic
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_start", self.elapsed())

    @property
    def left(self) -> float:
        """Seconds, 0 when it has passed."""
        return max(0.0, self.seconds - (self.elapsed() - self._start))

    @property
    def passed(self) -> bool:
        return self.left == 0

    def share(self, part: float) -> "Deadline":
        """One that ends when such a part of what is left has passed."""
        return Deadline(self.left * part, self.elapsed)

    def within(self, seconds: float) -> "Deadline":
        """One that ends after so many seconds, or with this one if that is sooner."""
        return Deadline(min(self.left, seconds), self.elapsed)

    def from_its_start(self, seconds: float) -> "Deadline":
        """One that ends so many seconds after this one began, or with it; what has no end has no beginning either."""
        spent = 0.0 if self.seconds == float("inf") else self.elapsed() - self._start
        return self.within(max(0.0, seconds - spent))

    def require(self) -> None:
        """Raises StorageUnavailable when it has passed: whoever waits would hear nothing of what began now."""
        if self.passed:
            raise StorageUnavailable


NEVER = Deadline(float("inf"))
