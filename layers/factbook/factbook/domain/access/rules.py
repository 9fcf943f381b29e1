"""Who may read and write what. Deny by default; every other module asks here.

A scope is readable iff every container it names is: project (or org, when there is no project): what the principal
may read; user: being that user; participant or thread: write on its project, without a project its user's, else an
administrator's. A scope that names nothing is the tenant's, readable by all of it. An administrator reads the tenant.
"""

from factbook.domain.access.principals import Principal
from factbook.domain.errors import PermissionDenied
from factbook.domain.scope import Scope


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


def require_write(principal: Principal, scope: Scope, fact_id: str | None = None) -> None:
    """Raises PermissionDenied, naming the fact where one is meant, unless the principal may write the scope."""
    if not can_write(principal, scope):
        raise PermissionDenied(
            "Your token may not write in this scope. Ask an administrator for access to it.", factId=fact_id
        )


def require_admin(principal: Principal) -> None:
    """Raises PermissionDenied unless the principal administers the tenant."""
    if not principal.admin:
        raise PermissionDenied("Only an administrator of the tenant may do this. Use such a token.")


def _owns_persons(principal: Principal, scope: Scope) -> bool:
    if scope.user_id is not None and principal.user_id != scope.user_id:
        return False
    if scope.participant_id is None and scope.thread_id is None:
        return True
    if scope.project_id is not None:
        return scope.project_id in principal.writes_projects
    return scope.user_id is not None
