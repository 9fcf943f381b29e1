"""From the hits of search legs to one ranking of facts or messages.

A leg is the answer of one query, best first: by keywords (BM25) or by meaning (cosine). Whatever is counted here comes from
hits, which the reader may see. The constants below were chosen on conversations 1 to 5 of LoCoMo (docs/retrieval.md).
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

RANK_CONSTANT = 60
"""k of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): a fact at rank r of a leg gains 1 / (k + r)."""

SHORT_LEG = 10
"""A leg with at most this many hits is fused in its own order."""

MEANING = 0.75
"""What a cosine counts beside a BM25, each scaled from 0 for the worst hit of its leg to 1 for the best."""

COMPANY = 0.4
"""What the best score in the same company counts beside a hit's own."""

NAMED = 0.15
"""What a hit gains whose speaker the query names."""

Ranking = list[tuple[str, float]]
"""Ids with their scores, best first; each id once."""


@dataclass(frozen=True)
class Likings:
    """What speaks for a hit beside its own scores. `company`: what it is told among, such as the run of a message, None
    for what stands alone; `named`: hits whose speaker the query names.
    """

    company: Callable[[str], Hashable] = lambda _: None
    named: Collection[str] = ()


NONE = Likings()


def fuse(legs: Sequence[Ranking]) -> Ranking:
    """Reciprocal rank fusion: Σ 1 / (60 + rank) over the legs that found an id.

    One leg alone at rank 1 scores 1/61 = 0.01639344262295082. Ties go to the better place in an earlier leg.
    """
    fused: dict[str, float] = {}
    for leg in legs:
        for rank, (key, _) in enumerate(leg, start=1):
            fused[key] = fused.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(fused.items(), key=lambda entry: -entry[1])


def fuse_keyword_and_meaning(keyword: Ranking, semantic: Ranking, likings: Likings = NONE) -> Ranking:
    """Reciprocal rank fusion of both legs; long legs are first put in one order by the scores of both.

    Rank fusion looks at places only. Without that order, many weak keyword hits would outweigh one strong hit.
    """
    if not keyword or not semantic:
        return fuse([keyword, semantic])
    order = _in_one_order(keyword, semantic, likings)
    if len(keyword) > SHORT_LEG and len(semantic) > SHORT_LEG:
        return fuse([order, order])
    return fuse([_placed(keyword, order), _placed(semantic, order)])


def _in_one_order(keyword: Ranking, semantic: Ranking, likings: Likings) -> Ranking:
    """All hits by the sum of their scaled scores and of what else speaks for them; equal ones as the legs have them."""
    by_words, by_meaning = _scaled(keyword), _scaled(semantic)
    scores = {
        key: by_words.get(key, 0.0) + MEANING * by_meaning.get(key, 0.0) for key in by_words | by_meaning
    }
    companies = {key: likings.company(key) for key in scores}
    best: dict[Hashable, float] = {}
    for key, company in companies.items():
        if company is not None:
            best[company] = max(scores[key], best.get(company, 0.0))
    for key, company in companies.items():
        scores[key] += COMPANY * best.get(company, 0.0) + (NAMED if key in likings.named else 0.0)
    return sorted(scores.items(), key=lambda entry: -entry[1])


def _placed(leg: Ranking, order: Ranking) -> Ranking:
    if len(leg) <= SHORT_LEG:
        return leg
    found = dict(leg)
    return [(key, found[key]) for key, _ in order if key in found]


def _scaled(leg: Ranking) -> dict[str, float]:
    scores = [score for _, score in leg]
    worst, best = min(scores), max(scores)
    return {key: (score - worst) / (best - worst) if best > worst else 1.0 for key, score in leg}
