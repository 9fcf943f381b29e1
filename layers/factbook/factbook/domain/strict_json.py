"""JSON that means one thing only: no duplicate keys, no NaN, no lone surrogates, bounded depth."""

import json
from collections.abc import Iterable
from typing import Any

from factbook.domain.errors import BadInput

MAX_DEPTH = 32

Json = dict[str, Any]
"""A JSON object, read or to be written."""


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises BadInput for what two parsers could read differently."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
        if "\\u" in text:
            _refuse_lone_surrogates(value)
        return value
    except BadInput:
        raise
    except RecursionError as error:
        raise BadInput("The JSON is nested too deeply.") from error
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are ValueErrors
        raise BadInput("The body is not valid JSON in UTF-8.") from error


def check_depth(value: Any) -> None:
    """Refuse nesting below `MAX_DEPTH` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level if isinstance(item, dict | list) for child in _children(item)]
        if not level:
            return
    if any(isinstance(item, dict | list) for item in level):
        raise BadInput(f"Content may be nested {MAX_DEPTH} levels deep, not more.")


def dump_json(value: Any) -> str:
    """Compact JSON text that parses back to an equal value: 1.0 stays 1.0, integers keep every digit."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise BadInput("An object has the same key twice. Send each key once.")
    return built


def _refuse_constant(_: str) -> None:
    raise BadInput("NaN and Infinity are not JSON. Send a number or null.")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise BadInput("A number is too large for a double. Send it as a string.")
    return number


def _integer(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)


def _children(item: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item


def _refuse_lone_surrogates(value: Any) -> None:
    # Only an escape can write one: bytes that encode a surrogate are no UTF-8.
    try:
        dump_json(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput("A string has a lone surrogate. Send whole Unicode characters.") from error
