"""Search by words in one index of the SQLite file: its postings, scored by `bm25` over the documents that a filter keeps."""
# ruff: noqa: S608 - names in a statement are the product's own; every value is bound

import heapq
import json
from collections.abc import Mapping
from typing import Any

import apsw

from factbook.ports.retrieval.index import Hit

from .bm25 import Kept, told_levels

READ_AT_ONCE = 500


class Words:
    """The words of index `k`."""

    def __init__(self, db: apsw.Connection, k: int) -> None:
        self._db = db
        self._k = k

    def scores(self, terms: tuple[str, ...], condition: str, values: Mapping[str, Any]) -> dict[int, float]:
        """Of the rows that meet the condition, the score of each that holds a term."""
        sql = f"SELECT d.rowid, d.length FROM docs_{self._k} d WHERE {condition} AND d.length > 0"
        lengths: dict[int, int] = dict(self._db.execute(sql, values))
        levels = (1, *told_levels(terms))
        frequencies = {term: self._frequencies(term, levels, lengths) for term in terms}
        kept = Kept(
            len(lengths),
            sum(lengths.values()) / max(1, len(lengths)),
            {term: len(found) for term, found in frequencies.items()},
        )
        scores: dict[int, float] = {}
        for term, weight in kept.weights().items():
            for row, frequency in frequencies[term].items():
                scores[row] = scores.get(row, 0.0) + weight * kept.part(frequency, lengths[row])
        return scores

    def best(self, scores: Mapping[int, float], limit: int) -> tuple[Hit, ...]:
        """The best row of each record. Equal scores go by the record's id, so all rows of a score are looked at."""
        ranked = sorted(scores, key=lambda row: -scores[row])
        best: dict[str, Hit] = {}
        for start in range(0, len(ranked), READ_AT_ONCE):
            some = ranked[start : start + READ_AT_ONCE]
            if len(best) >= limit and scores[some[0]] < _lowest(best, limit):
                break
            sql = f"""SELECT rowid, id, chunk, version FROM docs_{self._k}
                WHERE rowid IN (SELECT value FROM json_each(?))"""
            for row, record, chunk, version in self._db.execute(sql, (json.dumps(some),)):
                hit = Hit(record, scores[row], chunk, version)
                if record not in best or (-hit.score, chunk) < (-best[record].score, best[record].chunk):
                    best[record] = hit
        return tuple(sorted(best.values(), key=lambda hit: (-hit.score, hit.id))[:limit])

    def _frequencies(self, term: str, levels: tuple[int, ...], lengths: Mapping[int, int]) -> dict[int, int]:
        """How often a term is in each of the rows that have one of these lengths."""
        found: dict[int, int] = {}
        for level in levels:
            mark = term if level == 1 else f"{term}#{level}"
            rows = self._db.execute(f"SELECT doc FROM terms_{self._k} WHERE term = ?", (mark,))
            found |= {row: level for (row,) in rows if row in lengths}
        return found


def _lowest(best: Mapping[str, Hit], limit: int) -> float:
    """The score of the last one of so many."""
    return heapq.nlargest(limit, (hit.score for hit in best.values()))[-1]
