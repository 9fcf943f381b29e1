"""Ask the search index, read back what it proposes, and ask for more until enough survives or nothing is left.

Facts and messages are found alike; they differ in the rule they must pass and in how they are read back.
"""

import time
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from factbook.domain.errors import SearchUnavailable, SemanticUnavailable, Unsupported
from factbook.domain.filters import Filter
from factbook.domain.retrieval.names import query_meanings
from factbook.domain.retrieval.ranking import Likings, Ranking, fuse_keyword_and_meaning
from factbook.domain.retrieval.tokenizer import MAX_QUERY_CHARACTERS, Tokenizer
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Vector
from factbook.ports.retrieval.index import (
    Hit,
    IndexMissing,
    KeywordLeg,
    Leg,
    LegFailure,
    PartialHits,
    SearchIndex,
    VectorLeg,
)
from factbook.usecases import tally
from factbook.usecases.retrieval.embedding_spaces import Spaces

Mode = Literal["list", "keyword", "semantic", "both"]
Record = TypeVar("Record")
Reader = Callable[[dict[str, int]], dict[str, Record]]
"""From record ids, with the version each has in the index, to those that may be answered."""

LEG_DEPTH = 100
FUSED_DEPTH = 200
"""A leg that another one judges is asked deeper: what it leaves out has no opinion on the other's hits."""

MAX_DEPTH = 4096
REFILLS = 3
READ_AT_ONCE = 100
QUERY_CHARACTERS = 2_000
"""A longer query is embedded by its beginning: some models refuse what is longer than they read (Cohere's 2,048 characters)."""

QUERY_SECONDS = 3.0
"""What a request waits in all, besides its reads of the stores and of the index."""

SEMANTIC_OFF = (
    'Mode "semantic" searches by meaning, and this runtime has no embeddings. '
    'An operator turns them on with KINDGI_MEMORY_EMBEDDINGS; until then use "keyword".'
)
WORDS_OFF = 'Mode "keyword" searches by words, and the index of this deployment finds by meaning alone. Use mode "semantic".'
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})
_NO_VECTOR = 'The embeddings endpoint gave no usable answer. Retry, or use mode "keyword".'
_BUILDING = 'The index by meaning is still being built; see /v1/memory/status. Until then use mode "keyword".'


@dataclass(frozen=True)
class SearchPorts:
    """The ports of searching. `spaces` is None when search by meaning is off; `by_words`: whether the index finds by words."""

    index: SearchIndex
    tokenizer: Tokenizer
    spaces: Spaces | None = None
    sleep: Callable[[float], None] = time.sleep
    by_words: bool = True


@dataclass
class Patience:
    """What one request may wait in all, for the index to catch up and for embeddings, and the vectors of what it asks:
    got once, also when several searches ask the same; None where there was none to get.
    """

    seconds: float = QUERY_SECONDS
    clock: Callable[[], float] = time.monotonic
    vectors: dict[tuple[str, ...], tuple[Vector | None, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._deadline = self.clock() + self.seconds

    def left(self) -> float:
        return max(0.0, self._deadline - self.clock())


@dataclass(frozen=True)
class Asked:
    """What to look for, how, and how many.

    `least`: the lowest score to answer. `company`: what the record of an id is told among, if anything, and `names`: whether the text names who
    speaks in a record; both count when legs are fused (`domain.retrieval.ranking`).
    """

    mode: Mode
    text: str
    limit: int
    least: float | None = None
    company: Callable[[str], Hashable] = lambda _: None
    names: Callable[[Any], bool] = lambda _: False


@dataclass(frozen=True)
class Answer(Generic[Record]):
    """Records best first with their scores; `degraded` says what the search had to do without."""

    found: list[tuple[Record, float]]
    degraded: str | None


def find(
    engine: SearchPorts,
    tenant: str,
    asked: Asked,
    rule: Filter,
    read: Reader[Record],
    patience: Patience | None = None,
) -> Answer[Record]:
    """At most `asked.limit` records that pass `rule`; a query of blanks finds none.

    Raises SearchUnavailable, SemanticUnavailable, and Unsupported for a search by words where the index has none.
    """
    if asked.mode == "keyword" and not engine.by_words:
        raise Unsupported(WORDS_OFF)
    if is_blank(asked.text):
        if asked.mode == "semantic" and engine.spaces is None:
            raise SemanticUnavailable(SEMANTIC_OFF)
        return Answer([], None)
    search = _Search(engine, tenant, asked, rule, read, patience or Patience())
    try:
        found = search.run()
    except IndexMissing as error:
        raise SearchUnavailable(error.message) from error
    return Answer(found, search.degraded)


def is_blank(text: str) -> bool:
    """Whether nothing of it can be seen: it has spaces, controls and characters of format alone, as far as a query is read."""
    return all(unicodedata.category(character) in _UNSEEN for character in text[:MAX_QUERY_CHARACTERS])


class _Search(Generic[Record]):
    """One search: rounds of one question to the index and one read, until enough records survive."""

    def __init__(
        self,
        engine: SearchPorts,
        tenant: str,
        asked: Asked,
        rule: Filter,
        read: Reader[Record],
        patience: Patience,
    ) -> None:
        self._engine = engine
        self._patience = patience
        self._tenant = tenant
        self._asked = asked
        self._rule = rule
        self._reader = read
        self._read: dict[str, Record | None] = {}
        self._named: set[str] = set()
        self._hits: dict[str, Ranking] = {}
        self.degraded: str | None = None
        self._sure: set[str] | None = None
        """Where the index gave some neighbours and no more: those that nothing better is missing before."""

    def run(self) -> list[tuple[Record, float]]:
        vector = None if self._asked.mode == "keyword" else self._embedded()
        depth = max(FUSED_DEPTH if self._asked.mode == "both" else LEG_DEPTH, 2 * self._asked.limit)
        versions, whole = self._search(vector, depth)
        for refill in range(1 + REFILLS):
            if refill:
                tally.count("Refills")
            self._read_next(self._ranked(), versions)
            if len(self._survivors(self._ranked())) >= self._asked.limit:
                break
            if all(key in self._read for key, _ in self._ranked()):
                if whole or depth >= MAX_DEPTH:
                    break
                depth = min(4 * depth, MAX_DEPTH)
                versions, whole = self._search(vector, depth)
        ranked = self._ranked()
        if self._may_lack(ranked):
            self.degraded = self.degraded or "neighbours-cut"
        return self._survivors(ranked)[: self._asked.limit]

    def _may_lack(self, ranked: Ranking) -> bool:
        """Whether the index may have records that belong into the answer and that it did not give."""
        if self._sure is None:
            return False
        answered = [key for key, _ in ranked if self._read.get(key) is not None][: self._asked.limit]
        return len(answered) < self._asked.limit or any(key not in self._sure for key in answered)

    def _search(self, vector: Vector | None, depth: int) -> tuple[dict[str, int], bool]:
        """One question: each record's version in the index, and whether no leg can give more."""
        legs: dict[str, Leg] = {}
        if self._asked.mode != "semantic" and self._engine.by_words:
            legs["keyword"] = KeywordLeg(self._engine.tokenizer.query(self._asked.text), self._rule, depth)
        if vector is not None:
            legs["semantic"] = VectorLeg(vector, self._rule, depth)
        answers = self._engine.index.search(self._tenant, list(legs.values()))
        hits: dict[str, Sequence[Hit]] = {}
        for name, answer in zip(legs, answers, strict=True):
            if isinstance(answer, LegFailure):
                self.degraded = f"{name}-{answer.reason}"
            elif isinstance(answer, PartialHits):
                hits[name] = answer.hits
                self._sure = {hit.id for hit in answer.hits if hit.score >= answer.sure}
            else:
                hits[name] = answer
        versions = {hit.id: hit.version for found in hits.values() for hit in found}
        self._hits = {name: [(hit.id, hit.score) for hit in found] for name, found in hits.items()}
        return versions, self._sure is not None or all(len(found) < depth for found in hits.values())

    def _ranked(self) -> Ranking:
        """The hits in order. Who speaks in one is known once it is read: that lifts what is named, and never what is not read."""
        keyword, semantic = (self._hits.get(name, []) for name in ("keyword", "semantic"))
        likings = Likings(self._asked.company, self._named)
        fused = self._asked.mode == "both"
        ranked = fuse_keyword_and_meaning(keyword, semantic, likings) if fused else keyword or semantic
        least = self._asked.least
        return ranked if least is None else [(key, score) for key, score in ranked if score >= least]

    def _read_next(self, ranked: Ranking, versions: dict[str, int]) -> None:
        """Read back the best records: half as many again as are asked for, and then whatever one read can hold."""
        limit = self._asked.limit
        first = min(READ_AT_ONCE, limit + max(5, limit // 2))
        unread = [key for key, _ in ranked if key not in self._read]
        batch = unread[: READ_AT_ONCE if self._read else first]
        records = self._reader({key: versions[key] for key in batch}) if batch else {}
        self._read |= {key: records.get(key) for key in batch}
        self._named |= {key for key, record in records.items() if self._asked.names(record)}

    def _survivors(self, ranked: Ranking) -> list[tuple[Record, float]]:
        return [(record, score) for key, score in ranked if (record := self._read.get(key)) is not None]

    def _embedded(self) -> Vector | None:
        """The query's vector; without one `both` goes on by words, and says so. It says as well when it has no words."""
        spaces = self._engine.spaces
        alone = self._asked.mode == "semantic" or not self._engine.by_words
        if spaces is None:
            if alone:
                raise SemanticUnavailable(SEMANTIC_OFF)
            self.degraded = "no-embeddings"
            return None
        texts = query_meanings(self._asked.text[:QUERY_CHARACTERS])
        if texts not in self._patience.vectors:
            self._patience.vectors[texts] = self._vector(spaces, texts)
        vector, why_not = self._patience.vectors[texts]
        if self._asked.mode == "both" and not self._engine.by_words:
            self.degraded = "no-keyword-index"
        if vector is None:
            self.degraded = why_not
            if alone:
                raise SearchUnavailable(_BUILDING if why_not == "embeddings-building" else _NO_VECTOR)
        return vector

    def _vector(self, spaces: Spaces, texts: Sequence[str]) -> tuple[Vector | None, str]:
        try:
            made = spaces.embed_query(texts, self._patience.left())
        except EmbeddingsUnavailable:
            return None, "embeddings-unavailable"
        if isinstance(made, EmbeddingFailure):
            return None, "embeddings-unavailable"
        return made, "embeddings-building"
