"""Who may read and write what. Deny by default; every other module asks here.

A scope is readable iff every container it names is: project (or org, when there is no project): what the principal
may read; user: being that user; participant or thread: write on its project, without a project its user's, else an
administrator's. A scope that names nothing is the tenant's, readable by all of it. An administrator reads the tenant.
"""

from dataclasses import dataclass

from factbook.domain.access.principals import Principal
from factbook.domain.errors import PermissionDenied
from factbook.domain.facts.facts import Fact
from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, OneOf
from factbook.domain.scope import Scope

MAX_LISTED_CONTAINERS = 100


def can_read(principal: Principal, scope: Scope) -> bool:
    if scope.tenant_id != principal.tenant:
        return False
    if principal.admin:
        return True
    if scope.project_id is not None:
        if not principal.reads_project(scope.project_id):
            return False
    elif scope.org_id is not None and not principal.reads_org(scope.org_id):
        return False
    return _owns_persons(principal, scope)


def can_write(principal: Principal, scope: Scope) -> bool:
    """Tenant-wide needs an administrator, org-wide an org administrator, a project write on it, a user's being them."""
    if scope.tenant_id != principal.tenant:
        return False
    if principal.admin:
        return True
    if scope.project_id is not None:
        if scope.project_id not in principal.writes_projects:
            return False
    elif scope.org_id is not None:
        if scope.org_id not in principal.administers_orgs:
            return False
    elif scope.user_id is None:
        return False
    return _owns_persons(principal, scope)


def can_see(principal: Principal, fact: Fact) -> bool:
    """Whether a fact may be shown: its scope is readable, and an agent sees memories of its own definition only."""
    if principal.actor.kind == "agent" and fact.agent_id is not None and fact.agent_id != principal.agent_id:
        return False
    return can_read(principal, fact.scope)


def require_write(principal: Principal, scope: Scope, fact_id: str | None = None) -> None:
    """Raises PermissionDenied, naming the fact where one is meant, unless the principal may write the scope."""
    if not can_write(principal, scope):
        raise PermissionDenied(
            "Your token may not write in this scope. Ask an administrator for access to it.", factId=fact_id
        )


def require_admin(principal: Principal) -> None:
    """Raises PermissionDenied unless the principal administers the tenant."""
    if not principal.admin:
        raise PermissionDenied("Only an administrator of the tenant may do this.")


def _owns_persons(principal: Principal, scope: Scope) -> bool:
    if scope.user_id is not None and principal.user_id != scope.user_id:
        return False
    if scope.participant_id is None and scope.thread_id is None:
        return True
    if scope.project_id is not None:
        return scope.project_id in principal.writes_projects
    return scope.user_id is not None


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


def visibility(principal: Principal) -> Filter:
    """`can_read` and `can_see` as a filter of index documents (fields: docs/search.md)."""
    tenant = Equals("tenant", principal.tenant)
    agent: Filter = (
        AnyOf((Missing("agent"), Equals("agent", principal.agent_id or "")))
        if principal.actor.kind == "agent"
        else AllOf(())
    )
    if principal.admin:
        return AllOf((tenant, agent))
    containers = ["T", *(f"O:{org}" for org in sorted(principal.reads_orgs | principal.administers_orgs))]
    projects = sorted(principal.reads_projects | principal.writes_projects)
    containers += [f"P:{name}" for name in projects]
    containers += [f"W:{name}" for name in sorted(principal.writes_projects)]
    readable: list[Filter] = [OneOf("container", tuple(containers))]
    if principal.user_id is not None:
        readable.append(AllOf((Equals("container", f"U:{principal.user_id}"), _own_scope(principal))))
    return AllOf((tenant, AnyOf(tuple(readable)), agent))


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
