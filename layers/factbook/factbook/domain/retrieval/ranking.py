"""From the hits of search legs to one ranking of facts.

A leg is the answer of one query, best first: by keywords (BM25) or by meaning (cosine). The constants below were chosen
on conversations 1 to 5 of LoCoMo (docs/retrieval.md).
"""

from collections.abc import Sequence

RANK_CONSTANT = 60
"""k of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): a fact at rank r of a leg gains 1 / (k + r)."""

SHORT_LEG = 10
"""A leg with at most this many hits is fused in its own order."""

KEYWORD_FLOOR = 0.4
"""Keyword hits that score less than this part of the best hit's score are left out of a long leg: they share only
common words with the query."""

SECOND_OPINION = 0.75
"""A long leg is ordered by its own score plus this weight times the other leg's score. Both scores are first divided by
the best of their leg."""

Ranking = list[tuple[str, float]]
"""Ids with their scores, best first; each id once."""


def fuse(legs: Sequence[Ranking]) -> Ranking:
    """Reciprocal rank fusion: Σ 1 / (60 + rank) over the legs that found an id.

    One leg alone at rank 1 scores 1/61 = 0.01639344262295082. Ties go to the better place in an earlier leg.
    """
    fused: dict[str, float] = {}
    for leg in legs:
        for rank, (key, _) in enumerate(leg, start=1):
            fused[key] = fused.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(fused.items(), key=lambda entry: -entry[1])


def fuse_keyword_and_meaning(keyword: Ranking, semantic: Ranking) -> Ranking:
    """Reciprocal rank fusion of both legs; a long leg is first reordered with the scores of the other.

    Rank fusion looks at places only. Without the reordering, many weak keyword hits would outweigh one strong hit.
    """
    if not keyword or not semantic:
        return fuse([keyword, semantic])
    return fuse([_without_tail(_reordered(keyword, semantic)), _reordered(semantic, keyword)])


def _reordered(leg: Ranking, other: Ranking) -> Ranking:
    if len(leg) <= SHORT_LEG:
        return leg
    own, opinion = _parts_of_best(leg), _parts_of_best(other)
    unknown = min(opinion.values())
    return sorted(leg, key=lambda hit: -(own[hit[0]] + SECOND_OPINION * opinion.get(hit[0], unknown)))


def _without_tail(keyword: Ranking) -> Ranking:
    if len(keyword) <= SHORT_LEG:
        return keyword
    floor = KEYWORD_FLOOR * max(score for _, score in keyword)
    return [hit for hit in keyword if hit[1] >= floor]


def _parts_of_best(leg: Ranking) -> dict[str, float]:
    best = max(score for _, score in leg)
    return {key: score / best if best > 0 else 0.0 for key, score in leg}
