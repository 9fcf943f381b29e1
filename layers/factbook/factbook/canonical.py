"""The one canonical text of a JSON value (RFC 8785), in two strictnesses.

The log's form refuses numbers that two readers could take for different ones: its texts are hashed for good. A fact's
form is only compared, so it writes every integer in full and refuses nothing a strict parse lets through.
"""

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

import rfc8785

from factbook.domain.errors import BadInput
from factbook.domain.strict_json import check_depth

SAFE_INTEGER = 2**53
PLAIN_FLOATS_END = 1e21
"""From 2^53 up to here RFC 8785 writes a float without an exponent, and a reader takes it for an integer."""
_CONSTANTS = {None: "null", True: "true", False: "false"}


def log_canonical(value: Any) -> str:
    """The text that is hashed and stored. Raises BadInput for what has no single reading."""
    check_depth(value)
    _refuse_ambiguous_numbers(value)
    try:
        return rfc8785.dumps(value).decode()
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise BadInput(
            "A log entry holds a value without a canonical form. Send whole characters only."
        ) from error


def content_canonical(value: Any) -> bytes:
    """The bytes a fact's contentHash is over: RFC 8785, integers of any size written in full."""
    pieces: list[str] = []
    _write(value, pieces.append)
    return "".join(pieces).encode()


def _write(value: Any, out: Callable[[str], None]) -> None:
    if isinstance(value, str):
        out(encode_basestring(value))  # escapes what RFC 8785 does, and as it does
    elif isinstance(value, float):
        out(_float(value))
    elif value is None or isinstance(value, bool):
        out(_CONSTANTS[value])
    elif isinstance(value, int):
        out(str(value))
    elif isinstance(value, list):
        before = "["
        for item in value:
            out(before)
            _write(item, out)
            before = ","
        out("]" if value else "[]")
    else:
        before = "{"
        for name in sorted(value, key=_utf_16):
            out(before + encode_basestring(name) + ":")
            _write(value[name], out)
            before = ","
        out("}" if value else "{}")


def _utf_16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _float(value: float) -> str:
    """Python and ECMAScript write the same shortest digits; they differ in exponents, and in what is whole."""
    text = repr(value)
    if value and "e" not in text and "n" not in text:
        return text.removesuffix(".0")
    return rfc8785.dumps(value).decode()


def _refuse_ambiguous_numbers(value: Any) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, float):
            size = abs(item)
            if not size < SAFE_INTEGER and not PLAIN_FLOATS_END <= size < float("inf"):
                raise BadInput("A number of the entry has no exact reading everywhere. Send it as a string.")
        elif isinstance(item, int) and abs(item) >= SAFE_INTEGER:
            raise BadInput("An integer of the entry is 2^53 or more. Send it as a string.")
