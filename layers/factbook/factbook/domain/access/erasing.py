"""Whom an erasure is about, and what it names: the one rule, for facts and the log alike.

A record is named by a handful of selectors: its id, whom its scope names, its owner, whom any of its revisions is about.
An erasure matches what its selector is among them. A project in a selector narrows it to what stands in that project.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from factbook.domain.access.owners import OF_USER, of_participants
from factbook.domain.scope import Scope

SelectorKind = Literal["fact", "participant", "external", "user", "conversation"]
PERSONS: tuple[SelectorKind, ...] = ("participant", "external", "user")


@dataclass(frozen=True)
class Selector:
    """What one erasure is to reach: `id` is a fact's, a person's or a thread's. Only a person's has a `project`."""

    kind: SelectorKind
    id: str
    project: str | None = None

    def names(
        self, fact_id: str, scope: Scope, owner: str | None = None, subjects: Iterable[str] = ()
    ) -> bool:
        """Whether a fact is reached; `subjects` are those of all its revisions, as `kind:id`."""
        return self in selectors_of(fact_id, scope, owner, subjects)

    def names_scope(self, scope: Scope) -> bool:
        """Whether an entry of the log is reached, or anything else that only a scope tells whose it is."""
        return self in selectors_of_scope(scope)

    def to_json(self) -> dict[str, Any]:
        """As a request says it."""
        if self.kind == "fact":
            return {"factId": self.id}
        if self.kind == "conversation":
            return {"conversationId": self.id}
        said: dict[str, Any] = {"subject": {"kind": self.kind, "id": self.id}}
        return said if self.project is None else said | {"projectId": self.project}


def selectors_of_scope(scope: Scope) -> frozenset[Selector]:
    """Every selector that reaches what stands in this scope."""
    found: set[Selector] = set()
    if scope.user_id is not None:
        found |= _person("user", scope.user_id, scope)
    if scope.participant_id is not None:
        found |= _person("participant", scope.participant_id, scope)
    if scope.thread_id is not None:
        found.add(Selector("conversation", scope.thread_id))
    return frozenset(found)


def selectors_of(
    fact_id: str, scope: Scope, owner: str | None = None, subjects: Iterable[str] = ()
) -> frozenset[Selector]:
    """Every selector that reaches this fact."""
    found = {Selector("fact", fact_id), *selectors_of_scope(scope)}
    own_project = of_participants(scope.project_id)
    if owner is not None and owner.startswith(OF_USER):
        found |= _person("user", owner.removeprefix(OF_USER), scope)
    elif owner is not None and owner.startswith(own_project):
        found |= _person("participant", owner.removeprefix(own_project), scope)
    for subject in subjects:
        kind, _, name = subject.partition(":")
        known = next((each for each in PERSONS if each == kind), None)
        if known is not None:
            found |= _person(known, name, scope)
    return frozenset(found)


def _person(kind: SelectorKind, name: str, scope: Scope) -> set[Selector]:
    anywhere = Selector(kind, name)
    return {anywhere} if scope.project_id is None else {anywhere, Selector(kind, name, scope.project_id)}


@dataclass(frozen=True)
class Erasing:
    """A tenant's erasures that are in force: by selector, when each was asked for (the record's `createdAt`), and their ids.

    What they name is shown on no road and takes no write.
    """

    since: Mapping[Selector, str] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, in_force: Iterable[tuple[Selector, str]], ids: Iterable[str] = ()) -> "Erasing":
        """Of several that reach the same, the first counts."""
        since: dict[Selector, str] = {}
        for selector, at in in_force:
            since[selector] = min(at, since.get(selector, at))
        return cls(since, frozenset(ids))

    def of_fact(
        self, fact_id: str, scope: Scope, owner: str | None = None, subjects: Iterable[str] = ()
    ) -> str | None:
        """When the erasure was asked for that reaches this fact; None when none does."""
        return self._first(selectors_of(fact_id, scope, owner, subjects)) if self.since else None

    def of_scope(self, scope: Scope) -> str | None:
        """As `of_fact`, for what only a scope tells whose it is."""
        return self._first(selectors_of_scope(scope)) if self.since else None

    def _first(self, naming: Iterable[Selector]) -> str | None:
        return min((self.since[each] for each in naming if each in self.since), default=None)


NOTHING_ERASED = Erasing()
