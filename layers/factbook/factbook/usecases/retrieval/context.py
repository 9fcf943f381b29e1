"""The memory of one turn: what its intents find, as one block of data, with the policies a person verified."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from factbook.domain.access.owners import participant_in
from factbook.domain.access.principals import Principal
from factbook.domain.facts.fact import Fact
from factbook.domain.retrieval.rendering import MemoryItem, RenderedMemory, interleave, render_memory
from factbook.ports.deadline import NEVER, Deadline
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.retrieval.retrieve import Question, retrieve_facts
from factbook.usecases.retrieval.searching import Mode, Patience, SearchPorts

NOBODYS_MEMORIES = "memory-needs-participant"
IntentScope = Literal["same-conversation", "same-user", "same-project", "tenant"]

_NEEDS: dict[IntentScope, tuple[tuple[str, ...], str]] = {
    "same-conversation": (("threadId",), "memory-needs-conversation"),
    "same-user": (("participantId", "userId"), NOBODYS_MEMORIES),
    "same-project": (("projectId",), "memory-needs-project"),
    "tenant": ((), ""),
}
"""What the turn's scope must name for an intent to read anything (any of these), and the warning when it does not."""


@dataclass(frozen=True)
class Intent:
    """What a turn wants to remember. `mode` None: both, or by meaning where the index has no words."""

    types: tuple[str, ...] = ()
    scope: IntentScope = "tenant"
    mode: Mode | None = None
    limit: int = 10
    type_prefix: str | None = None


@dataclass(frozen=True)
class Turn:
    """A turn that is about to be answered; `scope` names its user, project and conversation."""

    query: str
    intents: tuple[Intent, ...]
    scope: dict[str, str] = field(default_factory=dict)
    instruction_types: frozenset[str] = frozenset()
    max_tokens: int | None = None
    agent: str | None = None


@dataclass(frozen=True)
class TurnMemory:
    rendered: RenderedMemory
    warnings: tuple[str, ...]
    degraded: str | None


def build_context(
    ports: FactPorts,
    engine: SearchPorts,
    principal: Principal,
    turn: Turn,
    standing: Sequence[Fact] | None = (),
    deadline: Deadline = NEVER,
) -> TurnMemory:
    """`standing`: what stands before all else; None when the turn names nobody whose memories to look for.

    Raises as `retrieve_facts`: an intent by meaning fails its turn when there are no embeddings.
    """
    rankings: list[list[MemoryItem]] = []
    warnings: dict[str, None] = {} if standing is not None else {NOBODYS_MEMORIES: None}
    degraded: str | None = None
    patience = Patience()  # of the turn: however many intents it has, its query is embedded once
    for intent in turn.intents:
        scope, warning = _narrowed(intent.scope, turn.scope)
        if scope is None:
            warnings[warning] = None
            continue
        question = Question(
            intent.mode or ("both" if engine.by_words else "semantic"),
            turn.query,
            intent.limit,
            intent.types,
            intent.type_prefix,
            scope,
            agent=turn.agent,
            person=participant_in(turn.scope),
        )
        found = retrieve_facts(ports, engine, principal, question, patience, deadline)
        rankings.append([_item(fact) for fact, _ in found.facts])
        degraded = degraded or found.degraded
    first = [_item(fact) for fact in standing or ()]
    met = {item.id for item in first}
    ranked = first + [item for item in interleave(rankings) if item.id not in met]
    rendered = render_memory(ranked, turn.instruction_types, turn.max_tokens)
    return TurnMemory(rendered, tuple(warnings), degraded)


def _narrowed(kind: IntentScope, scope: dict[str, str]) -> tuple[dict[str, str] | None, str]:
    """The partial scope an intent reads; None with a warning when the turn does not say whose it is."""
    needed, warning = _NEEDS[kind]
    named = next((key for key in needed if key in scope), None)
    if needed and named is None:
        return None, warning
    keys = {named, "projectId"} if named in ("participantId", "threadId") else {named}
    return {key: scope[key] for key in keys if key is not None and key in scope}, ""


def _item(fact: Fact) -> MemoryItem:
    by = fact.attributed_to
    return MemoryItem(
        fact.id,
        fact.version,
        fact.type,
        fact.trust,
        f"{by.kind}:{by.id}",
        fact.updated_at,
        fact.content_text,
        stale=fact.stale is True,
    )
