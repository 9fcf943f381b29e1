"""Whose a memory is: one person, a user or a participant of a project, and nothing narrower or wider."""

from factbook.domain.errors import ScopeInvalid
from factbook.domain.scope import SCOPE_KEYS, Scope

PERSONS = ({"userId"}, {"projectId", "participantId"})


def owner_of(scope: Scope) -> str:
    """`user:<id>` or `participant:<projectId>/<id>`. Raises ScopeInvalid for a scope that is not exactly one person's."""
    named = set(scope.to_json()).intersection(SCOPE_KEYS)
    if named not in PERSONS:
        raise ScopeInvalid(
            "A memory is about one person: its scope is exactly a userId, or a projectId with a participantId."
        )
    if scope.user_id is not None:
        return f"user:{scope.user_id}"
    return f"participant:{scope.project_id}/{scope.participant_id}"
