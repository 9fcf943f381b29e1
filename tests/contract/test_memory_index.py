"""The MemoryIndex contract on the fake that other tests trust, on moto and on ministack."""

from unittest.mock import patch

import pytest
from support.emulators import Aws
from support.fakes import FakeFacts, FakeMemories

from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.memories import dynamodb_memories
from factbook.adapters.memories.dynamodb_memories import DynamoMemories

from .memory_index import NOON, MemoryIndexContract


class TestFakeMemories(MemoryIndexContract):
    @pytest.fixture(autouse=True)
    def _stores(self) -> None:
        self.facts = FakeFacts()
        self.index = FakeMemories(self.facts)


class OnDynamo(MemoryIndexContract):
    def connect(self, aws: Aws) -> None:
        client, table = aws.client("dynamodb"), aws.settings.facts_table
        self.facts, self.index = DynamoFacts(client, table), DynamoMemories(client, table)

    def test_one_partition_is_read_to_a_bound_and_what_ran_out_takes_none_of_it(self) -> None:
        text = '"' + "x" * 300_000 + '"'  # three to a page of the store
        for second in range(6):
            at = f"2026-01-01T12:00:{second:02d}.000Z"
            self.remembered(at, text, expires_at="2026-01-01T13:00:00.000Z" if second < 3 else None)
        with patch.object(dynamodb_memories, "MOST", 2):
            assert 2 <= len(self.of_ann()) < 6
            assert len(self.of_ann("2026-01-01T13:00:00.000Z")) == 3
        assert len(self.of_ann(NOON)) == 6


class TestDynamoMemories(OnDynamo):
    @pytest.fixture(autouse=True)
    def _stores(self, emulator: Aws) -> None:
        self.connect(emulator)
