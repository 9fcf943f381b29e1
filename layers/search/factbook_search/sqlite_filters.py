"""A Filter as an SQL condition over the document table, alias `d`. Names are the product's own, values are always bound."""
# ruff: noqa: S608

import json

from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, Not, OneOf, Prefix, Range

MANY = "subjects"
"""The one field with several values, stored as a JSON array."""
_NEVER = "0"

Condition = tuple[str, list[str | int | bytes]]


def condition(rule: Filter) -> Condition:
    """SQL and its values. It is 1 or 0 and never NULL, so that NOT gives the opposite. Check the fields before: nothing is
    checked here.
    """
    match rule:
        case AllOf(parts):
            return _joined(" AND ", [condition(part) for part in parts], empty="1")
        case AnyOf(parts):
            return _joined(" OR ", [condition(part) for part in parts], empty=_NEVER)
        case Not(part):
            sql, values = condition(part)
            return f"NOT {sql}", values
        case Equals(field, value):
            return _one_of(field, (value,))
        case OneOf(field, wanted):
            return _one_of(field, wanted)
        case Prefix(field, text):
            return _prefix(field, text)
        case Missing(field):
            return f"(d.{field} IS NULL)", []
        case Range():
            return _range(rule)


def _joined(word: str, conditions: list[Condition], empty: str) -> Condition:
    if not conditions:
        return empty, []
    return f"({word.join(sql for sql, _ in conditions)})", [
        value for _, values in conditions for value in values
    ]


def _one_of(field: str, wanted: tuple[str | int, ...]) -> Condition:
    """Several values are passed as one JSON array, since SQLite limits the number of parameters. One is compared by
    itself: a condition is looked at for each document of a tenant.
    """
    if len(wanted) == 1 and field != MANY:
        return f"(d.{field} IS ?)", [*wanted]
    listed = "(SELECT value FROM json_each(?))"
    if field == MANY:
        sql = f"EXISTS (SELECT 1 FROM json_each(coalesce(d.{field}, '[]')) WHERE value IN {listed})"
    else:
        sql = f"(d.{field} IS NOT NULL AND d.{field} IN {listed})"
    return sql, [json.dumps(wanted)]


def _prefix(field: str, text: str) -> Condition:
    """Compared by bytes of UTF-8: as texts SQLite cuts them at a zero character, and LIKE would fold case and read wildcards."""
    begins = "substr(CAST({} AS BLOB), 1, ?) = ?"
    if field == MANY:
        sql = f"EXISTS (SELECT 1 FROM json_each(coalesce(d.{field}, '[]')) WHERE {begins.format('value')})"
    else:
        sql = f"(d.{field} IS NOT NULL AND {begins.format(f'd.{field}')})"
    raw = text.encode()
    return sql, [len(raw), raw]


def _range(rule: Range) -> Condition:
    bounds = [(sql, bound) for sql, bound in ((">=", rule.lowest), ("<=", rule.highest)) if bound is not None]
    tests = "".join(f" AND d.{rule.field} {sql} ?" for sql, _ in bounds)
    return f"(d.{rule.field} IS NOT NULL{tests})", [bound for _, bound in bounds]
