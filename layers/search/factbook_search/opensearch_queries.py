"""Requests to OpenSearch as plain data: index bodies, filters, legs.

A caller's words appear as values of `term` only, never in a query language. Every leg is a filter that begins with its
tenant, and the k-NN leg carries that filter inside, so that it narrows the neighbours before they are counted.

Each leg is two bodies: its hits, and what of the documents that pass its filter has to be known. For a keyword leg the
service's own score only chooses the hits; the score that counts is made of which terms and marks (`bm25`) a hit has, told
by the names of the conditions it matches, and of the counts in the second body.
"""

from typing import Any, Literal

from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, Not, OneOf, Prefix, Range
from factbook.domain.retrieval.documents import KEYWORD_FIELDS, NUMBER_FIELDS
from factbook.ports.retrieval.index import EmbeddingSpace, KeywordLeg, Leg, VectorLeg

from .bm25 import K1, B, told_levels

Engine = Literal["lucene", "faiss"]
Body = dict[str, Any]

MOST_NEIGHBOURS = 10_000
FEWEST_NEIGHBOURS = 300
"""The least number of neighbours to ask for. A smaller number would find fewer of the right ones and save little time. Lucene
compares a filtered set of this size or less one by one."""
FEWEST_HITS = 100
"""The least number of documents to score for a keyword leg: the service chooses them by a score that is not ours."""
EXACT_BELOW = 20_000
"""faiss compares filtered sets up to this size one by one; lucene decides by itself."""


def index_body(
    prefix: str,
    space: EmbeddingSpace | None,
    engine: Engine,
    *,
    shards: int,
    approximate: bool,
) -> Body:
    """Strict mapping, versions given by the writer, BM25 as in the other adapter."""
    index: Body = {
        "number_of_shards": shards,
        "auto_expand_replicas": "0-1",  # a copy as soon as there is another node; one node alone is whole without
        "refresh_interval": "1s",
        # A purge rewrites every segment that has a replaced document, however few they are.
        "merge.policy.expunge_deletes_allowed": 0,
        "similarity": {"default": {"type": "BM25", "k1": K1, "b": B}},
    }
    properties: Body = {
        "tenant": {"type": "keyword"},
        "id": {"type": "keyword"},
        "chunk": {"type": "integer"},
        "chunks": {"type": "integer"},
        "live": {"type": "boolean"},
        "embedded": {"type": "boolean"},
        "text": {"type": "text", "analyzer": "whitespace", "index_options": "freqs"},
        "marks": {"type": "text", "analyzer": "whitespace", "index_options": "docs", "norms": False},
        "length": {"type": "integer"},
        **{name: {"type": "keyword"} for name in KEYWORD_FIELDS},
        **{name: {"type": "long"} for name in NUMBER_FIELDS},
    }
    meta: Body = {"prefix": prefix}
    if space is not None:
        meta |= {"model": space.model, "dimensions": space.dimensions}
        index |= {"knn": True}
        if engine == "faiss":
            index |= {"knn.advanced.filtered_exact_search_threshold": EXACT_BELOW}
            if not approximate:
                index |= {"knn.advanced.approximate_threshold": -1}
        properties["vector"] = {
            "type": "knn_vector",
            "dimension": space.dimensions,
            "method": {
                "name": "hnsw",
                "engine": engine,
                "space_type": "cosinesimil",
                "parameters": {"m": 16, "ef_construction": 100},
            },
        }
    return {
        "settings": {"index": index},
        "mappings": {"dynamic": "strict", "_meta": meta, "properties": properties},
    }


def within(tenant: str, rule: Filter) -> Body:
    """Live documents of one tenant that pass the filter."""
    return {"bool": {"filter": [{"term": {"tenant": tenant}}, {"term": {"live": True}}, query(rule)]}}


def query(rule: Filter) -> Body:
    match rule:
        case AllOf(parts):
            return {"bool": {"filter": [query(part) for part in parts]}} if parts else {"match_all": {}}
        case AnyOf(parts):
            if not parts:
                return {"match_none": {}}
            return {"bool": {"should": [query(part) for part in parts], "minimum_should_match": 1}}
        case Not(part):
            return {"bool": {"must_not": [query(part)]}}
        case Equals(field, value):
            return {"term": {field: {"value": value}}}
        case OneOf(field, values):
            return {"terms": {field: list(values)}} if values else {"match_none": {}}
        case Prefix(field, text):
            return {"prefix": {field: {"value": text}}}
        case Missing(field):
            return {"bool": {"must_not": [{"exists": {"field": field}}]}}
        case Range():
            bounds = {"gte": rule.lowest, "lte": rule.highest}
            given = {name: bound for name, bound in bounds.items() if bound is not None}
            return {"range": {rule.field: given}} if given else {"exists": {"field": rule.field}}


def hits_body(tenant: str, leg: Leg, neighbours: int, timeout_ms: int, *, one_each: bool = False) -> Body:
    """The documents that a leg finds: ids, never the texts. Equal scores are ordered by id.

    `one_each`: only the best document of each record, as the service judges. Of vectors always: there it judges as we do.
    """
    rule, size = within(tenant, leg.filter), leg.limit
    if isinstance(leg, KeywordLeg):
        size = max(leg.limit, FEWEST_HITS)
        matching: Body = {
            "bool": {
                "filter": [rule],
                "should": [_named("text", term, str(at)) for at, term in enumerate(leg.terms)],
                "minimum_should_match": 1,
                "must_not": [_never(_marked(leg.terms))],
            }
        }
    else:
        matching = {"knn": {"vector": {"vector": list(leg.vector), "k": neighbours, "filter": rule}}}
    collapsed = one_each or isinstance(leg, VectorLeg)
    return {
        "query": matching,
        **({"collapse": {"field": "id"}} if collapsed else {}),
        "sort": ["_score", {"id": "asc"}],
        "size": size,
        "timeout": f"{timeout_ms}ms",
        "track_total_hits": True if isinstance(leg, VectorLeg) else size + 1,
        "_source": False,
        "version": True,
        "docvalue_fields": ["id", "chunk", "length"],
    }


def _named(field: str, value: str, name: str) -> Body:
    return {"term": {field: {"value": value, "_name": name}}}


def _marked(terms: tuple[str, ...]) -> list[Body]:
    return [
        _named("marks", f"{term}#{level}", f"{at}#{level}")
        for at, term in enumerate(terms)
        for level in told_levels(terms)
    ]


def _never(conditions: list[Body]) -> Body:
    """Conditions that no document is asked for: only their names count, and they are looked at for the hits alone.

    No document has the chunk -1, so the service drops the whole before it searches.
    """
    return {"bool": {"filter": [{"term": {"chunk": -1}}, {"bool": {"should": conditions}}]}}


def kept_body(tenant: str, leg: Leg, timeout_ms: int) -> Body:
    """What of the documents that pass a leg's filter has to be known.

    For words: how many have any, their mean length, and how many hold each term. For a vector: how many have one, up to
    MOST_NEIGHBOURS.
    """
    rule = within(tenant, leg.filter)
    body: Body = {"size": 0, "timeout": f"{timeout_ms}ms"}
    if isinstance(leg, VectorLeg):
        having_one = {"bool": {"filter": [rule, {"exists": {"field": "vector"}}]}}
        return {**body, "query": having_one, "track_total_hits": MOST_NEIGHBOURS}
    holding = {str(at): {"term": {"text": {"value": term}}} for at, term in enumerate(leg.terms)}
    return {
        **body,
        "query": rule,
        "track_total_hits": False,
        "aggs": {"length": {"stats": {"field": "length"}}, "holding": {"filters": {"filters": holding}}},
    }


def neighbours_of(leg: Leg) -> int:
    """How many neighbours to ask for: twice the limit, since several chunks of one record may be among them."""
    return min(max(2 * leg.limit, FEWEST_NEIGHBOURS), MOST_NEIGHBOURS)
