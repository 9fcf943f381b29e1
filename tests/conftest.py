"""What every test starts from: no account, no region of the machine's, no proxy to this machine.

Emulators are started once and shared; a test that writes uses a tenant of its own.
"""

import os
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from support import emulators
from support.emulators import Aws

for variable in [
    name
    for name in os.environ
    if name.startswith(("AWS_", "KINDGI_", "MEMORY_", "FACTBOOK_URL", "FACTBOOK_TOKEN"))
]:
    del os.environ[variable]
os.environ |= {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1,localhost",
}

# Timing is never asserted: what runs slowly on a busy machine is not wrong.
hypothesis_settings.register_profile(
    "factbook", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
hypothesis_settings.load_profile("factbook")


def pytest_xdist_auto_num_workers() -> int:
    """Tests of the local service wait for its processes: one worker more than there are processors keeps them busy."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="module")
def moto() -> Iterator[Aws]:
    """Fresh in each module, unlike ministack: it copies all its tables at every transaction."""
    with emulators.moto() as aws:
        yield aws


@pytest.fixture(scope="session")
def ministack() -> Iterator[Aws]:
    with emulators.ministack() as aws:
        yield aws


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid.uuid4()}"
