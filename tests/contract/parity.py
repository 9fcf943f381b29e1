"""The contracts of every DynamoDB adapter on one more endpoint: `make parity DYNAMODB_URL=http://127.0.0.1:8001`.

Its name keeps it out of every other run: pytest finds it only when it is asked for.
"""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.emulators import Aws
from support.endpoints import why_no_dynamodb
from support.tables import make_tables, settings

from factbook.adapters.access.dynamodb_tokens import DynamoAccess
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.adapters.log.dynamodb_sealing_keys import DynamoKeys
from factbook.adapters.log.dynamodb_tree import DynamoTree

from .fact_store import FactStoreContract
from .log_stores import KeyStoreContract, LogStoreContract, TreePagesContract, TreeStoreContract
from .test_index_stores import OnDynamo
from .test_memory_index import OnDynamo as MemoriesOnDynamo
from .token_store import TokenStoreContract


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> Iterator[Aws]:
    """The template's tables under names of this run's own, gone at its end."""
    url = request.config.getoption("dynamodb_url")
    unusable = why_no_dynamodb(url)
    if unusable is not None:
        pytest.exit(unusable, returncode=pytest.ExitCode.USAGE_ERROR)
    prefix = f"parity-{uuid.uuid4().hex[:8]}-"
    names = {
        field: prefix + getattr(settings(), field)
        for field in ("facts_table", "log_table", "keys_table", "access_table")
    }
    aws = Aws(url, replace(settings(), **names))
    client = aws.client("dynamodb")
    tables = make_tables(client, prefix)
    for table in tables:
        client.get_waiter("table_exists").wait(TableName=table)
    yield aws
    for table in tables:
        client.delete_table(TableName=table)


class TestFacts(FactStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, endpoint: Aws) -> None:
        self.store = DynamoFacts(endpoint.client("dynamodb"), endpoint.settings.facts_table)


class TestMemories(MemoriesOnDynamo):
    @pytest.fixture(autouse=True)
    def _stores(self, endpoint: Aws) -> None:
        self.connect(endpoint)


class TestLog(LogStoreContract, KeyStoreContract, TreePagesContract, TreeStoreContract):
    @pytest.fixture(autouse=True)
    def _stores(self, endpoint: Aws) -> None:
        client, names = endpoint.client("dynamodb"), endpoint.settings
        self.log = DynamoLog(client, names.log_table)
        self.keys = DynamoKeys(client, names.keys_table)
        self.tree = DynamoTree(client, names.access_table)


class TestTokens(TokenStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, endpoint: Aws) -> None:
        self.store, self.twin = (
            DynamoAccess(endpoint.client("dynamodb"), endpoint.settings.access_table) for _ in range(2)
        )


class TestIndexStores(OnDynamo):
    @pytest.fixture(autouse=True)
    def _stores(self, endpoint: Aws) -> None:
        self.connect(endpoint)
