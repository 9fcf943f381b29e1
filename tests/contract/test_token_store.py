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


class TestDynamoAccess(TokenStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, emulator: Aws) -> None:
        self.store, self.twin = (
            DynamoAccess(emulator.client("dynamodb"), emulator.settings.access_table) for _ in range(2)
        )
