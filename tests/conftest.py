"""What every test starts from: no account, no region of the machine's, no proxy to this machine.

Emulators are started once and shared; a test that writes uses a tenant of its own.
"""

import gc
import os
import signal
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from support import emulators
from support.emulators import Aws
from support.search_node import SearchNode, why_not

from factbook_local import strict

for variable in [
    name
    for name in os.environ
    if name.startswith(("AWS_", "KINDGI_", "MEMORY_", "REFRESH_", "FACTBOOK_URL", "FACTBOOK_TOKEN"))
]:
    del os.environ[variable]
os.environ |= {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1,localhost",
}

# What a shell has in its background ignores Ctrl-C, and so would all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No emulator enforces AWS's limits: every client of these tests refuses what AWS refuses.
strict.install()

# Timing is never asserted: what runs slowly on a busy machine is not wrong.
hypothesis_settings.register_profile(
    "factbook", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
hypothesis_settings.load_profile("factbook")
gc.disable()  # until all is collected: nothing of that is garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--search-node",
        action="store_true",
        help="run the tests of retrieval on an OpenSearch node instead of SQLite",
    )
    parser.addoption("--dynamodb-url", help="the endpoint that tests/contract/parity.py is run against")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector does not look at it again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def moto() -> Iterator[Aws]:
    """Fresh in each module: it copies all its tables at every transaction."""
    with emulators.moto() as aws:
        yield aws


@pytest.fixture(scope="session")
def one_ministack() -> Iterator[Aws]:
    with emulators.ministack() as aws:
        yield aws


@pytest.fixture(scope="module")
def ministack(one_ministack: Aws) -> Iterator[Aws]:
    """With empty tables in each module: what walks a whole table does not meet what all others have left."""
    yield one_ministack
    emulators.empty_tables(one_ministack)


@pytest.fixture(scope="session")
def search_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchNode]:
    """One OpenSearch node for the session: a test uses an index prefix of its own."""
    reason = why_not()
    if reason is not None and os.environ.get("CI") != "true":
        pytest.skip(reason)
    assert reason is None, reason
    node = SearchNode(tmp_path_factory.mktemp("search-node"))
    yield node
    node.stop()


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid.uuid4()}"
