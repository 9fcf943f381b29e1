"""The ErasureStore contract on the fake, on moto and on ministack, and what processes read of it."""

import pytest
from support.emulators import Aws
from support.erasing import FakeErasures

from factbook.adapters.access.dynamodb_in_force import InForce
from factbook.adapters.erasure.dynamodb_erasures import DynamoErasures
from factbook.domain.access.erasing import Selector

from .erasure_store import ANN, NOON, ErasureStoreContract


class TestFakeErasures(ErasureStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = FakeErasures()


class OnDynamo(ErasureStoreContract):
    def over(self, aws: Aws) -> None:
        self.client, self.table = aws.client("dynamodb"), aws.settings.access_table
        self.store = DynamoErasures(self.client, self.table)

    def test_every_process_reads_what_is_in_force(self) -> None:
        self.created(1)
        self.created(2, Selector("fact", "f|1"))
        assert InForce(self.client, self.table).of(self.tenant).since == {
            ANN: NOON,
            Selector("fact", "f|1"): NOON,
        }


class TestDynamoErasures(OnDynamo):
    @pytest.fixture(autouse=True)
    def _store(self, emulator: Aws) -> None:
        self.over(emulator)
