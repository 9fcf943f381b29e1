"""SIGKILL under load, again and again: `python benchmarks/kill.py [--rounds 30] [--seed 1]`.

Each round starts the service on the same folder, checks everything that earlier rounds acknowledged, writes and
supersedes facts with four clients, and kills every process at a random moment. What was acknowledged more than two
seconds before a kill must be there, whole: its content, and as many revisions as its version says. Exit code 1 when
anything is lost.
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from factbook_local.dataplane.process import control
from factbook_local.testing import Ready, running

WRITERS = 4
GRACE = 2.0


@dataclass
class Known:
    """What a client was told of one fact: its newest acknowledged version, and when."""

    version: int
    content: str
    at: float


class Client:
    def __init__(self, ready: Ready) -> None:
        where = urlsplit(ready.url)
        self._connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {ready.tokens['demo']}"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return json.loads(text)


def write_until_killed(ready: Ready, known: dict[str, Known], number: int, dice: random.Random) -> None:
    """Write facts and supersede own ones until the connection breaks."""
    client, own = Client(ready), []
    try:
        while True:
            content = f"writer {number}, {dice.random()}"
            if own and dice.random() < 0.5:
                fact = client.call(
                    "POST", f"/v1/memory/facts/{dice.choice(own)}/supersede", {"content": content}
                )
            else:
                fact = client.call(
                    "POST", "/v1/memory/facts", {"type": "note", "scope": {}, "content": content}
                )
                own.append(fact["id"])
            known[fact["id"]] = Known(fact["version"], content, time.monotonic())
    except (OSError, http.client.HTTPException, RuntimeError):
        return  # killed: what was under way is nobody's promise


def check(ready: Ready, known: dict[str, Known], killed_at: float) -> tuple[int, list[str]]:
    """How many acknowledged facts were looked at, and what is wrong. Those of the last seconds may be lost, but not in part."""
    client, wrong, checked = Client(ready), [], 0
    for fact_id, told in list(known.items()):
        try:
            revisions = client.call("GET", f"/v1/memory/facts/{fact_id}/revisions")["data"]
        except RuntimeError:
            revisions = []
        promised = told.at < killed_at - GRACE
        if [revision["version"] for revision in revisions] != list(range(len(revisions), 0, -1)):
            wrong.append(f"{fact_id}: versions with gaps")
        elif promised and len(revisions) < told.version:
            wrong.append(
                f"{fact_id}: version {told.version} acknowledged {killed_at - told.at:.1f} s before is lost"
            )
        elif len(revisions) == told.version and revisions[0]["content"] != told.content:
            wrong.append(f"{fact_id}: another content")
        checked += promised
        if revisions:
            known[fact_id] = Known(len(revisions), revisions[0]["content"], 0.0)
        else:
            del known[fact_id]
    return checked, wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=600, help="facts that are checked in each round at most")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    known: dict[str, Known] = {}
    killed_at, lost, checked, longest = 0.0, [], 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        for number in range(arguments.rounds + 1):
            with running(Path(name), data=Path(name) / "data") as ready:
                seen, wrong = check(ready, known, killed_at)
                lost += wrong
                checked += seen
                if number == arguments.rounds:
                    break
                known = dict(dice.sample(sorted(known.items()), min(len(known), arguments.most)))
                writers = [
                    threading.Thread(
                        target=write_until_killed, args=(ready, known, writer, random.Random(dice.random()))
                    )
                    for writer in range(WRITERS)
                ]
                for writer in writers:
                    writer.start()
                time.sleep(dice.uniform(2.5, 5.0))
                longest = max(longest, control(ready.aws["endpoint"], "saves")["longestSeconds"])
                killed_at = time.monotonic()
                ready.kill()
                for writer in writers:
                    writer.join()
            print(f"round {number + 1}: {seen} promised facts checked, {len(wrong)} wrong", flush=True)
    print(
        f"{arguments.rounds} kills, {checked} promised facts checked, {len(lost)} lost; longest save {longest * 1000:.0f} ms"
    )
    print("\n".join(lost))
    return 1 if lost or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
