import os
from collections.abc import Iterator

import pytest
from real.search_node import SearchNode, why_not


@pytest.fixture(scope="session")
def search_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchNode]:
    """One node for the session: a test uses an index prefix of its own."""
    reason = why_not()
    if reason is not None and os.environ.get("CI") != "true":
        pytest.skip(reason)
    assert reason is None, reason
    node = SearchNode(tmp_path_factory.mktemp("search-node"))
    yield node
    node.stop()
