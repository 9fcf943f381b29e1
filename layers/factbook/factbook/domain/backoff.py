"""How long to wait before another try."""

import random


def full_jitter(attempt: int, seconds: float) -> float:
    """Seconds to wait before a try: none before the first, which is 0, then up to `seconds`, doubled for each try made.

    Drawn evenly from the whole span, so that writers who met do not meet again.
    """
    return random.uniform(0, seconds * 2**attempt) if attempt else 0.0  # noqa: S311 - spreads tries, guards nothing
