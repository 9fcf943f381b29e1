"""What a search in DynamoDB's vector index asks and is answered: `python benchmarks/vector_searches.py [--projects 1 10 50] [--each 120]`.

Facts of 384 random dimensions are put into the table of vectors of a local Factbook, `--each` in each project; then readers of so
many projects ask three times. Printed are requests and bytes of bodies of one search, by the operation; the time is an emulator's
and says nothing. It compares every vector of the table for each request, so many projects take it long: `--sent` counts what the
client sends, to nobody, for readers and for writers of so many projects.
"""

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
from botocore.awsrequest import AWSResponse

from factbook.adapters.dynamodb.client import to_item
from factbook.adapters.retrieval.dynamodb_index import DynamoIndex
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.facts.gate import Look
from factbook.domain.retrieval.documents import Chunk, Put
from factbook.domain.retrieval.searchable import FACTS, scope_fields
from factbook.domain.scope import Scope
from factbook.ports.retrieval.index import EmbeddingSpace, VectorLeg
from factbook.usecases.retrieval.retrieve import Question, asked_rule
from factbook.wiring.clients import SDK
from factbook_local.testing import Ready, running

DIMENSIONS = 384
SEARCHES = 3
TENANT = "demo"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--projects", type=int, nargs="+", default=[1, 10])
    parser.add_argument(
        "--each", type=int, default=120, help="facts in each project; a search is given a hundred"
    )
    parser.add_argument("--sent", action="store_true", help="count what is sent alone, without a service")
    options = parser.parse_args()
    if options.sent:
        count_sent(options.projects)
        return
    stack = ("Search=dynamodb", f"VectorDimensions={DIMENSIONS}", "Embeddings=built-in")
    chosen = [word for each in stack for word in ("--parameter", each)]
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), arguments=chosen) as ready:
        measure(ready, options.projects, options.each)


def measure(ready: Ready, projects: list[int], each: int) -> None:
    client = ready.client("dynamodb")
    table = next(name for name in client.list_tables()["TableNames"] if f"-vectors-{DIMENSIONS}" in name)
    index = DynamoIndex(client, table, DIMENSIONS)
    index.activate(index.create(EmbeddingSpace("random", DIMENSIONS)).name)
    for project in range(max(projects)):
        index.apply([_fact(project, number) for number in range(each)])
    requests, sent, received = Counter[str](), Counter[str](), Counter[str]()

    def sending(request: Any, event_name: str, **_: Any) -> None:
        requests[event_name.rpartition(".")[2]] += 1
        sent[event_name.rpartition(".")[2]] += len(request.body)

    def answered(http_response: Any, model: Any, **_: Any) -> None:
        received[model.name] += len(http_response.content)

    client.meta.events.register("before-send.dynamodb", sending)
    client.meta.events.register("after-call.dynamodb", answered)
    print("| projects read | operation | requests | bytes sent | bytes received |\n|---:|---|---:|---:|---:|")
    for count in projects:
        for counted in (requests, sent, received):
            counted.clear()
        reads = frozenset(f"p{number}" for number in range(count))
        reader = Principal(TENANT, Actor(kind="user", id="ann"), reads_projects=reads)
        rule = asked_rule(reader, Question("semantic", "x"), Look("2026-06-01T00:00:00.000Z", "recalled"))
        for _ in range(SEARCHES):
            index.search(TENANT, [VectorLeg(_direction(), rule, 100)], timeout=600)
        for name in requests:
            figures = (counted[name] / SEARCHES for counted in (requests, sent, received))
            print(f"| {count} | {name} | " + " | ".join(f"{figure:,.0f}" for figure in figures) + " |")


def count_sent(projects: list[int]) -> None:
    client = botocore.session.get_session().create_client(
        "dynamodb", "eu-central-1", aws_access_key_id="nobody", aws_secret_access_key="nothing", config=SDK
    )
    generation = to_item({"g": "random-0a1b2c3d", "m": "random", "d": DIMENSIONS})
    rows = [{**generation, "sk": {"S": name}} for name in ("active", "generation|random-0a1b2c3d")]
    requests, sent = Counter[str](), Counter[str]()

    def nothing_found(request: Any, event_name: str, **_: Any) -> AWSResponse:
        operation = event_name.rpartition(".")[2]
        requests[operation] += 1
        sent[operation] += len(request.body)
        body = {"Items": rows} if operation == "Query" else {"SearchResults": []}
        return AWSResponse(request.url, 200, {}, _Body(json.dumps(body).encode()))

    client.meta.events.register("before-send.dynamodb", nothing_found)
    index = DynamoIndex(client, "factbook-vectors-384", DIMENSIONS)
    print("| projects | operation | requests | bytes sent |\n|---:|---|---:|---:|")
    for count in projects:
        for may in ("reads", "writes"):
            requests.clear()
            sent.clear()
            names = frozenset(f"p{number}" for number in range(count))
            reader = Principal(TENANT, Actor(kind="user", id="ann"), **{f"{may}_projects": names})
            rule = asked_rule(reader, Question("semantic", "x"), Look("2026-06-01T00:00:00.000Z", "recalled"))
            index.search(TENANT, [VectorLeg(_direction(), rule, 100)], timeout=600)
            for name in requests:
                print(f"| {may} {count} | {name} | {requests[name]:,} | {sent[name]:,} |")


class _Body:
    """What a connection has received."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._content


def _fact(project: int, number: int) -> Put:
    scope = Scope(tenant_id=TENANT, project_id=f"p{project}")
    fields = scope_fields(scope) | {"source": FACTS, "type": "note", "trust": "asserted", "revision": 1}
    return Put(TENANT, f"fact-{project}-{number}", 1, (Chunk("", _direction()),), fields)


def _direction() -> tuple[float, ...]:
    return tuple(random.gauss(0, 1) for _ in range(DIMENSIONS))


if __name__ == "__main__":
    main()
