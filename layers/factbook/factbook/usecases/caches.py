"""What a process keeps in memory: so many values and no more, the least recently used go first, threads may share it."""

import time
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import Cache, LRUCache, TLRUCache

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_ANSWERS = 2048


class RecentValues(Generic[Key, Value]):
    """At most `most` values by key. With `until`, a value is gone from that instant of `elapsed` on (seconds)."""

    def __init__(
        self,
        most: int,
        until: Callable[[Value], float] | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lock = Lock()
        self._kept: Cache[Key, Value] = (
            LRUCache(most) if until is None else TLRUCache(most, lambda _, value, __: until(value), elapsed)
        )

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def get(self, key: Key) -> Value | None:
        with self._lock:
            return self._kept.get(key)

    def put(self, key: Key, value: Value) -> None:
        with self._lock:
            self._kept[key] = value

    def drop(self, covered: Callable[[Key], bool]) -> None:
        """Forget every value whose key is covered."""
        with self._lock:
            for key in [key for key in self._kept if covered(key)]:
                self._kept.pop(key, None)


class TrustedAnswers(Generic[Key, Value]):
    """A look-up by key whose answers are trusted for some seconds; None is never trusted, it is asked for again.

    The seconds count from before the look-up began: however long it took, nobody is told what was replaced earlier than
    `seconds` ago. `elapsed` is a monotonic clock in seconds.
    """

    def __init__(
        self, look_up: Callable[[Key], Value], seconds: float, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._look_up = look_up
        self._elapsed = elapsed
        self._known: RecentValues[Key, tuple[float, Value]] = RecentValues(
            MOST_ANSWERS, lambda answer: answer[0] + seconds, elapsed
        )

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, key: Key) -> Value:
        known = self._known.get(key)
        if known is not None:
            return known[1]
        asked = self._elapsed()
        found = self._look_up(key)
        if found is not None:
            self._known.put(key, (asked, found))
        return found

    def forget(self) -> None:
        """Ask anew for everything."""
        self._known.drop(lambda _: True)
