"""A process that judges blocks for the one it was forked from: asked and answered over pipes, in frames of `marshal`.

It is asked about one span after the other, and answers what it found. It reads until nobody can ask any more: whatever ends its
parent, nothing is left running.
"""

import marshal
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from .apart import Found, Ground, Span, judge_span

_COUNT = 8


class Helper:
    """The process, as its parent sees it. A system that starts no further process raises OSError."""

    def __init__(self, path: Path, ground: Ground) -> None:
        asked, asks = os.pipe()
        answers, answered = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(asks)
            os.close(answers)
            _work(path, ground, asked, answered)
        os.close(asked)
        os.close(answered)
        self._asks = os.fdopen(asks, "wb")
        self._answers = os.fdopen(answers, "rb")

    def ask(self, span: Span) -> None:
        """Raises OSError when it has ended."""
        _write(self._asks, span)

    def answer(self) -> list[Found] | None:
        """What it found in the next span that it was asked about; None when it has ended. Waits."""
        found: list[Found] | None = _read(self._answers)
        return found

    def close(self) -> None:
        for pipe in (self._asks, self._answers):
            with suppress(OSError):  # it has ended, and was still to be asked something
                pipe.close()


def _work(path: Path, ground: Ground, asked: int, answered: int) -> NoReturn:
    """Answer spans until no more are asked about. Whatever happens, this process does nothing else of its parent's."""
    try:
        os.setsid()  # Ctrl-C is the parent's to hear
        with os.fdopen(asked, "rb") as spans, os.fdopen(answered, "wb") as answers:
            while (span := _read(spans)) is not None:
                _write(answers, judge_span(path, ground, span))
    finally:
        os._exit(0)


def _write(pipe: IO[bytes], value: Any) -> None:
    frame = marshal.dumps(value)
    pipe.write(len(frame).to_bytes(_COUNT, "big") + frame)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    """The next value, None at the end."""
    count = int.from_bytes(pipe.read(_COUNT), "big")
    frame = pipe.read(count)
    return marshal.loads(frame) if frame and len(frame) == count else None  # noqa: S302 - of a process that was started here
