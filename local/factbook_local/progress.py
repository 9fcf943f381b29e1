"""What a long start is about: one line that is rewritten on a terminal, elsewhere a line now and then when it changes."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

QUIET_SECONDS = 2.0
"""A start that is over by then says nothing."""
TERMINAL_SECONDS, LINE_SECONDS = 1.0, 5.0


async def show(doing: Callable[[], Awaitable[str]], *, quiet: float = QUIET_SECONDS) -> None:
    """Until it is cancelled. `doing` answers what is done now."""
    terminal = sys.stderr.isatty()
    written, before = 0, ""
    try:
        await asyncio.sleep(quiet)
        while True:
            text = await doing()
            if terminal:
                print(f"\r{text:<{written}}", end="", file=sys.stderr, flush=True)
                written = len(text)
            elif text != before:
                print(text, file=sys.stderr, flush=True)
            before = text
            await asyncio.sleep(TERMINAL_SECONDS if terminal else LINE_SECONDS)
    finally:
        if written:
            print(f"\r{'':<{written}}\r", end="", file=sys.stderr, flush=True)
