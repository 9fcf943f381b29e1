"""Requests to OpenSearch as plain data: index bodies, filters, legs.

A caller's words appear as values of `term` only, never in a query language. Every leg is a filter that begins with its
tenant, and the k-NN leg carries that filter inside, so that it narrows the neighbours before they are counted.
"""

from typing import Any, Literal

from factbook.domain.filters import AllOf, AnyOf, Equals, Filter, Missing, Not, OneOf, Prefix, Range
from factbook.domain.retrieval.documents import KEYWORD_FIELDS, NUMBER_FIELDS
from factbook.ports.retrieval.index import EmbeddingSpace, KeywordLeg, Leg, VectorLeg

Engine = Literal["lucene", "faiss"]
Body = dict[str, Any]

MOST_NEIGHBOURS = 10_000
FEWEST_NEIGHBOURS = 300
"""The least number of neighbours to ask for. A smaller number would find fewer of the right ones and save little time. Lucene
compares a filtered set of this size or less one by one."""
EXACT_BELOW = 20_000
"""faiss compares filtered sets up to this size one by one; lucene decides by itself."""


def index_body(
    prefix: str,
    space: EmbeddingSpace | None,
    engine: Engine,
    *,
    shards: int,
    replicas: int,
    approximate: bool,
) -> Body:
    """Strict mapping, versions given by the writer, BM25 as in the other adapter."""
    index: Body = {
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "refresh_interval": "1s",
        "similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}},
    }
    properties: Body = {
        "tenant": {"type": "keyword"},
        "id": {"type": "keyword"},
        "chunk": {"type": "integer"},
        "chunks": {"type": "integer"},
        "live": {"type": "boolean"},
        "embedded": {"type": "boolean"},
        "text": {"type": "text", "analyzer": "whitespace", "index_options": "freqs"},
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


def leg_body(tenant: str, leg: Leg, neighbours: int, timeout_ms: int) -> Body:
    """One search of an `_msearch`: the best chunk of each record, equal scores by id. It returns ids, never the texts."""
    rule = within(tenant, leg.filter)
    if isinstance(leg, KeywordLeg):
        terms = [{"term": {"text": {"value": term}}} for term in leg.terms]
        matching: Body = {"bool": {"filter": [rule], "should": terms, "minimum_should_match": 1}}
    else:
        matching = {"knn": {"vector": {"vector": list(leg.vector), "k": neighbours, "filter": rule}}}
    return {
        "query": matching,
        "collapse": {"field": "id"},
        "sort": ["_score", {"id": "asc"}],
        "size": leg.limit,
        "timeout": f"{timeout_ms}ms",
        "track_total_hits": isinstance(leg, VectorLeg),
        "_source": False,
        "version": True,
        "docvalue_fields": ["id", "chunk"],
    }


def count_body(tenant: str, leg: VectorLeg, timeout_ms: int) -> Body:
    """Counts the documents that pass a vector leg's filter, up to MOST_NEIGHBOURS."""
    return {
        "query": {"bool": {"filter": [within(tenant, leg.filter), {"exists": {"field": "vector"}}]}},
        "size": 0,
        "timeout": f"{timeout_ms}ms",
        "track_total_hits": MOST_NEIGHBOURS,
    }


def neighbours_of(leg: Leg) -> int:
    """How many neighbours to ask for: twice the limit, since several chunks of one record may be among them."""
    return min(max(2 * leg.limit, FEWEST_NEIGHBOURS), MOST_NEIGHBOURS)
