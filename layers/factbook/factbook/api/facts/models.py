"""What callers send and get, as models: the request side of the API contract."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import PermissionDenied, ScopeInvalid
from factbook.domain.facts.facts import Fact, FactChanges, Instant
from factbook.domain.scope import CamelModel, Id, Scope
from factbook.domain.strict_json import check_depth
from factbook.usecases.facts.payloads import MAX_UPLOAD_BYTES, Content

DEFAULT_LIMIT, MAX_LIMIT = 25, 100
MAX_BATCH = 100
_WHOLE = re.compile("-?[0-9]{1,400}", re.ASCII)


def _limit(text: Any) -> Any:
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else text
    if not isinstance(number, int) or number < 1:
        raise ValueError("must be a whole number from 1 to 100")
    return min(number, MAX_LIMIT)


def _number(text: Any) -> Any:
    if isinstance(text, str) and _WHOLE.fullmatch(text):
        return int(text)
    raise ValueError("must be a whole number")


def _flag(text: Any) -> Any:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


Limit = Annotated[int, Field(ge=1), BeforeValidator(_limit)]
VersionParam = Annotated[int, Field(ge=1), BeforeValidator(_number)]
FlagParam = Annotated[bool, BeforeValidator(_flag)]
ExpectVersion = Annotated[int, Field(ge=1)]
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ScopeRequest(CamelModel):
    """A scope as sent: the tenant is filled in."""

    tenant_id: Id | None = None
    user_id: Id | None = None
    org_id: Id | None = None
    project_id: Id | None = None
    thread_id: Id | None = None
    session_id: Id | None = None
    participant_id: Id | None = None

    def resolve(self, principal: Principal) -> Scope:
        """Raises PermissionDenied for another tenant, ScopeInvalid for a participant without a project."""
        scope = Scope(**{**self.model_dump(), "tenant_id": principal.tenant})
        scope.check()
        self._require_own_tenant(principal)
        return scope

    def wanted(self, principal: Principal) -> dict[str, str]:
        """As a filter: the keys a scope must have. Raises PermissionDenied for another tenant."""
        self._require_own_tenant(principal)
        keys: dict[str, str] = self.to_json()
        keys.pop("tenantId", None)
        return keys

    def _require_own_tenant(self, principal: Principal) -> None:
        if self.tenant_id not in (None, principal.tenant):
            raise PermissionDenied(
                "Your token belongs to another tenant. Leave tenantId out or send your own."
            )


def _shallow(content: Any) -> Any:
    check_depth(content)
    return content


class FactContent(FactChanges):
    """`content` is any JSON, null included, or a summary of `contentRef`; `contentHash` is a hint, never trusted."""

    content: Annotated[Any, AfterValidator(_shallow)] = None
    content_hash: Annotated[str, Field(max_length=256)] | None = None
    content_ref: Annotated[str, Field(min_length=1, max_length=2048)] | None = None

    def sent(self) -> Content:
        return Content(self.content, "content" in self.model_fields_set, self.content_ref)


class WriteFact(FactContent):
    """A new fact: it needs `content`, `contentRef` or both."""

    type: TypeName
    scope: ScopeRequest = ScopeRequest()
    key: Id | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "WriteFact":
        if "content" not in self.model_fields_set and self.content_ref is None:
            raise ValueError("content is missing: give any JSON, or a contentRef")
        return self


class WriteFacts(CamelModel):
    """Up to 100 independent writes."""

    items: Annotated[list[WriteFact], Field(min_length=1, max_length=MAX_BATCH)]


class SupersedeFact(FactContent):
    """The next revision: absent fields keep their values, an empty list clears."""

    expect_version: ExpectVersion | None = None


class RequestUpload(CamelModel):
    """An upload of exactly these bytes: for a new fact, or for the next revision of `factId`."""

    size: Annotated[int, Field(ge=1, le=MAX_UPLOAD_BYTES)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    fact_id: Id | None = None


class UploadAnswer(CamelModel):
    """PUT the bytes to `uploadUrl` with `headers`, then name `contentRef` in a write."""

    content_ref: str
    upload_url: str
    headers: dict[str, str]
    expires_at: str


class VerifyFact(CamelModel):
    expect_version: ExpectVersion | None = None


class DeleteQuery(CamelModel):
    expect_version: VersionParam | None = None


class GetQuery(CamelModel):
    version: VersionParam | None = None
    as_of: Instant | None = None
    include: Literal["indexState"] | None = None


class ContentQuery(CamelModel):
    version: VersionParam | None = None


class PageQuery(CamelModel):
    limit: Limit = DEFAULT_LIMIT
    cursor: str | None = None


class CursorQuery(CamelModel):
    cursor: str | None = None


class ListQuery(PageQuery):
    """`scope` is JSON, partial: every key given must match."""

    type: TypeName | None = None
    scope: Annotated[str, Field(min_length=1)] | None = None
    scope_kind: Annotated[str, Field(min_length=1)] | None = None
    scope_id: Id | None = None
    inherit: FlagParam | None = None
    as_of: Instant | None = None

    def container(self) -> dict[str, str]:
        """The scope key that `scopeKind` and `scopeId` ask for. Raises ScopeInvalid."""
        if self.scope_kind is None:
            if self.scope_id is not None or self.inherit is not None:
                raise ScopeInvalid("scopeId and inherit need a scopeKind: tenant, org or project.")
            return {}
        if self.scope_kind == "tenant":
            if self.scope_id is not None:
                raise ScopeInvalid("scopeKind tenant takes no scopeId: it is always your own tenant.")
            return {}
        if self.scope_kind not in ("org", "project"):
            raise ScopeInvalid("scopeKind is one of tenant, org and project.")
        if self.scope_id is None:
            raise ScopeInvalid(f"scopeKind {self.scope_kind} needs a scopeId.")
        return {f"{self.scope_kind}Id": self.scope_id}


class ProjectGrants(CamelModel):
    read: list[Id] = Field(default_factory=list)
    write: list[Id] = Field(default_factory=list)


class OrgGrants(CamelModel):
    read: list[Id] = Field(default_factory=list)
    admin: list[Id] = Field(default_factory=list)


class CreateToken(CamelModel):
    """A token for a user, a service or an agent; it reads what is tenant-wide and what it is granted."""

    actor: Actor
    admin: bool = False
    projects: ProjectGrants = ProjectGrants()
    orgs: OrgGrants = OrgGrants()
    agent_id: Id | None = None
    expires_at: Instant | None = None


class TokenAnswer(CamelModel):
    """A token without its secret."""

    id: str
    actor: Actor
    admin: bool
    projects: ProjectGrants
    orgs: OrgGrants
    agent_id: str | None = None
    created_at: str
    created_by: str
    expires_at: str | None = None
    revoked_at: str | None = None


class NewTokenAnswer(TokenAnswer):
    """With the secret, shown this once."""

    token: str


class TokenPage(CamelModel):
    data: list[TokenAnswer]
    has_more: bool
    next_cursor: str | None = None


class FactPage(CamelModel):
    data: list[Fact]
    has_more: bool
    next_cursor: str | None = None


class ErrorBody(CamelModel):
    code: str
    message: str
    request_id: str
    details: dict[str, Any] | None = None


class ErrorAnswer(CamelModel):
    error: ErrorBody


class WriteResult(CamelModel):
    """One item of a batch: the status it would have had alone, and its fact or its error."""

    status: int
    fact: Fact | None = None
    error: dict[str, Any] | None = None


class WriteResults(CamelModel):
    results: list[WriteResult]


class Identity(CamelModel):
    tenant_id: str
    actor: str
    scopes: list[str]
    user_id: str | None = None
    tenant_admin: bool


class Health(CamelModel):
    ok: Literal[True]


class FactAnswer(Fact):
    """A fact; with `include=indexState` whether searches find it, and why not wholly."""

    index_state: Literal["pending", "indexed", "failed"] | None = None
    index_problem: str | None = None


class IndexJobAnswer(CamelModel):
    """A build of a new search index, or a repair of the one in use: running, or the last that was done."""

    kind: Literal["build", "repair"]
    index: str
    phase: str
    records: int
    changed: int
    started_at: str
    updated_at: str


class IndexProgress(CamelModel):
    """`waiting`: records that search by meaning does not find yet, counted up to 1,000."""

    job: IndexJobAnswer | None = None
    waiting: int


class Status(CamelModel):
    """Which search there is, which build serves, the memory schema it speaks, and how far the search index is."""

    search: str
    build: str
    schema_version: str
    index: IndexProgress
