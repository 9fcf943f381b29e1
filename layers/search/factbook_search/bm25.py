"""BM25 of our own, so that a score says nothing of documents that its reader's filter leaves out.

An engine's own BM25 counts all documents of an index. Here the counts are those of the documents that a filter keeps:
both indexes give them, and how often each term is in a document, and score with this one formula.

Neither index tells how often a term is in a document without telling much more. So a document has, beside its terms,
marks of how often each is in it (`marks`). More than fourteen times count as fourteen: by then the formula has levelled out.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

K1, B = 1.2, 0.75
LEVELS = (2, 3, 4, 6, 9, 14)
"""How often a term is in a document is told as once, or as the highest of these that it reaches."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What of the documents that a filter keeps counts: how many have words, their mean length, and how many hold a term."""

    documents: int
    length: float
    holding: Mapping[str, int]

    def weights(self) -> dict[str, float]:
        """The inverse document frequency of each term: ln(1 + (N - n + 0.5) / (n + 0.5))."""
        return {
            term: math.log1p((max(self.documents, held) - held + 0.5) / (held + 0.5))
            for term, held in self.holding.items()
            if held
        }

    def part(self, frequency: int, length: int) -> float:
        """What a term counts in one document, without its weight: f (k1 + 1) / (f + k1 (1 - b + b l / L))."""
        norm = K1 * (1 - B + B * length / self.length) if self.length else K1
        return frequency * (K1 + 1) / (frequency + norm)


def marks(tokens: Iterable[str]) -> list[str]:
    """The marks of a document: `river#2` and `river#3` where `river` is in it three times."""
    return [
        f"{term}#{level}" for term, times in Counter(tokens).items() for level in LEVELS if times >= level
    ]


def told_levels(terms: Sequence[str]) -> tuple[int, ...]:
    """The levels that a query asks for: fewer when it has many terms, since an engine takes 1,024 conditions at most."""
    return LEVELS if len(terms) <= 96 else (2, 4)
