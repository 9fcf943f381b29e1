"""From the hits of search legs to one ranking of facts.

A leg is the answer of one query, best first: keyword (BM25) or semantic (cosine).
"""

from collections.abc import Sequence

RANK_CONSTANT = 60
"""k of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): a fact at rank r of a leg gains 1 / (k + r)."""

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
