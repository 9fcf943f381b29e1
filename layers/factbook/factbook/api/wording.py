"""What pydantic finds wrong with a field, in plain words that repeat nothing of its value."""

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel

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
    said = said.removesuffix(".") + "."
    return said if count == 1 else f"{said} In all {count} fields are invalid; see details.issues."


def unknown(name: str, where: str, known: list[str], kind: str = "field") -> str:
    """The refusal of a field: `where` is the object that has it (empty: the outermost), `known` the fields it takes."""
    said = f"Unknown {kind} {name!r}" + (f" in {where}" if where else "")
    if not known:
        return f"{said}. Remove it or check its spelling."
    there = f"{kind.rpartition(' ')[2]}s are {', '.join(known)}."
    meant = _nearest(name, known)
    return f"{said}. Remove it; the {there}" if meant is None else f"{said}: is it {meant!r}? The {there}"


def fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The names on the wire of the fields that an object takes, by its place in a body; none where that cannot be told."""
    named = False
    for step in location:
        if isinstance(step, int) or named:
            named = False
            continue
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == step), None)
        annotation = None if field is None else field.annotation
        inside = _model_in(annotation)
        if inside is None:
            return []
        model = inside
        named = _is_map(annotation)  # the next step is a key of the caller's
    return [field.alias or name for name, field in model.model_fields.items()]


def _is_map(annotation: Any) -> bool:
    return get_origin(annotation) is dict or any(map(_is_map, get_args(annotation)))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The one model that a field holds, alone, or as what a list or an optional is of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = [model for part in get_args(annotation) if (model := _model_in(part)) is not None]
    return found[0] if len(found) == 1 else None


def _nearest(name: str, known: list[str]) -> str | None:
    import difflib  # needed by few requests, and every cold start would load it

    plain = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower().replace("_", ""), plain, n=1, cutoff=0.65)
    return plain[found[0]] if found else None
