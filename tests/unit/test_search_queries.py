"""Every leg stands under its tenant, whatever its words, its filter and the tenant's name."""

import http.server
import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from contract.search_index import EAST, HOSTILE, filters
from hypothesis import given
from hypothesis import strategies as st
from support.heaviest_leg import heaviest_leg
from support.search_guard import unguarded

from factbook.domain.filters import EVERYTHING, NOTHING, AnyOf, Equals, Filter, Not
from factbook.domain.retrieval.tokenizer import MAX_QUERY_TERMS
from factbook.ports.retrieval.index import KeywordLeg, Leg, VectorLeg
from factbook_search.opensearch_client import connect
from factbook_search.opensearch_queries import FEWEST_HITS, hits_body, kept_body

WORDS = st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=5).map(tuple)


@given(st.sampled_from(HOSTILE), filters(), WORDS)
def test_no_condition_of_a_leg_stands_outside_its_tenant(
    tenant: str, rule: Filter, words: tuple[str, ...]
) -> None:
    for leg in (KeywordLeg(words, rule, 5), VectorLeg(EAST, rule, 5)):
        for body in (hits_body(tenant, leg, 100, 1_000), kept_body(tenant, leg, 1_000)):
            assert unguarded(body["query"], tenant) == []
            assert unguarded(body["query"], tenant + "x") != []
            json.dumps(body, allow_nan=False)


def test_the_walk_sees_a_condition_that_is_not_under_the_tenant() -> None:
    guard, leaf = {"term": {"tenant": "t"}}, {"term": {"type": {"value": "x"}}}
    knn = {"knn": {"vector": {"vector": [1], "k": 1, "filter": leaf}}}
    assert unguarded({"bool": {"filter": [guard], "should": [leaf]}}, "t") == []
    assert unguarded({"bool": {"should": [guard, leaf]}}, "t") == [leaf]
    assert unguarded(knn, "t") == [knn]
    assert unguarded({"bool": {"should": [{"bool": {"filter": [guard]}}, leaf]}}, "t") == [leaf]


def test_a_callers_words_are_values_and_nothing_else() -> None:
    words = ('a" OR *', "field:x", "{}")
    body = hits_body("t", KeywordLeg(words, EVERYTHING, 5), 100, 1_000)
    assert [term["term"]["text"]["value"] for term in body["query"]["bool"]["should"]] == list(words)
    kinds = set(_kinds(body["query"]))
    assert kinds == {"bool", "term", "match_all"}


@pytest.mark.parametrize(
    "leg", [KeywordLeg(("x",), Not(Equals("type", "a")), 3), VectorLeg(EAST, AnyOf((NOTHING,)), 3)]
)
def test_a_search_reads_no_source(leg: Leg) -> None:
    body = hits_body("t", leg, 100, 1_000)
    assert body["_source"] is False
    assert body["size"] == (3 if isinstance(leg, VectorLeg) else FEWEST_HITS)
    assert kept_body("t", leg, 1_000)["size"] == 0


@pytest.mark.parametrize("terms", [1, 96, 97, 256])
def test_a_query_of_any_length_has_fewer_conditions_than_a_service_takes(terms: int) -> None:
    body = hits_body("t", KeywordLeg(tuple(f"w{n}" for n in range(terms)), EVERYTHING, 5), 100, 1_000)
    assert sum(kind != "bool" for kind in _kinds(body["query"])) < 900


def _kinds(query: dict[str, Any]) -> Iterator[str]:
    [(kind, body)] = query.items()
    yield kind
    if kind == "bool":
        for clause in ("filter", "must", "should", "must_not"):
            for part in body.get(clause, []):
                yield from _kinds(part)


def test_no_leg_asks_more_conditions_than_a_service_takes() -> None:
    leg = heaviest_leg()
    bodies = (hits_body("t", leg, 100, 1_000), kept_body("t", leg, 1_000))
    assert len(leg.terms) == MAX_QUERY_TERMS
    for body in bodies:
        assert sum(kind != "bool" for kind in _kinds(body["query"])) <= 1_024


@pytest.fixture
def listener() -> Iterator[SimpleNamespace]:
    """A server that remembers the headers of each request."""
    seen: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", seen=seen)
    server.shutdown()
    thread.join()
    server.server_close()


def test_requests_are_signed_when_credentials_are_given(listener: SimpleNamespace) -> None:
    from botocore.credentials import Credentials

    client = connect(
        listener.url, credentials=Credentials("AKIDEXAMPLE", "secret", "session"), region="eu-west-1"
    )
    client.msearch(body=[{}, {"query": {"match_all": {}}}])
    [headers] = listener.seen
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/es/aws4_request" in headers["authorization"]
    assert "content-length" not in headers["authorization"]
    assert headers["x-amz-security-token"] == "session"
    client.close()


def test_requests_carry_no_signature_without_credentials(listener: SimpleNamespace) -> None:
    client = connect(listener.url)
    client.msearch(body=[{}, {"query": {"match_all": {}}}])
    [headers] = listener.seen
    assert "authorization" not in headers
    client.close()
