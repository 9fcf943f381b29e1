"""What an invocation counts of its own work, for those who watch the service; an answer does not show it.

A use case says `count("Replays")` wherever that happens, also in a thread of a pool, whose call is `counted`; who observes
the invocation reads the sums at its end. Outside of an invocation nothing is counted.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Literal, ParamSpec, TypeVar

Counted = Literal["Replays", "Refills"]
"""`Replays`: writes that were answered by what an earlier try of them had written. `Refills`: further rounds of searches whose
first one gave too few records that the caller may have.
"""

Given = ParamSpec("Given")
Result = TypeVar("Result")

_current: ContextVar[Counter[str] | None] = ContextVar("tally", default=None)
_adding = Lock()


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """The sums of one invocation, while it runs."""
    sums: Counter[str] = Counter()
    before = _current.set(sums)
    try:
        yield sums
    finally:
        _current.reset(before)


def count(what: Counted) -> None:
    """One more of it."""
    sums = _current.get()
    if sums is not None:
        with _adding:
            sums[what] += 1


def counted(call: Callable[Given, Result]) -> Callable[Given, Result]:
    """The same call for another thread: what it counts there is the invocation's that is under way here."""
    sums = _current.get()

    def of_this_invocation(*given: Given.args, **named: Given.kwargs) -> Result:
        before = _current.set(sums)
        try:
            return call(*given, **named)
        finally:
            _current.reset(before)

    return of_this_invocation
