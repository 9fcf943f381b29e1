"""Data sets of `benchmarks/recall.py`: every kind becomes the one form, and figures say what was found."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in ("recall", "recall_sets", "recall_steps"):
        sys.modules.pop(name, None)


def _read(tmp_path, made):
    import recall_sets

    path = tmp_path / "set.json"
    path.write_text(json.dumps(made))
    return recall_sets.read(path)


def _written(tmp_path, value, name="data.json"):
    path = tmp_path / name
    path.write_text(json.dumps(value))
    return path


TALK = {
    "conversation": {
        "session_2": [{"dia_id": "D2:1", "speaker": "Bo", "text": "A red kite", "blip_caption": "a kite"}],
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ana", "text": "Hello"},
            {"dia_id": "D1:2", "speaker": "Bo", "clean_text": "I built something"},
        ],
        "session_1_date_time": "noon",
        "session_3": [],
    },
    "qa": [
        {"question": "What did Bo build?", "evidence": ["D1:2; D2:01", "D:9:1"], "category": 1},
        {"question": "Nobody knows?", "category": 5},
    ],
    "observation": {
        "session_1_observation": {"Bo": [["Bo built a kite.", "D1:2"], ["Bo likes red.", ["D2:1"]]]}
    },
}


def test_locomo_gives_a_conversation_with_its_sessions_in_order_and_evidence_that_is_there(tmp_path):
    import recall_sets

    (made,) = _read(tmp_path, recall_sets.locomo(_written(tmp_path, [TALK])))

    assert [[message.id for message in session] for session in made.sessions] == [["D1:1", "D1:2"], ["D2:1"]]
    assert (made.sessions[1][0].image, made.sessions[0][1].text) == ("a kite", "I built something")
    (question,) = made.questions
    assert (question.evidence, question.category) == ((frozenset({"D1:2"}), frozenset({"D2:1"})), "multi-hop")
    assert made.part == "1 to 5"


def test_a_folder_of_talks_is_read_in_the_order_of_their_numbers(tmp_path):
    import recall_sets

    folder = tmp_path / "talks"
    folder.mkdir()
    for number in (10, 2):
        talk = {"session_1": [{"dia_id": f"D1:{number}", "speaker": "Ana", "clean_text": "Hi"}], "qa": []}
        _written(folder, talk, f"Chat_{number}_Ana_Bo.json")

    made = _read(tmp_path, recall_sets.locomo(folder))

    assert [each.sessions[0][0].id for each in made] == ["D1:2", "D1:10"]


def test_observations_become_facts_that_any_turn_they_were_made_of_asks_for(tmp_path):
    import recall_sets

    (made,) = _read(tmp_path, recall_sets.locomo_facts(_written(tmp_path, [TALK])))

    assert [(fact.id, fact.text) for fact in made.facts] == [
        ("F0", "Bo built a kite."),
        ("F1", "Bo likes red."),
    ]
    assert made.questions[0].evidence == (frozenset({"F0"}), frozenset({"F1"}))


def test_a_session_becomes_one_long_fact_that_its_turns_ask_for(tmp_path):
    import recall_sets

    (made,) = _read(tmp_path, recall_sets.locomo_sessions(_written(tmp_path, [TALK])))

    assert [fact.text for fact in made.facts] == ["Ana: Hello\nBo: I built something", "Bo: A red kite"]
    assert made.questions[0].evidence == (frozenset({"S0"}), frozenset({"S1"}))


@pytest.mark.parametrize(
    ("marked", "evidence"),
    [({"has_answer": True}, (frozenset({"0:1"}),)), ({}, (frozenset({"0:0", "0:1"}),))],
)
def test_longmemeval_gives_a_conversation_a_question_with_marked_turns_or_else_whole_sessions(
    tmp_path, marked, evidence
):
    import recall_sets

    history = {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "Where did I go?",
        "answer_session_ids": ["s1"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "To Rome?"} | marked],
            [{"role": "user", "content": " "}, {"role": "user", "content": "Thanks"}],
        ],
    }
    path = _written(tmp_path, [history, {"question_id": "q2_abs"}])

    (made,) = _read(tmp_path, recall_sets.longmemeval(path))

    assert [(each.speaker, each.role) for each in made.sessions[0]] == [
        ("user", "user"),
        ("assistant", "agent"),
    ]
    assert [each.text for each in made.sessions[1]] == ["Thanks"]
    assert made.questions[0].evidence == evidence


def test_a_chat_export_gives_its_chats_oldest_first_along_the_branch_that_was_kept(tmp_path):
    import recall_sets

    def node(name, parent, role, *parts):
        message = {"id": name, "author": {"role": role}, "content": {"parts": list(parts)}}
        return {"id": name, "parent": parent, "children": [], "message": message}

    late = {
        "create_time": 2.0,
        "current_node": "c",
        "mapping": {
            "root": {"id": "root", "parent": None, "message": None},
            "a": node("a", "root", "user", "Plan a trip", {"image": "…"}),
            "b": node("b", "root", "user", "Plan an edited trip"),
            "s": node("s", "b", "system", "hidden"),
            "c": node("c", "s", "assistant", "By train"),
        },
    }
    early = {"create_time": 1.0, "current_node": "x", "mapping": {"x": node("x", None, "user", "First")}}
    asked = [{"text": "How do I travel?", "evidence": ["c"]}]

    (made,) = _read(
        tmp_path,
        recall_sets.chat_export(_written(tmp_path, [late, early]), _written(tmp_path, asked, "asked.json")),
    )

    assert [[message.text for message in session] for session in made.sessions] == [
        ["First"],
        ["Plan an edited trip", "By train"],
    ]
    assert made.sessions[1][1].role == "agent"


@pytest.mark.parametrize(
    ("found", "share", "gain"),
    [(["x", "a"], 0.5, 0.3869), (["c", "b", "a"], 1.0, 1.0), (["x"] * 10 + ["a"], 0.0, 0.0)],
)
def test_each_piece_of_evidence_counts_once_where_it_is_found_first(found, share, gain):
    import recall

    evidence = [frozenset({"a", "b"}), frozenset({"c"})]

    assert recall.judge(found, evidence) == pytest.approx((share, gain), abs=1e-4)


def test_the_gate_names_each_part_in_which_both_finds_less_than_its_better_leg():
    import recall_steps

    def scores(part, **modes):
        return [
            {"conversation": part, "question": 0, "part": part, "mode": mode, "recall": value, "ndcg": 0.5}
            for mode, value in modes.items()
        ]

    good = scores("good", keyword=0.5, semantic=0.25, both=0.5)
    bad = scores("bad", keyword=0.25, semantic=0.75, both=0.5)

    assert recall_steps.below_better_leg([*good, *bad]) == [
        "bad: both has recall 0.5000, its better leg 0.7500"
    ]
