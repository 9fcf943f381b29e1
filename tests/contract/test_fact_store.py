"""The FactStore contract on the fake that other tests trust, on moto and on ministack."""

import pytest
from support.emulators import Aws
from support.fakes import FakeFacts

from factbook.adapters.facts.dynamodb_facts import DynamoFacts

from .fact_store import FactStoreContract


class TestFakeFacts(FactStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.store = FakeFacts()


class TestDynamoFactsOnMoto(FactStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, moto: Aws) -> None:
        self.store = DynamoFacts(moto.client("dynamodb"), moto.settings.facts_table)


class TestDynamoFactsOnMinistack(FactStoreContract):
    @pytest.fixture(autouse=True)
    def _store(self, ministack: Aws) -> None:
        self.store = DynamoFacts(ministack.client("dynamodb"), ministack.settings.facts_table)
