"""What pydantic finds wrong with a field, in plain words that repeat nothing of its value."""

from collections.abc import Mapping
from typing import Any

_SAID = {
    "missing": "is missing",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "literal_error": "must be {expected}",
    "string_too_short": "is empty",
    "string_too_long": "may have {max_length} characters at most",
    "too_short": "must have {min_length} or more items",
    "too_long": "may have {max_length} items at most",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
}
"""By pydantic's type of the fault; the names in braces are of its context, which holds the rule and never the value."""


def in_words(issue: Mapping[str, Any]) -> str:
    """One fault as what follows the name of its field."""
    said = _SAID.get(issue["type"])
    if said is None:
        return str(issue["msg"]).removeprefix("Value error, ")
    return said.format_map(issue.get("ctx") or {})


def headline(issues: list[dict[str, str]], count: int) -> str:
    """The first of `count` faults and where it is; `issues` are those that the answer lists."""
    first = issues[0]
    said = f"{first['path']}: {first['message']}" if first["path"] else first["message"]
    said = said[:1].upper() + said[1:].removesuffix(".") + "."
    return said if count == 1 else f"{said} In all {count} fields are invalid; see details.issues."
