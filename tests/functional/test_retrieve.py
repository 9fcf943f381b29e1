"""Retrieval over the real local index: what is found, in which order, and what is never answered."""

from dataclasses import replace

import pytest
from support.principals import principal
from support.search_world import WordEmbedder, admin

from factbook.domain.errors import BadInput, SearchUnavailable, SemanticUnavailable
from factbook.domain.policy.policies import Policy
from factbook.ports.retrieval.index import LegFailure
from factbook.usecases.facts import listing
from factbook.usecases.retrieval import indexing, retrieve, searching
from factbook.usecases.tally import counting

ADMIN = admin()


@pytest.fixture
def world(new_world):
    made = new_world(embedder=WordEmbedder())
    made.start()
    return made


@pytest.fixture
def wordy(new_world):
    """A world without embeddings."""
    made = new_world()
    made.start()
    return made


def test_a_list_is_newest_first_and_has_no_scores(world):
    for number in range(12):
        world.write(ADMIN, f"note {number}")

    found = world.find(ADMIN, mode="list")

    assert world.words(ADMIN, mode="list") == [f"note {number}" for number in range(11, 1, -1)]
    assert {score for _, score in found.facts} == {None}


@pytest.mark.parametrize("named", [{"types": ("acme.note",)}, {"type_prefix": "acme."}])
def test_a_list_by_type_is_whole_however_many_newer_facts_are_not_answered(world, monkeypatch, named):
    monkeypatch.setattr(retrieve, "LIST_PAGE", 2)
    world.write(ADMIN, "still valid")
    for number in range(30):
        world.write(ADMIN, f"over {number}", validUntil="2001-01-01T00:00:00Z")

    found = world.find(ADMIN, mode="list", **named)

    assert [fact.content_text for fact, _ in found.facts] == ['"still valid"']
    assert (found.degraded, found.looked_back_to) == (None, None)


def test_a_list_filtered_otherwise_says_how_far_it_looked(world, monkeypatch):
    monkeypatch.setattr(retrieve, "LIST_PAGE", 2)
    heads = [world.write(ADMIN, f"note {number}") for number in range(30)]

    found = world.find(ADMIN, mode="list", trust=("verified",))

    assert (found.facts, found.degraded) == ([], "list-incomplete")
    assert found.looked_back_to == heads[-2 * retrieve.LIST_PAGES].fact.created_at


def test_how_far_a_list_looked_is_told_by_what_its_reader_may_see(world, monkeypatch):
    """When a fact was first written that a reader may not see is not theirs to know."""
    monkeypatch.setattr(retrieve, "LIST_PAGES", 1)
    monkeypatch.setattr(listing, "ROWS", 40)
    for _ in range(60):
        world.write(ADMIN, "gone by now", retention={"keepDays": 1})
    seen = world.write(ADMIN, "a note")
    world.clock.advance(days=2)

    found = world.find(ADMIN, mode="list", trust=("verified",))
    assert (found.degraded, found.looked_back_to) == ("list-incomplete", seen.fact.created_at)

    world.delete(seen, ADMIN)
    found = world.find(ADMIN, mode="list", trust=("verified",))
    assert (found.degraded, found.looked_back_to) == ("list-incomplete", None)


def test_keyword_ranks_the_fact_with_more_and_rarer_words_first(world):
    world.write(ADMIN, {"text": "the customer likes tea"})
    world.write(ADMIN, {"text": "the customer pays invoices late"})
    world.write(ADMIN, {"text": "the customer pays"})

    assert world.words(ADMIN, "late invoices of a customer") == [
        "the customer pays invoices late",
        "the customer pays",
        "the customer likes tea",
    ]


def test_semantic_finds_what_shares_no_word_and_scores_by_cosine(world):
    world.write(ADMIN, "a kitten")
    world.write(ADMIN, "share prices")

    found = world.find(ADMIN, "feline", mode="semantic")

    assert found.facts[0][0].content_text == '"a kitten"'
    assert all(-1 <= score <= 1 for _, score in found.facts)
    assert world.words(ADMIN, "feline", mode="keyword") == []


def test_both_puts_what_both_legs_find_first_with_the_sum_of_its_ranks(world):
    world.write(ADMIN, "a kitten")
    world.write(ADMIN, "a feline of the house")

    found = world.find(ADMIN, "feline", mode="both").facts

    assert [fact.content_text for fact, _ in found] == ['"a feline of the house"', '"a kitten"']
    assert [score for _, score in found] == [pytest.approx(1 / 61 + 1 / 62), pytest.approx(1 / 61)]


def test_one_leg_alone_at_rank_one_scores_as_documented(wordy):
    wordy.write(ADMIN, "spare parts for a washing machine")

    found = wordy.find(ADMIN, "appliance parts", mode="both")

    assert [score for _, score in found.facts] == [0.01639344262295082]
    assert found.degraded == "no-embeddings"


def test_semantic_without_embeddings_is_refused_with_the_documented_message(wordy):
    with pytest.raises(SemanticUnavailable) as refused:
        wordy.find(ADMIN, "x", mode="semantic")

    assert refused.value.message == (
        'Mode "semantic" searches by meaning, and this runtime has no embeddings. '
        'An operator turns them on with KINDGI_MEMORY_EMBEDDINGS; until then use "keyword".'
    )


@pytest.mark.parametrize("mode", ["list", "keyword", "semantic", "both"])
def test_filters_keep_only_what_matches_all_of_them(world, mode):
    subject = {"kind": "participant", "id": "p9"}
    world.write(ADMIN, "tea a", "acme.one", scope={"projectId": "x"}, subjects=[subject])
    world.verify(world.write(ADMIN, "tea b", "acme.two", scope={"projectId": "x", "threadId": "t"}), ADMIN)
    world.write(ADMIN, "tea c", "acme.three", scope={"projectId": "y"})

    def found(**asked):
        return sorted(world.words(ADMIN, "tea", mode, **asked))

    assert found() == ["tea a", "tea b", "tea c"]
    assert found(types=("acme.one",)) == ["tea a"]
    assert found(types=("acme.one", "acme.three")) == ["tea a", "tea c"]
    assert found(scope={"projectId": "x"}) == ["tea a", "tea b"]
    assert found(scope={"projectId": "x", "threadId": "t"}) == ["tea b"]
    assert found(trust=("verified",)) == ["tea b"]
    assert found(subjects=("participant:p9", "user:nobody")) == ["tea a"]
    assert found(scope={"projectId": "y"}, types=("acme.one",)) == []


@pytest.mark.parametrize("mode", ["list", "keyword", "semantic", "both"])
def test_only_what_the_caller_may_see_is_found(world, mode):
    world.write(ADMIN, "tea for all")
    world.write(ADMIN, "tea of x", scope={"projectId": "x"})
    world.write(ADMIN, "tea of ann", scope={"userId": "ann"})
    world.write(ADMIN, "tea of a talk in x", scope={"projectId": "x", "threadId": "t"})
    world.write(ADMIN, "tea of org o", scope={"orgId": "o"})
    world.write(admin("t2"), "tea of another tenant")

    def found(who):
        return set(world.words(who, "tea", mode))

    assert found(principal("t1", "bob")) == {"tea for all"}
    assert found(principal("t1", "ann")) == {"tea for all", "tea of ann"}
    assert found(principal("t1", "bob", reads=["x"])) == {"tea for all", "tea of x"}
    assert found(principal("t1", "bob", writes=["x"])) == {"tea for all", "tea of x", "tea of a talk in x"}
    assert found(principal("t1", "bob", reads_orgs=["o"])) == {"tea for all", "tea of org o"}
    assert found(principal("t2", "ann")) == {"tea of another tenant"}


@pytest.mark.parametrize("mode", ["keyword", "semantic", "both"])
def test_what_the_caller_may_not_see_changes_neither_scores_nor_order(world, mode):
    ann = principal("t1", "ann", reads=["x"])
    for text in ("tea with milk", "milk and honey", "tea, tea and more tea with lemon", "honey"):
        world.write(ADMIN, text, scope={"projectId": "x"})

    def found():
        facts = world.find(ann, "tea with honey", mode).facts
        return [(fact.id, score) for fact, score in facts]

    before = found()
    others = [world.write(ADMIN, f"honey {number}", scope={"projectId": "y"}) for number in range(20)]
    strangers = [world.write(admin("t2"), "tea with honey " * 3) for _ in range(20)]
    assert found() == before

    for head in others:
        world.supersede(head, ADMIN, "tea with honey and lemon and milk")
    for head in strangers:
        world.delete(head, admin("t2"))
    assert len(before) == 4
    assert found() == before


@pytest.mark.parametrize("mode", ["list", "keyword", "semantic", "both"])
def test_facts_answer_only_while_they_are_valid_and_kept(world, mode):
    world.write(ADMIN, "tea valid", validUntil="2026-02-01T00:00:00Z")
    world.write(ADMIN, "tea later", validFrom="2026-03-01T00:00:00Z")
    world.write(ADMIN, "tea kept", retention={"keepDays": 10})

    assert set(world.words(ADMIN, "tea", mode)) == {"tea valid", "tea kept"}
    assert set(world.words(ADMIN, "tea", mode, valid_at="2026-03-01T00:00:00.000Z")) == {
        "tea later",
        "tea kept",
    }
    world.clock.advance(days=40)
    assert set(world.words(ADMIN, "tea", mode)) == set()


@pytest.mark.parametrize("mode", ["keyword", "semantic", "both"])
def test_what_the_index_has_not_heard_yet_is_dropped_not_shown(world, mode):
    superseded = world.write(ADMIN, "tea old")
    deleted = world.write(ADMIN, "tea deleted")
    world.write(ADMIN, "tea stays")
    world.supersede(superseded, ADMIN, "coffee now", deliver=False)
    world.delete(deleted, ADMIN, deliver=False)

    assert world.words(ADMIN, "tea", mode) == ["tea stays"]


def test_enough_facts_survive_although_most_hits_are_dropped(world):
    stale = [world.write(ADMIN, "tea tea tea") for _ in range(150)]
    for number in range(10):
        world.write(ADMIN, f"tea with milk and sugar {number}")
    for head in stale:
        world.delete(head, ADMIN, deliver=False)

    with counting() as sums:
        assert len(world.find(ADMIN, "tea").facts) == 10
    assert 1 <= sums["Refills"] <= searching.REFILLS


def test_a_retrieve_is_one_search_and_one_read(world, monkeypatch):
    for number in range(120):
        world.write(ADMIN, f"tea {number}")
    searches, reads = [], []
    search, heads = world.index.search, world.facts.heads
    monkeypatch.setattr(world.index, "search", lambda *a, **k: searches.append(a) or search(*a, **k))
    monkeypatch.setattr(world.facts, "heads", lambda tenant, ids: reads.append(ids) or heads(tenant, ids))

    for mode in ("keyword", "semantic", "both"):
        searches.clear()
        reads.clear()
        with counting() as sums:
            assert len(world.find(ADMIN, "tea", mode, limit=50).facts) == 50
        assert (len(searches), len(reads), sums["Refills"]) == (1, 1, 0)
        assert len(reads[0]) <= 100


def test_an_exact_code_is_found_among_two_hundred_chatty_facts(world):
    for number in range(200):
        world.write(
            ADMIN, f"The customer called about error number {number} and we talked about the error for long"
        )
    world.write(ADMIN, "Restart the router when ERR-7Q41-ZX shows")

    for mode in ("keyword", "both"):
        assert (
            world.words(ADMIN, "what about error ERR-7Q41-ZX", mode)[0]
            == "Restart the router when ERR-7Q41-ZX shows"
        )


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("客户希望我们在周末联系他", "周末联系"),
        ("東京の倉庫は月曜日に閉まります", "倉庫"),
        ("고객은 서울 사무소를 방문했다", "서울"),
        ("العميل يفضل الاتصال صباحا", "الاتصال"),
        ("Le caf\u00e9 pr\u00e9f\u00e9r\u00e9", "cafe\u0301 pre\u0301fe\u0301re\u0301"),
        ("El nin\u0303o", "niño"),
    ],
)
def test_other_scripts_and_either_form_of_accents_are_found_by_keyword(wordy, stored, asked):
    wordy.write(ADMIN, stored)
    wordy.write(ADMIN, "something else")

    assert wordy.words(ADMIN, asked) == [stored]


@pytest.mark.parametrize(
    "query",
    [
        "the of and",
        "word " * 10_000,
        'AND OR NOT "x" (y) * ~ ^2 field:z',
        "\u0000\u202e",
        "🦊",
        "-",
        '"""',
        "a" * 50_000,
    ],
)
@pytest.mark.parametrize("mode", ["keyword", "both"])
def test_any_query_is_answered(world, mode, query):
    world.write(ADMIN, "the word of the fox")

    assert len(world.find(ADMIN, query, mode).facts) <= 1


def test_a_long_text_is_found_by_words_at_its_start_middle_and_end(wordy, monkeypatch):
    monkeypatch.setattr(indexing, "LEAST_SECONDS", 120.0)  # however busy this machine is
    filler = "lorem ipsum dolor sit amet " * 19_000
    wordy.write(ADMIN, f"startling {filler} middling {filler} ending")
    wordy.write(ADMIN, "other")

    for word in ("startling", "middling", "ending"):
        assert len(wordy.find(ADMIN, word).facts) == 1


def test_a_passage_of_a_long_text_is_found_by_its_own_meaning(world):
    filler = "lorem ipsum dolor sit amet " * 45
    text = f"{filler}{'the kitten sleeps in a basket ' * 50}{filler}".strip()
    world.write(ADMIN, text)
    world.write(ADMIN, "the old kitten walks over the roofs of a town")

    (entry,) = world.index.lookup("t1", [world.find(ADMIN, mode="list").facts[1][0].id]).values()
    best, second = world.find(ADMIN, "the kitten sleeps in a basket", "semantic").facts

    assert entry.chunks == 4
    assert (best[0].size or 0) > len(filler)
    assert best[1] > 0.9 > second[1]
    assert world.words(ADMIN, "sleeps") == [text]


def test_scores_below_the_asked_minimum_are_left_out(world):
    world.write(ADMIN, "tea tea milk")
    world.write(ADMIN, "tea and much else that has nothing to do with it")
    best, second = (score for _, score in world.find(ADMIN, "tea milk").facts)

    assert len(world.find(ADMIN, "tea milk", min_score=(best + second) / 2).facts) == 1
    assert world.find(ADMIN, "tea milk", min_score=best + 1).facts == []


def test_naming_the_active_model_is_fine_and_another_is_refused(world, wordy):
    world.write(ADMIN, "tea")

    assert len(world.find(ADMIN, "tea", "semantic", embedding_model="words").facts) == 1
    with pytest.raises(BadInput):
        world.find(ADMIN, "tea", "keyword", embedding_model="other")
    with pytest.raises(SemanticUnavailable):
        wordy.find(ADMIN, "tea", "semantic", embedding_model="words")


def test_a_caller_reads_its_own_writes_or_is_told_that_the_index_is_behind(world):
    head = world.write(ADMIN, "tea", deliver=False)
    asked = ((head.fact.id, 1),)

    behind = world.find(ADMIN, "tea", after=asked)
    assert (behind.facts, behind.degraded) == ([], "index-behind")
    assert sum(world.sleeps) <= 2

    world.deliver(head)
    caught_up = world.find(ADMIN, "tea", after=asked)
    assert (len(caught_up.facts), caught_up.degraded) == (1, None)


def test_waiting_for_a_fact_one_may_not_see_tells_nothing(world):
    head = world.write(ADMIN, "secret", scope={"userId": "ann"}, deliver=False)

    assert world.find(principal("t1", "bob"), "secret", after=((head.fact.id, 1),)).degraded is None
    assert world.find(principal("t1", "bob"), "secret", after=(("no-such-fact", 1),)).degraded is None


def test_an_embedder_that_fails_costs_the_meaning_and_nothing_else(world):
    world.write(ADMIN, "tea")
    for fault in ("down", "broken"):
        setattr(world.embedder, fault, True)
        found = world.find(ADMIN, "tea", "both")
        assert (len(found.facts), found.degraded) == (1, "embeddings-unavailable")
        with pytest.raises(SearchUnavailable):
            world.find(ADMIN, "tea", "semantic")
        setattr(world.embedder, fault, False)


def test_a_leg_that_times_out_leaves_the_other_and_says_so(world, monkeypatch):
    world.write(ADMIN, "tea")
    search = world.index.search
    monkeypatch.setattr(world.index, "search", lambda *a, **k: [search(*a, **k)[0], LegFailure("timeout")])

    found = world.find(ADMIN, "tea", "both")

    assert (len(found.facts), found.degraded) == (1, "semantic-timeout")


def test_without_an_index_a_search_is_unavailable_and_never_empty(new_world):
    world = new_world()

    with pytest.raises(SearchUnavailable) as refused:
        world.find(ADMIN, "tea")
    assert type(refused.value) is SearchUnavailable
    assert world.find(ADMIN, mode="list").facts == []


def test_a_type_that_policy_keeps_out_of_an_index_is_not_found_there(world):
    world.policies.put_policy(
        "t1",
        Policy.model_validate(
            {
                "types": {
                    "acme.words": {"index": ["keyword"]},
                    "acme.meaning": {"index": ["semantic"]},
                    "acme.none": {"index": []},
                }
            }
        ),
    )
    for fact_type in ("acme.words", "acme.meaning", "acme.none"):
        world.write(ADMIN, f"tea {fact_type}", fact_type)

    assert world.words(ADMIN, "tea") == ["tea acme.words"]
    assert world.words(ADMIN, "tea", "semantic") == ["tea acme.meaning"]
    assert len(world.words(ADMIN, mode="list")) == 3


def test_an_answer_stays_below_four_megabytes(wordy):
    for _ in range(65):
        wordy.write(ADMIN, "tea " + "x" * 60_000)

    found = wordy.find(ADMIN, "tea", limit=100)

    assert 40 < len(found.facts) < 65
    assert sum(fact.wire_bytes for fact, _ in found.facts) < 4 * 1024 * 1024


def test_a_hit_of_an_earlier_life_of_an_id_does_not_answer_for_the_next(world):
    first = world.write(ADMIN, "tea", retention={"keepDays": 1})
    world.facts.remove("t1", first.fact.id)
    world.clock.advance(days=2)
    again = replace(
        first, fact=first.fact.model_copy(update={"created_at": world.clock.now(), "expires_at": None})
    )
    world.facts.create(again)

    assert world.words(ADMIN, "tea") == []
    world.deliver(again)
    assert world.words(ADMIN, "tea") == ["tea"]


@pytest.mark.parametrize("blank", [" ", "   \t\n", "\u00a0\u2003", "\u200b\ufeff"])
@pytest.mark.parametrize("mode", ["keyword", "semantic", "both"])
def test_a_query_of_blanks_finds_nothing_and_asks_nobody(world, mode, blank):
    world.write(ADMIN, "a kitten")
    asked = world.embedder.calls

    found = world.find(ADMIN, blank, mode=mode)

    assert (found.facts, found.degraded) == ([], None)
    assert world.embedder.calls == asked


def test_a_query_of_blanks_by_meaning_still_needs_embeddings(wordy):
    with pytest.raises(SemanticUnavailable):
        wordy.find(ADMIN, " ", mode="semantic")


def test_a_write_to_wait_for_may_be_named_twice(world, monkeypatch):
    """A batch read refuses a key that is there twice."""
    head = world.write(ADMIN, "tea")
    heads = world.facts.heads

    def strict(tenant, ids):
        assert len(set(ids)) == len(ids)
        return heads(tenant, ids)

    monkeypatch.setattr(world.facts, "heads", strict)
    after = ((head.fact.id, 1), (head.fact.id, 1))
    assert len(world.find(ADMIN, "tea", after=after).facts) == 1
