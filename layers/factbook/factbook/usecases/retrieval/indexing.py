"""Bring facts into the search index. Safe to repeat and in any order: the index keeps each record's latest state.

Words go in at once. A record whose embedding fails goes in without vectors and is noted in the backlog, so an outage of
the embeddings endpoint delays search by meaning and nothing else; one whose payload cannot be read is noted as well, so
that no tenant's store or key holds up another's records. Work is done in portions of bounded size, up to a deadline.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, zip_longest
from typing import Literal

from factbook.domain.errors import BadInput
from factbook.domain.facts.fact import Fact
from factbook.domain.filters import Fields
from factbook.domain.policy.policies import EVERY_INDEX, IndexName
from factbook.domain.retrieval.documents import Change, Chunk, Put, Tombstone, chunks, passages
from factbook.domain.retrieval.searchable import BESIDE, content_words, fact_fields, index_version, searchable
from factbook.domain.retrieval.tokenizer import Tokenizer
from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.facts.blobs import BlobReader
from factbook.ports.facts.store import Head
from factbook.ports.policy.store import PolicyStore
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Vector
from factbook.ports.retrieval.index import EmbeddingSpace, IndexInfo, IndexMissing, Refused, SearchIndex
from factbook.ports.retrieval.upkeep import Backlog, DeadLetters, Trouble, Troubled
from factbook.usecases.jobs import fitting
from factbook.usecases.retrieval.embedding_spaces import Spaces
from factbook.usecases.retrieval.turns import HUNG_SECONDS

MAX_TEXT_BYTES = 10 * 1024 * 1024
MAX_PASSAGES = 400
"""A longer text is found by meaning through its beginning, by words through all of it."""
PORTION_BYTES = 4 * 1024 * 1024
"""Of content that is read, cut into tokens and embedded at once; a single text may be larger (`MAX_TEXT_BYTES`)."""
TEXT_SECONDS = 15.0
"""For cutting a text of `MAX_TEXT_BYTES` into tokens; a smaller one has less, at least `LEAST_SECONDS`."""
LEAST_SECONDS = 2.0
EMBEDDED_AT_ONCE = 64
"""Texts between two looks at the deadline."""
EMBEDDING_SECONDS = 12.0
"""Past the deadline, for texts that are being embedded by then: less than an invocation keeps in reserve (`api.retrieval.events`)."""

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

    `pieces` are token texts; `meanings` are of its passages, none when it is found by words alone.
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


@dataclass
class Outcome:
    """What became of records. `again`: to be tried again as they are; all others are in the index or noted in the backlog."""

    again: set[Name] = field(default_factory=set)
    late: set[Name] = field(default_factory=set)
    """Those of `again` that nobody has tried: there was no time."""
    troubled: dict[Name, Trouble] = field(default_factory=dict)
    unread: dict[Name, str] = field(default_factory=dict)
    """Kinds of the errors for which records wait (`payload`)."""
    refused: set[Name] = field(default_factory=set)
    """Records the index can never hold as they are; they are in the dead letters too."""

    def put_off(self, names: Iterable[Name]) -> None:
        """There is no time left for these."""
        self.late |= set(names)
        self.again |= self.late

    def add(self, other: "Outcome") -> None:
        self.again |= other.again
        self.late |= other.late
        self.troubled |= other.troubled
        self.unread |= other.unread
        self.refused |= other.refused


def index_heads(ports: IndexingPorts, heads: Iterable[Head], deadline: Deadline = NEVER) -> Outcome:
    """Index the latest of each fact's heads, in order; what the deadline leaves over is to be tried again.

    Raises SearchUnavailable when the index cannot be reached, Throttled or StorageUnavailable when nothing can be noted.
    """
    latest: dict[Name, Head] = {}
    for head in heads:
        name = name_of(head)
        if name not in latest or _version(latest[name]) < _version(head):
            latest[name] = head
    outcome = Outcome()
    for portion in fitting(latest.values(), weight, PORTION_BYTES):
        if deadline.passed:
            outcome.put_off(map(name_of, portion))
        else:
            outcome.add(bring_heads(ports, portion, deadline))
    return outcome


def bring_heads(
    ports: IndexingPorts,
    heads: Sequence[Head],
    deadline: Deadline,
    targets: Sequence[IndexInfo] | None = None,
) -> Outcome:
    """Index one portion of heads. Raises as `index_heads`."""
    # A job says where it goes on by whole portions: it has no use for a part of one.
    limit = deadline if targets is None else NEVER
    wanted = [([note_of(head, "payload")], partial(_drafts, ports, head)) for head in heads]
    drafts, outcome = drafts_or_notes(ports, wanted, limit)
    outcome.add(apply_drafts(ports, drafts, targets, deadline))
    return outcome


def drafts_or_notes(
    ports: IndexingPorts,
    wanted: Iterable[tuple[Sequence[Troubled], Callable[[], list[Draft]]]],
    deadline: Deadline = NEVER,
) -> tuple[list[Draft], Outcome]:
    """Drafts, each made by itself; where one cannot be made, its notes go to the backlog. Raises what noting raises.

    A store that took long to fail is not asked again: all that is left is noted. The deadline puts off the rest.
    """
    drafts: list[Draft] = []
    outcome = Outcome()
    hung = ""
    for notes, make in wanted:
        if deadline.passed:
            outcome.put_off((note.tenant, note.id) for note in notes)
            continue
        clock = Deadline(HUNG_SECONDS)
        try:
            if not hung:
                drafts += make()
                continue
            kind = hung
        except Exception as error:  # noqa: BLE001 - whatever one tenant's store or key says, the others go on
            kind = type(error).__name__
            hung = kind if clock.passed else ""
        for note in notes:
            ports.backlog.note(note)
            outcome.troubled[note.tenant, note.id] = note.trouble
            outcome.unread[note.tenant, note.id] = kind
    return drafts, outcome


def forget(ports: IndexingPorts, tenant: str, record: str, version: int) -> Outcome:
    """The record is gone. Raises SearchUnavailable."""
    outcome = apply_drafts(ports, [Draft(tenant, record, version, "facts")])
    if (tenant, record) not in outcome.again:
        ports.backlog.settle(tenant, record, version)
    return outcome


def name_of(head: Head) -> Name:
    return head.fact.scope.tenant_id, head.fact.id + (BESIDE if head.beside else "")


def with_confirmed(heads: Iterable[Head]) -> list[Head]:
    """Heads, each followed by the confirmed text beside it: a record of its own."""
    return [each for head in heads for each in (head, head.confirmed) if each is not None]


def weight(head: Head) -> int:
    """Bytes of the text that indexing a head reads."""
    fact = head.fact
    if not searchable(fact):
        return 0
    payload = fact.size or 0 if fact.content_ref is not None else 0
    return len(fact.content_text or "") + (payload if payload <= MAX_TEXT_BYTES else 0)


def note_of(head: Head, trouble: Trouble) -> Troubled:
    return Troubled(*name_of(head), "facts", _version(head), trouble)


def _drafts(ports: IndexingPorts, head: Head) -> list[Draft]:
    return [_draft(ports, head)]


def _draft(ports: IndexingPorts, head: Head) -> Draft:
    """Raises what the stores raise when the fact's payload or its tenant's policy cannot be read."""
    fact = head.fact
    draft = Draft(*name_of(head), _version(head), "facts")
    indexes = ports.policies.policy(draft.tenant).indexes_of(fact.type) if searchable(fact) else ()
    if not indexes:
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
    pieces: tuple[str, ...] = ("",) * len(texts)
    if "keyword" in indexes:
        pieces = cut(texts, lambda _, text: tokenizer.document(text))
        trouble = trouble if len(pieces) == len(texts) else "too-slow"
    embedded = embedded_passages(words) if "semantic" in indexes and words.strip() else ()
    meanings = tuple(map(Meaning, embedded))
    return replace(draft, pieces=pieces, meanings=meanings, fields=fields, trouble=trouble)


def embedded_passages(words: str) -> tuple[str, ...]:
    return tuple(islice(passages(words), MAX_PASSAGES))


def cut(texts: Sequence[str], tokens: Callable[[int, str], Iterable[str]]) -> tuple[str, ...]:
    """Token texts of a record's chunks, the first at least: no more than there is time for.

    No text may use up an invocation, for it would be sent again for ever, and everybody's records behind it wait.
    """
    share = sum(map(len, texts)) / MAX_TEXT_BYTES
    time = Deadline(max(LEAST_SECONDS, min(1.0, share) * TEXT_SECONDS))
    pieces: list[str] = []
    for place, text in enumerate(texts):
        if pieces and time.passed:
            break
        pieces.append(" ".join(tokens(place, text)))
    return tuple(pieces)


def apply_drafts(
    ports: IndexingPorts,
    drafts: Sequence[Draft],
    targets: Sequence[IndexInfo] | None = None,
    deadline: Deadline = NEVER,
) -> Outcome:
    """Write drafts into every index there is, the one in use and one being built, and note what troubles them.

    What is not embedded when the deadline passes waits in the backlog. Raises SearchUnavailable when an index cannot be
    reached or none is there.
    """
    outcome = Outcome()
    if not drafts:
        return outcome
    outcome.troubled |= {draft.name: draft.trouble for draft in drafts if draft.trouble is not None}
    for target in targets_of(ports) if targets is None else targets:
        _write(ports, drafts, target, deadline, outcome)
    for draft in drafts:
        trouble = outcome.troubled.get(draft.name)
        if trouble is not None and draft.name not in outcome.again:
            ports.backlog.note(Troubled(draft.tenant, draft.id, draft.source, draft.version, trouble))
    return outcome


def _write(
    ports: IndexingPorts, drafts: Sequence[Draft], target: IndexInfo, deadline: Deadline, outcome: Outcome
) -> None:
    made = _embedded(ports, drafts, target.space, deadline)
    changes = []
    for draft in drafts:
        vectors, trouble = _vectors(draft, made) if target.space is not None else ((), None)
        if trouble is not None:
            outcome.troubled.setdefault(draft.name, trouble)
        changes.append(_change(draft, vectors, embedded=trouble != "embedding"))
    try:
        refused = ports.index.apply(changes, index=target.name)
    except IndexMissing:
        if ports.spaces is not None:
            ports.spaces.forget()  # the list of indexes is out of date
        raise
    for refusal in refused:
        name = (refusal.change.tenant, refusal.change.id)
        if refusal.retry:
            outcome.again.add(name)
        else:
            outcome.refused.add(name)
            outcome.troubled[name] = "refused"
            _bury(ports, refusal)


def targets_of(ports: IndexingPorts) -> Sequence[IndexInfo]:
    """All indexes: the one in use, and one being built, which takes changes from its first moment."""
    known = ports.spaces.known() if ports.spaces else ports.index.indexes()
    if not known:
        raise IndexMissing("There is no search index. Rebuild it.")
    return known


_Made = Mapping[str, Vector | EmbeddingFailure]
"""What was made of each text; a text that is not in it was not embedded."""


def _embedded(
    ports: IndexingPorts, drafts: Sequence[Draft], space: EmbeddingSpace | None, deadline: Deadline
) -> _Made:
    if space is None or ports.spaces is None:
        return {}
    meanings = [meaning for draft in drafts for meaning in draft.meanings]
    texts = list(dict.fromkeys(text for each in meanings for text in (each.text, each.before) if text))
    made: dict[str, Vector | EmbeddingFailure] = {}
    for start in range(0, len(texts), EMBEDDED_AT_ONCE):
        if deadline.passed:
            break
        some = texts[start : start + EMBEDDED_AT_ONCE]
        try:
            made |= zip(some, ports.spaces.embed(some, space, _longest(deadline)), strict=True)
        except EmbeddingsUnavailable:
            break
    return made


def _longest(deadline: Deadline) -> float | None:
    """A batch may be many requests, each slow: together no longer than the invocation lasts."""
    return deadline.left + EMBEDDING_SECONDS if math.isfinite(deadline.left) else None


def _vectors(draft: Draft, made: _Made) -> tuple[tuple[Vector | None, ...], Trouble | None]:
    """A draft's vectors in the order of its meanings, and why some are missing. None at all while some are to come."""
    vectors: list[Vector | None] = []
    trouble: Trouble | None = None
    for meaning in draft.meanings:
        vector = _vector(meaning, made)
        if isinstance(vector, tuple):
            vectors.append(vector)
        elif vector is not None and vector.refused:
            vectors.append(None)
            trouble = "embedding-refused"
        else:
            return (), "embedding"
    return tuple(vectors), trouble


def _vector(meaning: Meaning, made: _Made) -> Vector | EmbeddingFailure | None:
    """None when one of the texts was not embedded. What was said before is left out where the endpoint refuses it."""
    own = made.get(meaning.text)
    if not isinstance(own, tuple) or not meaning.before:
        return own
    before = made.get(meaning.before)
    if isinstance(before, EmbeddingFailure) and before.refused:
        return own
    if not isinstance(before, tuple):
        return before
    return tuple(one + BEFORE_WEIGHT * other for one, other in zip(own, before, strict=True))


def _change(draft: Draft, vectors: Sequence[Vector | None], *, embedded: bool) -> Change:
    if not draft.pieces or draft.fields is None:
        return Tombstone(draft.tenant, draft.id, draft.version)
    made = tuple(Chunk(piece or "", vector) for piece, vector in zip_longest(draft.pieces, vectors))
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
    return index_version(head.fact, head.searched_as)
