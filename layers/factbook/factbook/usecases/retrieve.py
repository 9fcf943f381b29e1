"""Find facts by words, by meaning or both. The index only proposes: what is returned was just read from the store.

A hit is dropped unless its fact is what was indexed, current, visible to the caller and within every filter now. The
search asks for more than `limit`, and up to three more rounds are made when too few survive.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..domain import times
from ..domain.access import can_see, visibility
from ..domain.errors import BadInput, SearchUnavailable, SemanticUnavailable
from ..domain.facts import Fact
from ..domain.filters import AllOf, AnyOf, Equals, Filter, Missing, OneOf, Range, evaluate
from ..domain.principals import Principal
from ..domain.ranking import Ranking, fuse_keyword_and_meaning
from ..domain.searchable import FACTS, SCOPE_FIELDS, fact_fields, index_version
from ..domain.tokens import Tokenizer
from ..embedding_ports import EmbeddingFailure, EmbeddingsUnavailable, Vector
from ..ports import Head, Memory
from ..search_ports import Hit, IndexMissing, KeywordLeg, Leg, LegFailure, SearchIndex, VectorLeg
from .embedding_spaces import Spaces
from .listing import NEWEST, Query, list_facts

Mode = Literal["list", "keyword", "semantic", "both"]

LEG_DEPTH = 100
MAX_DEPTH = 4096
REFILLS = 3
READ_AT_ONCE = 100
LIST_PAGES = 5
ANSWER_BYTES = 3_500_000
QUERY_CHARACTERS = 8_000
"""A longer query is embedded by its beginning; its words all count."""
WAIT_SECONDS = 2.0
_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.25


@dataclass(frozen=True)
class Search:
    """The ports of retrieval. `spaces` is None when search by meaning is off."""

    memory: Memory
    index: SearchIndex
    tokenizer: Tokenizer
    spaces: Spaces | None = None
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Question:
    """What to find. A filter left empty keeps everything; `valid_at` is now by default."""

    mode: Mode
    text: str = ""
    limit: int = 10
    types: tuple[str, ...] = ()
    scope: dict[str, str] = field(default_factory=dict)
    trust: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    valid_at: str | None = None
    min_score: float | None = None
    embedding_model: str | None = None
    after: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Found:
    """Facts best first with their scores (none in a list); `degraded` says what this answer had to do without."""

    facts: list[tuple[Fact, float | None]]
    degraded: str | None = None


def retrieve_facts(search: Search, principal: Principal, question: Question) -> Found:
    """Raises SemanticUnavailable, SearchUnavailable, or BadInput for a model that is not the active one."""
    _require_active_model(search, question)
    now = search.memory.clock.now()
    rule = asked(principal, question, now)
    if question.mode == "list":
        return _listed(search.memory, principal, question, rule)
    try:
        query = _Query(search, principal, question, rule)
        behind = "index-behind" if _is_behind(search, principal, question.after) else None
        facts = query.run()
    except IndexMissing as error:
        raise SearchUnavailable(error.message) from error
    return Found(facts, query.degraded or behind)


def asked(principal: Principal, question: Question, now: str) -> Filter:
    """Everything a fact must be to answer: visible to the principal, within the filters, valid, unexpired, reviewed."""
    valid = times.epoch_ms(question.valid_at or now)
    parts: list[Filter] = [
        visibility(principal),
        Equals("source", FACTS),
        Missing("review"),
        AnyOf((Missing("expires_at"), Range("expires_at", gt=times.epoch_ms(now)))),
        AnyOf((Missing("valid_from"), Range("valid_from", lte=valid))),
        AnyOf((Missing("valid_until"), Range("valid_until", gt=valid))),
        *(Equals(SCOPE_FIELDS[key], value) for key, value in sorted(question.scope.items())),
    ]
    choices = {"type": question.types, "trust": question.trust, "subjects": question.subjects}
    parts += [OneOf(name, values) for name, values in choices.items() if values]
    return AllOf(tuple(parts))


class _Query:
    """One retrieval by search: rounds of one search and one read, until enough facts survive or nothing is left."""

    def __init__(self, search: Search, principal: Principal, question: Question, rule: Filter) -> None:
        self._search = search
        self._principal = principal
        self._question = question
        self._rule = rule
        self._read: dict[str, Fact | None] = {}
        self.degraded: str | None = None
        self._vector = None if question.mode == "keyword" else self._embedded()
        self._terms = () if question.mode == "semantic" else search.tokenizer.query(question.text)

    def run(self) -> list[tuple[Fact, float | None]]:
        depth = max(LEG_DEPTH, 2 * self._question.limit)
        ranked, versions, whole = self._ranked(depth)
        for _ in range(1 + REFILLS):
            self._read_next(ranked, versions)
            if len(self._survivors(ranked)) >= self._question.limit:
                break
            if all(key in self._read for key, _ in ranked):
                if whole or depth >= MAX_DEPTH:
                    break
                depth = min(4 * depth, MAX_DEPTH)
                ranked, versions, whole = self._ranked(depth)
        return self._answer(ranked)

    def _ranked(self, depth: int) -> tuple[Ranking, dict[str, int], bool]:
        """One search: the ranking, each record's version in the index, and whether no leg can give more."""
        legs: list[Leg] = []
        if self._question.mode != "semantic":
            legs.append(KeywordLeg(self._terms, self._rule, depth))
        if self._vector is not None:
            legs.append(VectorLeg(self._vector, self._rule, depth))
        answers = self._search.index.search(self._principal.tenant, legs)
        keyword = semantic = ()
        for leg, answer in zip(legs, answers, strict=True):
            name = "keyword" if isinstance(leg, KeywordLeg) else "semantic"
            if isinstance(answer, LegFailure):
                self.degraded = f"{name}-{answer.reason}"
            elif name == "keyword":
                keyword = answer
            else:
                semantic = answer
        versions = {hit.id: hit.version for hit in (*semantic, *keyword)}
        return self._scored(keyword, semantic), versions, len(keyword) < depth and len(semantic) < depth

    def _scored(self, keyword: Sequence[Hit], semantic: Sequence[Hit]) -> Ranking:
        by_words = [(hit.id, hit.score) for hit in keyword]
        by_meaning = [(hit.id, hit.score) for hit in semantic]
        if self._question.mode == "both":
            ranked = fuse_keyword_and_meaning(by_words, by_meaning)
        else:
            ranked = by_words or by_meaning
        least = self._question.min_score
        return ranked if least is None else [(key, score) for key, score in ranked if score >= least]

    def _read_next(self, ranked: Ranking, versions: dict[str, int]) -> None:
        """Read back the next best records: as many as are missing, and half as many again."""
        missing = self._question.limit - len(self._survivors(ranked))
        unread = [key for key, _ in ranked if key not in self._read]
        batch = unread[: min(READ_AT_ONCE, missing + max(5, missing // 2))]
        heads = self._search.memory.facts.heads(self._principal.tenant, batch) if batch else {}
        for key in batch:
            self._read[key] = self._confirmed(heads.get(key), versions[key])

    def _confirmed(self, head: Head | None, version: int) -> Fact | None:
        """The fact if it is what the index says it is, and may be shown."""
        if head is None or index_version(head.fact, head.edition) != version or not head.fact.current:
            return None
        return head.fact if may_answer(self._principal, head.fact, self._rule) else None

    def _survivors(self, ranked: Ranking) -> list[tuple[Fact, float | None]]:
        return [(fact, score) for key, score in ranked if (fact := self._read.get(key)) is not None]

    def _answer(self, ranked: Ranking) -> list[tuple[Fact, float | None]]:
        return within_size(self._survivors(ranked)[: self._question.limit])

    def _embedded(self) -> Vector | None:
        """The query's vector; without one `both` goes on by words, and says so."""
        spaces, alone = self._search.spaces, self._question.mode == "semantic"
        if spaces is None:
            if alone:
                raise SemanticUnavailable(SEMANTIC_OFF)
            self.degraded = "no-embeddings"
            return None
        try:
            vector = spaces.embed_query(self._question.text[:QUERY_CHARACTERS])
        except EmbeddingsUnavailable:
            vector = EmbeddingFailure("no answer")
        if vector is None or isinstance(vector, EmbeddingFailure):
            self.degraded = "embeddings-building" if vector is None else "embeddings-unavailable"
            if alone:
                raise SearchUnavailable(_BUILDING if vector is None else _NO_VECTOR)
            return None
        return vector


SEMANTIC_OFF = (
    'Mode "semantic" searches by meaning, and this runtime has no embeddings. '
    'An operator turns them on with KINDGI_MEMORY_EMBEDDINGS; until then use "keyword".'
)
_NO_VECTOR = 'The embeddings endpoint gave no usable answer. Retry, or use mode "keyword".'
_BUILDING = 'The index by meaning is still being built; see /v1/memory/status. Until then use mode "keyword".'


def may_answer(principal: Principal, fact: Fact, rule: Filter) -> bool:
    """Whether a current fact passes the same rule that the index was asked with, and the reader's own check."""
    fields = {"tenant": fact.scope.tenant_id, "id": fact.id, **fact_fields(fact)}
    return can_see(principal, fact) and evaluate(rule, fields)


def within_size(found: list[tuple[Fact, float | None]]) -> list[tuple[Fact, float | None]]:
    """As many of the best as fit into one answer; always the first."""
    size, kept = 0, []
    for fact, score in found:
        size += fact.inline_bytes
        if kept and size > ANSWER_BYTES:
            break
        kept.append((fact, score))
    return kept


def _listed(memory: Memory, principal: Principal, question: Question, rule: Filter) -> Found:
    query = Query(question.types[0] if len(question.types) == 1 else None, question.scope)
    found: list[tuple[Fact, float | None]] = []
    position: str | None = NEWEST
    for _ in range(LIST_PAGES):
        page = list_facts(memory, principal, query, READ_AT_ONCE, position)
        found += [(fact, None) for fact in page.facts if may_answer(principal, fact, rule)]
        position = page.position
        if len(found) >= question.limit or position is None:
            return Found(within_size(found[: question.limit]))
    return Found(within_size(found), "list-incomplete")


def _require_active_model(search: Search, question: Question) -> None:
    if question.embedding_model is None:
        return
    if question.mode == "semantic" and search.spaces is None:
        raise SemanticUnavailable(SEMANTIC_OFF)
    space = search.spaces.active() if search.spaces else None
    if space is None or space.model != question.embedding_model:
        raise BadInput(
            "embeddingModel is not the model in use. Leave it out, or ask /v1/memory/status for its name."
        )


def _is_behind(search: Search, principal: Principal, after: tuple[tuple[str, int], ...]) -> bool:
    """Wait until the index shows what the caller wrote, at most two seconds; whether it still does not."""
    if not after:
        return False
    heads = search.memory.facts.heads(principal.tenant, [fact_id for fact_id, _ in after])
    wanted = {
        key: index_version(head.fact, head.edition)
        for key, head in heads.items()
        if can_see(principal, head.fact)
    }
    deadline, pause = time.monotonic() + WAIT_SECONDS, _FIRST_LOOK
    while True:
        entries = search.index.lookup(principal.tenant, list(wanted))
        wanted = {
            key: version
            for key, version in wanted.items()
            if key not in entries or entries[key].version < version
        }
        if not wanted or time.monotonic() + pause > deadline:
            return bool(wanted)
        search.sleep(pause)
        pause = min(2 * pause, _LONGEST_LOOK)
