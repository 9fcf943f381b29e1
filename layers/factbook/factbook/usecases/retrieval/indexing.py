"""Bring facts into the search index. Safe to repeat and in any order: the index keeps each record's latest state.

Words go in at once; a record whose embedding fails goes in without vectors and is noted in the backlog, so an outage
of the embeddings endpoint delays search by meaning and nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from factbook.domain.errors import BadInput, SearchUnavailable, StorageUnavailable, Throttled
from factbook.domain.facts.fact import Fact
from factbook.domain.filters import Fields
from factbook.domain.policy.policies import EVERY_INDEX, IndexName, Policy
from factbook.domain.retrieval.documents import Change, Chunk, Put, Tombstone, chunks
from factbook.domain.retrieval.searchable import content_words, fact_fields, index_version, searchable
from factbook.domain.retrieval.tokenizer import Tokenizer
from factbook.ports.facts.blobs import BlobReader
from factbook.ports.facts.store import Head
from factbook.ports.policy.store import PolicyStore
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Vector
from factbook.ports.retrieval.index import EmbeddingSpace, IndexInfo, Refused, SearchIndex
from factbook.ports.retrieval.upkeep import Backlog, DeadLetters, Trouble, Troubled
from factbook.usecases.retrieval.embedding_spaces import Spaces

MAX_TEXT_BYTES = 10 * 1024 * 1024
MAX_EMBEDDED_CHUNKS = 200
"""A longer text is found by meaning through its beginning, by words through all of it."""

Name = tuple[str, str]
"""A record: its tenant and its id."""


@dataclass(frozen=True)
class IndexingPorts:
    """The ports of indexing. `spaces` is None when search by meaning is off."""

    index: SearchIndex
    tokenizer: Tokenizer
    blobs: BlobReader
    policies: PolicyStore
    backlog: Backlog
    dead_letters: DeadLetters
    spaces: Spaces | None = None


@dataclass(frozen=True)
class Meaning:
    """A text to embed; the meaning of what was said before it counts half as much."""

    text: str
    before: str = ""


BEFORE_WEIGHT = 0.5


@dataclass(frozen=True)
class Draft:
    """A record as it is to be found, before its vectors. No pieces: it is not to be found at all.

    `pieces` are token texts; `meanings` belong to the first pieces, none when it is found by words alone.
    """

    tenant: str
    id: str
    version: int
    source: Literal["facts", "conversations"]
    pieces: tuple[str, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    fields: Fields | None = None
    trouble: Trouble | None = None

    @property
    def name(self) -> Name:
        return self.tenant, self.id


def index_heads(ports: IndexingPorts, heads: Iterable[Head]) -> set[Name]:
    """Index the latest of each fact's heads; the names of those to be tried again.

    Raises SearchUnavailable when the index cannot be reached.
    """
    latest: dict[Name, Head] = {}
    for head in heads:
        name = (head.fact.scope.tenant_id, head.fact.id)
        if name not in latest or _version(latest[name]) < _version(head):
            latest[name] = head
    drafts: list[Draft] = []
    again: set[Name] = set()
    for name, head in latest.items():
        try:
            drafts.append(draft_of(ports, head, ports.policies.policy(name[0])))
        except (StorageUnavailable, Throttled):
            again.add(name)
    return again | apply_drafts(ports, drafts)


def forget(ports: IndexingPorts, tenant: str, record: str, version: int) -> None:
    """The record is gone. Raises SearchUnavailable."""
    apply_drafts(ports, [Draft(tenant, record, version, "facts")])


def draft_of(ports: IndexingPorts, head: Head, policy: Policy) -> Draft:
    """Raises StorageUnavailable when the fact's payload cannot be read."""
    fact = head.fact
    draft = Draft(fact.scope.tenant_id, fact.id, _version(head), "facts")
    indexes = policy.indexes_of(fact.type)
    if not searchable(fact) or not indexes:
        return draft
    words, trouble = _words(ports.blobs, fact)
    return with_text(draft, words, fact_fields(fact), ports.tokenizer, indexes, trouble)


def with_text(
    draft: Draft,
    words: str,
    fields: Fields,
    tokenizer: Tokenizer,
    indexes: Sequence[IndexName] = EVERY_INDEX,
    trouble: Trouble | None = None,
) -> Draft:
    """The draft of a record with these words in the named indexes."""
    texts = tuple(chunks(words))
    by_words = "keyword" in indexes
    pieces = tuple(" ".join(tokenizer.document(text)) if by_words else "" for text in texts)
    embedded = texts[:MAX_EMBEDDED_CHUNKS] if "semantic" in indexes and words.strip() else ()
    meanings = tuple(map(Meaning, embedded))
    return replace(draft, pieces=pieces, meanings=meanings, fields=fields, trouble=trouble)


def apply_drafts(
    ports: IndexingPorts, drafts: Sequence[Draft], targets: Sequence[IndexInfo] | None = None
) -> set[Name]:
    """Write drafts into every index there is, the one in use and one being built. The names to be tried again.

    Raises SearchUnavailable when an index cannot be reached or none is there.
    """
    if not drafts:
        return set()
    again: set[Name] = set()
    troubles = {draft.name: draft.trouble for draft in drafts}
    for target in _targets(ports) if targets is None else targets:
        vectors = _vectors(ports, drafts, target.space)
        waiting = {
            draft.name
            for draft in drafts
            if draft.meanings and target.space is not None and vectors[draft.name] is None
        }
        troubles |= {name: troubles[name] or "embedding" for name in waiting}
        changes = [_change(each, vectors[each.name], embedded=each.name not in waiting) for each in drafts]
        refused = ports.index.apply(changes, index=target.name)
        for refusal in refused:
            name = (refusal.change.tenant, refusal.change.id)
            if refusal.retry:
                again.add(name)
            else:
                troubles[name] = "refused"
                _bury(ports, refusal)
    for draft in drafts:
        trouble = troubles[draft.name]
        if trouble is not None and draft.name not in again:
            ports.backlog.note(Troubled(draft.tenant, draft.id, draft.source, draft.version, trouble))
    return again


def _targets(ports: IndexingPorts) -> Sequence[IndexInfo]:
    known = ports.spaces.known() if ports.spaces else ports.index.indexes()
    if not any(info.active for info in known):
        raise SearchUnavailable("There is no search index. Rebuild it.")
    return known


def _vectors(
    ports: IndexingPorts, drafts: Sequence[Draft], space: EmbeddingSpace | None
) -> dict[Name, tuple[Vector, ...] | None]:
    """Each draft's vectors in a space, in the order of its meanings; None when one is missing."""
    if space is None or ports.spaces is None:
        return dict.fromkeys((draft.name for draft in drafts), None)
    meanings = [meaning for draft in drafts for meaning in draft.meanings]
    texts = list(dict.fromkeys(text for each in meanings for text in (each.text, each.before) if text))
    try:
        made = dict(zip(texts, ports.spaces.embed(texts, space), strict=True))
    except EmbeddingsUnavailable:
        made = {}
    found: dict[Name, tuple[Vector, ...] | None] = {}
    for draft in drafts:
        own = [_vector(meaning, made) for meaning in draft.meanings]
        vectors = tuple(vector for vector in own if vector is not None)
        found[draft.name] = vectors if len(vectors) == len(own) else None
    return found


def _vector(meaning: Meaning, made: Mapping[str, Vector | EmbeddingFailure]) -> Vector | None:
    own, before = made.get(meaning.text), made.get(meaning.before)
    if own is None or isinstance(own, EmbeddingFailure):
        return None
    if not meaning.before:
        return own
    if before is None or isinstance(before, EmbeddingFailure):
        return None
    return tuple(one + BEFORE_WEIGHT * other for one, other in zip(own, before, strict=True))


def _change(draft: Draft, vectors: tuple[Vector, ...] | None, *, embedded: bool) -> Change:
    if not draft.pieces or draft.fields is None:
        return Tombstone(draft.tenant, draft.id, draft.version)
    by_place = dict(enumerate(vectors or ()))
    made = tuple(Chunk(piece, by_place.get(place)) for place, piece in enumerate(draft.pieces))
    return Put(draft.tenant, draft.id, draft.version, made, draft.fields, embedded)


def _bury(ports: IndexingPorts, refusal: Refused) -> None:
    ports.dead_letters.send(f"{refusal.change.tenant}|{refusal.change.id}", refusal.reason)


def _words(blobs: BlobReader, fact: Fact) -> tuple[str, Trouble | None]:
    """A fact's words: of its content and key, and of a payload that is text; why the payload has none."""
    own = "\n".join(filter(None, (content_words(fact.content_text), fact.key)))
    if fact.content_ref is None:
        return own, None
    if (fact.size or 0) > MAX_TEXT_BYTES:
        return own, "too-large"
    payload = blobs.read(fact.content_ref)
    try:
        text = (payload or b"").decode()
    except UnicodeDecodeError:
        return own, "not-text"
    return "\n".join(filter(None, (own, _payload_words(text)))), None


def _payload_words(text: str) -> str:
    try:
        return content_words(text)
    except BadInput:  # it is no JSON
        return text


def _version(head: Head) -> int:
    return index_version(head.fact, head.edition)
