"""What every SearchIndex keeps, whatever it stands on. Changes go in, a refresh, and searches are what is looked at."""

import itertools
import random
import threading
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.domain.errors import SearchUnavailable
from factbook.domain.filters import (
    EVERYTHING,
    NOTHING,
    AllOf,
    AnyOf,
    Equals,
    FieldValue,
    Filter,
    Missing,
    Not,
    OneOf,
    Prefix,
    Range,
    evaluate,
)
from factbook.domain.retrieval.documents import (
    KEYWORD_FIELDS,
    NUMBER_FIELDS,
    Change,
    Chunk,
    Put,
    Tombstone,
    chunks,
)
from factbook.ports.retrieval.index import (
    EmbeddingSpace,
    Hit,
    IndexMissing,
    KeywordLeg,
    Leg,
    LegFailure,
    SearchIndex,
    VectorLeg,
)
from factbook_search.english import english_tokenizer

from .languages import ASKED

SPACE = EmbeddingSpace("test/Tiny-8", 8)
EAST = (1.0, 0, 0, 0, 0, 0, 0, 0)
TOKENS = english_tokenizer()
HOSTILE = (
    "a|b", "a%7Cb", "a", "A", "a*", "?", "%", "_", "~a", '"', "'; DROP TABLE docs_1; --", "a OR b", "\\", "é", "e\u0301",
    "a\x00b", "*:*", '{"match_all":{}}', " ", "a ", "true", "0", "x" * 256,
)  # fmt: skip


def put(
    tenant: str,
    record: str,
    *texts: str,
    version: int = 1,
    vector: Sequence[float] | None = None,
    **fields: FieldValue,
) -> Put:
    """One chunk per text, all with the same vector."""
    shared = tuple(vector) if vector is not None else None
    pieces = tuple(Chunk(" ".join(TOKENS.document(text)), shared) for text in texts)
    return Put(tenant, record, version, pieces, fields)


def unit(rng: random.Random) -> tuple[float, ...]:
    vector = [rng.gauss(0, 1) for _ in range(SPACE.dimensions)]
    length = sum(x * x for x in vector) ** 0.5
    return tuple(x / length for x in vector)


def ids(answer: tuple[Hit, ...] | LegFailure) -> list[str]:
    assert isinstance(answer, tuple), answer
    return [hit.id for hit in answer]


class SearchIndexContract:
    """Subclasses give `index`: one with an active index of SPACE, shared by the class, so a test takes a tenant of its own."""

    index: SearchIndex
    tenant: str

    @pytest.fixture(autouse=True)
    def _a_tenant_of_its_own(self) -> None:
        self.tenant = f"tenant-{uuid.uuid4()}"

    def apply(self, *changes: Change) -> None:
        assert self.index.apply(changes) == []
        self.index.refresh()

    def found(
        self, text: str, rule: Filter = EVERYTHING, tenant: str | None = None, limit: int = 100
    ) -> list[str]:
        [answer] = self.index.search(
            tenant or self.tenant, [KeywordLeg(TOKENS.query(text), rule, limit)], timeout=30
        )
        return ids(answer)

    def near(
        self, vector: Sequence[float], rule: Filter = EVERYTHING, tenant: str | None = None, limit: int = 100
    ) -> list[str]:
        [answer] = self.index.search(
            tenant or self.tenant, [VectorLeg(tuple(vector), rule, limit)], timeout=30
        )
        return ids(answer)

    # Words

    def test_an_error_code_is_found_among_two_hundred_chatty_facts(self) -> None:
        chatter = (
            put(self.tenant, f"chat-{n}", f"The error of error {n} was an error in the zx err log")
            for n in range(200)
        )
        self.apply(*chatter, put(self.tenant, "code", "Restart the pump when it shows ERR-7Q41-ZX."))
        assert self.found("what does error ERR-7Q41-ZX mean?")[0] == "code"
        assert self.found("err_7q41_zx")[0] == "code"

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("用户住在东京都港区", "东京"),
            ("猫が好きです", "猫"),
            ("会議は来週の火曜日です", "火曜日"),
            ("회의는 다음 주 화요일입니다", "화요일"),
            ("الاجتماع يوم الثلاثاء في القاهرة", "القاهرة"),
            ("قال مُحَمَّد", "محمد"),
            ("the café opens", "cafe\u0301"),
            ("the cafe\u0301 opens", "CAFÉ"),
            ("naïve Zoë", "zoe"),
            ("การประชุมวันอังคาร", "วันอังคาร"),
            ("हिन्दी भाषा", "भाषा"),
            ("ＦＵＬＬ ｗｉｄｔｈ", "full width"),
            ("she was running home", "runs"),
            ("O’Brien called", "o'brien"),
            ("mail ann@example.com", "ann@example.com"),
        ],
    )
    def test_a_word_is_found_however_it_is_written(self, text: str, query: str) -> None:
        self.apply(put(self.tenant, "it", text), put(self.tenant, "other", "something else 何か"))
        assert self.found(query) == ["it"]

    def test_people_find_what_they_ask_for_in_their_language_first(self) -> None:
        self.apply(*(put(self.tenant, f"{at}", text) for at, (_, text, _) in enumerate(ASKED)))
        missed = [
            (language, query)
            for at, (language, _, query) in enumerate(ASKED)
            if self.found(query)[:1] != [f"{at}"]
        ]
        assert missed == []
        assert len({language for language, _, _ in ASKED}) > 20

    def test_a_long_text_is_found_by_its_start_its_middle_and_its_end(self) -> None:
        rng = random.Random(7)
        words = [f"word{rng.randrange(5000)}" for _ in range(125_000)]
        words[0], words[62_500], words[-1] = "startmark", "midmark-77-x", "endmark"
        text = " ".join(words)
        assert len(text) > 1_000_000
        self.apply(put(self.tenant, "long", *chunks(text)), put(self.tenant, "short", "word1"))
        for mark in ("startmark", "midmark-77-x", "endmark"):
            assert self.found(mark) == ["long"]
        assert set(self.found("word1")) == {"long", "short"}
        self.apply(Tombstone(self.tenant, "long", 2))
        assert self.found("startmark midmark-77-x endmark word1") == ["short"]

    @pytest.mark.parametrize(
        "query",
        [
            "the of and",
            " ".join(f"word{n}" for n in range(10_000)),
            'AND OR NOT ( " * ~ ^ : NEAR/2 -x +y [a TO b] {!q} /re/ \\',
            '"unclosed (quote',
            "text:secret OR tenant:*",
            "… — 😀",
            "",
            "\x00",
            "x" * 100_000,
        ],
    )  # fmt: skip
    def test_any_query_has_an_answer(self, query: str) -> None:
        self.apply(
            put(self.tenant, "it", "word9999 the x text"), put("other-tenant", "secret", "secret the x word1")
        )
        assert set(self.found(query)) <= {"it"}

    def test_a_query_of_stop_words_alone_finds_them(self) -> None:
        self.apply(put(self.tenant, "it", "to be or not to be"), put(self.tenant, "other", "nothing"))
        assert self.found("to be") == ["it"]

    def test_a_rarer_word_and_a_shorter_text_rank_higher(self) -> None:
        common = [put(self.tenant, f"c{n}", "blue sky over a quiet town far away") for n in range(20)]
        self.apply(
            *common,
            put(self.tenant, "rare", "blue zeppelin over a quiet town far away"),
            put(self.tenant, "short", "blue"),
        )
        assert self.found("blue zeppelin")[:2] == ["rare", "short"]

    # Meaning

    def test_the_nearest_come_first_with_their_cosine(self) -> None:
        rng = random.Random(1)
        vectors = {f"r{n:02}": unit(rng) for n in range(40)}
        self.apply(*(put(self.tenant, record, "x", vector=vector) for record, vector in vectors.items()))
        query = unit(rng)
        cosines = {
            record: sum(a * b for a, b in zip(query, vector, strict=True))
            for record, vector in vectors.items()
        }
        [hits] = self.index.search(
            self.tenant, [VectorLeg(tuple(3 * x for x in query), EVERYTHING, 10)], timeout=30
        )
        assert isinstance(hits, tuple)
        assert [hit.id for hit in hits] == sorted(cosines, key=lambda record: -cosines[record])[:10]
        assert [hit.score for hit in hits] == pytest.approx([cosines[hit.id] for hit in hits], abs=1e-5)

    def test_opposite_vectors_have_a_cosine_of_minus_one(self) -> None:
        self.apply(put(self.tenant, "west", "x", vector=(-2.0, *EAST[1:])), put(self.tenant, "bare", "x"))
        [hits] = self.index.search(self.tenant, [VectorLeg(EAST, EVERYTHING, 10)], timeout=30)
        assert isinstance(hits, tuple)
        assert [(hit.id, hit.score) for hit in hits] == [("west", pytest.approx(-1.0, abs=1e-6))]

    def test_a_record_of_many_near_chunks_does_not_crowd_others_out(self) -> None:
        self.apply(
            put(self.tenant, "many", *(f"piece {n}" for n in range(450)), vector=EAST),
            *(
                put(self.tenant, f"one{n}", "x", vector=(1.0, 0.1 + n / 10, 0, 0, 0, 0, 0, 0))
                for n in range(5)
            ),
        )
        assert self.near(EAST, limit=6) == ["many", "one0", "one1", "one2", "one3", "one4"]

    def test_a_record_of_many_chunks_with_a_word_does_not_crowd_others_out(self) -> None:
        self.apply(
            put(self.tenant, "many", *(f"word word piece{n}" for n in range(450))),
            *(put(self.tenant, f"one{n}", "a word and several others") for n in range(5)),
        )
        assert self.found("word", limit=6) == ["many", "one0", "one1", "one2", "one3", "one4"]
        assert self.found("word", limit=3) == ["many", "one0", "one1"]

    def test_the_few_of_a_tenant_are_found_among_many_that_mean_the_very_same(self) -> None:
        same = [put(f"{self.tenant}-{n % 3}", f"s{n}", "thanks", vector=EAST) for n in range(3_000)]
        own = [put(self.tenant, f"own{n:03}", "thanks", vector=EAST) for n in range(400)]
        other = put(self.tenant, "other", "no thanks", vector=(0, *EAST[:7]))
        for start in range(0, 3_000, 1_000):
            assert self.index.apply(same[start : start + 1_000]) == []
        self.apply(*own, other)
        assert len(self.near(EAST, limit=50)) == 50
        assert set(self.near(EAST, limit=1_000)) == {"other", *(change.id for change in own)}

    @pytest.mark.parametrize(
        "vector", [EAST[:7], (0.0,) * 8, (float("nan"), *EAST[1:]), (float("inf"), *EAST[1:])]
    )
    def test_a_vector_that_cannot_be_compared_is_refused_and_the_others_are_kept(
        self, vector: tuple[float, ...]
    ) -> None:
        bad = put(self.tenant, "bad", "word", vector=vector)
        [refusal] = self.index.apply(
            [put(self.tenant, "one", "word", vector=EAST), bad, put(self.tenant, "two", "word")]
        )
        assert (refusal.change, refusal.retry) == (bad, False)
        assert "word" not in refusal.reason
        self.index.refresh()
        assert self.found("word") == ["one", "two"]

    def test_a_leg_that_cannot_be_answered_leaves_the_other_its_answer(self) -> None:
        self.apply(put(self.tenant, "it", "word", vector=EAST))
        legs: list[Leg] = [VectorLeg((1.0, 2.0), EVERYTHING, 5), KeywordLeg(("word",), EVERYTHING, 5)]
        vector, keyword = self.index.search(self.tenant, legs, timeout=30)
        assert vector == LegFailure("unavailable")
        assert ids(keyword) == ["it"]
        with pytest.raises(SearchUnavailable):
            self.index.search(self.tenant, legs[:1], timeout=30)

    # Filters

    def test_equal_scores_are_ordered_by_id(self) -> None:
        records = [f"r{n}" for n in random.Random(3).sample(range(100, 150), 50)]
        self.apply(*(put(self.tenant, record, "same", vector=EAST) for record in records))
        assert self.found("same", limit=20) == sorted(records)[:20]
        assert self.near(EAST, limit=50) == sorted(records)

    def test_a_filter_keeps_in_both_legs_exactly_what_its_reference_keeps(self) -> None:
        tenant, documents = (
            self.tenant,
            {f"r{n}": fields for n, fields in enumerate(_documents(random.Random(5), 60))},
        )
        rng = random.Random(6)
        self.apply(
            *(put(tenant, record, "all", vector=unit(rng), **fields) for record, fields in documents.items())
        )

        @settings(max_examples=150)
        @given(filters())
        def holds(rule: Filter) -> None:
            kept = {
                r for r, fields in documents.items() if evaluate(rule, {**fields, "tenant": tenant, "id": r})
            }
            legs: list[Leg] = [KeywordLeg(("all",), rule, 100), VectorLeg(EAST, rule, 100)]
            for answer in self.index.search(tenant, legs, timeout=30):
                assert set(ids(answer)) == kept
                assert len(ids(answer)) == len(kept)

        holds()

    @pytest.mark.parametrize(
        "rule",
        [
            Equals("nonsense", "x"),
            Not(Missing("text")),
            AllOf((Range("type", gt=1),)),
            Equals("revision", "1"),
            OneOf("type", (1,)),
            Prefix("nonsense", "x"),
            Prefix("revision", "1"),
        ],
    )
    def test_a_filter_that_means_nothing_is_an_error_and_not_a_wider_answer(self, rule: Filter) -> None:
        with pytest.raises(ValueError, match=r"filter|holds"):
            self.index.search(self.tenant, [KeywordLeg(("x",), rule, 1)])

    def test_a_document_with_an_unknown_field_is_refused(self) -> None:
        [refusal] = self.index.apply([put(self.tenant, "it", "word", nonsense="x")])
        assert (refusal.reason, refusal.retry) == ("unknown-field", False)

    # Isolation

    def test_a_small_tenant_finds_all_of_its_own_among_many_closer_documents(self) -> None:
        rng = random.Random(11)
        others = [
            put(
                f"{self.tenant}-{n % 40}",
                f"o{n}",
                "quarterly budget plan",
                vector=(1.0, *(rng.random() / 3 for _ in range(7))),
            )
            for n in range(self.crowd)
        ]
        for start in range(0, len(others), 2_000):
            assert self.index.apply(others[start : start + 2_000]) == []
        own = {f"own{n}": (0.2, *unit(rng)[1:]) for n in range(12)}
        self.apply(
            *(
                put(self.tenant, record, f"a plan of {record}", vector=vector)
                for record, vector in own.items()
            )
        )
        cosines = {r: vector[0] / sum(x * x for x in vector) ** 0.5 for r, vector in own.items()}
        assert self.near(EAST, limit=10) == sorted(own, key=lambda record: (-cosines[record], record))[:10]
        assert set(self.found("quarterly budget plan", limit=12)) == set(own)
        narrow = OneOf("id", ("own3", "own7", "o1"))
        assert set(self.near(EAST, narrow, limit=10)) == {"own3", "own7"}

    crowd = 4_000

    def test_a_tenant_named_like_another_or_like_syntax_sees_its_own_only(self) -> None:
        prefix = str(uuid.uuid4())
        tenants = [prefix + name for name in HOSTILE] + [
            prefix,
            prefix.upper(),
            f"{prefix}*",
            f"{prefix}|own",
        ]
        self.apply(*(put(tenant, f"of {at}", "word", vector=EAST) for at, tenant in enumerate(tenants)))
        for at, tenant in enumerate(tenants):
            assert self.found("word", tenant=tenant) == self.near(EAST, tenant=tenant) == [f"of {at}"]
            assert self.found(
                "word", AnyOf((EVERYTHING, Equals("tenant", tenants[at - 1]))), tenant=tenant
            ) == [f"of {at}"]
            assert self.found("word", Equals("tenant", tenants[at - 1]), tenant=tenant) == []

    def test_records_named_like_another_or_like_syntax_stay_apart(self) -> None:
        self.apply(*(put(self.tenant, record, "word", version=at + 1) for at, record in enumerate(HOSTILE)))
        assert set(self.found("word")) == set(HOSTILE)
        found = self.index.lookup(self.tenant, HOSTILE)
        assert {record: entry.version for record, entry in found.items()} == {
            r: at + 1 for at, r in enumerate(HOSTILE)
        }
        for record in HOSTILE:
            assert self.found("word", Equals("id", record)) == [record]
        self.apply(Tombstone(self.tenant, "a", 100))
        assert set(self.found("word")) == set(HOSTILE) - {"a"}

    def test_a_prefix_is_compared_as_it_is_whatever_stands_in_it(self) -> None:
        self.apply(
            *(
                put(self.tenant, f"r{at}", "word", type=name, subjects=(name,))
                for at, name in enumerate(HOSTILE)
            )
        )
        for prefix in {text[:length] for text in HOSTILE for length in (1, 2, 3)}:
            wanted = {f"r{at}" for at, name in enumerate(HOSTILE) if name.startswith(prefix)}
            for field in ("type", "subjects"):
                assert set(self.found("word", Prefix(field, prefix))) == wanted, (field, prefix)

    # Versions

    def test_every_order_of_five_events_ends_the_same_and_nothing_old_comes_back(self) -> None:
        """All orders of all selections at once: each is a record of its own, and the n-th events go in together."""

        def history(record: str) -> list[Change]:
            return [
                put(self.tenant, record, "first one", "first two", "first three", version=1, vector=EAST),
                put(self.tenant, record, "second one", version=2),
                Tombstone(self.tenant, record, 2),
                put(self.tenant, record, "third one", "third two", version=3),
                Tombstone(self.tenant, record, 4),
            ]

        orders = [order for size in range(1, 6) for order in itertools.permutations(range(5), size)]
        records = {f"r{''.join(map(str, order))}": order for order in orders}
        for step in range(7):
            arriving = [
                history(record)[order[step % len(order)]]
                for record, order in records.items()
                if step < len(order) + 2
            ]
            self.apply(*arriving)
            winner = {record: max((order * 2)[: step + 1]) for record, order in records.items()}
            for event, word in enumerate(("first", "second", None, "third", None)):
                if word is not None:
                    expected = {record for record in records if winner[record] == event}
                    assert set(self.found(word, limit=1000)) == expected, (step, word)
            assert set(self.found("two", limit=1000)) == {r for r in records if winner[r] in (0, 3)}, step
            assert set(self.found("three", limit=1000)) == {r for r in records if winner[r] == 0}, step
            assert set(self.near(EAST, limit=1000)) == {r for r in records if winner[r] == 0}, step
        found = self.index.lookup(self.tenant, list(records))
        ends = {0: (1, True, 3), 1: (2, True, 1), 2: (2, False, 1), 3: (3, True, 2), 4: (4, False, 1)}
        assert {r: (e.version, e.live, e.chunks) for r, e in found.items()} == {
            r: ends[max(o)] for r, o in records.items()
        }

    def test_random_histories_with_duplicates_show_only_the_newest(self) -> None:
        @settings(max_examples=self.histories)
        @given(st.lists(_deliveries(), min_size=1, max_size=8), st.integers(1, 4))
        def holds(deliveries: list[list[tuple[int, int]]], together: int) -> None:
            tenant = f"tenant-{uuid.uuid4()}"
            lanes = [[_event(tenant, f"r{at}", *e) for e in events] for at, events in enumerate(deliveries)]
            flat = [change for row in itertools.zip_longest(*lanes) for change in row if change is not None]
            for start in range(0, len(flat), together):
                assert self.index.apply(flat[start : start + together]) == []
            self.index.refresh()
            newest = {f"r{at}": max(events) for at, events in enumerate(deliveries)}
            live = {record: event for record, event in newest.items() if event[1]}
            assert set(self.found("any", tenant=tenant)) == set(live)
            for version, size in {event for events in deliveries for event in events if event[1]}:
                expected = {record for record, event in live.items() if event == (version, size)}
                assert set(self.found(f"v{version}s{size}", tenant=tenant)) == expected
                last = {record for record, event in live.items() if event[1] >= size}
                assert set(self.found(f"chunk{size}", tenant=tenant)) == last

        holds()

    histories = 40

    def test_writers_that_race_leave_no_chunk_of_a_loser(self) -> None:
        versions = {1: 4, 2: 1, 3: 5, 4: 2}
        changes = [
            [
                put(self.tenant, f"r{n}", *(f"chunk{at} mark{v}" for at in range(size)), version=v)
                for n in range(5)
            ]
            for v, size in versions.items()
        ]
        problems: list[object] = []

        def write(change: list[Put]) -> None:
            for _ in range(3):
                problems.extend(self.index.apply(change))

        threads = [threading.Thread(target=write, args=(change,)) for change in changes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.index.refresh()
        records = {f"r{n}" for n in range(5)}
        assert problems == []
        assert set(self.found("mark4")) == set(self.found("chunk1")) == records
        assert self.found("mark1 mark2 mark3 chunk2 chunk3 chunk4") == []

    def test_a_vector_that_comes_later_joins_the_same_version(self) -> None:
        self.apply(replace(put(self.tenant, "it", "word", version=3), embedded=False))
        assert self.near(EAST) == []
        assert not self.index.lookup(self.tenant, ["it"])["it"].embedded
        self.apply(put(self.tenant, "it", "word", version=3, vector=EAST))
        assert self.near(EAST) == self.found("word") == ["it"]
        assert self.index.lookup(self.tenant, ["it"])["it"].embedded

    # What is there

    def test_a_lookup_tells_versions_and_leaves_strangers_out(self) -> None:
        self.apply(
            put(self.tenant, "live", "one", "two", version=7, vector=EAST, revision=5),
            Tombstone(self.tenant, "dead", 3),
            put("other-tenant", "foreign", "word"),
        )
        found = self.index.lookup(self.tenant, ["live", "dead", "absent", "foreign"])
        assert set(found) == {"live", "dead"}
        live = found["live"]
        assert (live.version, live.live, live.revision, live.chunks, live.embedded) == (7, True, 5, 2, True)
        assert (found["dead"].version, found["dead"].live) == (3, False)
        assert self.index.lookup(self.tenant, []) == {}

    @pytest.mark.parametrize("limit", [1, 3, 7, 100])
    def test_a_walk_meets_every_record_once(self, limit: int) -> None:
        records = {*HOSTILE[:6], *(f"r{n}" for n in range(8))}
        self.apply(*(put(self.tenant, r, "a", "b") for r in records), Tombstone(self.tenant, "gone", 1))
        walked, after = [], None
        while True:
            page = self.index.walk(tenant=self.tenant, after=after, limit=limit)
            assert len(page.entries) <= limit
            walked += [entry.id for entry in page.entries]
            after = page.next
            if after is None:
                break
        assert sorted(walked) == sorted({*records, "gone"})

    def test_a_walk_of_everything_crosses_tenants_in_one_order(self) -> None:
        self.apply(put(self.tenant, "b", "x"), put(self.tenant + "2", "a", "x"))
        walked, after = [], None
        while True:
            page = self.index.walk(after=after, limit=5_000)
            walked += [(entry.tenant, entry.id) for entry in page.entries]
            after = page.next
            if after is None:
                break
        assert {(self.tenant, "b"), (self.tenant + "2", "a")} <= set(walked)
        assert len(walked) == len(set(walked))

    # Indexes

    def test_another_model_has_an_index_beside_the_active_one_until_it_is_whole(self) -> None:
        self.apply(put(self.tenant, "old", "word", vector=EAST))
        before = next(info for info in self.index.indexes() if info.active)
        other = self.index.create(EmbeddingSpace("Other Model: v2", 3))
        try:
            assert (other.active, other.space) == (False, EmbeddingSpace("Other Model: v2", 3))
            assert (
                self.index.apply([put(self.tenant, "new", "word", vector=(1.0, 0, 0))], index=other.name)
                == []
            )
            self.index.refresh(index=other.name)
            assert self.found("word") == ["old"]
            legs: list[Leg] = [VectorLeg((1.0, 0, 0), EVERYTHING, 5)]
            assert ids(self.index.search(self.tenant, legs, timeout=30, index=other.name)[0]) == ["new"]
            assert list(self.index.lookup(self.tenant, ["old", "new"], index=other.name)) == ["new"]
            assert [e.id for e in self.index.walk(index=other.name).entries] == ["new"]
            self.index.activate(other.name)
            assert [info.name for info in self.index.indexes() if info.active] == [other.name]
            assert self.found("word") == ["new"]
        finally:
            self.index.activate(before.name)
            self.index.drop(other.name)
        assert self.found("word") == ["old"]
        assert other.name not in {info.name for info in self.index.indexes()}
        self.index.drop(other.name)

    def test_an_index_without_vectors_answers_by_keyword_and_takes_none(self) -> None:
        bare = self.index.create(None)
        try:
            bad = put(self.tenant, "bad", "word", vector=EAST)
            [refusal] = self.index.apply([put(self.tenant, "it", "word"), bad], index=bare.name)
            assert (refusal.change, refusal.retry) == (bad, False)
            self.index.refresh(index=bare.name)
            legs: list[Leg] = [KeywordLeg(("word",), EVERYTHING, 5), VectorLeg(EAST, EVERYTHING, 5)]
            keyword, vector = self.index.search(self.tenant, legs, timeout=30, index=bare.name)
            assert ids(keyword) == ["it"]
            assert vector == LegFailure("unavailable")
        finally:
            self.index.drop(bare.name)

    def test_a_dropped_index_is_reported_by_everything_and_nothing_brings_it_back(self) -> None:
        gone = self.index.create(SPACE)
        self.index.drop(gone.name)
        name, change = gone.name, put(self.tenant, "it", "word", vector=EAST)
        with pytest.raises(IndexMissing):
            self.index.search(self.tenant, [KeywordLeg(("word",), EVERYTHING, 5)], timeout=30, index=name)
        with pytest.raises(IndexMissing):
            self.index.apply([change, Tombstone(self.tenant, "other", 1)], index=name)
        with pytest.raises(IndexMissing):
            self.index.lookup(self.tenant, ["it"], index=name)
        with pytest.raises(IndexMissing):
            self.index.walk(index=name)
        with pytest.raises(IndexMissing):
            self.index.refresh(index=name)
        with pytest.raises(IndexMissing):
            self.index.activate(name)
        assert name not in {info.name for info in self.index.indexes()}

    def test_a_purge_changes_nothing_that_is_found(self) -> None:
        kept = [put(self.tenant, f"r{n}", f"word number{n}", vector=EAST, s_user="ann") for n in range(30)]
        self.apply(
            *kept, *(put(self.tenant, "long", *["word"] * 5, vector=EAST, version=at) for at in (1, 2))
        )
        self.apply(*(Tombstone(self.tenant, f"r{n}", 2) for n in range(0, 30, 2)))
        legs: list[Leg] = [
            KeywordLeg(("word",), EVERYTHING, 50),
            VectorLeg(EAST, Equals("s_user", "ann"), 50),
        ]

        def found() -> list[list[str]]:  # the service counts what was removed in its statistics until then
            return [sorted(ids(answer)) for answer in self.index.search(self.tenant, legs, timeout=30)]

        before = found()
        entries = self.index.walk(tenant=self.tenant)
        assert [len(each) for each in before] == [16, 15]
        for _ in range(2):
            self.index.purge()
            assert found() == before
            assert self.index.walk(tenant=self.tenant) == entries
        self.apply(put(self.tenant, "r0", "word again", vector=EAST, version=3, s_user="ann"))
        assert "r0" in ids(self.index.search(self.tenant, legs, timeout=30)[1])

    def test_nothing_to_do_is_no_error(self) -> None:
        assert self.index.apply([]) == []
        assert self.index.search(self.tenant, []) == []
        empty: list[Leg] = [
            KeywordLeg((), EVERYTHING, 5),
            KeywordLeg(("word",), NOTHING, 5),
            VectorLeg(EAST, NOTHING, 5),
        ]
        assert self.index.search(self.tenant, empty, timeout=30) == [(), (), ()]


IDS = st.sampled_from(HOSTILE)
PREFIXES = ["", "r1", *(text[:length] for text in HOSTILE for length in (1, 2))]
_NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-(2**53), 2**53))
_LEAVES = st.one_of(
    st.builds(Equals, st.sampled_from(("type", "subjects", "s_user", "owner")), IDS),
    st.builds(Equals, st.sampled_from(NUMBER_FIELDS), st.integers(-3, 3)),
    st.builds(
        OneOf, st.sampled_from(("type", "subjects", "container", "id")), st.lists(IDS, max_size=3).map(tuple)
    ),
    st.builds(
        OneOf, st.just("id"), st.lists(st.sampled_from([f"r{n}" for n in range(60)]), max_size=3).map(tuple)
    ),
    st.builds(Prefix, st.sampled_from(("type", "subjects", "s_user", "id")), IDS | st.sampled_from(PREFIXES)),
    st.builds(Missing, st.sampled_from((*KEYWORD_FIELDS, *NUMBER_FIELDS))),
    st.builds(Range, st.sampled_from(NUMBER_FIELDS), *[st.none() | _NUMBERS] * 4),
    st.builds(Range, st.sampled_from(NUMBER_FIELDS)),
)


def filters() -> st.SearchStrategy[Filter]:
    def wider(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
        parts = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(st.builds(AllOf, parts), st.builds(AnyOf, parts), st.builds(Not, inner))

    return st.recursive(_LEAVES, wider, max_leaves=8)


def _documents(rng: random.Random, count: int) -> Iterable[dict[str, FieldValue]]:
    for _ in range(count):
        fields: dict[str, FieldValue] = {}
        for name in ("type", "s_user", "owner", "container"):
            if rng.random() < 0.7:
                fields[name] = rng.choice(HOSTILE)
        subjects = tuple(rng.sample(HOSTILE, rng.randrange(4)))
        if subjects:
            fields["subjects"] = subjects
        for name in NUMBER_FIELDS:
            if rng.random() < 0.7:
                fields[name] = rng.choice((*range(-3, 4), 2**53, -(2**53)))
        yield fields


def _deliveries() -> st.SearchStrategy[list[tuple[int, int]]]:
    """What arrives for one record: (version, chunks; none for a tombstone), in any order, repeats included.

    A version is one state of the record: it has one number of chunks.
    """
    sizes = st.lists(st.integers(0, 3), min_size=4, max_size=4)
    return st.tuples(sizes, st.lists(st.integers(1, 4), min_size=1, max_size=7)).map(
        lambda drawn: [(version, drawn[0][version - 1]) for version in drawn[1]]
    )


def _event(tenant: str, record: str, version: int, size: int) -> Change:
    if size == 0:
        return Tombstone(tenant, record, version)
    texts = (f"any v{version}s{size} chunk{at + 1}" for at in range(size))
    return put(tenant, record, *texts, version=version)
