"""Whose a record is: the tenant, narrowed by any of user, org, project, thread, participant (a session narrows nothing)."""

from factbook.domain.errors import ScopeInvalid
from factbook.domain.fields import CamelModel, Id

CONTAINER_KEYS = ("orgId", "projectId", "userId", "participantId", "threadId")
SCOPE_KEYS = (*CONTAINER_KEYS, "sessionId")


class Scope(CamelModel):
    tenant_id: Id
    user_id: Id | None = None
    org_id: Id | None = None
    project_id: Id | None = None
    thread_id: Id | None = None
    session_id: Id | None = None
    participant_id: Id | None = None

    def check(self) -> None:
        """Raises ScopeInvalid for a participant without the project that knows them."""
        if self.participant_id is not None and self.project_id is None:
            raise ScopeInvalid("A scope with participantId needs the projectId the participant belongs to.")

    @property
    def container(self) -> str:
        """The one listing container of this scope: what a reader must hold to list it (docs/architecture.md)."""
        if self.user_id is not None:
            return f"U:{self.user_id}"
        if self.project_id is not None:
            private = self.participant_id is not None or self.thread_id is not None
            return f"{'W' if private else 'P'}:{self.project_id}"
        if self.participant_id is not None or self.thread_id is not None:
            return "A"
        return "T" if self.org_id is None else f"O:{self.org_id}"

    @property
    def containers(self) -> dict[str, str]:
        """What this scope names, without its session: two records of one conversation have the same."""
        return {name: value for name, value in self.to_json().items() if name != "sessionId"}

    def matches(self, wanted: dict[str, str]) -> bool:
        """Whether every key of a partial scope is this scope's too."""
        own = self.to_json()
        return all(own.get(key) == value for key, value in wanted.items())
