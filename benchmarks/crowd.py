"""Many callers at once against the local service: `python benchmarks/crowd.py`.

* 16 writers write 200 facts each: every one is there once.
* 8 users of two tenants, with the same names in both, send 2,000 requests between them: each answer is its asker's.

Prints what was counted and how long it took; exit code 1 when an answer went astray or a fact is missing.
"""

import argparse
import http.client
import json
import sys
import tempfile
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from factbook_local.testing import Ready, running

SECONDS = 120.0
TENANTS = ["one", "two"]
PERSONS = 4
"""Of each tenant."""


class Caller:
    """A token and a kept connection."""

    def __init__(self, ready: Ready, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(ready.url).netloc, timeout=SECONDS)
        self._token = token

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        sent = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        self._connection.request(method, path, sent, headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def write_at_once(ready: Ready, tenant: str, writers: int, each: int) -> Counter[str]:
    """Facts by what became of them: `there`, `missing`, `unacknowledged`, or there `twice`."""
    kind, token = f"kind-{uuid.uuid4()}", ready.tokens[tenant]

    def write(writer: int) -> list[tuple[str, str]]:
        """Ids and contents of what was acknowledged."""
        made = []
        with Caller(ready, token) as caller:
            for number in range(each):
                content = f"{writer}/{number}"
                status, fact = caller.ask("POST", "/v1/memory/facts", {"type": kind, "content": content})
                if status == 201:
                    made.append((fact["id"], content))
        return made

    def read(made: list[tuple[str, str]]) -> Counter[str]:
        found = Counter[str]()
        with Caller(ready, token) as caller:
            for fact_id, content in made:
                status, fact = caller.ask("GET", f"/v1/memory/facts/{fact_id}")
                found["there" if (status, fact.get("content")) == (200, content) else "missing"] += 1
        return found

    with ThreadPoolExecutor(writers) as pool:
        made = list(pool.map(write, range(writers)))
        found = sum(pool.map(read, made), Counter[str]())
    acknowledged = sum(map(len, made))
    found["unacknowledged"] = writers * each - acknowledged
    found["twice"] = kept(ready, kind) - acknowledged
    return +found


def kept(ready: Ready, kind: str) -> int:
    """Heads of a type in the table itself: no list says so quickly of thousands on the emulator."""
    pages = (
        ready.client("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=ready.aws["tables"]["facts"],
            Select="COUNT",
            FilterExpression="t = :t AND sk = :h",
            ExpressionAttributeValues={":t": {"S": kind}, ":h": {"S": "h"}},
        )
    )
    return sum(page["Count"] for page in pages)


@dataclass(frozen=True)
class Person:
    """A principal, and the fact only it can see."""

    tenant: str
    name: str
    token: str
    fact_id: str


def people(ready: Ready) -> list[Person]:
    """Users of two tenants, the same names in both, each with a fact of its own."""
    found = []
    for tenant in TENANTS:
        for number in range(PERSONS):
            name = f"user-{number}"
            with Caller(ready, ready.tokens[tenant]) as admin:
                status, token = admin.ask(
                    "POST", "/v1/access/tokens", {"actor": {"kind": "user", "id": name}}
                )
            assert status == 201, token
            body = {"type": "own", "scope": {"userId": name}, "content": f"{tenant}/{name}"}
            with Caller(ready, token["token"]) as own:
                status, fact = own.ask("POST", "/v1/memory/facts", body)
            assert status == 201, fact
            found.append(Person(tenant, name, token["token"], fact["id"]))
    return found


def ask_at_once(ready: Ready, each: int) -> Counter[str]:
    """Answers by whose they were: `own`, or what went wrong. Every principal asks `each` times."""
    everyone = people(ready)

    def ask(person: Person) -> Counter[str]:
        others = [other for other in everyone if other != person]
        with Caller(ready, person.token) as caller:
            return Counter(_answer(caller, person, others[n % len(others)], n % 4) for n in range(each))

    with ThreadPoolExecutor(len(everyone)) as pool:
        return sum(pool.map(ask, everyone), Counter[str]())


def _answer(caller: Caller, person: Person, other: Person, kind: int) -> str:
    """Ask in one of four ways; `own` when the answer is what this person alone gets."""
    own = f"{person.tenant}/{person.name}"
    match kind:
        case 0:
            status, answer = caller.ask("GET", "/v1/identity/whoami")
            mine = (answer.get("tenantId"), answer.get("userId")) == (person.tenant, person.name)
        case 1:
            status, answer = caller.ask("GET", f"/v1/memory/facts/{person.fact_id}")
            mine = answer.get("content") == own
        case 2:
            status, answer = caller.ask("GET", "/v1/memory/facts?type=own")
            mine = [fact["content"] for fact in answer.get("data", [])] == [own]
        case _:
            status, answer = caller.ask("GET", f"/v1/memory/facts/{other.fact_id}")
            mine = (status, answer.get("error", {}).get("code")) == (404, "fact-not-found")
    return "own" if mine else f"astray: {status} {answer}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Many callers at once against the local service.")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--each", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), TENANTS) as ready:
        began = time.monotonic()
        asked = ask_at_once(ready, arguments.requests // (len(TENANTS) * PERSONS))
        took = time.monotonic() - began
        print(
            f"{len(TENANTS) * PERSONS} principals, {sum(asked.values())} requests: {dict(asked)} ({took:.0f} s)"
        )
        began = time.monotonic()
        written = write_at_once(ready, TENANTS[0], arguments.writers, arguments.each)
        took = time.monotonic() - began
        print(f"{arguments.writers} writers × {arguments.each} facts: {dict(written)} ({took:.0f} s)")
    return 0 if set(written) == {"there"} and set(asked) == {"own"} else 1


if __name__ == "__main__":
    sys.exit(main())
