"""The SearchIndex contract on DynamoDB's vector index, with each promise that it cannot keep by name, and what only it has."""

import itertools
import random
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from support import emulators
from support.emulators import Aws
from support.tables import make_vectors_table

from factbook.adapters.retrieval import dynamodb_index, generations, vector_items
from factbook.adapters.retrieval.dynamodb_index import MOST, DynamoIndex
from factbook.domain.errors import SearchUnavailable
from factbook.domain.filters import EVERYTHING, AllOf, AnyOf, Equals, Filter, OneOf, Prefix, evaluate
from factbook.domain.retrieval.documents import Change, Tombstone
from factbook.ports.retrieval.index import (
    EmbeddingSpace,
    IndexMissing,
    KeywordLeg,
    LegFailure,
    PartialHits,
    VectorLeg,
)

from .interference import NonInterferenceContract
from .search_index import (
    EAST,
    HOSTILE,
    SPACE,
    SearchIndexContract,
    _documents,
    filters,
    ids,
    put,
    unit,
)

AXES = [tuple(float(at == axis) for at in range(SPACE.dimensions)) for axis in range(SPACE.dimensions)]
WORDS = "it has no words: a search by them is 501, and `both` says no-keyword-index"
NEIGHBOURS = "it gives a hundred neighbours of a partition and no more, and says so"
ONE_SIZE = "its table holds vectors of one size: another is another table"
EXCEPTIONS = {
    "test_an_error_code_is_found_among_two_hundred_chatty_facts": WORDS,
    "test_a_word_is_found_however_it_is_written": WORDS,
    "test_a_long_text_is_found_by_its_start_its_middle_and_its_end": WORDS,
    "test_any_query_has_an_answer": WORDS,
    "test_a_query_of_stop_words_alone_finds_them": WORDS,
    "test_a_rarer_word_and_a_shorter_text_rank_higher": WORDS,
    "test_a_leg_that_cannot_be_answered_leaves_the_other_its_answer": WORDS,
    "test_an_index_without_vectors_answers_by_keyword_and_takes_none": WORDS,
    "test_nothing_to_do_is_no_error": WORDS,
    "test_a_purge_changes_nothing_that_is_found": WORDS,
    "test_every_order_of_five_events_ends_the_same_and_nothing_old_comes_back": WORDS,
    "test_random_histories_with_duplicates_show_only_the_newest": WORDS,
    "test_writers_that_race_leave_no_chunk_of_a_loser": WORDS,
    "test_a_prefix_is_compared_as_it_is_whatever_stands_in_it": WORDS,
    "test_records_named_like_another_or_like_syntax_stay_apart": WORDS,
    "test_a_vector_that_comes_later_joins_the_same_version": WORDS,
    "test_a_vector_that_cannot_be_compared_is_refused_and_the_others_are_kept": WORDS,
    "test_equal_scores_are_ordered_by_id": WORDS,
    "test_a_filter_keeps_in_both_legs_exactly_what_its_reference_keeps": WORDS,
    "test_a_small_tenant_finds_all_of_its_own_among_many_closer_documents": WORDS,
    "test_a_tenant_named_like_another_or_like_syntax_sees_its_own_only": WORDS,
    "test_a_record_of_many_chunks_with_a_word_does_not_crowd_others_out": WORDS,
    "test_people_find_what_they_ask_for_in_their_language_first": WORDS,
    "test_the_few_of_a_tenant_are_found_among_many_that_mean_the_very_same": NEIGHBOURS,
    "test_another_model_has_an_index_beside_the_active_one_until_it_is_whole": ONE_SIZE,
}
"""What of the contract this index does not run. Below, each of these is asked again as far as it can be kept."""


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with emulators.ministack() as made:
        yield made


@pytest.fixture(scope="module")
def dynamo_index(aws: Aws) -> DynamoIndex:
    client = aws.client("dynamodb")
    index = DynamoIndex(client, make_vectors_table(client, SPACE.dimensions), SPACE.dimensions)
    index.activate(index.create(SPACE).name)
    return index


def test_every_exception_is_a_promise_of_the_contract() -> None:
    assert [name for name in EXCEPTIONS if not hasattr(SearchIndexContract, name)] == []


class TestDynamoIndex(SearchIndexContract):
    @pytest.fixture(autouse=True)
    def _index(self, dynamo_index: DynamoIndex, request: pytest.FixtureRequest) -> None:
        reason = EXCEPTIONS.get(request.function.__name__)
        if reason is not None:
            pytest.skip(reason)
        self.index = dynamo_index

    # The exceptions, as far as they can be kept

    def test_a_filter_keeps_exactly_what_its_reference_keeps(self) -> None:
        documents = {f"r{n}": fields for n, fields in enumerate(_documents(random.Random(5), 60))}
        rng, tenant = random.Random(6), self.tenant
        self.apply(*(put(tenant, record, "x", vector=unit(rng), **of) for record, of in documents.items()))

        @settings(max_examples=120)
        @given(filters())
        def holds(rule: Filter) -> None:
            whole = {record: {**of, "tenant": tenant, "id": record} for record, of in documents.items()}
            kept = {record for record, fields in whole.items() if evaluate(rule, fields)}
            [answer] = self.index.search(tenant, [VectorLeg(EAST, rule, 100)], timeout=30)
            assert sorted(ids(answer)) == sorted(kept)

        holds()

    def test_equally_near_ones_are_ordered_by_id(self) -> None:
        records = [f"r{n}" for n in random.Random(3).sample(range(100, 150), 50)]
        self.apply(*(put(self.tenant, record, "same", vector=EAST) for record in records))
        assert self.near(EAST, limit=50) == sorted(records)

    def test_a_vector_that_cannot_be_compared_is_refused(self) -> None:
        for vector in (EAST[:7], (0.0,) * 8, (float("nan"), *EAST[1:]), (float("inf"), *EAST[1:])):
            bad = put(self.tenant, "bad", "word", vector=vector)
            [refusal] = self.index.apply([put(self.tenant, "good", "x", vector=EAST), bad])
            assert (refusal.change, refusal.retry) == (bad, False)
            with pytest.raises(SearchUnavailable):
                self.index.search(self.tenant, [VectorLeg(tuple(vector), EVERYTHING, 1)])
        assert self.near(EAST) == ["good"]

    def test_a_number_that_the_service_refuses_for_being_so_small_is_nought(
        self, aws: Aws, dynamo_index: DynamoIndex
    ) -> None:
        client, sent = aws.client("dynamodb"), list[str]()

        def sending(request: Any, **_: Any) -> None:
            sent.append(request.body.decode())

        client.meta.events.register("before-send.dynamodb", sending)
        index = DynamoIndex(client, dynamo_index._table, SPACE.dimensions)
        almost = (1.0, 1e-200, -1e-200, *EAST[3:])
        assert index.apply([put(self.tenant, "almost", "x", vector=almost)]) == []
        [found] = index.search(self.tenant, [VectorLeg(almost, EVERYTHING, 1)], timeout=30)
        assert ids(found) == ["almost"]
        assert [body for body in sent if "e-200" in body] == []

    def test_a_vector_that_comes_later_joins_its_version(self) -> None:
        self.apply(replace(put(self.tenant, "it", "word", version=3), embedded=False))
        assert self.near(EAST) == []
        assert not self.index.lookup(self.tenant, ["it"])["it"].embedded
        self.apply(put(self.tenant, "it", "word", version=3, vector=EAST))
        assert self.near(EAST) == ["it"]
        assert self.index.lookup(self.tenant, ["it"])["it"].embedded

    def test_tenants_and_records_named_like_others_or_like_syntax_stay_apart(self) -> None:
        tenants = [self.tenant + name for name in HOSTILE]
        self.apply(*(put(tenant, f"of {at}", "x", vector=EAST) for at, tenant in enumerate(tenants)))
        for at, tenant in enumerate(tenants):
            assert self.near(EAST, tenant=tenant) == [f"of {at}"]
            assert self.near(EAST, Equals("tenant", tenants[at - 1]), tenant=tenant) == []
        self.apply(
            *(
                put(self.tenant, name, "x", version=at + 1, vector=EAST, container=name, type=name)
                for at, name in enumerate(HOSTILE)
            )
        )
        found = self.index.lookup(self.tenant, HOSTILE)
        assert {name: entry.version for name, entry in found.items()} == {
            name: at + 1 for at, name in enumerate(HOSTILE)
        }
        for name in HOSTILE:
            for field in ("id", "container", "type"):
                assert self.near(EAST, Equals(field, name)) == [name], (field, name)
        for prefix in {text[:length] for text in HOSTILE for length in (1, 2, 3)}:
            assert set(self.near(EAST, Prefix("type", prefix))) == {
                name for name in HOSTILE if name.startswith(prefix)
            }
        self.apply(Tombstone(self.tenant, "a", 100))
        assert set(self.near(EAST)) == set(HOSTILE) - {"a"}

    def test_orders_of_five_events_end_the_same_and_nothing_old_comes_back(self) -> None:
        def history(record: str) -> list[Change]:
            return [
                put(self.tenant, record, "one", "two", version=1, vector=AXES[0]),
                put(self.tenant, record, "one", version=2, vector=AXES[1]),
                Tombstone(self.tenant, record, 2),
                put(self.tenant, record, "one", version=3, vector=AXES[2]),
                Tombstone(self.tenant, record, 4),
            ]

        orders = [order for size in range(1, 6) for order in itertools.permutations(range(5), size)]
        records = {f"r{''.join(map(str, order))}": order for order in random.Random(1).sample(orders, 90)}
        for step in range(7):
            self.apply(
                *(
                    history(record)[order[step % len(order)]]
                    for record, order in records.items()
                    if step < len(order) + 2
                )
            )
            winner = {record: max((order * 2)[: step + 1]) for record, order in records.items()}
            for event, axis in ((0, AXES[0]), (1, AXES[1]), (3, AXES[2])):
                [hits] = self.index.search(self.tenant, [VectorLeg(axis, EVERYTHING, 100)], timeout=30)
                assert isinstance(hits, tuple)
                assert {hit.id for hit in hits if hit.score > 0.9} == {
                    record for record in records if winner[record] == event
                }

    def test_writers_that_race_leave_the_newest(self) -> None:
        problems: list[object] = []

        def write(version: int) -> None:
            changes = [
                put(self.tenant, f"r{n}", "x", version=version, vector=AXES[version]) for n in range(5)
            ]
            for _ in range(3):
                problems.extend(self.index.apply(changes))

        threads = [threading.Thread(target=write, args=(version,)) for version in (3, 1, 4, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        [hits] = self.index.search(self.tenant, [VectorLeg(AXES[4], EVERYTHING, 10)], timeout=30)
        assert isinstance(hits, tuple)
        assert [(hit.id, hit.version, round(hit.score, 5)) for hit in hits] == [
            (f"r{n}", 4, 1.0) for n in range(5)
        ]

    def test_a_purge_changes_nothing_that_it_finds(self) -> None:
        self.apply(*(put(self.tenant, f"r{n}", "x", vector=EAST) for n in range(10)))
        self.apply(*(Tombstone(self.tenant, f"r{n}", 2) for n in range(0, 10, 2)))
        before, entries = self.near(EAST), self.index.walk(tenant=self.tenant)
        assert before == ["r1", "r3", "r5", "r7", "r9"]
        for _ in range(2):
            self.index.purge()
            assert (self.near(EAST), self.index.walk(tenant=self.tenant)) == (before, entries)

    # What only this index has

    def test_past_a_hundred_neighbours_it_says_down_to_which_score_it_is_sure(self) -> None:
        rng = random.Random(2)
        vectors = {f"r{n:03}": unit(rng) for n in range(130)}
        kinds = {record: "even" if at % 2 else "odd" for at, record in enumerate(vectors)}
        self.apply(
            *(
                put(self.tenant, record, "x", vector=vector, owner=kinds[record])
                for record, vector in vectors.items()
            )
        )
        order = sorted(vectors, key=lambda record: -vectors[record][0])
        assert self.near(EAST, limit=100) == order[:100]
        [more] = self.index.search(self.tenant, [VectorLeg(EAST, EVERYTHING, 110)], timeout=30)
        assert isinstance(more, PartialHits)
        assert [hit.id for hit in more.hits] == order[:MOST]
        assert more.sure == pytest.approx(vectors[order[MOST - 1]][0], abs=1e-5)
        [even] = self.index.search(self.tenant, [VectorLeg(EAST, Equals("owner", "even"), 60)], timeout=30)
        assert isinstance(even, PartialHits)
        assert [hit.id for hit in even.hits] == [each for each in order[:MOST] if kinds[each] == "even"][:60]

    def test_type_and_source_are_compared_in_the_service_so_many_others_hide_none(self) -> None:
        others = [
            put(self.tenant, f"o{n}", "x", vector=EAST, type="noise", source="facts") for n in range(150)
        ]
        own = put(self.tenant, "own", "x", vector=AXES[1], type="note", source="facts")
        self.apply(*others, own)
        rule = AllOf((Equals("source", "facts"), OneOf("type", ("note",))))
        assert self.near(EAST, rule) == ["own"]

    def test_it_asks_each_container_that_the_filter_allows_once_and_in_one_search_those_of_the_tenant(
        self, aws: Aws, dynamo_index: DynamoIndex
    ) -> None:
        containers = ("T", "P:a", "W:a", "P:b", "W:b", "U:ann")
        self.apply(
            *(
                put(self.tenant, f"in {each}", "x", vector=EAST, container=each)
                for each in (*containers, "P:c")
            )
        )
        client, calls = aws.client("dynamodb"), list[str]()
        client.meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))
        index = DynamoIndex(client, dynamo_index._table, SPACE.dimensions)
        mine = AllOf((Equals("tenant", self.tenant), OneOf("container", containers)))

        def asked(rule: Filter) -> tuple[set[str], dict[str, int]]:
            calls.clear()
            [answer] = index.search(self.tenant, [VectorLeg(EAST, rule, 10)], timeout=30)
            return set(ids(answer)), {name: calls.count(name) for name in set(calls)}

        assert asked(mine) == ({f"in {each}" for each in containers}, {"Query": 1, "SearchVectors": 6})
        found, counted = asked(AllOf((mine, Equals("s_project", "a"))))
        assert (found, counted["SearchVectors"]) == (set(), 3)  # a's two, and the person's own
        found, counted = asked(Equals("tenant", self.tenant))
        assert (len(found), counted["SearchVectors"]) == (7, 1)
        assert asked(AnyOf())[1] == {"Query": 1}

    def test_a_search_by_words_is_a_leg_that_cannot_be_answered(self) -> None:
        legs = [KeywordLeg(("x",), EVERYTHING, 5), VectorLeg(EAST, EVERYTHING, 5)]
        assert self.index.search(self.tenant, legs, timeout=30) == [LegFailure("unavailable"), ()]
        with pytest.raises(SearchUnavailable):
            self.index.search(self.tenant, legs[:1])
        assert self.index.search(self.tenant, []) == []

    def test_another_model_of_the_size_is_another_generation_in_the_same_table(self) -> None:
        self.apply(put(self.tenant, "old", "x", vector=EAST))
        before = next(info for info in self.index.indexes() if info.active)
        other = self.index.create(EmbeddingSpace("Other Model: v2", SPACE.dimensions))
        self.index.apply([put(self.tenant, "new", "x", vector=EAST)], index=other.name)
        assert (other.active, self.near(EAST)) == (False, ["old"])
        legs = [VectorLeg(EAST, EVERYTHING, 5)]
        assert ids(self.index.search(self.tenant, legs, timeout=30, index=other.name)[0]) == ["new"]
        assert list(self.index.lookup(self.tenant, ["old", "new"], index=other.name)) == ["new"]
        assert [entry.id for entry in self.index.walk(index=other.name).entries] == ["new"]
        self.index.activate(other.name)
        assert self.near(EAST) == ["new"]
        self.index.activate(before.name)
        self.index.drop(other.name)
        assert self.near(EAST) == ["old"]
        with pytest.raises(IndexMissing):
            self.index.lookup(self.tenant, ["new"], index=other.name)

    def test_vectors_of_another_size_and_words_alone_need_another_table(self) -> None:
        with pytest.raises(SearchUnavailable, match="VectorDimensions=3"):
            self.index.create(EmbeddingSpace("m", 3))
        with pytest.raises(SearchUnavailable, match="by meaning alone"):
            self.index.create(None)

    def test_what_a_dropped_generation_held_is_removed_and_says_so_while_there_is_some(
        self, aws: Aws, dynamo_index: DynamoIndex
    ) -> None:
        before = next(info for info in self.index.indexes() if info.active)
        other = self.index.create(EmbeddingSpace("m", SPACE.dimensions))
        tenant = f"tenant-{uuid.uuid4()}"
        made = [put(tenant, f"r{n}", "x", vector=EAST) for n in range(900)]
        assert self.index.apply(made, index=other.name) == []
        with patch.object(dynamodb_index, "PURGE_SECONDS", 0.0), pytest.raises(SearchUnavailable):
            self.index.drop(other.name)
        assert other.name not in {info.name for info in self.index.indexes()}
        assert 0 < self._rows_of(aws, dynamo_index, tenant) < 900
        self.index.activate(before.name)
        assert self._rows_of(aws, dynamo_index, tenant) == 0
        assert next(info for info in self.index.indexes() if info.active) == before

    def test_what_a_writer_brings_late_into_a_dropped_generation_goes_with_the_next_purge(
        self, aws: Aws, dynamo_index: DynamoIndex
    ) -> None:
        client, tenant = aws.client("dynamodb"), f"tenant-{uuid.uuid4()}"
        other = self.index.create(EmbeddingSpace("m", SPACE.dimensions))
        self.index.drop(other.name)
        late = vector_items.item_of(other.name, put(tenant, "late", "x", vector=EAST))
        client.put_item(TableName=dynamo_index._table, Item=late)
        self.index.purge()
        assert self._rows_of(aws, dynamo_index, tenant) == 0
        with patch.object(generations, "LATE_SECONDS", 0):
            self.index.purge()
        client.put_item(TableName=dynamo_index._table, Item=late)
        self.index.purge()
        assert self._rows_of(aws, dynamo_index, tenant) == 1  # nobody writes so late

    def _rows_of(self, aws: Aws, index: DynamoIndex, tenant: str) -> int:
        pages = (
            aws.client("dynamodb")
            .get_paginator("scan")
            .paginate(
                TableName=index._table,
                FilterExpression="tn = :tn",
                ExpressionAttributeValues={":tn": {"S": tenant}},
            )
        )
        return sum(page["Count"] for page in pages)


class TestNonInterference(NonInterferenceContract):
    """While no partition holds a hundred records; what then is cut may be due to some that the reader may not see."""

    worlds, by_words = 6, False

    @pytest.fixture(autouse=True)
    def _index(self, dynamo_index: DynamoIndex, request: pytest.FixtureRequest) -> None:
        if "a_word_that_only_others_use" in request.function.__name__:
            pytest.skip(WORDS)
        self.index = dynamo_index

    def test_hidden_neighbours_past_a_hundred_cut_an_answer_and_it_says_so(self) -> None:
        """The exception that docs/search.md names: other agents' memories and what has run out lie in partitions that are read."""
        tenant = f"tenant-{uuid.uuid4()}"
        shown = put(tenant, "shown", "x", vector=AXES[1], agent="bot")
        self._apply([shown])
        legs = [VectorLeg(EAST, Equals("agent", "bot"), 10)]
        [before] = self.index.search(tenant, legs, timeout=30)
        self._apply([put(tenant, f"hidden{n}", "x", vector=EAST, agent="else") for n in range(MOST)])
        [after] = self.index.search(tenant, legs, timeout=30)
        assert ids(before) == ["shown"]
        assert isinstance(after, PartialHits)
        assert after.hits == ()


def test_a_table_that_is_not_there_is_a_missing_index(aws: Aws) -> None:
    nowhere = DynamoIndex(aws.client("dynamodb"), "nowhere", 8)
    for call in (nowhere.indexes, lambda: nowhere.lookup("t", ["a"]), lambda: nowhere.refresh()):
        with pytest.raises(IndexMissing):
            call()


def test_a_search_without_its_partition_is_refused_as_the_service_refuses_it(
    aws: Aws, dynamo_index: DynamoIndex
) -> None:
    asked: dict[str, Any] = {
        "TableName": dynamo_index._table,
        "IndexName": "by-tenant",
        "SearchVector": [{"N": "1"}] * 8,
        "TopK": 1,
        "ExpressionAttributeValues": {":s": {"S": "facts"}},
    }
    client = aws.client("dynamodb")
    with pytest.raises(ClientError, match="HASH"):
        client.search_vectors(**asked, SearchConditionExpression="s = :s")
    client.search_vectors(**asked, SearchConditionExpression="t = :s")
    with pytest.raises(ClientError, match="TopK"):
        client.search_vectors(**asked | {"TopK": 101}, SearchConditionExpression="t = :s")
