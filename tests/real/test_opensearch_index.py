"""The SearchIndex contract on a real node, with both engines, and what only a service has: outages, aliases, stalls."""

import os
import random
import signal
import time
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from contract.interference import NonInterferenceContract
from contract.search_index import EAST, SPACE, TOKENS, SearchIndexContract, ids, put, unit
from opensearchpy import Urllib3HttpConnection
from support.heaviest_leg import heaviest_leg
from support.search_guard import WatchedClient
from support.search_node import SearchNode

from factbook.domain.errors import SearchUnavailable
from factbook.domain.filters import EVERYTHING, Equals, Filter, OneOf
from factbook.domain.retrieval.documents import Put, Tombstone
from factbook.ports.retrieval.index import (
    EmbeddingSpace,
    IndexMissing,
    KeywordLeg,
    LegFailure,
    SearchIndex,
    VectorLeg,
)
from factbook_search.opensearch_client import connect
from factbook_search.opensearch_index import OpenSearchIndex
from factbook_search.sqlite_index import SqliteIndex


def watched(node: SearchNode) -> WatchedClient:
    return WatchedClient(hosts=[node.url], connection_class=Urllib3HttpConnection, max_retries=1)


def new_index(node: SearchNode, **options: object) -> OpenSearchIndex:
    return OpenSearchIndex(watched(node), f"factbook-{uuid.uuid4().hex[:8]}", **options)  # type: ignore[arg-type]


def activated(index: OpenSearchIndex, space: EmbeddingSpace | None = SPACE) -> OpenSearchIndex:
    index.activate(index.create(space).name)
    return index


@pytest.fixture(scope="class")
def lucene_index(search_node: SearchNode) -> Iterator[OpenSearchIndex]:
    index = activated(new_index(search_node))
    yield index
    drop_all(index)


@pytest.fixture(scope="class")
def faiss_index(search_node: SearchNode) -> Iterator[OpenSearchIndex]:
    index = activated(new_index(search_node, engine="faiss", approximate=False))
    yield index
    drop_all(index)


def drop_all(index: SearchIndex) -> None:
    for info in index.indexes():
        index.drop(info.name)


class TestOpenSearchIndexWithLucene(SearchIndexContract, NonInterferenceContract):
    histories = 15
    crowd = int(os.environ.get("SEARCH_CROWD", "4000"))

    @pytest.fixture(autouse=True)
    def _index(self, lucene_index: OpenSearchIndex) -> None:
        self.index = lucene_index


class TestOpenSearchIndexWithFaiss(SearchIndexContract, NonInterferenceContract):
    histories = 10
    worlds = 20

    @pytest.fixture(autouse=True)
    def _index(self, faiss_index: OpenSearchIndex) -> None:
        self.index = faiss_index


def test_a_vanished_index_stays_away_even_where_the_service_makes_indexes_by_itself(
    search_node: SearchNode,
) -> None:
    client = connect(search_node.url)
    stray = f"stray-{uuid.uuid4().hex[:8]}"
    client.index(index=stray, body={"made": "by itself"})
    client.indices.delete(index=stray)
    index = activated(new_index(search_node))
    [info] = index.indexes()
    client.indices.delete(index=info.name)
    with pytest.raises(IndexMissing):
        index.apply([put("t", "it", "word", vector=EAST)])
    with pytest.raises(IndexMissing):
        index.search("t", [KeywordLeg(("word",), EVERYTHING, 1)], timeout=30)
    assert index.indexes() == []
    assert client.indices.get(index=f"{index.prefix}*") == {}


def test_a_purge_rewrites_every_segment_that_holds_a_replaced_document(search_node: SearchNode) -> None:
    """One of hundreds: the service itself would leave a segment alone that is whole but for a tenth."""
    index, client = activated(new_index(search_node)), connect(search_node.url)
    assert index.apply([put("t", f"r{number}", "word", vector=EAST) for number in range(300)]) == []
    index.refresh()
    assert index.apply([Tombstone("t", "r7", 2)]) == []
    index.refresh()

    def replaced() -> int:
        stats = client.indices.stats(index=index.prefix, metric="docs")
        return int(stats["_all"]["primaries"]["docs"]["deleted"])

    assert replaced() == 1
    give_up = time.monotonic() + 120
    while replaced() and time.monotonic() < give_up:
        index.purge()
        time.sleep(3)
        index.refresh()
    assert replaced() == 0
    drop_all(index)


def test_the_query_with_the_most_conditions_is_answered(search_node: SearchNode) -> None:
    index = activated(new_index(search_node))
    leg = heaviest_leg()
    assert index.apply([put("t", "r1", f"{leg.terms[0]} {leg.terms[-1]}", vector=EAST)]) == []
    index.refresh()
    anybody = replace(leg, filter=Equals("tenant", "t"))
    answers = index.search("t", [leg, anybody], timeout=30)
    drop_all(index)

    assert [ids(answer) for answer in answers] == [[], ["r1"]]


def test_an_index_on_a_node_alone_waits_for_no_copy(search_node: SearchNode) -> None:
    index = activated(new_index(search_node))
    (info,) = index.indexes()
    health = search_node_health(search_node, info.name)
    drop_all(index)

    assert (health["status"], health["unassigned_shards"]) == ("green", 0)


def search_node_health(node: SearchNode, name: str) -> dict[str, Any]:
    asked = {"wait_for_status": "green"}
    found: dict[str, Any] = watched(node).cluster.health(index=name, params=asked)
    return found


def test_two_prefixes_of_one_service_do_not_see_each_other(search_node: SearchNode) -> None:
    one = activated(new_index(search_node))
    two = activated(OpenSearchIndex(watched(search_node), f"{one.prefix}-two"))
    assert one.apply([put("t", "one", "word")]) == two.apply([put("t", "two", "word")]) == []
    one.refresh()
    two.refresh()
    leg = KeywordLeg(("word",), EVERYTHING, 5)
    assert ids(one.search("t", [leg], timeout=30)[0]) == ["one"]
    assert ids(two.search("t", [leg], timeout=30)[0]) == ["two"]
    assert len(one.indexes()) == len(two.indexes()) == 1
    drop_all(one)
    assert len(two.indexes()) == 1
    drop_all(two)


def test_a_search_is_one_request_of_all_its_legs(search_node: SearchNode) -> None:
    index = activated(new_index(search_node))
    client = index._client
    assert index.apply([put("t", f"r{n}", "word", vector=EAST) for n in range(30)]) == []
    index.refresh()
    requests: list[str] = []
    perform = client.transport.perform_request

    def counted(method: str, url: str, *args: object, **options: object) -> object:
        requests.append(url)
        return perform(method, url, *args, **options)

    client.transport.perform_request = counted
    legs = [KeywordLeg(("word",), EVERYTHING, 10), VectorLeg(EAST, EVERYTHING, 10)]
    answers = index.search("t", [*legs, KeywordLeg(("absent",), EVERYTHING, 10)], timeout=30)
    assert [len(ids(answer)) for answer in answers] == [10, 10, 0]
    assert requests == ["/_msearch"]
    drop_all(index)


LATE_TRIES = 500


class HurriedClient(WatchedClient):
    """Gives the node a millisecond for keyword legs: the time is the node's to keep, the failure is its own."""

    def msearch(self, *, body: list[dict[str, Any]], **options: Any) -> Any:
        hurried = [
            {**line, "timeout": "1ms"} if "should" in line.get("query", {}).get("bool", {}) else line
            for line in body
        ]
        return super().msearch(body=hurried, **options)


def test_a_leg_that_runs_out_of_time_leaves_the_other_its_answer(search_node: SearchNode) -> None:
    words = [f"w{n}" for n in range(256)]
    patient = activated(new_index(search_node))
    for batch in range(6):
        assert (
            patient.apply([put("t", f"r{batch}-{n}", " ".join(words), vector=EAST) for n in range(500)]) == []
        )
    patient.refresh()
    client = HurriedClient(hosts=[search_node.url], connection_class=Urllib3HttpConnection)
    hurried = OpenSearchIndex(client, patient.prefix)
    legs = [KeywordLeg(tuple(words), EVERYTHING, 10), VectorLeg(EAST, EVERYTHING, 10)]
    # The node reads a clock that moves in steps of 200 ms, so a search runs late only when a step falls into it.
    answers = (hurried.search("t", legs, timeout=60) for _ in range(LATE_TRIES))
    keyword, vector = next(each for each in answers if isinstance(each[0], LegFailure))
    assert keyword == LegFailure("timeout")
    assert len(ids(vector)) == 10
    with pytest.raises(SearchUnavailable):
        deque((hurried.search("t", legs[:1], timeout=60) for _ in range(LATE_TRIES)), maxlen=0)
    assert [len(ids(answer)) for answer in patient.search("t", legs, timeout=60)] == [10, 10]
    drop_all(patient)


def test_a_stalled_node_is_unavailable_within_the_time_given_and_answers_when_it_goes_on(
    search_node: SearchNode,
) -> None:
    index = activated(new_index(search_node))
    assert index.apply([put("t", "it", "word")]) == []
    index.refresh()
    leg = KeywordLeg(("word",), EVERYTHING, 5)
    os.kill(search_node.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(SearchUnavailable):
            index.search("t", [leg], timeout=0.5)
        waited = time.monotonic() - began
    finally:
        os.kill(search_node.pid, signal.SIGCONT)
    assert waited < 20
    assert ids(index.search("t", [leg], timeout=30)[0]) == ["it"]
    drop_all(index)


def test_a_stopped_node_is_unavailable_and_keeps_what_was_applied(search_node: SearchNode) -> None:
    index = activated(new_index(search_node))
    assert index.apply([put("t", "before", "word", vector=EAST)]) == []
    search_node.stop()
    try:
        leg = KeywordLeg(("word",), EVERYTHING, 5)
        for operation in (
            lambda: index.search("t", [leg], timeout=5),
            lambda: index.apply([put("t", "during", "word")]),
            lambda: index.lookup("t", ["before"]),
            lambda: index.walk(),
            lambda: index.refresh(),
            lambda: index.indexes(),
            lambda: index.create(SPACE),
        ):
            with pytest.raises(SearchUnavailable) as caught:
                operation()
            assert not isinstance(caught.value, IndexMissing)
    finally:
        search_node.start()
    assert index.apply([put("t", "after", "word", vector=EAST)]) == []
    index.refresh()
    legs = [leg, VectorLeg(EAST, EVERYTHING, 5)]
    assert [ids(answer) for answer in index.search("t", legs, timeout=30)] == [["after", "before"]] * 2
    drop_all(index)


TENANTS = ("acme", "globex", "initech")


@pytest.fixture(scope="module")
def twins(
    search_node: SearchNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SearchIndex, SearchIndex]]:
    """The same 1,500 records in both adapters."""
    rng = random.Random(20)
    records = [_record(rng, n) for n in range(1_500)]
    service = activated(new_index(search_node))
    local = SqliteIndex(tmp_path_factory.mktemp("search") / "search.db")
    local.activate(local.create(SPACE).name)
    for index in (service, local):
        assert index.apply(records) == []
        index.refresh()
    yield service, local
    drop_all(service)
    local.close()


WORDS = [f"{stem}{n}" for n in range(120) for stem in ("river", "code", "plan", "meet")]


def _word(rng: random.Random) -> str:
    """Few words are common and most are rare, as in a language."""
    return WORDS[min(int(rng.paretovariate(0.7)), len(WORDS)) - 1]


def _record(rng: random.Random, n: int) -> Put:
    text = " ".join(_word(rng) for _ in range(rng.randrange(5, 60)))
    if n % 10 == 0:
        text += f" ERR-{n}-ZX"
    fields = {
        "type": f"type{rng.randrange(4)}",
        "s_project": f"p{rng.randrange(3)}",
        "valid_until": rng.randrange(100),
    }
    return put(TENANTS[n % 3], f"r{n:04}", text, vector=unit(rng), **fields)


def _rule(rng: random.Random) -> Filter:
    kinds = tuple(f"type{n}" for n in rng.sample(range(4), 2))
    return rng.choice((EVERYTHING, OneOf("type", kinds), Equals("s_project", f"p{rng.randrange(3)}")))


def test_a_thousand_random_queries_are_answered_alike_by_both_adapters(
    twins: tuple[SearchIndex, SearchIndex],
) -> None:
    """Equal scores where all that matches is asked for; of the ten best by words, and by meaning, at least eight the same."""
    rng = random.Random(21)
    shared, counted = {"keyword": 0, "vector": 0}, {"keyword": 0, "vector": 0}
    for _ in range(100):
        tenant, legs = rng.choice(TENANTS), [leg for _ in range(10) for leg in _question(rng)]
        found = [index.search(tenant, legs, timeout=60) for index in twins]
        service, local = ([ids(answer) for answer in answers] for answers in found)
        for at in range(0, len(legs), 3):
            assert found[0][at] == found[1][at], legs[at]
            for leg, name in ((at + 1, "keyword"), (at + 2, "vector")):
                assert len(service[leg]) == len(local[leg])
                same, ten = len(set(service[leg][:10]) & set(local[leg][:10])), len(local[leg][:10])
                assert same >= 0.8 * ten, legs[leg]
                shared[name] += same
                counted[name] += ten
    print({name: shared[name] / counted[name] for name in shared})  # noqa: T201 - shown with -s


def test_filters_alone_keep_the_same_records_in_both_adapters(twins: tuple[SearchIndex, SearchIndex]) -> None:
    rng = random.Random(22)
    for tenant in TENANTS:
        legs = [VectorLeg(unit(rng), _rule(rng), 1_000) for _ in range(10)]
        service, local = (
            [set(ids(answer)) for answer in index.search(tenant, legs, timeout=60)] for index in twins
        )
        assert service == local
        assert all(service)


def _question(rng: random.Random) -> tuple[KeywordLeg, KeywordLeg, VectorLeg]:
    """Every record with an exact token, as many by words as a search asks for, the ten best by meaning, under one filter."""
    rule = _rule(rng)
    exact = rng.choice((f"err-{rng.randrange(150) * 10}-zx", WORDS[rng.randrange(len(WORDS))]))
    query = " ".join(_word(rng) for _ in range(rng.randrange(1, 6)))
    return (
        KeywordLeg(TOKENS.query(exact)[:1], rule, 1_000),
        KeywordLeg(TOKENS.query(query), rule, 200),
        VectorLeg(unit(rng), rule, 10),
    )
