"""Which listing partitions a principal reads."""

from dataclasses import dataclass

from factbook.domain.access.principals import Principal

MAX_LISTED_CONTAINERS = 100


def containers_of(principal: Principal) -> int:
    """How many containers a list of everything would read: tenant, own user, orgs, projects, and these again if written."""
    projects = principal.reads_projects | principal.writes_projects
    orgs = principal.reads_orgs | principal.administers_orgs
    return 2 + len(projects) + len(principal.writes_projects) + len(orgs)


@dataclass(frozen=True)
class ListingPlan:
    """The listing containers to read; None means the administrators' index of the whole tenant."""

    containers: tuple[str, ...] | None


def listing_plan(principal: Principal, wanted: dict[str, str]) -> ListingPlan:
    """Where facts can be that the principal may read and that match every key of the partial scope `wanted`."""
    if principal.admin:
        return ListingPlan(_named_containers(wanted))
    project, org, user = wanted.get("projectId"), wanted.get("orgId"), wanted.get("userId")
    personal = "participantId" in wanted or "threadId" in wanted
    plan: list[str] = []
    if user is None and project is None and not personal:
        if org is None:
            plan.append("T")
        orgs = (principal.reads_orgs | principal.administers_orgs) if org is None else {org}
        plan += [f"O:{name}" for name in sorted(orgs) if principal.reads_org(name)]
    if user is None:
        projects = (principal.reads_projects | principal.writes_projects) if project is None else {project}
        for name in sorted(projects):
            if principal.reads_project(name) and not personal:
                plan.append(f"P:{name}")
            if name in principal.writes_projects:
                plan.append(f"W:{name}")
    if principal.user_id is not None and user in (None, principal.user_id):
        plan.append(f"U:{principal.user_id}")
    return ListingPlan(tuple(plan))


def _named_containers(wanted: dict[str, str]) -> tuple[str, ...] | None:
    # A wanted user names one container; a wanted project alone does not, since its users' facts are listed by user.
    return (f"U:{wanted['userId']}",) if "userId" in wanted else None
