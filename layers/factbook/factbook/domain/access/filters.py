"""What a principal may read, as a filter of index documents."""

from factbook.domain.access.principals import Principal
from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, OneOf


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
