"""How many bytes an answer takes on its way out of a function, and how much of one may be sent.

A function's answer is JSON text inside JSON: its body is a string, so each quote and each backslash of the body is
escaped once more. What was a quote in a caller's string is four bytes on the wire. Lambda sends at most 6 MB
(https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html); the API promises 4 MB. Non-ASCII text counts
as UTF-8, as the runtimes from python3.12 on send it.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from factbook.domain.strict_json import dump_json

ANSWER_BYTES = 3_900_000
"""For the parts of an answer; the rest of the 4 MB is for what stands around them: cursors, names, a degradation."""

LARGEST_BYTES = 6 * 1024 * 1024 - 64 * 1024
"""Of a body that can be sent at all; the rest of Lambda's 6 MB is for the status and the headers."""

Part = TypeVar("Part")


def text_bytes(json_text: str) -> int:
    """What a part of a body takes on the wire, from its JSON text."""
    return len(json_text.encode()) + json_text.count('"') + json_text.count("\\")


def value_bytes(value: Any) -> int:
    """What a part of a body takes on the wire, from its JSON value; the comma behind it included."""
    return text_bytes(dump_json(value)) + 1


def fitting(parts: Iterable[Part], size: Callable[[Part], int], budget: int = ANSWER_BYTES) -> list[Part]:
    """As many of the first parts as `budget` holds, always the first: no record of ours is larger than an answer."""
    kept: list[Part] = []
    for part in parts:
        budget -= size(part)
        if kept and budget < 0:
            break
        kept.append(part)
    return kept
