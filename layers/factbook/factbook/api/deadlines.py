"""When an invocation has to stop beginning new work."""

import math
from typing import Any

from factbook.ports.deadline import Deadline

UNTOLD_SECONDS = 60.0
"""For a caller that is no Lambda."""


def deadline_of(context: Any, reserve: float, most: float = math.inf) -> Deadline:
    """`reserve` seconds before the invocation's time is up: what a piece of work may take that has begun by then.

    `most`: for so long its caller waits, whatever time there is.
    """
    left = UNTOLD_SECONDS if context is None else context.get_remaining_time_in_millis() / 1_000
    return Deadline(max(0.0, min(left, most) - reserve))
