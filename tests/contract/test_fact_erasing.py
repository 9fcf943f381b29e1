"""The FactErasing contract on the fakes, on moto and on ministack."""

from collections.abc import Callable
from typing import Any

import pytest
from support.emulators import Aws
from support.erasing import FakeErasing
from support.fakes import FakeFacts
from support.search_world import FakeWalk

from factbook.adapters.dynamodb.client import from_item
from factbook.adapters.facts.dynamodb_erasing import DynamoFactErasing
from factbook.adapters.facts.dynamodb_facts import DynamoFacts
from factbook.adapters.facts.dynamodb_walks import DynamoFactWalk
from factbook.domain.facts.fact import Retention
from factbook.ports.deadline import Deadline
from factbook.ports.walks import WalkPage

from .fact_erasing import FactErasingContract


class TestFakes(FactErasingContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.facts = facts = FakeFacts()
        self.erasing, self.walk = FakeErasing(facts), FakeWalk(facts)


class OnDynamo(FactErasingContract):
    def over(self, aws: Aws) -> None:
        self.client, self.table = aws.client("dynamodb"), aws.settings.facts_table
        self.facts = DynamoFacts(self.client, self.table)
        self.erasing = DynamoFactErasing(self.client, self.table, self.facts)
        self.walk = DynamoFactWalk(self.client, self.table, self.facts)

    def test_a_tombstone_keeps_no_attribute_with_anything_of_the_fact(self) -> None:
        self.tombstone(self.advanced(self.kept("f"), 2))
        where = {"pk": {"S": f"{self.tenant}|f"}, "sk": {"S": "h"}}
        item = from_item(self.client.get_item(TableName=self.table, Key=where)["Item"])
        assert set(item) == {"pk", "sk", "n", "t", "s", "d", "e", "lf", "k", "o", "er", "eb", "sj", "a"}
        assert item["a"] == f"{self.tenant}|erased|e1"
        for word in ("words", "eve", "ann", "sha256", "bbbb"):
            assert word not in repr(item)

    def test_a_walk_counts_what_it_leaves_out_for_being_unreadable(self) -> None:
        for number in range(5):
            self.kept(f"f{number}")
        broken: dict[str, dict[str, Any]] = {
            "f1": {"d": {"S": "no JSON"}},
            "f3": {"s": {"S": "[]"}},  # of the index's row, too
        }
        self.edit(broken)
        for limit in (1, 2, 100):
            pages = self.pages(lambda after, limit=limit: self.walk.heads(self.tenant, after, limit))
            found = {head.fact.id for page in pages for head in page.records}
            assert (found, sum(page.unreadable for page in pages)) == ({"f0", "f2", "f4"}, 2)

    def test_held_rows_and_tombstones_that_cannot_be_read_are_left_out_and_counted(self) -> None:
        for number in range(5):
            self.kept(f"f{number}", retention=Retention(legal_hold=True))
            self.tombstone(self.kept(f"g{number}"), "e1")
        damaged: list[dict[str, Any]] = [{"s": {"S": "[]"}}, {"sj": {"S": "no JSON"}}]
        self.edit({"f1": damaged[0], "f3": damaged[1], "g2": {"d": {"S": "no JSON"}}})
        for limit in (1, 2, 100):
            held = self.pages(lambda after, limit=limit: self.erasing.held(self.tenant, after, limit))
            assert {row.fact_id for page in held for row in page.records} == {"f0", "f2", "f4"}
            assert sum(page.unreadable for page in held) == 2
            gone = self.pages(
                lambda after, limit=limit: self.erasing.tombstones(self.tenant, "e1", after, limit)
            )
            assert {head.fact.id for page in gone for head in page.records} == {"g0", "g1", "g3", "g4"}
            assert sum(page.unreadable for page in gone) == 1

    def edit(self, changes: dict[str, dict[str, Any]]) -> None:
        """Past the service."""
        for name, change in changes.items():
            where = {"pk": {"S": f"{self.tenant}|{name}"}, "sk": {"S": "h"}}
            item = self.client.get_item(TableName=self.table, Key=where)["Item"]
            self.client.put_item(TableName=self.table, Item=item | change)

    def pages(self, read: Callable[[str | None], WalkPage[Any]]) -> list[WalkPage[Any]]:
        pages = [read(None)]
        while pages[-1].next is not None:
            pages.append(read(pages[-1].next))
        return pages

    def test_a_turn_whose_time_is_over_removes_nothing_more(self) -> None:
        self.advanced(self.kept("f"), 2)
        assert not self.erasing.remove_revisions(self.tenant, "f", Deadline(0.0))


class TestDynamo(OnDynamo):
    @pytest.fixture(autouse=True)
    def _store(self, emulator: Aws) -> None:
        self.over(emulator)
