"""What callers send and get about tokens and themselves."""

from pydantic import Field, model_validator

from factbook.domain.access.principals import Actor
from factbook.domain.fields import PATH_ID, PATH_ID_RULE, CamelModel, Id, Instant, PathId


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
    agent_id: PathId | None = None
    expires_at: Instant | None = None

    @model_validator(mode="after")
    def _an_agent_has_the_id_of_one(self) -> "CreateToken":
        if self.actor.kind == "agent" and PATH_ID.fullmatch(self.actor.id) is None:
            raise ValueError(f"actor.id {PATH_ID_RULE}")
        return self


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


class Identity(CamelModel):
    tenant_id: str
    actor: str
    scopes: list[str]
    user_id: str | None = None
    tenant_admin: bool
