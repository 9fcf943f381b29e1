"""Both stand-ins for AWS, one after the other: what a store promises holds on each."""

import pytest
from support.emulators import Aws


@pytest.fixture(params=["moto", "ministack"])
def emulator(request: pytest.FixtureRequest) -> Aws:
    aws: Aws = request.getfixturevalue(request.param)
    return aws
