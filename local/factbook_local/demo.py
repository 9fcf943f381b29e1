"""`factbook demo`: the product's story over HTTP, told by the schema's own public client and by plain requests.

Every step checks what it shows; a step that does not hold ends the demo with exit code 1.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kindgi.client import ConflictError, Kindgi, NotFoundError

from .testing import Ready, running

TENANT = "demo"


class Broken(Exception):
    """A step of the story did not come out as told."""


@dataclass
class Story:
    """Where the service runs, and how the story calls it."""

    ready: Ready
    folder: Path

    def __post_init__(self) -> None:
        self.http = urllib3.PoolManager(headers={"Content-Type": "application/json"})
        self.token = self.ready.tokens[TENANT]

    def client(self, token: str | None = None) -> Any:
        return Kindgi(self.ready.url, token=token or self.token)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        """One request as curl would send it; its status and JSON."""
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        answer = self.http.request(method, self.ready.url + path, body=sent, headers=headers, redirect=False)
        return answer.status, json.loads(answer.data) if answer.data else None

    def new_token(self, kind: str, name: str, **grants: Any) -> str:
        status, made = self.call("POST", "/v1/access/tokens", {"actor": {"kind": kind, "id": name}, **grants})
        check(status == 201, f"a token for {kind}:{name}")
        return str(made["token"])


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def chapter(title: str) -> None:
    say(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}")


def show(what: str, outcome: object) -> None:
    say(f"  {what:<58} {outcome}")


def check(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion reads best with its condition first
    if not holds:
        raise Broken(what)


def tell_facts(story: Story) -> None:
    chapter("A fact is written, changed, verified, listed, read as of an earlier time and deleted")
    memory = story.client().memory
    fact = memory.write_fact(
        type="acme.preference", scope={"tenantId": TENANT}, content={"contact": "email", "weight": 1.0}
    )
    show("write_fact(acme.preference, contact by email)", f"version {fact.version}, {fact.trust}")
    moment = fact.created_at
    time.sleep(0.05)
    changed = memory.supersede_fact(fact.id, content={"contact": "phone"}, expect_version=1)
    show("supersede_fact(contact by phone, expect_version=1)", f"version {changed.version}")
    try:
        memory.supersede_fact(fact.id, content={"contact": "fax"}, expect_version=1)
        raise Broken("a stale supersede must be refused")
    except ConflictError as error:
        show("supersede_fact(contact by fax, expect_version=1)", f"refused: {error.server_code}")
    verified = memory.verify_fact(fact.id)
    show("verify_fact", f"version {verified.version}, {verified.trust}")
    listed = memory.list_facts(type="acme.preference").data
    check([each.id for each in listed] == [fact.id], "the list has the one fact")
    show("list_facts(type=acme.preference)", f"{len(listed)} fact, version {listed[0].version}")
    earlier = memory.get_fact(fact.id, as_of=moment)
    check(earlier.content == {"contact": "email", "weight": 1.0}, "the earlier content comes back")
    show("get_fact(as_of=its first instant)", f"version {earlier.version}: {json.dumps(earlier.content)}")
    memory.delete_fact(fact.id)
    try:
        memory.get_fact(fact.id)
        raise Broken("a deleted fact must be gone")
    except NotFoundError:
        show("delete_fact, then get_fact", "not found")
    revisions = memory.list_fact_revisions(fact.id).data
    show("list_fact_revisions", ", ".join(f"v{each.version} {each.trust}" for each in revisions))
    check([each.version for each in revisions] == [3, 2, 1], "three revisions are kept")


def tell_access(story: Story) -> None:
    chapter("Each reader sees what is theirs")
    ana, ben = story.new_token("user", "ana"), story.new_token("user", "ben")
    story.client(ana).memory.write_fact(
        type="acme.note",
        scope={"tenantId": TENANT, "userId": "ana"},
        content="Ana's fiscal year starts in April",
    )
    story.client().memory.write_fact(
        type="acme.note", scope={"tenantId": TENANT}, content="Offices close at six"
    )
    seen = {
        name: story.client(token).memory.list_facts(type="acme.note").data
        for name, token in (("ana", ana), ("ben", ben))
    }
    show("ana lists acme.note", f"{len(seen['ana'])} facts: her own and the tenant's")
    show("ben lists acme.note", f"{len(seen['ben'])} fact: the tenant's")
    check(len(seen["ana"]) == 2 and len(seen["ben"]) == 1, "ben must not see ana's fact")
    hidden = next(fact for fact in seen["ana"] if fact.scope.user_id == "ana")
    status, answer = story.call("GET", f"/v1/memory/facts/{hidden.id}", token=ben)
    show("ben asks for ana's fact by its id", f"HTTP {status} {answer['error']['code']}")
    check(status == 404, "a fact one may not see is not found")


CHAPTERS: tuple[Callable[[Story], None], ...] = (tell_facts, tell_access)


def add_arguments(_: argparse.ArgumentParser) -> None:
    """The demo takes no arguments."""


def run(_: argparse.Namespace) -> int:
    """Start the service in a folder of its own, tell the story, stop. Exit code 0 when every step held."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="factbook-demo-") as folder:
        say("Starting Factbook on this machine …")
        with running(Path(folder), tenants=[TENANT]) as ready:
            say(f"Factbook serves at {ready.url} ({time.monotonic() - started:.1f} s)")
            try:
                for tell in CHAPTERS:
                    tell(Story(ready, Path(folder)))
            except Broken as broken:
                say(f"\nThe story broke: {broken}")
                return 1
    say(
        f"\nEvery step held. {time.monotonic() - started:.0f} s in all. `make local` serves until you stop it."
    )
    return 0
