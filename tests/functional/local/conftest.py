"""One local cloud of the probe template for all tests of this folder."""

from collections.abc import Iterator

import pytest
from support.local_cloud import Cloud, probe_cloud


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with probe_cloud(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud
