"""Share the blocks of a file out among the processors: this process judges some, a helper for each further one others.

The next block in order is judged here where nobody has begun it, knowing all that stands before. While a helper has it,
this process judges blocks that come later, apart. So none of them waits while there is something to do, and a helper
that ends delays nobody.
"""

import os
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread, active_count

from .apart import Found, Ground, Span, ground_of, judge_span
from .exports import Export
from .helper import Helper

WAITING = 2
"""Spans that a helper is given at a time, so that it does not wait while its answer is looked at."""
AHEAD = 4
"""Spans for each processor that may be judged before they can be joined: what was found in them is kept."""


def available() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def judged(
    path: Path, export: Export, spans: list[Span], at_once: int
) -> Iterator[tuple[Span, list[Found] | None]]:
    """Each span in order with what was found in it; None where the caller is to judge it, behind all that stands before."""
    sharing = _Sharing(path, ground_of(export), spans, at_once)
    try:
        for number, span in enumerate(spans):
            yield span, sharing.found_in(number)
    finally:
        sharing.end()


class _Sharing:
    def __init__(self, path: Path, ground: Ground, spans: list[Span], at_once: int) -> None:
        self._path, self._ground, self._spans, self._ahead = path, ground, spans, AHEAD * at_once
        self._begun = 0
        """Spans that somebody has begun, or that were begun here."""
        self._found: dict[int, list[Found] | None] = {}
        self._answers: SimpleQueue[tuple[_Asked, list[Found] | None]] = SimpleQueue()
        self._helpers: list[_Asked] = []
        if not hasattr(os, "fork") or active_count() > 1:
            return  # what another thread holds is held in a fork for ever: this process judges alone
        with suppress(OSError):  # no further process may be started: those that are there do the work
            for _ in range(min(at_once, len(spans)) - 1):
                self._helpers.append(_Asked(Helper(path, ground), self._answers))
        for each in self._helpers:
            each.listener.start()

    def found_in(self, number: int) -> list[Found] | None:
        end = min(number + self._ahead, len(self._spans))
        if self._begun == number:
            self._found[self._begin()] = None
        self._ask_helpers(end)
        while number not in self._found:
            if self._answers.empty() and self._begun < end:
                at = self._begin()
                self._found[at] = judge_span(self._path, self._ground, self._spans[at])
            else:
                self._hear()
            self._ask_helpers(end)
        return self._found.pop(number)

    def end(self) -> None:
        for each in self._helpers:
            each.end()

    def _begin(self) -> int:
        self._begun += 1
        return self._begun - 1

    def _ask_helpers(self, end: int) -> None:
        """Hear what they have answered, and give those that have less than two spans before `end` further ones."""
        while not self._answers.empty():
            self._hear()
        for each in self._helpers:
            while each.works and len(each.spans) < WAITING and self._begun < end:
                at = self._begin()
                each.ask(at, self._spans[at])

    def _hear(self) -> None:
        who, found = self._answers.get()
        if found is None:
            who.works = False
            self._found.update(dict.fromkeys(who.spans))
        else:
            self._found[who.spans.popleft()] = found


class _Asked:
    """A helper, and what it was asked."""

    def __init__(self, helper: Helper, answers: "SimpleQueue[tuple[_Asked, list[Found] | None]]") -> None:
        self.spans: deque[int] = deque()
        """Spans that it has not answered yet."""
        self.works = True
        """It has not ended."""
        self.listener = Thread(target=self._listen, daemon=True)
        self._helper = helper
        self._answers = answers

    def ask(self, number: int, span: Span) -> None:
        self.spans.append(number)
        with suppress(OSError):  # it has ended, which its listener tells
            self._helper.ask(span)

    def end(self) -> None:
        with suppress(OSError):
            os.kill(self._helper.process, signal.SIGKILL)
        self.listener.join()
        self._helper.close()
        os.waitpid(self._helper.process, 0)

    def _listen(self) -> None:
        found: list[Found] | None = []
        while found is not None:
            found = self._helper.answer()
            self._answers.put((self, found))
