"""How far a command is, on standard error: a bar that is redrawn on a terminal, a line now and then elsewhere."""

import sys
import time

WIDTH = 30


class Bar:
    """`total` None: nobody knows how much there is."""

    def __init__(self, label: str, total: int | None = None, *, quiet: bool = False) -> None:
        self._label = label
        self._total = total
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()

    def __call__(self, done: int, said: str = "") -> None:
        if self._quiet or time.monotonic() - self._last < (0.2 if self._terminal else 5):
            return
        self._last = time.monotonic()
        self._draw(done, said)

    def end(self) -> None:
        if self._terminal and not self._quiet:
            print(file=sys.stderr)

    def _draw(self, done: int, said: str) -> None:
        share = 1.0 if not self._total else min(1.0, done / self._total)
        bar = "" if self._total is None else f"[{'#' * int(WIDTH * share):<{WIDTH}}] {share:4.0%} "
        text = f"{self._label} {bar}{said or f'{done:,}'}"
        print(
            f"\r{text}\033[K" if self._terminal else text,
            end="" if self._terminal else "\n",
            file=sys.stderr,
            flush=True,
        )
