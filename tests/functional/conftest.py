"""One tenant of a service on ministack for each test, and gateways for its principals."""

from collections.abc import Iterator

import pytest
from support.emulators import Aws
from support.gateway import Gateway
from support.principals import House

from factbook_local.testing import Ready, running


@pytest.fixture
def house(ministack: Aws, tenant: str) -> House:
    return House(ministack.services(), tenant)


@pytest.fixture
def admin(house: House) -> Gateway:
    return house.admin


@pytest.fixture(scope="session")
def local_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    """`factbook local` as a process, with one tenant."""
    with running(tmp_path_factory.mktemp("local"), ["demo"]) as ready:
        yield ready
