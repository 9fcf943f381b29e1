"""One place in a JSON value, named by a JSON pointer (RFC 6901)."""

import re
from typing import Any

_INDEX = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_NO_ESCAPE = re.compile("~(?![01])")


class NothingThere(LookupError):
    """The value has no such place, or the pointer is none."""


def value_at(value: Any, pointer: str) -> Any:
    """What stands at the place; the empty pointer is the whole value. Raises NothingThere."""
    if (pointer and not pointer.startswith("/")) or _NO_ESCAPE.search(pointer):
        raise NothingThere
    for token in pointer.split("/")[1:]:
        value = _child(value, token.replace("~1", "/").replace("~0", "~"))
    return value


def _child(value: Any, token: str) -> Any:
    if isinstance(value, dict) and token in value:
        return value[token]
    if isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
        return value[int(token)]
    raise NothingThere
