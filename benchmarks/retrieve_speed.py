"""What retrieval costs beside its two requests: `python benchmarks/retrieve_speed.py [--facts N …] [--node URL]`.

Facts of random words go into a local data plane and a fresh index (SQLite, or the OpenSearch node at URL). Each query is
timed whole, as the use case that the route calls, and then its recorded search and BatchGetItem are sent again raw; both in
one run, so that their ratio says something on any machine. Vectors are random directions: only their number matters here.
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
    ) -> list[Vector]:
        del dimensions, model, within
        return [_direction(text) for text in texts]


def main() -> None:
    options = _arguments()
    print("| facts | index | mode | retrieve p50 ms | p95 ms | raw p50 ms | p95 ms | ratio p50 | p95 |")
    print("|---:|---|---|---:|---:|---:|---:|---:|---:|")
    for facts in options.facts:
        with tempfile.TemporaryDirectory() as folder, running(Path(folder), [TENANT]) as ready:
            index = _index(options.node, Path(folder))
            try:
                _report(facts, "OpenSearch" if options.node else "SQLite", index, ready)
            finally:
                for info in index.indexes():
                    index.drop(info.name)


def _report(facts: int, name: str, index: SearchIndex, ready: Ready) -> None:
    client, table = ready.client("dynamodb"), ready.aws["tables"]["facts"]
    _fill(facts, index, client, table)
    memory: Any = FactPorts(
        DynamoFacts(client, table), None, SystemClock(), lambda: b"", lambda _: Policy(), lambda: True
    )  # type: ignore[arg-type]
    engine = SearchPorts(index, TOKENIZER, Spaces(index, DirectionEmbedder()))
    chance = random.Random(11)
    queries = [" ".join(_word(chance) for _ in range(4)) for _ in range(QUERIES)]
    for mode in MODES:
        whole, raw = [], []
        for query in queries:
            question = Question(mode, query, LIMIT)  # type: ignore[arg-type]
            with _Recording(index, client) as recording:
                retrieve_facts(memory, engine, WHO, question)
            whole.append(_seconds(lambda asked=question: retrieve_facts(memory, engine, WHO, asked)))
            raw.append(_seconds(recording.replay))
        figures = [1_000 * _quantile(times, part) for times in (whole, raw) for part in (0.5, 0.95)]
        ratios = figures[0] / figures[2], figures[1] / figures[3]
        print(
            f"| {facts} | {name} | {mode} | "
            + " | ".join(f"{each:.2f}" for each in (*figures, *ratios))
            + " |"
        )


class _Recording:
    """The requests that one retrieve makes, kept to be sent again as they were."""

    def __init__(self, index: Any, dynamodb: Any) -> None:
        searcher = getattr(index, "_client", index)
        self._watched = [
            (searcher, "msearch" if searcher is not index else "search"),
            (dynamodb, "batch_get_item"),
        ]
        self._calls: list[Timed] = []

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
            return call(*arguments, **named)

        return watched

    def replay(self) -> None:
        for call in self._calls:
            call()


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

    return OpenSearchIndex(connect(node), f"speed-{time.time_ns()}", replicas=0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--facts", type=int, nargs="+", default=[1_000], help="how many, several for a comparison"
    )
    parser.add_argument("--node", help="URL of an OpenSearch node; a SQLite file without it")
    return parser.parse_args()


if __name__ == "__main__":
    main()
