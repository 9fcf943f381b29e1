"""Data sets for `benchmarks/recall.py`, in one JSON form, and converters into it: `python benchmarks/recall_sets.py KIND PATH > SET`.

    {"name": "…",
     "conversations": [
       {"id": "1",
        "part": "held out",
        "sessions": [[{"id": "D1:1", "speaker": "Ana", "text": "…", "role": "user", "image": "…"}]],
        "questions": [{"text": "…", "evidence": ["D1:1", ["D1:3", "D1:4"]], "category": "temporal"}]}]}

A conversation becomes a thread, each of its sessions a run, each message an entry of the log. `role` is `user` (default) or
`agent`; `image` (what a picture shows) may be left out. A question is found when its evidence is: each item is the id of a
message, or a list of ids of which any one will do. `part` and `category` name groups of the table; both may be left out. In
place of `sessions` a conversation may have `facts`, `[{"id", "text"}]`: then questions are asked of facts.

| KIND | PATH |
|---|---|
| locomo | locomo10.json, or a folder of REALTALK's files: conversations 1 to 5 are `1 to 5`, on which LoCoMo's ranking was tuned, the others `6 to 10` |
| locomo-facts | locomo10.json: its observations as facts, found by questions whose evidence they were made of |
| locomo-sessions | locomo10.json: each session one long fact, asked for by questions whose evidence is in it |
| longmemeval | longmemeval_s.json, …_m or …_oracle: one conversation a question; those that have no answer are left out |
| chat-export | conversations.json of a ChatGPT export, and `--questions FILE`: `[{"text", "evidence", "category"?}]` |

None of this data is part of the project: bring your own copy, and mind its licence.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Message:
    id: str
    speaker: str
    text: str
    role: str = "user"
    image: str = ""


@dataclass(frozen=True)
class Question:
    """`evidence`: what is to be found; of each group any one message or fact."""

    text: str
    evidence: tuple[frozenset[str], ...]
    category: str = ""


@dataclass(frozen=True)
class Conversation:
    id: str
    questions: list[Question]
    sessions: list[list[Message]] = field(default_factory=list)
    facts: list[Message] = field(default_factory=list)
    part: str = "all"


def read(path: Path) -> list[Conversation]:
    """The conversations of a file in the form above."""
    return [_conversation(each) for each in json.loads(path.read_text())["conversations"]]


def _conversation(raw: dict[str, Any]) -> Conversation:
    questions = [
        Question(each["text"], tuple(map(_group, each["evidence"])), each.get("category", ""))
        for each in raw["questions"]
    ]
    sessions = [[Message(**each) for each in session] for session in raw.get("sessions", ())]
    facts = [Message(each["id"], "", each["text"]) for each in raw.get("facts", ())]
    return Conversation(raw["id"], questions, sessions, facts, raw.get("part", "all"))


def _group(evidence: str | list[str]) -> frozenset[str]:
    return frozenset([evidence] if isinstance(evidence, str) else evidence)


TUNED, HELD_OUT = "1 to 5", "6 to 10"
LAST_TUNED = 5
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


def locomo(path: Path) -> dict[str, Any]:
    return {"name": path.stem, "conversations": [_talk(*each) for each in enumerate(_talks(path), start=1)]}


def _talks(path: Path) -> Iterator[dict[str, Any]]:
    """Of one file with all conversations, or of a folder with one a file, numbered in their names."""
    if path.is_file():
        yield from json.loads(path.read_text())
        return
    for file in sorted(
        path.glob("*.json"), key=lambda each: [int(part) for part in re.findall(r"\d+", each.name)]
    ):
        raw = json.loads(file.read_text())
        yield {"conversation": raw, "qa": raw["qa"]}


def _talk(number: int, raw: dict[str, Any]) -> dict[str, Any]:
    talk = raw["conversation"]
    names = sorted(
        (name for name in talk if re.fullmatch(r"session_\d+", name) and talk[name]),
        key=lambda name: int(name.split("_")[1]),
    )
    sessions = [list(map(_turn, talk[name])) for name in names]
    known = {turn["id"] for session in sessions for turn in session}
    return _locomo_part(number) | {"sessions": sessions, "questions": _asked(raw["qa"], known)}


def _locomo_part(number: int) -> dict[str, Any]:
    return {"id": str(number), "part": TUNED if number <= LAST_TUNED else HELD_OUT}


def _turn(turn: dict[str, Any]) -> dict[str, str]:
    caption = turn.get("blip_caption")
    text = turn["text"] if "text" in turn else turn["clean_text"]
    return {"id": turn["dia_id"], "speaker": turn["speaker"], "text": text} | (
        {"image": caption} if caption else {}
    )


def _asked(questions: Iterable[dict[str, Any]], known: set[str]) -> list[dict[str, Any]]:
    """Questions that name their evidence, also where the release has no such turn: those can only be missed."""
    return [
        {
            "text": each["question"],
            "evidence": sorted(_turn_ids(each["evidence"]) & known),
            "category": CATEGORIES.get(each.get("category"), ""),
        }
        for each in questions
        if each.get("evidence")
    ]


def _turn_ids(written: Iterable[str]) -> set[str]:
    """Turn ids such as D1:3; the release writes some of them in other ways."""
    found = re.findall(r"D:?(\d+):(\d+)", " ".join(written))
    return {f"D{int(session)}:{int(turn)}" for session, turn in found}


def locomo_facts(path: Path) -> dict[str, Any]:
    return {
        "name": f"{path.stem}-facts",
        "conversations": [_observed(*each) for each in enumerate(_talks(path), start=1)],
    }


def _observed(number: int, raw: dict[str, Any]) -> dict[str, Any]:
    facts, made_of = [], dict[str, list[str]]()
    for session in raw["observation"].values():
        for text, turns in (each for said in session.values() for each in said):
            fact = f"F{len(facts)}"
            facts.append({"id": fact, "text": text})
            for turn in _turn_ids([turns] if isinstance(turns, str) else turns):
                made_of.setdefault(turn, []).append(fact)
    questions = [
        {**each, "evidence": [made_of[turn] for turn in each["evidence"]]}
        for each in _asked(raw["qa"], set(made_of))
        if each["evidence"]
    ]
    return _locomo_part(number) | {"facts": facts, "questions": questions}


def locomo_sessions(path: Path) -> dict[str, Any]:
    talks = locomo(path)["conversations"]
    return {"name": f"{path.stem}-sessions", "conversations": list(map(_as_long_facts, talks))}


def _as_long_facts(talk: dict[str, Any]) -> dict[str, Any]:
    session_of, facts = dict[str, str](), []
    for place, session in enumerate(talk.pop("sessions")):
        session_of |= {turn["id"]: f"S{place}" for turn in session}
        lines = (f"{turn['speaker']}: {turn['text']}" for turn in session)
        facts.append({"id": f"S{place}", "text": "\n".join(lines)})
    questions = [
        {**each, "evidence": sorted({session_of[turn] for turn in each["evidence"]})}
        for each in talk["questions"]
        if each["evidence"]
    ]
    return {**talk, "facts": facts, "questions": questions}


ROLES = {"user": "user", "assistant": "agent"}


def longmemeval(path: Path) -> dict[str, Any]:
    """Evidence: the turns marked with `has_answer`, else any turn of each answer session."""
    asked = [each for each in json.loads(path.read_text()) if not each["question_id"].endswith("_abs")]
    return {"name": path.stem, "conversations": list(map(_history, asked))}


def _history(raw: dict[str, Any]) -> dict[str, Any]:
    sessions, marked = [], list[Any]()
    of_answers: dict[str, list[str]] = {name: [] for name in raw["answer_session_ids"]}
    for name, turns in zip(raw["haystack_session_ids"], raw["haystack_sessions"], strict=True):
        session = []
        for turn in (each for each in turns if each["content"].strip()):
            message = f"{len(sessions)}:{len(session)}"
            session.append(
                {"id": message, "speaker": turn["role"], "text": turn["content"], "role": ROLES[turn["role"]]}
            )
            marked += [message] if turn.get("has_answer") else []
            if name in of_answers:
                of_answers[name].append(message)
        sessions.append(session)
    evidence = marked or [ids for ids in of_answers.values() if ids]
    question = {"text": raw["question"], "evidence": evidence, "category": raw["question_type"]}
    return {"id": raw["question_id"], "sessions": sessions, "questions": [question]}


def chat_export(path: Path, questions: Path) -> dict[str, Any]:
    """All chats of an export are the sessions of one conversation, oldest first; of edited messages the last edit counts."""
    chats = sorted(json.loads(path.read_text()), key=lambda chat: chat.get("create_time") or 0)
    sessions = [session for chat in chats if (session := list(_said(chat)))]
    asked = json.loads(questions.read_text())
    return {"name": path.stem, "conversations": [{"id": "1", "sessions": sessions, "questions": asked}]}


def _said(chat: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The messages on the way from the root of a chat's tree to its present leaf."""
    nodes, way = chat["mapping"], []
    node = nodes.get(chat["current_node"])
    while node is not None:
        way.append(node)
        node = nodes.get(node["parent"]) if node["parent"] is not None else None
    for node in reversed(way):
        message = node.get("message") or {}
        role = ROLES.get((message.get("author") or {}).get("role", ""))
        parts = (message.get("content") or {}).get("parts") or ()
        text = "\n".join(part for part in parts if isinstance(part, str)).strip()
        if role is not None and text:
            yield {"id": message["id"], "speaker": message["author"]["role"], "text": text, "role": role}


KINDS = {
    "locomo": locomo,
    "locomo-facts": locomo_facts,
    "locomo-sessions": locomo_sessions,
    "longmemeval": longmemeval,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=[*KINDS, "chat-export"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--questions", type=Path, help="of a chat export")
    options = parser.parse_args()
    if not options.path.exists():
        sys.exit(
            f"{options.path} is missing: no data set is part of this project; give the path of your copy."
        )
    if options.kind != "chat-export":
        made = KINDS[options.kind](options.path)
    elif options.questions is None:
        parser.error("a chat export has no questions: name a file of them with --questions")
    else:
        made = chat_export(options.path, options.questions)
    json.dump(made, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
