"""Whose a memory is: one person, a user or a participant of a project, and nothing narrower or wider."""

from collections.abc import Mapping

from factbook.domain.errors import ScopeInvalid
from factbook.domain.scope import SCOPE_KEYS, Scope

PERSONS = ({"userId"}, {"projectId", "participantId"})
OF_USER = "user:"


def of_participants(project: str | None) -> str:
    """What the owners of a project's participants begin with; a slash or percent sign of its id is percent-encoded, so that
    no two persons have one name.
    """
    return f"participant:{(project or '').replace('%', '%25').replace('/', '%2F')}/"


def owner_of(scope: Scope) -> str:
    """`user:<id>` or `participant:<projectId>/<id>`. Raises ScopeInvalid for a scope that is not exactly one person's."""
    named = set(scope.to_json()).intersection(SCOPE_KEYS)
    if named not in PERSONS:
        raise ScopeInvalid(
            "A memory is about one person: its scope is exactly a userId, or a projectId with a participantId."
        )
    if scope.user_id is not None:
        return f"{OF_USER}{scope.user_id}"
    return f"{of_participants(scope.project_id)}{scope.participant_id}"


def participant_in(scope: Mapping[str, str]) -> str | None:
    """The owner whom a partial scope names as a project's participant, if it does."""
    if "projectId" not in scope or "participantId" not in scope:
        return None
    return f"{of_participants(scope['projectId'])}{scope['participantId']}"
