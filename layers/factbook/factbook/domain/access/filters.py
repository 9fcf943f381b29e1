"""What a principal may read, and what no erasure in force names, as filters of index documents."""

from collections.abc import Iterable
from itertools import islice

from factbook.domain.access.erasing import PERSONS, Erasing, Selector, SelectorKind
from factbook.domain.access.principals import Principal
from factbook.domain.filters import EVERYTHING, AllOf, AnyOf, Equals, Filter, Missing, Not, OneOf

MOST_GROUPS = 40
"""Pairs of a project and a kind of selector that a filter names, each in up to four conditions."""
_SCOPE_FIELDS: dict[SelectorKind, str] = {
    "fact": "id",
    "user": "s_user",
    "participant": "s_participant",
    "conversation": "s_thread",
}


def readable_filter(principal: Principal) -> Filter:
    """`can_read` as a filter of index documents (fields: `domain.retrieval.documents`)."""
    tenant = Equals("tenant", principal.tenant)
    if principal.admin:
        return tenant
    containers = ["T", *(f"O:{org}" for org in sorted(principal.reads_orgs | principal.administers_orgs))]
    projects = sorted(principal.reads_projects | principal.writes_projects)
    containers += [f"P:{name}" for name in projects]
    containers += [f"W:{name}" for name in sorted(principal.writes_projects)]
    readable: list[Filter] = [OneOf("container", tuple(containers))]
    if principal.user_id is not None:
        readable.append(AllOf((Equals("container", f"U:{principal.user_id}"), _own_scope(principal))))
    return AllOf((tenant, AnyOf(tuple(readable))))


def spared_filter(erasing: Erasing) -> Filter:
    """What no erasure names, as far as a document says: it knows the subjects of the current revision alone.

    Every hit is read back and judged again. What more than `MOST_GROUPS` name is left to that, as an index takes a bounded
    number of conditions.
    """
    if not erasing.since:
        return EVERYTHING
    grouped: dict[tuple[str | None, SelectorKind], list[Selector]] = {}
    for selector in erasing.since:
        grouped.setdefault((selector.project, selector.kind), []).append(selector)
    named: list[Filter] = []
    for (project, kind), selectors in islice(grouped.items(), MOST_GROUPS):
        reached = AnyOf(tuple(_reached(kind, sorted(each.id for each in selectors))))
        named.append(reached if project is None else AllOf((Equals("s_project", project), reached)))
    return Not(AnyOf(tuple(named)))


def _reached(kind: SelectorKind, ids: Iterable[str]) -> Iterable[Filter]:
    own = tuple(ids)
    if kind in _SCOPE_FIELDS:
        yield OneOf(_SCOPE_FIELDS[kind], own)
    if kind in PERSONS:
        named = tuple(f"{kind}:{each}" for each in own)
        yield OneOf("subjects", named)
        yield OneOf("owner", named)  # a participant's owner names the project, and so does its scope


def _own_scope(principal: Principal) -> Filter:
    written = OneOf("s_project", tuple(sorted(principal.writes_projects)))
    read = OneOf("s_project", tuple(sorted(principal.reads_projects | principal.writes_projects)))
    impersonal = AllOf((Missing("s_participant"), Missing("s_thread")))
    no_project = AllOf(
        (
            Missing("s_project"),
            AnyOf(
                (
                    Missing("s_org"),
                    OneOf("s_org", tuple(sorted(principal.reads_orgs | principal.administers_orgs))),
                )
            ),
        )
    )
    return AnyOf((no_project, written, AllOf((read, impersonal))))
