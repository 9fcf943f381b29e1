"""From what OpenSearch answers to hits.

The hits of a keyword leg come in the service's own order, which depends on documents that the reader may not see. They are
scored anew, by `bm25`, and ordered by that.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from factbook.ports.retrieval.index import Hit, KeywordLeg, Leg, LegAnswer, LegFailure, VectorLeg

from .bm25 import Kept

Response = dict[str, Any]
TIME_EXCEEDED = {"time_exceeded_exception", "Time exceeded"}
"""Texts by which the service says that a search ran into its timeout; some come as the type of a cause, some as its
reason."""


def answer(leg: Leg, hits: Response, kept: Response) -> LegAnswer:
    """Of the answers to a leg's two bodies (`opensearch_queries`), the best document of each record."""
    failure = _failure(hits)
    if isinstance(leg, KeywordLeg):
        failure = failure or _failure(kept)
    if failure is not None:
        return failure
    found = hits["hits"]["hits"]
    scored = map(_near, found) if isinstance(leg, VectorLeg) else _scored(leg, found, kept)
    return best_of_each(scored, leg.limit)


def best_of_each(hits: Iterable[Hit], limit: int) -> tuple[Hit, ...]:
    """The best document of each record, best first, equal scores by id."""
    best: dict[str, Hit] = {}
    for hit in hits:
        other = best.get(hit.id)
        if other is None or (-hit.score, hit.chunk) < (-other.score, other.chunk):
            best[hit.id] = hit
    return tuple(sorted(best.values(), key=lambda hit: (-hit.score, hit.id))[:limit])


def is_short(leg: Leg, found: LegAnswer, hits: Response, kept: Response) -> bool:
    """Whether a leg found fewer records than it should have.

    That happens when documents of a few records fill all places, and when the graph of many similar vectors returns too
    few.
    """
    if not isinstance(found, tuple) or len(found) >= leg.limit:
        return False
    if isinstance(leg, KeywordLeg):
        return total(hits) > len(hits["hits"]["hits"])
    return total(hits) < total(kept)


def total(response: Response) -> int:
    return 0 if "error" in response else int(response["hits"]["total"]["value"])


def error_type(response: Response) -> str:
    return str(response["error"].get("type")) if "error" in response else ""


def _failure(response: Response) -> LegFailure | None:
    if "error" in response:
        causes = response["error"].get("root_cause", [])
        late = any(TIME_EXCEEDED & {cause.get("type"), cause.get("reason")} for cause in causes)
        return LegFailure("timeout" if late else "unavailable")
    return LegFailure("timeout") if response["timed_out"] else None


def _near(found: Response) -> Hit:
    """The service's score of a vector is (1 + cosine) / 2."""
    return _hit(found, min(1.0, max(-1.0, 2 * found["_score"] - 1)))


def _scored(leg: KeywordLeg, found: Iterable[Response], response: Response) -> Iterator[Hit]:
    """Hits with our own score. An index of an older format has no lengths and no marks: all count the same there."""
    counts = response["aggregations"]
    held = {term: counts["holding"]["buckets"][str(at)]["doc_count"] for at, term in enumerate(leg.terms)}
    kept = Kept(counts["length"]["count"], counts["length"]["avg"] or 0.0, held)
    weights = kept.weights()
    for each in found:
        length = each["fields"].get("length", [0])[0]
        frequencies = _frequencies(leg.terms, each.get("matched_queries", ()))
        score = sum(
            weights[term] * kept.part(frequency, length)
            for term, frequency in frequencies.items()
            if term in weights
        )
        yield _hit(each, score)


def _frequencies(terms: tuple[str, ...], names: Iterable[str]) -> dict[str, int]:
    """How often each term is in a hit, by the names of the conditions that it matches: `3`, or with a mark `3#2`."""
    found: dict[int, int] = {}
    for name in names:
        at, _, level = name.partition("#")
        found[int(at)] = max(int(level or 1), found.get(int(at), 0))
    return {terms[at]: found[at] for at in sorted(found)}


def _hit(found: Response, score: float) -> Hit:
    fields = found["fields"]
    return Hit(fields["id"][0], score, fields["chunk"][0], found["_version"] // 2)
