"""Recall of conversations: what was said is found with what was said around it, by those who may read it."""

import pytest
from support.log_fakes import FakeWrapper
from support.principals import principal
from support.search_world import WordEmbedder, admin

from factbook.domain.errors import BadInput, StorageUnavailable
from factbook.domain.log.sealing import key_name
from factbook.domain.scope import Scope
from factbook.ports.deadline import Deadline
from factbook.usecases.retrieval import index_jobs
from factbook.usecases.retrieval.messages import LOOK_BACK, drafts_of
from factbook.usecases.retrieval.recall import recall_messages
from factbook.usecases.retrieval.retrieve import Question

ADMIN = admin()
TALK = {"projectId": "x", "threadId": "talk"}


@pytest.fixture
def world(new_world):
    made = new_world(embedder=WordEmbedder())
    made.start()
    return made


def test_an_answer_is_found_by_the_words_of_its_question(world):
    world.say(
        ADMIN,
        "r1",
        ("ana", "Where is the Lisbon office?"),
        ("bot", "On the hill, near the castle."),
        scope=TALK,
    )
    world.say(ADMIN, "r2", ("ana", "Thanks"), scope=TALK)

    assert world.recalled(ADMIN, "castle")[0] == "On the hill, near the castle."
    assert set(world.recalled(ADMIN, "Lisbon office", limit=2)) == {
        "Where is the Lisbon office?",
        "On the hill, near the castle.",
    }


@pytest.mark.parametrize("mode", ["keyword", "semantic", "both"])
def test_a_message_comes_with_those_before_and_after_it_across_runs(world, mode):
    world.say(ADMIN, "r1", ("ana", "one apple"), ("bot", "two pears"), scope=TALK)
    world.say(ADMIN, "r2", ("ana", "three plums"), scope=TALK)

    found, degraded = recall_messages(world.recall, ADMIN, Question(mode, "pears", limit=1))

    assert degraded is None
    assert [each.payload["text"] for each in (found[0].before, found[0].entry, found[0].after)] == [
        "one apple",
        "two pears",
        "three plums",
    ]


def test_neighbours_are_of_the_same_conversation_where_projects_share_a_threads_name(world):
    """Between them in time lie a dozen messages of another project's thread, and a system message of its own."""
    other = {"projectId": "y", "threadId": "talk"}
    world.say(ADMIN, "r1", ("ana", "one apple"), scope=TALK)
    for number in range(6):
        world.say(ADMIN, f"y{number}", ("eve", "not yours"), scope=other)
    world.say(ADMIN, "r2", ("bot", "two pears"), scope={**TALK, "sessionId": "later"})
    for number in range(6, 18):
        world.say(ADMIN, f"y{number}", ("eve", "not yours"), scope=other)
    world.say(ADMIN, "r3", ("ana", "three plums"), scope=TALK)

    (found,), _ = recall_messages(world.recall, ADMIN, Question("keyword", "pears", limit=1))

    assert found.before.payload["text"] == "one apple"
    assert found.after.payload["text"] == "three plums"


def test_any_number_of_another_projects_messages_in_a_thread_of_the_name_hide_no_neighbour(world):
    world.say(ADMIN, "r1", ("bot", "two pears"), scope=TALK)
    for number in range(400):
        other = {"projectId": "y", "threadId": "talk"}
        world.say(ADMIN, f"y{number}", ("eve", "not yours"), scope=other, deliver=False)
    world.say(ADMIN, "r3", ("ana", "three plums"), scope=TALK)

    (found,), _ = recall_messages(world.recall, ADMIN, Question("keyword", "pears", limit=1))

    assert found.after.payload["text"] == "three plums"


def test_neighbours_are_looked_for_past_messages_of_others_in_the_project_for_a_while_only(
    world, monkeypatch
):
    monkeypatch.setattr("factbook.usecases.retrieval.recall.MOST_READS", 1)
    world.say(ADMIN, "r1", ("bot", "two pears"), scope=TALK)
    for number in range(40):
        world.say(ADMIN, f"y{number}", ("eve", "not yours"), scope={**TALK, "participantId": "eve"})
    world.say(ADMIN, "r3", ("ana", "three plums"), scope=TALK)

    (found,), _ = recall_messages(world.recall, ADMIN, Question("keyword", "pears", limit=1))

    assert (found.before, found.after) == (None, None)


def test_a_speaker_is_found_by_name(world):
    world.say(ADMIN, "r1", ("user:caroline", "I went hiking"), ("user:mel", "I stayed home"), scope=TALK)

    assert world.recalled(ADMIN, "what did Caroline do", limit=1) == ["I went hiking"]


def test_of_equal_messages_that_of_the_speaker_whom_the_query_names_comes_first(world):
    for number in range(4):
        world.say(ADMIN, f"r{number}", ("bo", "I like tea"), ("ana", "I like tea"), ("x", "-"), scope=TALK)

    found, _ = recall_messages(world.recall, ADMIN, Question("both", "what tea does Ana like", limit=4))

    assert {each.entry.actor for each in found} == {"ana"}


def test_of_equal_messages_that_of_the_run_with_the_best_comes_first(world):
    said = "a remark on tea"
    for number in range(12):
        world.say(
            ADMIN, f"r{number}", ("bo", said), ("bo", "-"), scope={"projectId": "x", "threadId": f"t{number}"}
        )
    world.say(ADMIN, "r7", ("bo", "tea harvest in May"), scope={"projectId": "x", "threadId": "t7"})

    found, _ = recall_messages(world.recall, ADMIN, Question("both", "remark on the tea harvest", limit=2))

    assert [each.entry.run_id for each in found] == ["r7", "r7"]


def test_what_is_embedded_names_both_speakers_also_when_one_goes_on_or_a_run_begins(world):
    world.say(ADMIN, "r1", ("ana", "hello"), ("bot", "yes?"), ("bot", "still there?"), scope=TALK)
    world.say(ADMIN, "r2", ("bot", "are you back?"), ("ana", "I am"), scope=TALK)
    world.say(ADMIN, "r3", ("bot", "alone"), scope={"projectId": "x"})
    stored = world.entries.walk(None, None, 100).records

    embedded = {
        meaning.text: meaning.before
        for draft in drafts_of(world.conversations, stored)[0]
        for meaning in draft.meanings
    }

    assert embedded == {
        "ana: hello": "",
        "bot told ana about bot: yes?": "ana told bot about ana: hello",
        "bot told ana about bot: still there?": "bot told ana about bot: yes?",
        "bot told ana about bot: are you back?": "bot told ana about bot: still there?",
        "ana told bot about ana: I am": "bot told ana about bot: are you back?",
        "bot: alone": "",
    }


def test_the_message_before_is_of_the_conversation_whatever_its_session_and_whoever_speaks_in_between(world):
    """Between them lie more messages of another participant than are looked at first, in a thread of the same name."""
    world.say(ADMIN, "r1", ("ana", "hello"), scope={**TALK, "sessionId": "monday"})
    for number in range(LOOK_BACK + 2):
        world.say(ADMIN, f"e{number}", ("eve", "not yours"), scope={**TALK, "participantId": "eve"})
    world.say(ADMIN, "r2", ("bot", "are you back?"), scope={**TALK, "sessionId": "tuesday"})
    stored = world.entries.walk(None, None, 100).records

    before = {
        meaning.text: meaning.before
        for draft in drafts_of(world.conversations, stored)[0]
        for meaning in draft.meanings
    }

    assert before["bot told ana about bot: are you back?"] == "ana told bot about ana: hello"
    assert "hello" not in before["eve: not yours"]
    found, _ = recall_messages(world.recall, ADMIN, Question("keyword", "back", limit=1))
    assert found[0].before.payload["text"] == "hello"


def test_messages_are_found_by_their_readers_only(world):
    world.say(ADMIN, "r1", ("ana", "apples in x"), scope=TALK)
    world.say(ADMIN, "r2", ("ana", "apples of ann"), scope={"userId": "ann"})
    world.say(admin("t2"), "r1", ("ana", "apples elsewhere"), scope=TALK)

    assert set(world.recalled(principal("t1", "bob", writes=["x"]), "apples")) == {"apples in x"}
    assert set(world.recalled(principal("t1", "bob", reads=["x"]), "apples")) == set()
    assert set(world.recalled(principal("t1", "ann"), "apples")) == {"apples of ann"}
    assert set(world.recalled(ADMIN, "apples", scope={"projectId": "x"})) == {"apples in x"}


def test_erased_words_are_not_recalled_even_before_the_index_hears_of_it(world):
    world.say(ADMIN, "r1", ("ana", "apples"), scope=TALK)
    name = key_name(Scope.model_validate({"tenantId": "t1", **TALK}))
    world.vault.destroy("t1", name, "2026-01-02T00:00:00.000Z")

    assert world.recalled(ADMIN, "apples") == []


def test_keys_that_cannot_be_read_for_now_lose_no_message_and_hide_none(world, monkeypatch):
    (entry,) = world.say(ADMIN, "r1", ("ana", "apples"), scope=TALK, deliver=False)

    def unreadable(*_):
        raise StorageUnavailable

    with monkeypatch.context() as outage:
        outage.setattr(FakeWrapper, "unwrap", unreadable)
        world.restart()
        assert world.hear(entry) == set()  # nobody else's messages wait for it
        assert world.backlog.of("t1", entry.id).trouble == "payload"
    index_jobs.catch_up(world.ports, Deadline(60))
    assert world.backlog.of("t1", entry.id) is None
    assert world.recalled(ADMIN, "apples") == ["apples"]
    with monkeypatch.context() as outage:
        outage.setattr(FakeWrapper, "unwrap", unreadable)
        world.restart()
        with pytest.raises(StorageUnavailable):
            world.recalled(ADMIN, "apples")


def test_facts_and_messages_do_not_show_up_among_each_other(world):
    world.write(ADMIN, "apples as a fact")
    world.say(ADMIN, "r1", ("ana", "apples in a talk"), scope=TALK)

    assert world.words(ADMIN, "apples") == ["apples as a fact"]
    assert world.recalled(ADMIN, "apples") == ["apples in a talk"]


def test_a_rebuild_finds_every_message_again_in_the_same_order(world):
    for number in range(130):
        world.say(ADMIN, f"r{number % 7}", ("ana", f"apples and {number} pears"), scope=TALK)
    before = world.recalled(ADMIN, "apples 77", "both", limit=100)

    index_jobs.rebuild(world.ports, Deadline(60))
    world.restart()

    assert len(before) == 100
    assert world.recalled(ADMIN, "apples 77", "both", limit=100) == before


def test_messages_far_apart_in_a_run_are_read_without_what_lies_between(world, monkeypatch):
    entries = world.say(ADMIN, "r1", *(("ana", f"word {number}") for number in range(40)), deliver=False)
    read = []
    entries_of = world.log.entries

    def counting(tenant, run, since, limit):
        found, more = entries_of(tenant, run, since, limit)
        read.extend(found)
        return found, more

    monkeypatch.setattr(world.log, "entries", counting)
    world.hear(entries[12], entries[39])
    assert len(read) == 2 * 11
    assert set(world.recalled(ADMIN, "word")) == {"word 12", "word 39"}


def test_messages_said_while_the_embedder_is_down_are_caught_up_with(world):
    world.embedder.down = True
    world.say(ADMIN, "r1", ("ana", "a kitten"), scope=TALK)
    assert world.recalled(ADMIN, "kitten") == ["a kitten"]

    world.embedder.down = False
    index_jobs.catch_up(world.ports, Deadline(60))
    assert world.recalled(ADMIN, "feline", "semantic") == ["a kitten"]


@pytest.mark.parametrize(
    "asked",
    [
        Question("list"),
        Question("keyword", "x", trust=("verified",)),
        Question("keyword", "x", subjects=("user:a",)),
        Question("keyword", "x", valid_at="2026-01-01T00:00:00.000Z"),
        Question("keyword", "x", after=(("f", 1),)),
        Question("keyword", "x", types=("acme.note",)),
    ],
)
def test_filters_that_messages_do_not_have_are_refused_rather_than_ignored(world, asked):
    with pytest.raises(BadInput):
        recall_messages(world.recall, ADMIN, asked)


def test_what_others_say_changes_neither_the_order_nor_the_scores_of_what_a_reader_finds(world):
    reader = principal("t1", "ann", writes=("x",))
    for number in range(15):
        said = [("ana", f"a remark on tea {number % 4}"), ("bo", "tea is fine"), ("ana", "the harvest")]
        world.say(ADMIN, f"r{number}", *said, scope=TALK)

    def answered():
        question = Question("both", "what did Ana say on the tea harvest", limit=20)
        found, _ = recall_messages(world.recall, reader, question)
        return [(each.entry.id, each.score) for each in found]

    before = answered()
    for number in range(30):
        said = ("ana", "tea harvest, a remark on tea"), ("zoe", "tea tea tea")
        world.say(ADMIN, f"s{number}", *said, scope={"projectId": "secret", "threadId": "talk"})
        world.say(admin("t2"), f"r{number}", *said, scope=TALK)

    assert len(before) == 20
    assert answered() == before
