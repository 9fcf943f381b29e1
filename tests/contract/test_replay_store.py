"""The store of replays: the fake that other tests trust, and DynamoDB on moto and on ministack."""

import pytest
from support.emulators import Aws
from support.replays import FakeErasures

from factbook.adapters.dynamodb.client import from_item
from factbook.adapters.erasure.dynamodb_replays import DynamoReplays
from factbook.domain import times
from factbook.ports.erasure.replays import Replay

from .replay_store import AT, ReplayStoreContract, entry


class TestFake(ReplayStoreContract):
    @pytest.fixture(autouse=True)
    def _stores(self):
        self.replays = FakeErasures()


class OnDynamo(ReplayStoreContract):
    def connect(self, aws: Aws) -> None:
        self.aws = aws
        self.replays = DynamoReplays(aws.client("dynamodb"), aws.settings.access_table)

    def test_every_item_of_a_ledger_goes_after_a_week(self, tenant):
        self.replays.keep(Replay(tenant, "r1", AT, (entry(1),)))
        pages = (
            self.aws.client("dynamodb")
            .get_paginator("scan")
            .paginate(TableName=self.aws.settings.access_table)
        )
        found = (from_item(item) for page in pages for item in page["Items"])
        items = [item for item in found if tenant in item["pk"] + item["sk"]]

        week = times.epoch_ms(times.add(AT, days=7)) // 1000
        assert [item["ttl"] for item in items] == [week] * 3


class TestDynamo(OnDynamo):
    @pytest.fixture(autouse=True)
    def _stores(self, emulator: Aws):
        self.connect(emulator)
