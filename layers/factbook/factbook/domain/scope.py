"""Whose a record is: the tenant, narrowed by any of user, org, project, thread, participant (a session narrows nothing)."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

from factbook.domain.errors import ScopeInvalid

Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]
CauseId = Annotated[str, StringConstraints(min_length=1, max_length=512)]
"""The id of a log entry as others refer to it: longer than the run id it begins with."""

PATH_ID = re.compile(r"[A-Za-z0-9._:@~-]{1,256}", re.ASCII)

CONTAINER_KEYS = ("orgId", "projectId", "userId", "participantId", "threadId")
SCOPE_KEYS = (*CONTAINER_KEYS, "sessionId")


class CamelModel(BaseModel):
    """Python names inside, camelCase names on the wire; unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True
    )

    def to_json(self) -> dict[str, Any]:
        """The wire form; absent fields are left out."""
        return self.model_dump(by_alias=True, exclude_none=True)


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

    def matches(self, wanted: dict[str, str]) -> bool:
        """Whether every key of a partial scope is this scope's too."""
        own = self.to_json()
        return all(own.get(key) == value for key, value in wanted.items())
