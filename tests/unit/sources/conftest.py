"""A source to ask, for each test its own."""

from collections.abc import Iterator

import pytest
from support.source_server import SourceServer, source_server


@pytest.fixture
def server() -> Iterator[SourceServer]:
    with source_server() as running:
        yield running
