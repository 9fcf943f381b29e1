"""What a search may return, as a small tree over the fields of a search document.

`evaluate` is the reference: both indexes translate a tree into their own query and must keep exactly the documents it
keeps. The rules that translations get wrong are fixed here:

* an absent field equals nothing and lies in no range, so its negation holds;
* a field with several values equals each of them;
* no part: `AllOf()` keeps everything, `AnyOf()` and `OneOf(field, ())` keep nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FieldValue = str | int | tuple[str, ...]
Fields = Mapping[str, FieldValue]


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    part: "Filter"


@dataclass(frozen=True, slots=True)
class Equals:
    field: str
    value: str | int


@dataclass(frozen=True, slots=True)
class OneOf:
    field: str
    values: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """A text that begins so; the empty prefix keeps every document that has the field."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Missing:
    field: str


@dataclass(frozen=True, slots=True)
class Range:
    """Whole numbers only; absent bounds do not bind, and of two on one side the narrower does."""

    field: str
    gte: int | None = None
    gt: int | None = None
    lte: int | None = None
    lt: int | None = None

    @property
    def lowest(self) -> int | None:
        return max(
            (n for n in (self.gte, None if self.gt is None else self.gt + 1) if n is not None), default=None
        )

    @property
    def highest(self) -> int | None:
        return min(
            (n for n in (self.lte, None if self.lt is None else self.lt - 1) if n is not None), default=None
        )


Filter = AllOf | AnyOf | Not | Equals | OneOf | Prefix | Missing | Range
EVERYTHING = AllOf()
NOTHING = AnyOf()


def evaluate(rule: Filter, fields: Fields) -> bool:
    """Whether a document with these fields is kept."""
    match rule:
        case AllOf(parts):
            return all(evaluate(part, fields) for part in parts)
        case AnyOf(parts):
            return any(evaluate(part, fields) for part in parts)
        case Not(part):
            return not evaluate(part, fields)
        case Equals(field, value):
            return value in values_of(fields, field)
        case OneOf(field, values):
            return any(value in values for value in values_of(fields, field))
        case Prefix(field, text):
            return any(
                isinstance(value, str) and value.startswith(text) for value in values_of(fields, field)
            )
        case Missing(field):
            return not values_of(fields, field)
        case Range():
            return any(
                isinstance(value, int) and _within(rule, value) for value in values_of(fields, rule.field)
            )


def values_of(fields: Fields, field: str) -> tuple[str | int, ...]:
    value = fields.get(field, ())
    return value if isinstance(value, tuple) else (value,)


def _within(bounds: Range, value: int) -> bool:
    lowest, highest = bounds.lowest, bounds.highest
    return (lowest is None or value >= lowest) and (highest is None or value <= highest)
