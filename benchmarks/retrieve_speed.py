"""What retrieval costs beside its two requests: `python benchmarks/retrieve_speed.py [--facts N …] [--node URL]`.

Facts of random words go into a local data plane and a fresh index (SQLite, or the OpenSearch node at URL). Each query is
timed whole, as the use case that the route calls, and then its recorded search and BatchGetItem are sent again raw; both in
one run, so that their ratio says something on any machine. Vectors are random directions: only their number matters here.

On a node the same requests are sent a third time, plain: hits in the service's own order, without what keeps other people's
documents out of a score. So the last columns say what that costs.
"""

import argparse
import hashlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from factbook.adapters.dynamodb.client import to_item
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.dynamodb_items import head_item
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.fact import FactChanges, Payload
from factbook.domain.facts.ids import fact_id_for
from factbook.domain.facts.transitions import open_fact
from factbook.domain.policy.policies import Policy
from factbook.domain.retrieval.documents import Chunk, Put
from factbook.domain.retrieval.searchable import fact_fields, index_version
from factbook.domain.scope import Scope
from factbook.ports.facts.store import Head
from factbook.ports.retrieval.embeddings import Vector
from factbook.ports.retrieval.index import EmbeddingSpace, SearchIndex
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.retrieval.embedding_spaces import Spaces
from factbook.usecases.retrieval.retrieve import Question, retrieve_facts
from factbook.usecases.retrieval.searching import SearchPorts
from factbook.wiring.services import SystemClock
from factbook_local.testing import Ready, running
from factbook_search.english import english_tokenizer

TENANT, DIMENSIONS, WORDS, QUERIES, LIMIT = "speed", 384, 20_000, 100, 10
MODES = ("keyword", "semantic", "both")
WHO = Principal(TENANT, Actor(kind="user", id="speed"), admin=True)
TOKENIZER = english_tokenizer()
Timed = Callable[[], object]


class DirectionEmbedder:
    """A direction for each text, at once: no model's time is measured."""

    model = "directions"

    def embed(
        self,
        texts: Sequence[str],
        dimensions: int | None = None,
        *,
        model: str | None = None,
        within: float | None = None,
        purpose: str = "document",
    ) -> list[Vector]:
        del dimensions, model, within, purpose
        return [_direction(text) for text in texts]


def main() -> None:
    options = _arguments()
    print("| facts | index | words | mode | retrieve p50 · p95 ms | raw | plain | of raw | of plain |")
    print("|---:|---|---:|---|---|---|---|---|---|")
    for facts in options.facts:
        with tempfile.TemporaryDirectory() as folder, running(Path(folder), [TENANT]) as ready:
            index = _index(options.node, Path(folder))
            try:
                _report(facts, options.words, "OpenSearch" if options.node else "SQLite", index, ready)
            finally:
                for info in index.indexes():
                    index.drop(info.name)


def _report(facts: int, words: Sequence[int], name: str, index: SearchIndex, ready: Ready) -> None:
    client, table = ready.client("dynamodb"), ready.aws["tables"]["facts"]
    _fill(facts, index, client, table)
    memory: Any = FactPorts(
        DynamoFacts(client, table), None, SystemClock(), lambda: b"", lambda _: Policy(), lambda: True
    )  # type: ignore[arg-type]
    engine = SearchPorts(index, TOKENIZER, Spaces(index, DirectionEmbedder()))
    chance = random.Random(11)
    for length, mode in ((length, mode) for length in words for mode in MODES):
        whole, raw, plain = [], [], []
        for query in (" ".join(_word(chance) for _ in range(length)) for _ in range(QUERIES)):
            question = Question(mode, query, LIMIT)  # type: ignore[arg-type]
            with _Recording(index, client) as recording:
                retrieve_facts(memory, engine, WHO, question)
            whole.append(_seconds(lambda asked=question: retrieve_facts(memory, engine, WHO, asked)))
            raw.append(_seconds(recording.replay))
            plain.append(_seconds(lambda asked=recording: asked.replay(plain=True)))
        figures = [[1_000 * _quantile(times, part) for part in (0.5, 0.95)] for times in (whole, raw, plain)]
        ratios = [
            [mine / other for mine, other in zip(figures[0], each, strict=True)] for each in figures[1:]
        ]
        if name == "SQLite":
            figures, ratios = figures[:2], ratios[:1]
        cells = [" · ".join(f"{value:.0f}" for value in pair) for pair in figures] + [""] * (3 - len(figures))
        cells += [" · ".join(f"{value:.2f}" for value in pair) for pair in ratios] + [""] * (2 - len(ratios))
        print(f"| {facts} | {name} | {length} | {mode} | " + " | ".join(cells) + " |", flush=True)


class _Recording:
    """The requests that one retrieve makes, kept to be sent again as they were."""

    def __init__(self, index: Any, dynamodb: Any) -> None:
        searcher = getattr(index, "_client", index)
        self._watched = [
            (searcher, "msearch" if searcher is not index else "search"),
            (dynamodb, "batch_get_item"),
        ]
        self._calls: list[Timed] = []
        self._plain: list[Timed] = []

    def __enter__(self) -> "_Recording":
        for owner, name in self._watched:
            setattr(owner, name, self._watch(getattr(owner, name)))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name in self._watched:
            delattr(owner, name)

    def _watch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            self._calls.append(lambda: call(*arguments, **named))
            lines = named.get("body")
            self._plain.append(
                lambda: call(*arguments, **(named if lines is None else {**named, "body": _plain(lines)}))
            )
            return call(*arguments, **named)

        return watched

    def replay(self, *, plain: bool = False) -> None:
        for call in self._plain if plain else self._calls:
            call()


def _plain(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """An `_msearch` as one would send it who does not mind what a score tells: no counts, no names, no marks."""
    kept: list[dict[str, Any]] = []
    for header, body in zip(lines[::2], lines[1::2], strict=True):
        if "aggs" in body:
            continue
        query = body["query"].get("bool", {})
        if "must_not" in query:
            terms = [{"term": {"text": {"value": each["term"]["text"]["value"]}}} for each in query["should"]]
            only = {**query, "should": terms, "must_not": []}
            body = {**body, "query": {"bool": only}, "collapse": {"field": "id"}, "track_total_hits": False}
        kept += [header, body]
    return kept


def _fill(count: int, index: SearchIndex, client: Any, table: str) -> None:
    index.activate(index.create(EmbeddingSpace(DirectionEmbedder.model, DIMENSIONS)).name)
    chance = random.Random(7)
    for start in range(0, count, 500):
        heads = [_head(number, chance) for number in range(start, min(start + 500, count))]
        refused = index.apply([_put(head) for head in heads])
        assert not refused, refused[0].reason
        for at in range(0, len(heads), 25):
            puts = [{"PutRequest": {"Item": to_item(head_item(head))}} for head in heads[at : at + 25]]
            left = {table: puts}
            while left:
                left = client.batch_write_item(RequestItems=left).get("UnprocessedItems")
    index.refresh()


def _head(number: int, chance: random.Random) -> Head:
    text = " ".join(_word(chance) for _ in range(chance.randint(5, 40)))
    payload = Payload(text=f'"{text}"', content_hash="sha256:none", size=len(text))
    scope = Scope(tenant_id=TENANT, project_id=f"p{number % 50}")
    fact_id = fact_id_for(hashlib.sha256(str(number).encode()).hexdigest())
    return Head(
        open_fact(fact_id, "acme.note", scope, FactChanges(), payload, WHO, "2026-01-01T00:00:00.000Z")
    )


def _put(head: Head) -> Put:
    text = (head.fact.content_text or "").strip('"')
    chunk = Chunk(" ".join(TOKENIZER.document(text)), _direction(text))
    return Put(TENANT, head.fact.id, index_version(head.fact, head.edition), (chunk,), fact_fields(head.fact))


def _word(chance: random.Random) -> str:
    """Few words are frequent, most are rare, as in a language."""
    return f"w{min(int(chance.paretovariate(0.9)), WORDS)}"


def _direction(text: str) -> Vector:
    chance = random.Random(text)
    return tuple(chance.gauss(0, 1) for _ in range(DIMENSIONS))


def _seconds(call: Timed) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _quantile(times: Sequence[float], part: float) -> float:
    return statistics.quantiles(times, n=100)[round(100 * part) - 1]


def _index(node: str | None, folder: Path) -> SearchIndex:
    if node is None:
        from factbook_search.sqlite_index import SqliteIndex

        return SqliteIndex(folder / "speed.sqlite")
    from factbook_search.opensearch_client import connect
    from factbook_search.opensearch_index import OpenSearchIndex

    return OpenSearchIndex(connect(node), f"speed-{time.time_ns()}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--facts", type=int, nargs="+", default=[1_000], help="how many, several for a comparison"
    )
    parser.add_argument("--words", type=int, nargs="+", default=[4, 12], help="how long queries are")
    parser.add_argument("--node", help="URL of an OpenSearch node; a SQLite file without it")
    return parser.parse_args()


if __name__ == "__main__":
    main()
