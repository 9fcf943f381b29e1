"""The order of facts by type: by name of the type, and within a type by first write. Its places are texts to compare.

A place is `<type> <order>`. Every character of a type up to `!` is written as `!` and two digits, so that nothing in it
is as low as the space behind it: places compare as the types' names do, a type before those it begins, and all types
with a prefix stand together. The two highest characters are written as the lower one and a digit, so that the highest
stands behind every place. A type that would be too long for a sort key of DynamoDB is cut and ends in its digest.
"""

import base64
import hashlib
import re

LOWEST, HIGHEST = "!", "\U0010ffff"
"""Before and behind every place."""

MOST_BYTES = 660
_EDGES = re.compile("[\x00-!\U0010fffe\U0010ffff]")


def type_place(fact_type: str, order: str = "") -> str:
    """The place of a fact; without its `order`, the first place of its type."""
    return f"{_named(fact_type)} {order}"


def behind(place: str) -> str:
    """The first place behind a fact's place."""
    return place + "!"


def behind_type(fact_type: str) -> str:
    """The first place behind all facts of a type."""
    return _named(fact_type) + "!"


def before(place: str) -> str:
    """A place that has all lower ones below it or on it, and no other: for stores that ask for an inclusive end."""
    return place[:-1] + chr(ord(place[-1]) - 1) + HIGHEST


def with_prefix(prefix: str) -> tuple[str, str] | None:
    """The first and the last place of types that begin so; None when a prefix is as long as what is cut."""
    text = _escaped(prefix)
    if len(text.encode()) > MOST_BYTES:
        return None
    return text or LOWEST, text + HIGHEST


def _named(fact_type: str) -> str:
    text = _escaped(fact_type)
    raw = text.encode()
    if len(raw) <= MOST_BYTES:
        return text
    digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")
    return f"{raw[:MOST_BYTES].decode(errors='ignore')}~{digest}"


def _escaped(text: str) -> str:
    return _EDGES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character > "!":
        return f"\U0010fffe{ord(character) & 1}"
    return f"!{ord(character):02X}"
