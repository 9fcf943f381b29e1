"""What an index holds: one document for each chunk of a record, and a tombstone for a record that was removed.

A record is a fact or a message. Its chunk 0 carries the version that counts for all of its chunks. Of all changes of a
record an index keeps the one with the highest version; of a document and a tombstone with the same version it keeps the
tombstone. So an older change that arrives late has no effect, and neither has a repeated one. Document ids are
`tenant|id|chunk`, parts encoded, at most 440 bytes.
"""

import base64
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

from factbook.domain.filters import AllOf, AnyOf, Equals, Fields, Filter, Not, OneOf, Prefix, Range

KEYWORD_FIELDS = (
    "container",
    "s_user",
    "s_org",
    "s_project",
    "s_thread",
    "s_session",
    "s_participant",
    "type",
    "trust",
    "subjects",
    "agent",
    "owner",
    "reach",
    "review",
    "source",
)
"""Fields of text that a filter compares whole, as it does `tenant` and `id`. `subjects` holds several `kind:id`."""
NUMBER_FIELDS = ("valid_from", "valid_until", "expires_at", "revision")
"""Fields of whole numbers. Times are epoch milliseconds. `revision` is the fact's version as callers see it; the version
of a change is another number, which only the index uses."""
FILTER_FIELDS = frozenset({"tenant", "id", *KEYWORD_FIELDS, *NUMBER_FIELDS})

FORMAT = 3
"""Of what documents hold: it rises when they get other tokens, fields or vectors for the same record. An index of another
format goes on answering until a new one is built."""

CHUNK = 4_000
OVERLAP = 400
"""Of the pieces of a text whose words are counted together."""
PASSAGE = 1_100
PASSAGE_OVERLAP = 110
"""Of the pieces that each have a vector: about as much of a text as small models read (256 word pieces)."""
PART_BYTES = 200


@dataclass(frozen=True, slots=True)
class Chunk:
    """`tokens`: those of a piece of the text, by the tokenizer, separated by spaces; none in what comes after the last piece.
    `vector`: of a passage, which is a shorter piece, made by the index's embedding model; None after the last one, when the
    index has no model, or when the vector is still to be made.
    """

    tokens: str
    vector: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """What a record looks like from `version` (≥1) on.

    `chunks`: at least one. `fields`: any of FILTER_FIELDS but tenant and id. `embedded`: False while some of its vectors
    are missing; another change of the same version will bring them.
    """

    tenant: str
    id: str
    version: int
    chunks: tuple[Chunk, ...]
    fields: Fields
    embedded: bool = True


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Says that a record was removed: no search finds it at `version` or an earlier one."""

    tenant: str
    id: str
    version: int


Change = Put | Tombstone


def document_id(tenant: str, record: str, chunk: int) -> str:
    return f"{_part(tenant)}|{_part(record)}|{chunk}"


def chunks(text: str, size: int = CHUNK, overlap: int = OVERLAP) -> Iterator[str]:
    """Pieces of a text, at least one, each at most `size` characters and sharing about `overlap` with the one before.

    Cut at white space where there is any within the overlap. A word, identifier or pair of characters no longer than
    half the overlap is whole in at least one piece, wherever the cuts fall.
    """
    start = 0
    while len(text) - start > size:
        end = start + size
        cut = _space_before(text, end, end - overlap // 2)
        yield text[start:cut]
        start = _space_before(text, cut - overlap // 2, cut - overlap)
    yield text[start:]


def passages(text: str) -> Iterator[str]:
    """The pieces of a text that each have a vector of its own."""
    return chunks(text, PASSAGE, PASSAGE_OVERLAP)


def _space_before(text: str, latest: int, earliest: int) -> int:
    """The position after the last white space in text[earliest:latest], or `latest`."""
    return next((at for at in range(latest, earliest, -1) if text[at - 1].isspace()), latest)


def _part(value: str) -> str:
    encoded = value.replace("%", "%25").replace("|", "%7C")
    if encoded.startswith("~"):
        encoded = "%7E" + encoded[1:]
    if len(encoded.encode()) <= PART_BYTES:
        return encoded
    return "~" + base64.urlsafe_b64encode(hashlib.sha256(value.encode()).digest()).decode().rstrip("=")


def check_filter(rule: Filter) -> None:
    """Raises ValueError for a field that no document has, or a value that its field cannot hold."""
    match rule:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                check_filter(part)
        case Not(part):
            check_filter(part)
        case _:
            number = rule.field in NUMBER_FIELDS
            if rule.field not in FILTER_FIELDS or (isinstance(rule, Range) and not number):
                raise ValueError(f"no such filter on documents: {type(rule).__name__} of {rule.field!r}")
            if any(isinstance(value, str) is number for value in _values(rule)):
                raise ValueError(f"{rule.field!r} holds {'numbers' if number else 'text'} only")


def _values(rule: Filter) -> tuple[str | int, ...]:
    match rule:
        case Equals(value=value):
            return (value,)
        case OneOf(values=values):
            return values
        case Prefix(text=text):
            return (text,)
        case _:
            return ()


def change_problem(change: Change, dimensions: int | None) -> str | None:
    """Why an index cannot hold a change, or None when it can. The reason holds none of the change's content.

    `dimensions`: the size of the index's vectors; None for an index without vectors.
    """
    if isinstance(change, Tombstone):
        return None
    if not change.chunks:
        return "no-chunks"
    if not set(KEYWORD_FIELDS + NUMBER_FIELDS).issuperset(change.fields):
        return "unknown-field"
    problems = (
        vector_problem(chunk.vector, dimensions) for chunk in change.chunks if chunk.vector is not None
    )
    return next(filter(None, problems), None)


def vector_problem(vector: tuple[float, ...], dimensions: int | None) -> str | None:
    if dimensions is None:
        return "no-vectors-here"
    if len(vector) != dimensions:
        return "wrong-dimension"
    if not all(map(math.isfinite, vector)):
        return "not-finite"
    return None if any(vector) else "zero-vector"
