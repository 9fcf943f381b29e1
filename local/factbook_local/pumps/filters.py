"""Event filtering: which records a source passes on, by the patterns of its FilterCriteria."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

_MISSING = object()


def passes(record: Mapping[str, Any], patterns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a record matches one of the patterns; without a pattern every record passes."""
    return not patterns or any(_matches(pattern, record) for pattern in patterns)


def _matches(pattern: Mapping[str, Any], value: Any) -> bool:
    return all(_member(name, rule, value) for name, rule in pattern.items())


def _member(name: str, rule: Any, value: Any) -> bool:
    if name == "$or":
        return any(_matches(choice, value) for choice in rule)
    found = value.get(name, _MISSING) if isinstance(value, Mapping) else _MISSING
    if isinstance(rule, Mapping):
        return _matches(rule, {} if found is _MISSING else found)
    values = found if isinstance(found, list) else [found]
    return any(_rule(one, each) for one in rule for each in values)


def _rule(rule: Any, value: Any) -> bool:
    if not isinstance(rule, Mapping):
        return value is not _MISSING and rule == value and isinstance(rule, bool) == isinstance(value, bool)
    ((name, argument),) = rule.items()
    if name == "exists":
        return (value is not _MISSING) is bool(argument)
    if value is _MISSING:
        return False
    return _comparison(name, argument, value)


def _comparison(name: str, argument: Any, value: Any) -> bool:
    match name:
        case "prefix":
            return isinstance(value, str) and value.startswith(argument)
        case "suffix":
            return isinstance(value, str) and value.endswith(argument)
        case "equals-ignore-case":
            return isinstance(value, str) and value.casefold() == argument.casefold()
        case "anything-but":
            return not any(
                _rule(one, value) for one in (argument if isinstance(argument, list) else [argument])
            )
        case "numeric":
            return _numeric(argument, value)
    raise ValueError(f"no event filter is called {name!r}")


def _numeric(argument: Sequence[Any], value: Any) -> bool:
    """`[">", 0, "<=", 5]`. DynamoDB's numbers are strings."""
    try:
        number = Decimal(str(value))
    except ArithmeticError:
        return False
    compare = {
        "=": number.__eq__,
        "<": number.__lt__,
        "<=": number.__le__,
        ">": number.__gt__,
        ">=": number.__ge__,
    }
    return all(
        compare[sign](Decimal(str(bound))) for sign, bound in zip(argument[::2], argument[1::2], strict=True)
    )
