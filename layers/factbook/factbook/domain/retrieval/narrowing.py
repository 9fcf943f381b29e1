"""What a filter says for certain of the documents that it keeps: which containers and values they can only have."""

from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, OneOf

_OWN_FIELD = {"U": "s_user", "P": "s_project", "W": "s_project", "O": "s_org"}
_NEVER_HAS = {
    "T": ("s_user", "s_project", "s_org", "s_participant", "s_thread"),
    "O": ("s_user", "s_project", "s_participant", "s_thread"),
    "P": ("s_user", "s_participant", "s_thread"),
    "W": ("s_user",),
    "A": ("s_user", "s_project"),
}
"""Kind of a container (`Scope.container`) → what no scope in it names."""


def required(rule: Filter, field: str) -> frozenset[str | int] | None:
    """The values of which a document must have one to be kept; None when the filter does not say."""
    match rule:
        case Equals(name, value) if name == field:
            return frozenset({value})
        case OneOf(name, values) if name == field:
            return frozenset(values)
        case AllOf(parts):
            narrowed = [each for each in (required(part, field) for part in parts) if each is not None]
            return frozenset.intersection(*narrowed) if narrowed else None
        case AnyOf(parts):
            ways = [required(part, field) for part in parts]
            sure = [way for way in ways if way is not None]
            return frozenset[str | int]().union(*sure) if len(sure) == len(ways) else None
        case _:
            return None


def containers(rule: Filter) -> frozenset[str] | None:
    """The containers in which a document can be that the filter keeps; None when it may be in any."""
    named = required(rule, "container")
    if named is None:
        return None
    return frozenset(each for each in map(str, named) if _may_hold(rule, each))


def _may_hold(rule: Filter, container: str) -> bool:
    kind, _, name = container.partition(":")
    own = _OWN_FIELD.get(kind)
    wanted = None if own is None else required(rule, own)
    if wanted is not None and name not in wanted:
        return False
    return all(required(rule, field) is None for field in _NEVER_HAS.get(kind, ()))
