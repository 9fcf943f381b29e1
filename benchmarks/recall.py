"""Evidence recall through the API of a local Factbook: `python benchmarks/recall.py SET [--svg FILE] [--scores FILE]`.

SET is a data set in the form of `recall_sets.py`, which makes one of LoCoMo and of others. Each conversation becomes a thread,
each of its sessions a run, each turn a message (or its facts become facts of a project). Each question is asked in every
mode, by a user who may write that conversation's project; evidence counts as found when it is among the first ten. `--scores` writes each question's figures for `recall_steps.py`.
"""

import argparse
import json
import math
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recall_sets import HELD_OUT, Conversation, Message, Question, read

from factbook_local.embedder import MODEL, EmbeddingServer
from factbook_local.testing import Ready, running

MODES = ("keyword", "semantic", "both")
TOP = 10
BATCH = 100
THREADS = 2
ATTEMPTS = 60
INDEX_SECONDS = 1_800
END = "END-7Q41-ZX"
DIMENSIONS = {"openai-compat": "384", "built-in": "512"}


@dataclass(frozen=True)
class Score:
    """Of one question in one mode: recall and nDCG of its evidence among the first ten."""

    conversation: str
    part: str
    category: str
    question: int
    mode: str
    recall: float
    ndcg: float


def main() -> None:
    options = _arguments()
    if not options.path.is_file():
        sys.exit(
            f"{options.path} is missing: `python benchmarks/recall_sets.py` makes a set of data that you have."
        )
    conversations = [each for each in read(options.path) if options.part in (None, each.part)]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        environment = {"MEMORY_EMBEDDINGS": options.embeddings}
        chosen = {"Embeddings": options.embeddings}
        if options.embeddings == "openai-compat":
            embedder = stack.enter_context(EmbeddingServer())
            environment |= {"MEMORY_EMBEDDINGS_URL": embedder.url, "MEMORY_EMBEDDINGS_MODEL": MODEL}
            chosen |= {"EmbeddingsUrl": embedder.url, "EmbeddingsModel": MODEL}
        if options.index == "dynamodb":
            chosen |= {"Search": "dynamodb", "VectorDimensions": DIMENSIONS[options.embeddings]}
            parameters = [word for item in chosen.items() for word in ("--parameter", "=".join(item))]
            ready = stack.enter_context(running(Path(folder), arguments=parameters))
        else:
            ready = stack.enter_context(running(Path(folder), env=environment))
        service = Service(ready)
        items = service.write(conversations)
        service.wait_until_indexed()
        scores = list(ask(service, conversations, items, options.modes))
    print(table(scores))
    if options.svg:
        options.svg.write_text(plot(scores))
    if options.scores:
        options.scores.write_text(json.dumps([asdict(score) for score in scores]))


class Service:
    """The API as a client uses it."""

    def __init__(self, ready: Ready) -> None:
        self._url = ready.url
        self._token = next(iter(ready.tokens.values()))
        self._askers: dict[str, str] = {}

    def call(self, path: str, body: dict[str, Any], token: str = "") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token or self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), headers)
        for _ in range(ATTEMPTS):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)  # type: ignore[no-any-return]
            except urllib.error.HTTPError as refusal:
                with refusal:
                    said = refusal.read().decode()
                    if refusal.code < 500:
                        raise
            # A busy machine's embedder and functions miss their deadlines now and then, and an index begins empty.
            time.sleep(1)
        sys.exit(f"{path} stayed unavailable: {said}")

    def write(self, conversations: Sequence[Conversation]) -> dict[str, str]:
        """Log every message, write every fact; the id in the data set of each id that the service gave."""
        items: dict[str, str] = {}
        for conversation in conversations:
            project = scope_of(conversation)["projectId"]
            asker = {"actor": {"kind": "user", "id": "asker"}, "projects": {"read": [], "write": [project]}}
            self._askers[conversation.id] = self.call("/v1/access/tokens", asker)["token"]
            for place, session in enumerate(conversation.sessions, start=1):
                for part in _parts(session):
                    items |= self._log(f"{conversation.id}.{place}", conversation, part)
            for part in _parts(conversation.facts):
                items |= self._write_facts(conversation, part)
        return items

    def _log(self, run: str, conversation: Conversation, messages: Sequence[Message]) -> dict[str, str]:
        entries = [
            {
                "kind": f"{message.role}-message",
                "actor": message.speaker,
                "payload": {"text": message.text} | ({"image": message.image} if message.image else {}),
                "scope": scope_of(conversation),
            }
            for message in messages
        ]
        answer = self.call(f"/v1/memory/runs/conversation-{run}/log", {"entries": entries})
        return {entry["id"]: message.id for entry, message in zip(answer["entries"], messages, strict=True)}

    def _write_facts(self, conversation: Conversation, facts: Sequence[Message]) -> dict[str, str]:
        items = [
            {"type": "note", "scope": scope_of(conversation), "content": {"text": fact.text}}
            for fact in facts
        ]
        answer = self.call("/v1/memory/facts/batch", {"items": items})
        return {result["fact"]["id"]: fact.id for result, fact in zip(answer["results"], facts, strict=True)}

    def wait_until_indexed(self) -> None:
        """Until one message more, in a thread of its own, is found, as the stream keeps the order; and no vector waits."""
        end = Conversation("end", [], [[Message(END, "end", END)]], [Message(END, "", END)])
        self.write([end])
        without_messages = Conversation("end", [], [], end.facts)
        deadline = time.monotonic() + INDEX_SECONDS
        while (
            not all(self._search("both", each, END)["results"] for each in (end, without_messages))
            or self._waiting()
        ):
            if time.monotonic() > deadline:
                sys.exit(f"the data was not indexed in {INDEX_SECONDS} s")
            time.sleep(1)

    def _waiting(self) -> int:
        headers = {"Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._url + "/v1/memory/status", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(json.load(answer)["index"]["waiting"])

    def retrieve(self, mode: str, conversation: Conversation, question: Question) -> list[str]:
        """The ids found. An answer that had to do without something would say nothing."""
        for _ in range(ATTEMPTS):
            answer = self._search(mode, conversation, question.text)
            if answer.get("degraded") in (None, "neighbours-cut"):
                return [(result.get("entry") or result["fact"])["id"] for result in answer["results"]]
        sys.exit(f"the service answered {answer['degraded']}: such figures would say nothing")

    def _search(self, mode: str, conversation: Conversation, text: str) -> dict[str, Any]:
        body = {"mode": mode, "query": text, "scope": scope_of(conversation), "limit": TOP}
        return self.call(
            "/v1/memory/retrieve",
            body | ({"source": "conversations"} if conversation.sessions else {}),
            self._askers[conversation.id],
        )


def scope_of(conversation: Conversation) -> dict[str, str]:
    return {"projectId": f"recall-{conversation.id}", "threadId": f"conversation-{conversation.id}"}


def _parts(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    return (messages[start : start + BATCH] for start in range(0, len(messages), BATCH))


def ask(
    service: Service, conversations: Sequence[Conversation], items: Mapping[str, str], modes: Sequence[str]
) -> Iterator[Score]:
    def score(job: tuple[Conversation, int, str]) -> Score:
        conversation, place, mode = job
        question = conversation.questions[place]
        found = [items[each] for each in service.retrieve(mode, conversation, question)]
        recall, ndcg = judge(found, question.evidence)
        return Score(conversation.id, conversation.part, question.category, place, mode, recall, ndcg)

    jobs = [
        (conversation, place, mode)
        for conversation in conversations
        for place in range(len(conversation.questions))
        for mode in modes
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(score, jobs)


def judge(found: Sequence[str], evidence: Sequence[frozenset[str]]) -> tuple[float, float]:
    """Recall and nDCG at ten; each piece of evidence counts where it is found first. Without any there is nothing to gain."""
    if not evidence:
        return 0.0, 0.0
    first = [min((found.index(each) for each in group if each in found), default=TOP) for group in evidence]
    places = [place for place in first if place < TOP]
    best = sum(1 / math.log2(place + 2) for place in range(min(len(evidence), TOP)))
    return len(places) / len(evidence), sum(1 / math.log2(place + 2) for place in places) / best


def table(scores: Sequence[Score]) -> str:
    modes = list(dict.fromkeys(score.mode for score in scores))
    lines = [
        "| part | category | questions | " + " | ".join(f"{mode} R@10 / nDCG@10" for mode in modes) + " |",
        "|---|---|---:|" + "---:|" * len(modes),
    ]
    parts = list(dict.fromkeys(score.part for score in scores))
    for part in parts if len(parts) == 1 else [*parts, "all"]:
        within = [score for score in scores if part in ("all", score.part)]
        for category, rows in _by_category(within):
            cells = " | ".join("{:.1f} / {:.1f}".format(*_means(rows, mode)) for mode in modes)
            lines.append(f"| {part} | {category} | {len(rows) // len(modes)} | {cells} |")
    return "\n".join(lines)


def _by_category(scores: Sequence[Score]) -> list[tuple[str, Sequence[Score]]]:
    names = sorted({score.category for score in scores if score.category})
    return [
        ("all", scores),
        *((name, [score for score in scores if score.category == name]) for name in names),
    ]


def _means(scores: Sequence[Score], mode: str) -> tuple[float, float]:
    own = [score for score in scores if score.mode == mode]
    return 100 * sum(each.recall for each in own) / len(own), 100 * sum(each.ndcg for each in own) / len(own)


def plot(scores: Sequence[Score]) -> str:
    """Recall at ten of what was held out, one group of bars per category, as an SVG drawing."""
    groups = _by_category([score for score in scores if score.part == HELD_OUT] or list(scores))
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
        f'font-family="sans-serif" font-size="12"><title>Evidence recall at ten, by kind of question'
        f'</title><rect width="100%" height="100%" fill="#fff"/>{grid}{"".join(bars)}</svg>\n'
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path, help="a set in the form of recall_sets.py")
    parser.add_argument("--svg", type=Path, help="draw recall at ten into this file")
    parser.add_argument("--scores", type=Path, help="write the figures of each question into this file")
    parser.add_argument("--part", help="only conversations of this part")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--embeddings", choices=("openai-compat", "built-in"), default="openai-compat")
    parser.add_argument(
        "--index", choices=("sqlite", "dynamodb"), default="sqlite", help="dynamodb: by meaning alone"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
