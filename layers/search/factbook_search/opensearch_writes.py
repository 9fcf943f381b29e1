"""Changes as versioned documents, and the order of writes that keeps a record of several chunks whole.

The service orders the writes of one document by the version that the writer gives (`external_gte`): 2 v for a document and
2 v + 1 for a tombstone. A tombstone is a document too, because the service forgets deletes after a minute. Each chunk is a
document of its own and could win or lose by itself, so chunk 0 (the head) decides for its record: it is written first, and
the others follow only when it was accepted. Then the writer reads the head again and writes tombstones over chunks that
the head does not count. Every step may be repeated, or mixed with the steps of another writer.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opensearchpy import OpenSearch

from factbook.domain.filters import values_of
from factbook.domain.retrieval.documents import Change, Put, Tombstone, change_problem, document_id
from factbook.ports.retrieval.index import IndexMissing, Refused

from .bm25 import marks
from .opensearch_client import MISSING, RETRYABLE, outages

BULK_BYTES = 4_000_000
BULK_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Document:
    """One document that a change has to write."""

    change: Change
    chunk: int
    version: int
    source: dict[str, Any]

    @property
    def id(self) -> str:
        return document_id(self.change.tenant, self.change.id, self.chunk)


Outcome = Literal["created", "replaced", "obsolete"] | Refused
"""What became of a document; obsolete: the index has a newer version."""


def apply_changes(client: OpenSearch, alias: str, changes: Sequence[Change]) -> list[Refused]:
    """Applies each change on its own; the answer names those that were refused, in the order given."""
    problems = ((change, change_problem(change, _dimensions(change))) for change in changes)
    refused = {id(change): Refused(change, problem, retry=False) for change, problem in problems if problem}
    possible = [change for change in changes if id(change) not in refused]
    with outages():
        heads = write(client, alias, [_document(change, 0) for change in possible])
        outcomes = list(zip(possible, heads, strict=True))
        won = [change for change, outcome in outcomes if outcome in ("created", "replaced")]
        rest = write(client, alias, [_document(put, at) for put in won for at in range(1, _length(put))])
        refused |= {
            id(outcome.change): outcome for outcome in (*heads, *rest) if isinstance(outcome, Refused)
        }
        unsure = [
            c for c, outcome in outcomes if id(c) not in refused and (outcome != "created" or _length(c) > 1)
        ]
        refused |= {id(outcome.change): outcome for outcome in _remove_extra_chunks(client, alias, unsure)}
    return [refused[id(change)] for change in changes if id(change) in refused]


def write(client: OpenSearch, alias: str, documents: Sequence[Document]) -> list[Outcome]:
    """What became of each document, in order. Raises IndexMissing without the alias: no write makes an index."""
    outcomes: list[Outcome] = []
    for batch in _batches(documents):
        answer = client.bulk(
            body="".join(line for _, line in batch),
            index=alias,
            params={"require_alias": "true", "request_timeout": BULK_SECONDS},
        )
        items = (item["index"] for item in answer["items"])
        outcomes += [_outcome(document, item) for (document, _), item in zip(batch, items, strict=True)]
    return outcomes


def _remove_extra_chunks(client: OpenSearch, alias: str, changes: Sequence[Change]) -> list[Refused]:
    """Writes tombstones over chunks that the current head of their record does not count.

    The first extra chunk of a record is removed last: as long as it is there, a repeated change finds the others. A new
    record of one chunk needs none of this, since there was nothing before it, and a later writer does it for its own.
    """
    if not changes:
        return []
    wanted = [(change, at) for change in changes for at in (0, _length(change))]
    docs = [{"_id": document_id(c.tenant, c.id, at), "_source": ["chunks", "live"]} for c, at in wanted]
    found = client.mget(index=alias, body={"docs": docs}, params={"request_timeout": BULK_SECONDS})["docs"]
    extra = [_tombstones_of_extra(*each) for each in zip(changes, found[::2], found[1::2], strict=True)]
    others = write(client, alias, [tombstone for row in extra for tombstone in row[1:]])
    refused = {id(outcome.change): outcome for outcome in others if isinstance(outcome, Refused)}
    firsts = write(client, alias, [row[0] for row in extra if row and id(row[0].change) not in refused])
    return [*refused.values(), *(outcome for outcome in firsts if isinstance(outcome, Refused))]


def _tombstones_of_extra(change: Change, head: dict[str, Any], beyond: dict[str, Any]) -> list[Document]:
    """Tombstones for the chunks of a record that its head does not count, at the head's version.

    `beyond` is the first chunk that this change does not have.
    """
    own = _length(change)
    if not head.get("found"):
        return []
    if head["_version"] > _version(change):
        left = range(head["_source"]["chunks"], own)
    elif beyond.get("found") and beyond["_source"]["live"] and beyond["_version"] < head["_version"]:
        left = range(own, beyond["_source"]["chunks"])
    else:
        left = range(0)
    return [Document(change, at, head["_version"], _tombstone(change, at)) for at in left]


def _document(change: Change, at: int) -> Document:
    if isinstance(change, Tombstone):
        return Document(change, at, _version(change), _tombstone(change, at))
    chunk = change.chunks[at]
    tokens = chunk.tokens.split()
    source: dict[str, Any] = {
        "tenant": change.tenant,
        "id": change.id,
        "chunk": at,
        "chunks": len(change.chunks),
        "live": True,
        "embedded": change.embedded,
        "text": chunk.tokens,
        "marks": " ".join(marks(tokens)),
    }
    if tokens:
        source["length"] = len(tokens)
    for name in change.fields:
        values = values_of(change.fields, name)
        source[name] = list(values) if len(values) != 1 else values[0]
    if chunk.vector is not None:
        source["vector"] = chunk.vector
    return Document(change, at, _version(change), source)


def _tombstone(change: Change, at: int) -> dict[str, Any]:
    return {
        "tenant": change.tenant,
        "id": change.id,
        "chunk": at,
        "chunks": 1,
        "live": False,
        "embedded": False,
    }


def _version(change: Change) -> int:
    return 2 * change.version + isinstance(change, Tombstone)


def _length(change: Change) -> int:
    return len(change.chunks) if isinstance(change, Put) else 1


def _dimensions(change: Change) -> int | None:
    """The size of a change's first vector; the service itself refuses a size that is not the index's."""
    vectors = (
        (chunk.vector for chunk in change.chunks if chunk.vector) if isinstance(change, Put) else iter(())
    )
    return len(next(vectors, ())) or None


def _batches(documents: Iterable[Document]) -> Iterator[list[tuple[Document, str]]]:
    """Documents in bulk bodies of about BULK_BYTES, each with its two lines of the body."""
    batch: list[tuple[Document, str]] = []
    size = 0
    for document in documents:
        action = {"index": {"_id": document.id, "version": document.version, "version_type": "external_gte"}}
        lines = f"{json.dumps(action)}\n{json.dumps(document.source)}\n"
        if batch and size + len(lines) > BULK_BYTES:
            yield batch
            batch, size = [], 0
        batch.append((document, lines))
        size += len(lines)
    if batch:
        yield batch


def _outcome(document: Document, item: dict[str, Any]) -> Outcome:
    status = item["status"]
    if status < 300:
        return "created" if item["result"] == "created" else "replaced"
    if status == 409:
        return "obsolete"
    kind = item["error"]["type"]
    if kind == "index_not_found_exception":
        raise IndexMissing(MISSING)
    return Refused(document.change, kind, retry=status in RETRYABLE)
