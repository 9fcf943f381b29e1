"""Evidence recall on LoCoMo, through the API of a local Factbook: `python benchmarks/locomo.py PATH [--svg FILE]`.

PATH is locomo10.json of the LoCoMo release (CC BY-NC 4.0: bring your own copy; nothing of it is kept here). Each
conversation becomes a thread, each of its sessions a run, each turn a message. Each question that names its evidence is
asked in every mode with `source: conversations`; a turn counts as found when its message is among the first ten.
Ranking was tuned on conversations 1 to 5, so what counts is 6 to 10.
"""

import argparse
import json
import math
import re
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factbook_local.embedder import MODEL, EmbeddingServer
from factbook_local.testing import Ready, running

MODES = ("keyword", "semantic", "both")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TOP = 10
BATCH = 100
THREADS = 2
ATTEMPTS = 10
INDEX_SECONDS = 900
END = "END-7Q41-ZX"


@dataclass(frozen=True)
class Question:
    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """`sessions`: each a list of (turn id, speaker, payload)."""

    number: int
    sessions: list[list[tuple[str, str, dict[str, str]]]]
    questions: list[Question]

    @property
    def scope(self) -> dict[str, str]:
        return {"projectId": "locomo", "threadId": f"conversation-{self.number}"}


@dataclass(frozen=True)
class Score:
    """Of one question in one mode: recall and nDCG of its evidence among the first ten."""

    number: int
    category: int
    mode: str
    recall: float
    ndcg: float


def main() -> None:
    options = _arguments()
    if not options.path.is_file():
        sys.exit(
            f"{options.path} is missing: LoCoMo's locomo10.json is not part of this project; give its path."
        )
    conversations = [each for each in read(options.path) if each.number in options.conversations]
    with tempfile.TemporaryDirectory() as folder, EmbeddingServer() as embedder:
        environment = {
            "MEMORY_EMBEDDINGS": "openai-compat",
            "MEMORY_EMBEDDINGS_URL": embedder.url,
            "MEMORY_EMBEDDINGS_MODEL": MODEL,
        }
        with running(Path(folder), env=environment) as ready:
            service = Service(ready)
            turns = service.append(conversations)
            service.wait_until_indexed()
            scores = list(ask(service, conversations, turns))
    print(table(scores))
    if options.svg:
        options.svg.write_text(plot(scores))


def read(path: Path) -> list[Conversation]:
    return [_conversation(number, raw) for number, raw in enumerate(json.loads(path.read_text()), start=1)]


def _conversation(number: int, raw: dict[str, Any]) -> Conversation:
    talk = raw["conversation"]
    names = sorted(
        (name for name, value in talk.items() if isinstance(value, list)),
        key=lambda name: int(name.split("_")[1]),
    )
    sessions = [[(turn["dia_id"], turn["speaker"], _payload(turn)) for turn in talk[name]] for name in names]
    known = {turn_id for session in sessions for turn_id, _, _ in session}
    questions = [
        Question(each["question"], each["category"], _evidence(each) & known)
        for each in raw["qa"]
        if each.get("evidence")
    ]
    return Conversation(number, [session for session in sessions if session], questions)


def _payload(turn: dict[str, str]) -> dict[str, str]:
    caption = turn.get("blip_caption")
    return {"text": turn["text"]} | ({"image": caption} if caption else {})


def _evidence(question: dict[str, Any]) -> frozenset[str]:
    """Turn ids such as D1:3; the release writes some of them in other ways."""
    found = re.findall(r"D:?(\d+):(\d+)", " ".join(question["evidence"]))
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in found)


class Service:
    """The API as a client uses it."""

    def __init__(self, ready: Ready) -> None:
        self._url = ready.url
        self._token = next(iter(ready.tokens.values()))

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), headers)
        for _ in range(ATTEMPTS):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)  # type: ignore[no-any-return]
            except urllib.error.HTTPError as refusal:
                with refusal:
                    if refusal.code != 503:  # a busy machine's embedder misses its deadline now and then
                        raise
            time.sleep(1)
        sys.exit(f"{path} stayed unavailable")

    def append(self, conversations: Sequence[Conversation]) -> dict[tuple[int, str], str]:
        """Log every turn; the turn id of each (conversation, log id)."""
        turns: dict[tuple[int, str], str] = {}
        for conversation in conversations:
            for place, session in enumerate(conversation.sessions, start=1):
                run = f"/v1/memory/runs/conversation-{conversation.number}.{place}/log"
                for start in range(0, len(session), BATCH):
                    part = session[start : start + BATCH]
                    entries = [
                        {
                            "kind": "user-message",
                            "actor": speaker,
                            "payload": payload,
                            "scope": conversation.scope,
                        }
                        for _, speaker, payload in part
                    ]
                    answer = self.call(run, {"entries": entries})
                    for (turn_id, _, _), entry in zip(part, answer["entries"], strict=True):
                        turns[conversation.number, entry["id"]] = turn_id
        return turns

    def wait_until_indexed(self) -> None:
        """Until one message more, in a thread of its own, is found, as the stream keeps the order; and no vector waits."""
        end = Conversation(0, [], [])
        entry = {"kind": "user-message", "payload": {"text": END}, "scope": end.scope}
        self.call("/v1/memory/runs/end/log", {"entries": [entry]})
        deadline = time.monotonic() + INDEX_SECONDS
        while not self._search("keyword", end, Question(END, 0, frozenset()), 1) or self._waiting():
            if time.monotonic() > deadline:
                sys.exit(f"the turns were not indexed in {INDEX_SECONDS} s")
            time.sleep(1)

    def _waiting(self) -> int:
        headers = {"Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._url + "/v1/memory/status", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(json.load(answer)["index"]["waiting"])

    def retrieve(self, mode: str, conversation: Conversation, question: Question) -> list[str]:
        return [result["entry"]["id"] for result in self._search(mode, conversation, question, TOP)]

    def _search(
        self, mode: str, conversation: Conversation, question: Question, limit: int
    ) -> list[dict[str, Any]]:
        body = {
            "mode": mode,
            "source": "conversations",
            "query": question.text,
            "scope": conversation.scope,
            "limit": limit,
        }
        for _ in range(ATTEMPTS):
            answer = self.call("/v1/memory/retrieve", body)
            if "degraded" not in answer:
                return list(answer["results"])
        sys.exit(f"the service answered {answer['degraded']}: such figures would say nothing")


def ask(
    service: Service, conversations: Sequence[Conversation], turns: dict[tuple[int, str], str]
) -> Iterator[Score]:
    def score(job: tuple[Conversation, Question, str]) -> Score:
        conversation, question, mode = job
        found = [
            turns[conversation.number, log_id] for log_id in service.retrieve(mode, conversation, question)
        ]
        return Score(conversation.number, question.category, mode, *judge(found, question.evidence))

    jobs = [
        (conversation, question, mode)
        for conversation in conversations
        for question in conversation.questions
        for mode in MODES
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(score, jobs)


def judge(found: Sequence[str], evidence: frozenset[str]) -> tuple[float, float]:
    """Recall and nDCG at ten of the evidence; a question whose evidence is not in the release scores nothing."""
    if not evidence:
        return 0.0, 0.0
    gain = sum(1 / math.log2(place + 2) for place, turn in enumerate(found[:TOP]) if turn in evidence)
    best = sum(1 / math.log2(place + 2) for place in range(min(len(evidence), TOP)))
    return len(evidence.intersection(found[:TOP])) / len(evidence), gain / best


def table(scores: Sequence[Score]) -> str:
    lines = [
        "| conversations | category | questions | "
        + " | ".join(f"{mode} R@10 / nDCG@10" for mode in MODES)
        + " |",
        "|---|---|---:|" + "---:|" * len(MODES),
    ]
    for label, numbers in GROUPS.items():
        within = [score for score in scores if score.number in numbers]
        for category, name in ({0: "all"} | CATEGORIES).items():
            rows = [score for score in within if category in (0, score.category)]
            if rows:
                cells = " | ".join("{:.1f} / {:.1f}".format(*_means(rows, mode)) for mode in MODES)
                lines.append(f"| {label} | {name} | {len(rows) // len(MODES)} | {cells} |")
    return "\n".join(lines)


GROUPS = {"1 to 5 (tuned)": range(1, 6), "6 to 10": range(6, 11), "all ten": range(1, 11)}


def _means(scores: Sequence[Score], mode: str) -> tuple[float, float]:
    own = [score for score in scores if score.mode == mode]
    return 100 * sum(each.recall for each in own) / len(own), 100 * sum(each.ndcg for each in own) / len(own)


def plot(scores: Sequence[Score]) -> str:
    """Recall at ten on conversations 6 to 10, one group of bars per category, as an SVG drawing."""
    held_out = [score for score in scores if score.number in GROUPS["6 to 10"]] or list(scores)
    groups = [("all", held_out)] + [
        (name, rows)
        for category, name in CATEGORIES.items()
        if (rows := [score for score in held_out if score.category == category])
    ]
    bars, colours, height, left = [], ("#8a8f98", "#4c78a8", "#e4572e"), 240, 48
    for at, (name, rows) in enumerate(groups):
        x = left + at * 112
        for place, mode in enumerate(MODES):
            value = _means(rows, mode)[0]
            top, tall = 20 + height * (1 - value / 100), height * value / 100
            bars.append(
                f'<rect x="{x + place * 30}" y="{top:.1f}" width="26" height="{tall:.1f}" fill="{colours[place]}"/>'
                f'<text x="{x + place * 30 + 13}" y="{top - 4:.1f}" text-anchor="middle">{value:.0f}</text>'
            )
        bars.append(f'<text x="{x + 43}" y="{height + 38}" text-anchor="middle">{name}</text>')
    for place, mode in enumerate(MODES):
        x = left + place * 110
        bars.append(
            f'<rect x="{x}" y="{height + 54}" width="12" height="12" fill="{colours[place]}"/>'
            f'<text x="{x + 18}" y="{height + 64}">{mode}</text>'
        )
    grid = "".join(
        f'<path d="M{left - 6} {20 + height * (1 - mark / 100):.1f}H{left + 112 * len(groups)}" stroke="#ddd"/>'
        f'<text x="{left - 10}" y="{24 + height * (1 - mark / 100):.1f}" text-anchor="end">{mark}</text>'
        for mark in range(0, 101, 20)
    )
    width = left + 112 * len(groups) + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 80}" '
        f'font-family="sans-serif" font-size="12"><title>LoCoMo evidence recall at 10, conversations 6 to 10'
        f'</title><rect width="100%" height="100%" fill="#fff"/>{grid}{"".join(bars)}</svg>\n'
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path, help="locomo10.json")
    parser.add_argument("--svg", type=Path, help="draw recall at ten into this file")
    parser.add_argument(
        "--conversations", type=_numbers, default=range(1, 11), help="such as 1-5; all ten by default"
    )
    return parser.parse_args()


def _numbers(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    main()
