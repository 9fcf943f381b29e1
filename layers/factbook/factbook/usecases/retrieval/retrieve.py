"""Find facts: newest first, by words, by meaning or both. What is answered was just read from the store.

A hit is dropped unless its fact is what was indexed, shown to the caller and within every filter now.
"""

import time
from dataclasses import dataclass, field
from itertools import count

from factbook.domain import times, wire
from factbook.domain.access.owners import participant_in
from factbook.domain.access.principals import Principal
from factbook.domain.errors import BadInput, SemanticUnavailable
from factbook.domain.facts import gate
from factbook.domain.facts.fact import Fact
from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, OneOf, Prefix, Range, evaluate
from factbook.domain.retrieval.searchable import BESIDE, FACTS, SCOPE_FIELDS, fact_fields, index_version
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.store import Head
from factbook.usecases.facts.listing import Query, list_facts
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.facts.reading import still_stale
from factbook.usecases.merging import NEWEST
from factbook.usecases.retrieval.searching import SEMANTIC_OFF, Asked, Mode, Patience, SearchPorts, find

LIST_PAGES = 5
"""That a list is looked through for what passes filters of other kinds than its types."""
LIST_PAGE = 100
LIST_SHARE = 0.7
"""Of the time, in which the last page is begun."""
WAIT_SECONDS = 2.0
SCORE_BYTES = 64
"""What stands beside each fact of an answer."""

_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.25


@dataclass(frozen=True)
class Question:
    """What to find. A filter left empty keeps everything; `valid_at` is now by default. `person`: the owner in whose
    conversation it is asked; None: the participant whom `scope` names, if it does.
    """

    mode: Mode
    text: str = ""
    limit: int = 10
    types: tuple[str, ...] = ()
    type_prefix: str | None = None
    scope: dict[str, str] = field(default_factory=dict)
    trust: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    valid_at: str | None = None
    min_score: float | None = None
    embedding_model: str | None = None
    after: tuple[tuple[str, int], ...] = ()
    agent: str | None = None
    person: str | None = None
    require_fresh: bool = False


FULL = "answer-full"
"""More was found than one answer holds."""


@dataclass(frozen=True)
class Found:
    """Facts best first with their scores (none in a list); `degraded` says what this answer had to do without.

    `looked_back_to`: of a list that is not whole, the first write of the oldest fact that it met and its reader may see; None when
    it met none. What is older may not have been looked at.
    """

    facts: list[tuple[Fact, float | None]]
    degraded: str | None = None
    looked_back_to: str | None = None


def retrieve_facts(
    ports: FactPorts,
    engine: SearchPorts,
    principal: Principal,
    question: Question,
    patience: Patience | None = None,
    deadline: Deadline = NEVER,
) -> Found:
    """Raises SemanticUnavailable, SearchUnavailable, or BadInput for a model that is not the active one; SourceUnavailable
    when something it found is stale and the question says that nothing may be.

    `patience`: what the request of which this is a part may still wait; `deadline`: when a list stops being read.
    """
    patience = patience or Patience()
    require_active_model(engine, question)
    person = participant_in(question.scope) if question.person is None else question.person
    look = ports.look(principal.tenant, "recalled", agent=question.agent, person=person)
    rule = asked_rule(principal, question, look)
    if question.mode == "list":
        return _fresh(question, _listed(ports, principal, question, rule, look, deadline))

    def read(versions: dict[str, int]) -> dict[str, Fact]:
        heads = ports.facts.heads(principal.tenant, sorted({key.removesuffix(BESIDE) for key in versions}))
        found = {
            key: _as_indexed(
                principal, heads.get(key.removesuffix(BESIDE)), look, version, key.endswith(BESIDE)
            )
            for key, version in versions.items()
        }
        return {
            key: fact
            for key, fact in found.items()
            if fact is not None and may_answer(principal, fact, rule, look)
        }

    behind = is_behind(ports, engine, principal, question.after, patience)
    asked = Asked(question.mode, question.text, question.limit, question.min_score)
    answer = find(engine, principal.tenant, asked, rule, read, patience)
    found = _within_size(list(answer.found), answer.degraded or ("index-behind" if behind else None))
    ports.met_stale([fact for fact, _ in found.facts if fact.stale])
    return _fresh(question, found)


def _fresh(question: Question, found: Found) -> Found:
    """Raises SourceUnavailable for the first stale one, if nothing may be."""
    stale = next((fact for fact, _ in found.facts if fact.stale), None)
    if stale is not None and question.require_fresh:
        raise still_stale(None, stale)
    return found


def _as_indexed(
    principal: Principal,
    head: Head | None,
    look: gate.Look,
    version: int,
    beside: bool,  # noqa: FBT001
) -> Fact | None:
    """The fact of a hit, if it is what was indexed. Whoever sees a proposal sees it instead of the text it is over."""
    if head is None:
        return None
    settled, head = head.settled(look.now).marked(look.now), head.marked(look.now)
    indexed = head.confirmed if beside else head
    if indexed is None or index_version(indexed.fact, indexed.searched_as) != version:
        return None
    if not beside:
        return head.fact if settled.lapsed is None else None
    if settled.lapsed is not None:
        return settled.fact
    return None if gate.can_see(principal, head.fact, look) else indexed.fact


def asked_rule(principal: Principal, question: Question, look: gate.Look) -> Filter:
    """Everything a fact must be to answer: shown to the principal, valid and within the filters."""
    valid = times.epoch_ms(question.valid_at or look.now)
    parts: list[Filter] = [
        gate.shown_filter(principal, look),
        Equals("source", FACTS),
        AnyOf((Missing("valid_from"), Range("valid_from", lte=valid))),
        AnyOf((Missing("valid_until"), Range("valid_until", gt=valid))),
        *scope_parts(question.scope),
    ]
    choices = {"type": question.types, "trust": question.trust, "subjects": question.subjects}
    parts += [OneOf(name, values) for name, values in choices.items() if values]
    if question.type_prefix is not None:
        parts.append(Prefix("type", question.type_prefix))
    return AllOf(tuple(parts))


def scope_parts(scope: dict[str, str]) -> list[Filter]:
    return [Equals(SCOPE_FIELDS[key], value) for key, value in sorted(scope.items())]


def may_answer(principal: Principal, fact: Fact, rule: Filter, look: gate.Look) -> bool:
    """Whether a fact passes the gate, and the same rule that the index was asked with."""
    fields = {"tenant": fact.scope.tenant_id, "id": fact.id, **fact_fields(fact)}
    return gate.can_see(principal, fact, look) and evaluate(rule, fields)


def require_active_model(engine: SearchPorts, question: Question) -> None:
    """Raises BadInput when the caller names another model than the one in use, SemanticUnavailable when there is none."""
    if question.embedding_model is None:
        return
    if question.mode == "semantic" and engine.spaces is None:
        raise SemanticUnavailable(SEMANTIC_OFF)
    space = engine.spaces.active() if engine.spaces else None
    if space is None or space.model != question.embedding_model:
        raise BadInput(
            "embeddingModel is not the model in use. Leave it out, or ask /v1/memory/status for its name."
        )


def is_behind(
    ports: FactPorts,
    engine: SearchPorts,
    principal: Principal,
    after: tuple[tuple[str, int], ...],
    patience: Patience,
) -> bool:
    """Wait until the index shows what the caller wrote, at most two seconds; whether it still does not."""
    if not after:
        return False
    heads = ports.facts.heads(principal.tenant, list({fact_id: None for fact_id, _ in after}))
    look = ports.look(principal.tenant, "by-id", past=True)  # a deletion is waited for as well
    wanted = {
        key: index_version(head.fact, head.searched_as)
        for key, head in heads.items()
        if gate.can_see(principal, head.fact, look)
    }
    longest = min(WAIT_SECONDS, patience.left())
    started, slept, pause = time.monotonic(), 0.0, _FIRST_LOOK
    while True:
        entries = engine.index.lookup(principal.tenant, list(wanted))
        wanted = {
            key: version
            for key, version in wanted.items()
            if key not in entries or entries[key].version < version
        }
        if not wanted or max(slept, time.monotonic() - started) + pause > longest:
            return bool(wanted)
        engine.sleep(pause)
        slept += pause
        pause = min(2 * pause, _LONGEST_LOOK)


def _listed(
    ports: FactPorts,
    principal: Principal,
    question: Question,
    rule: Filter,
    look: gate.Look,
    deadline: Deadline,
) -> Found:
    """A list of types reads those alone, so it goes on until it is whole or the time is up; another, for some pages."""
    query = Query(question.types, question.scope, type_prefix=question.type_prefix)
    last = deadline.share(LIST_SHARE)
    by_type = bool(question.types) or question.type_prefix is not None
    only_by_type = by_type and not (question.trust or question.subjects)
    found: list[tuple[Fact, float | None]] = []
    position, looked_back_to = NEWEST, None
    for pages in count(1):
        page = list_facts(ports, principal, query, LIST_PAGE, position, look, deadline)
        if page.facts:
            looked_back_to = page.facts[-1].created_at
        found += [(fact, None) for fact in page.facts if may_answer(principal, fact, rule, look)]
        if len(found) >= question.limit or page.position is None:
            break
        before, position = position, page.position
        if last.passed or position == before or (pages >= LIST_PAGES and not only_by_type):
            return _within_size(found, "list-incomplete", looked_back_to)
    return _within_size(found[: question.limit])


def _within_size(
    found: list[tuple[Fact, float | None]], degraded: str | None = None, looked_back_to: str | None = None
) -> Found:
    """As many of the best as fit into one answer; always the first."""
    kept = wire.fitting(found, lambda each: each[0].wire_bytes + SCORE_BYTES)
    return Found(kept, degraded or (FULL if len(kept) < len(found) else None), looked_back_to)
