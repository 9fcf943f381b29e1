"""Who calls, and what they hold. Made by the authentication module only."""

from dataclasses import dataclass, field
from typing import Literal

from factbook.domain.fields import CamelModel, Id

ActorKind = Literal["user", "service", "agent"]


class Actor(CamelModel):
    kind: ActorKind
    id: Id

    @property
    def text(self) -> str:
        """The person as string fields name them, `user:<id>`."""
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True)
class Principal:
    """An authenticated caller. A project written is a project read; an org administered is an org read."""

    tenant: str
    actor: Actor
    admin: bool = False
    reads_projects: frozenset[str] = field(default_factory=frozenset)
    writes_projects: frozenset[str] = field(default_factory=frozenset)
    reads_orgs: frozenset[str] = field(default_factory=frozenset)
    administers_orgs: frozenset[str] = field(default_factory=frozenset)
    agent_id: str | None = None

    @property
    def name(self) -> str:
        return self.actor.text

    @property
    def user_id(self) -> str | None:
        return self.actor.id if self.actor.kind == "user" else None

    def reads_project(self, project: str) -> bool:
        return project in self.reads_projects or project in self.writes_projects

    def reads_org(self, org: str) -> bool:
        return org in self.reads_orgs or org in self.administers_orgs
