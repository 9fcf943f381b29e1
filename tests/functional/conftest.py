"""One tenant of a service on ministack for each test, and gateways for its principals."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.emulators import Aws
from support.gateway import Gateway
from support.principals import TenantService
from support.search_node import SearchNode
from support.search_world import WordEmbedder, World

from factbook.ports.retrieval.index import SearchIndex
from factbook_local.testing import Ready, running
from factbook_search.sqlite_index import SqliteIndex

NewWorld = Callable[..., World]


@pytest.fixture
def service(ministack: Aws, tenant: str) -> TenantService:
    return TenantService(ministack.services(), tenant)


@pytest.fixture
def admin(service: TenantService) -> Gateway:
    return service.admin


@pytest.fixture
def new_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewWorld]:
    """Makes worlds of search, each with an index of its own: SQLite's, or the real node's with `--search-node`."""
    made: list[World] = []

    def make(embedder: WordEmbedder | None = None) -> World:
        index: SearchIndex = SqliteIndex(tmp_path / f"index-{len(made)}.sqlite")
        if request.config.getoption("search_node"):
            from factbook_search.opensearch_client import connect  # half a second that SQLite does without
            from factbook_search.opensearch_index import OpenSearchIndex

            node: SearchNode = request.getfixturevalue("search_node")
            index = OpenSearchIndex(connect(node.url), f"world-{uuid.uuid4().hex[:8]}")
        made.append(World(index, embedder))
        return made[-1]

    yield make
    for world in made:
        for info in world.index.indexes():
            world.index.drop(info.name)


@pytest.fixture(scope="session")
def local_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    """`factbook local` as a process, with one tenant."""
    with running(tmp_path_factory.mktemp("local"), ["demo"]) as ready:
        yield ready
