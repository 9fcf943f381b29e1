"""JSON that means one thing only: no duplicate keys, no NaN, no lone surrogates, bounded depth."""

import json
import re
from collections.abc import Iterable
from typing import Any

from factbook.domain.errors import BadInput

MAX_DEPTH = 32
MAX_PARTS = 100
"""Items of a list that are judged alone; no request has more."""

_SPACE = re.compile(r"[ \t\n\r]*")
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.?+[^"\\]*+)*+"?+|[\[{]+|[\]}]+', re.DOTALL)
"""Strings, and the brackets outside of strings. A string that nothing closes reaches to the text's end, and no character
is looked at twice: otherwise each quote in it would be tried as the start of another one.
"""

_ANY = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
"""Tells where a value ends, and judges nothing."""

NO_JSON = "The body is not valid JSON"
NO_UTF8 = "The body is not valid UTF-8."
BYTE_ORDER_MARK = "The body begins with a byte order mark. Send JSON in UTF-8 without one."

Json = dict[str, Any]
"""A JSON object, read or to be written."""


class NoJson(BadInput):
    """The text is no JSON at all, so nothing in it can be told apart."""


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises NoJson, and BadInput for what two parsers could read differently."""
    try:
        text = _decoded(text)
        if text.startswith("\ufeff"):
            raise NoJson(BYTE_ORDER_MARK)
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
        raise BadInput(
            f"The JSON is nested too deeply. Content may be nested {MAX_DEPTH} levels deep."
        ) from error
    except json.JSONDecodeError as error:
        why = error.msg[:1].lower() + error.msg[1:].removesuffix(
            " at"
        )  # of the standard library; no word of the text
        raise NoJson(f"{NO_JSON}: {why}, at line {error.lineno}, column {error.colno}.") from error


def parse_parts(text: str | bytes, name: str) -> Any:
    """As `parse_json`, but each item of the object's list `name` is judged alone: a refused one stands as its BadInput.

    Raises NoJson for a text that is no JSON, and BadInput for what is wrong around the items, or in one of more than
    `MAX_PARTS`.
    """
    try:
        return parse_json(text)
    except NoJson:
        raise
    except BadInput:
        text = _decoded(text)
        start, end, items = _split(text, name)
        if not 1 <= len(items) <= MAX_PARTS:
            raise
        around = parse_json(f"{text[:start]}[]{text[end:]}")
        around[name] = [_part(item) for item in items]
        return around


def _part(text: str) -> Any:
    try:
        return parse_json(text)
    except NoJson:
        raise
    except BadInput as error:
        return error


def _split(text: str, name: str) -> tuple[int, int, list[str]]:
    """Where the list `name` of the outermost object stands in its text, and the texts of the list's items.

    No items when there is no such list. What lies between the members is left to whoever parses the text around the list.
    """
    at = _next(text, 0)
    while text[at : at + 1] in ("{", ","):
        start = _next(text, at + 1)
        at = _end(text, start)
        key, value = text[start:at], _next(text, _next(text, at) + 1)
        if key == f'"{name}"' and text[value : value + 1] == "[":
            return value, *_items(text, value)
        at = _next(text, _end(text, value))
    return 0, 0, []


def _items(text: str, at: int) -> tuple[int, list[str]]:
    """Where the list that begins here ends, and the texts of its items."""
    items: list[str] = []
    while (sign := text[at : at + 1]) in ("[", ",") and len(items) <= MAX_PARTS:
        start = _next(text, at + 1)
        if sign == "[" and text[start : start + 1] == "]":
            return start + 1, []
        end = _end(text, start)
        items.append(text[start:end])
        at = _next(text, end)
    if sign != "]" and len(items) <= MAX_PARTS:
        raise NoJson(f"{NO_JSON}.")
    return at + 1, items


def _end(text: str, start: int) -> int:
    """Where the value that begins here ends; its brackets decide alone when it is nested too deeply to be read."""
    try:
        return _ANY.raw_decode(text, start)[1]
    except ValueError as error:
        raise NoJson(f"{NO_JSON}.") from error
    except RecursionError as error:
        depth = 0
        for found in _BRACKETS.finditer(text, start):
            count = found.end() - found.start()
            depth += {"[": count, "{": count, "]": -count, "}": -count}.get(found.group()[0], 0)
            if depth <= 0:
                return found.end() + depth  # the last brackets may close what is around the value, too
        raise NoJson(f"{NO_JSON}.") from error


def _next(text: str, at: int) -> int:
    """The place of the next character that is no space."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoJson(NO_UTF8) from error


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
    try:
        return -0.0 if text == "-0" else int(text)
    except ValueError as error:  # Python reads no more than some thousands of digits
        raise BadInput("An integer has too many digits. Send it as a string.") from error


def _children(item: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item


def _refuse_lone_surrogates(value: Any) -> None:
    # Only an escape can write one: bytes that encode a surrogate are no UTF-8.
    try:
        dump_json(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput("A string has a lone surrogate. Send whole Unicode characters.") from error
