"""One tenant of a service on ministack for each test, and gateways for its principals."""

import pytest
from support.emulators import Aws
from support.gateway import Gateway
from support.principals import House


@pytest.fixture
def house(ministack: Aws, tenant: str) -> House:
    return House(ministack.services(), tenant)


@pytest.fixture
def admin(house: House) -> Gateway:
    return house.admin
