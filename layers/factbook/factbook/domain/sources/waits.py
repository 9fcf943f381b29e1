"""How long to leave a source alone that gave no usable answer."""

from factbook.domain import times

FIRST_SECONDS, MOST_SECONDS = 15.0, 3600.0
MOST_ASKED_SECONDS = 24 * 3600.0
"""A source that asks to be left alone is not obeyed for longer."""


def doubled(first: float, most: float, count: int, draw: float) -> float:
    """Seconds after the `count`th failure in a row, 1 or more: doubled each time up to `most`.

    `draw` is in [0, 1): half of the wait is drawn, so that what failed together does not come back together.
    """
    longest = min(first * 2.0 ** min(count - 1, 40), most)
    return longest / 2 + longest / 2 * draw


def retry_at(now: str, failures: int, draw: float, asked: float | None = None) -> str:
    """When a fact is tried again after so many failures in a row; `asked`: seconds that the source asked for."""
    wait = doubled(FIRST_SECONDS, MOST_SECONDS, failures, draw)
    if asked is not None:
        wait = max(wait, min(asked, MOST_ASKED_SECONDS) + FIRST_SECONDS * draw)
    return times.add(now, seconds=wait)
