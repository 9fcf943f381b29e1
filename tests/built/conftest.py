"""One emulator for the stacks of all tests here, and today's template as it takes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.stacks import Cloud, cloud


@pytest.fixture(scope="session")
def aws_like(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud(tmp_path_factory.mktemp("stacks")) as made:
        yield made


@pytest.fixture(scope="session")
def today(aws_like: Cloud) -> Path:
    return aws_like.transformed()
