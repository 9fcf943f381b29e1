"""The JointStore contract on the fakes, on moto and on ministack."""

import pytest
from support.emulators import Aws
from support.fakes import FakeFacts, FakeJoint
from support.log_fakes import FakeLog

from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.log.dynamodb_log import DynamoLog
from factbook.adapters.provenance.dynamodb_joint import DynamoJoint

from .joint_store import JointStoreContract, Stores


def on(aws: Aws) -> Stores:
    client = aws.client("dynamodb")
    facts, log = (
        DynamoFacts(client, aws.settings.facts_table),
        DynamoLog(client, aws.settings.log_table),
    )
    return Stores(facts, log, DynamoJoint(client, facts, log))


class TestFakeJoint(JointStoreContract):
    @pytest.fixture(autouse=True)
    def _stores(self) -> None:
        facts, log = FakeFacts(), FakeLog()
        self.stores = Stores(facts, log, FakeJoint(facts, log))


class TestDynamoJoint(JointStoreContract):
    @pytest.fixture(autouse=True)
    def _stores(self, emulator: Aws) -> None:
        self.stores = on(emulator)
