"""The TokenStore contract on the fake, on moto and on ministack."""

import pytest
from support.emulators import Aws
from support.fakes import FakeAccess

from factbook.adapters.access.dynamodb_tokens import DynamoAccess

from .token_store import TokenStoreContract


class TestFakeAccess(TokenStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = self.twin = FakeAccess()


class TestDynamoAccessOnMoto(TokenStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, moto: Aws) -> None:
        self.store, self.twin = (
            DynamoAccess(moto.client("dynamodb"), moto.settings.access_table) for _ in range(2)
        )


class TestDynamoAccessOnMinistack(TokenStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, ministack: Aws) -> None:
        self.store, self.twin = (
            DynamoAccess(ministack.client("dynamodb"), ministack.settings.access_table) for _ in range(2)
        )
