"""One of three people is erased from a whole running service: nothing of them is left anywhere, everything of the others is."""

import base64
import hashlib
import json
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import urllib3
from support.local_cloud import eventually

from factbook_local.testing import Ready, running

FACTS, ERASURES = "/v1/memory/facts", "/v1/memory/erasures"
PEOPLE = ("xara", "yves", "zoe")
SETTINGS = {"ERASURE_SETTLE_SECONDS": "1"}


@dataclass
class House:
    """A tenant of a running service, with records of all kinds of three people. A person's word is in all that is theirs."""

    ready: Ready
    tenant: str
    words: dict[str, str] = field(default_factory=lambda: {name: f"w{uuid.uuid4().hex}" for name in PEOPLE})
    facts: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in PEOPLE})
    derived: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._http = urllib3.PoolManager()
        self._tokens = {"admin": self.ready.tokens[self.tenant]}
        made = self.call(
            "POST",
            "/v1/access/tokens",
            {"actor": {"kind": "user", "id": "writer"}, "projects": {"write": ["p"]}},
        )
        self._tokens["writer"] = made["token"]

    def call(self, method: str, path: str, body: Any = None, who: str = "admin", **headers: str) -> Any:
        sent = None if body is None else json.dumps(body)
        token = {"Authorization": f"Bearer {self._tokens[who]}"}
        answer = self._http.request(
            method, self.ready.url + path, body=sent, headers=token | headers, redirect=False
        )
        assert answer.status < 400, (method, path, answer.status, answer.data[:500])
        return answer.json() if answer.data else None

    def status(self, method: str, path: str, body: Any = None) -> int:
        sent = None if body is None else json.dumps(body)
        token = {"Authorization": f"Bearer {self._tokens['admin']}"}
        return int(
            self._http.request(method, self.ready.url + path, body=sent, headers=token, redirect=False).status
        )

    def write(self, name: str, **body: Any) -> Any:
        fact = self.call("POST", FACTS, {"type": "acme.note", **body})
        self.facts[name].append(fact["id"])
        return fact

    def furnish(self, name: str) -> None:
        word, place = self.words[name], {"projectId": "p", "participantId": name}
        fact = self.write(name, scope=place, content={word: word}, key=f"key {word}")
        self.call("POST", f"{FACTS}/{fact['id']}/supersede", {"content": f"{word} again"})
        large = self.write(name, scope=place, content=f"{word} " * 3_000)
        self.call("POST", f"{FACTS}/{large['id']}/supersede", {"content": f"more {word} " * 3_000})
        about = self.write(
            name, content=f"about {word}", subjects=[{"kind": "participant", "id": name}], causedByLogId=[]
        )
        self.call("POST", f"{FACTS}/{about['id']}/supersede", {"content": f"still {word}", "subjects": []})
        gone = self.write(name, scope=place, content=word)
        self.call("DELETE", f"{FACTS}/{gone['id']}")
        for reach in ("user", "account", "confirmed", "rejected", "proposed again"):
            self.remember(name, reach)
        said = [
            {"kind": kind, "payload": {"text": f"{word} {kind}"}, "scope": place | {"threadId": f"t-{name}"}}
            for kind in ("user-message", "agent-message", "tool-result")
        ]
        entries = self.call("POST", f"/v1/memory/runs/run-{name}/log", {"entries": said})["entries"]
        self.derived[name] = self.call(
            "POST",
            FACTS,
            {"type": "acme.derived", "content": f"of {name}", "causedByLogId": [entries[0]["id"]]},
        )["id"]
        self.upload(name)

    def remember(self, name: str, reach: str) -> None:
        word = self.words[name]
        said = {
            "agent": {"id": "copilot"},
            "type": "acme.memory",
            "scope": {"projectId": "p", "participantId": name},
            "key": f"{reach} {word}",
            "text": f"{word} {reach}",
        }
        said["reach"] = "user" if reach == "user" else "account"
        fact = self.call("POST", "/v1/memory/remember", said, who="writer")
        self.facts[name].append(fact["id"])
        if reach == "rejected":
            self.call("POST", f"{FACTS}/{fact['id']}/reject", {})
        if reach in ("confirmed", "proposed again"):
            self.call("POST", f"{FACTS}/{fact['id']}/confirm", {})
        if reach == "proposed again":
            self.call("POST", "/v1/memory/remember", said | {"text": f"{word} differently"}, who="writer")

    def upload(self, name: str) -> None:
        """One that no write names."""
        sent = self.words[name].encode()
        asked = {
            "size": len(sent),
            "sha256": hashlib.sha256(sent).hexdigest(),
            "type": "acme.note",
            "key": "none",
            "scope": {"projectId": "p", "participantId": name},
        }
        granted = self.call("POST", "/v1/memory/blobs", asked)
        request = urllib.request.Request(granted["uploadUrl"], sent, granted["headers"], method="PUT")
        urllib.request.urlopen(request, timeout=30).close()

    def bury(self, name: str) -> str:
        """A dead letter about a fact of theirs, whose record could not be read for a while; the fact's id."""
        client, table = self.ready.client("dynamodb"), self.ready.aws["tables"]["facts"]
        fact = self.facts[name][0]
        item = client.get_item(TableName=table, Key={"pk": {"S": f"{self.tenant}|{fact}"}, "sk": {"S": "h"}})[
            "Item"
        ]
        client.put_item(TableName=table, Item=item | {"d": {"S": f"no JSON of {self.words[name]}"}})
        eventually(lambda: self.buried(fact), 30)
        client.put_item(TableName=table, Item=item)
        return fact

    def buried(self, fact: str) -> bool:
        return any(fact in message for message in self.messages())

    def found(self, name: str) -> int:
        """How much a search finds of a person, facts and messages."""
        asked = {"mode": "keyword", "query": self.words[name], "limit": 50}
        facts = self.call("POST", "/v1/memory/retrieve", asked)["results"]
        return len(facts) + len(
            self.call("POST", "/v1/memory/retrieve", asked | {"source": "conversations"})["results"]
        )

    def erase(self, body: Any) -> Any:
        made = self.call("POST", ERASURES, body)
        return eventually(lambda: self.ended(made["id"]), 90)

    def ended(self, erasure: str) -> Any:
        record = self.call("GET", f"{ERASURES}/{erasure}")
        return record if record["status"] in ("completed", "failed") else None

    # -- past the service

    def items(self) -> Iterator[tuple[str, str]]:
        """Every item of every table: which table, and the item with every attribute."""
        client = self.ready.client("dynamodb")
        for table in self.ready.aws["tables"].values():
            for page in client.get_paginator("scan").paginate(TableName=table):
                yield from ((table, json.dumps(item, sort_keys=True, default=str)) for item in page["Items"])

    def objects(self) -> Iterator[tuple[str, str, bytes]]:
        """Every version of every object."""
        client = self.ready.client("s3")
        for bucket in self.ready.aws["buckets"].values():
            for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
                assert not page.get("DeleteMarkers")
                for each in page.get("Versions", ()):
                    where = {"Bucket": bucket, "Key": each["Key"], "VersionId": each["VersionId"]}
                    yield each["Key"], each["VersionId"], client.get_object(**where)["Body"].read()

    def messages(self) -> Iterator[str]:
        """What lies in queues; nobody's visibility is changed by looking for a second."""
        client = self.ready.client("sqs")
        for url in client.list_queues().get("QueueUrls", ()):
            answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
            yield from (message["Body"] for message in answer.get("Messages", ()))

    def belongings(self, name: str) -> dict[str, str]:
        """The raw items and objects of a person, as they are stored; the tree of checkpoints grows beside them."""
        mine = [*self.facts[name], f"run-{name}", f"|{name}|"]
        tree = self.ready.aws["tables"]["access"]
        kept = {
            f"{table} {item}": item
            for table, item in self.items()
            if table != tree and any(each in item for each in mine)
        }
        for key, version, body in self.objects():
            if any(each in key for each in self.facts[name]) or self.words[name].encode() in body:
                kept[f"{key} {version}"] = hashlib.sha256(body).hexdigest()
        return kept


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("erasure") / "data"


@pytest.fixture(scope="module")
def ready(data: Path) -> Iterator[Ready]:
    with running(data.parent, ["erased", "held"], SETTINGS, data=data) as ready:
        yield ready


def furnished(ready: Ready, tenant: str) -> House:
    made = House(ready, tenant)
    for name in PEOPLE:
        made.furnish(name)
    for name in PEOPLE:
        eventually(lambda name=name: made.found(name) >= 6)
    return made


def files_with(folder: Path, word: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def test_nothing_of_a_person_is_left_and_everything_of_the_others(
    ready: Ready, data: Path, tmp_path: Path
) -> None:
    house = furnished(ready, "erased")
    word = house.words["xara"]
    dead = house.bury("xara")
    others = {name: house.belongings(name) for name in PEOPLE[1:]}
    assert all(len(kept) > 20 for kept in others.values())
    before = {item for table, item in house.items() if table == house.ready.aws["tables"]["log"]}
    assert any(word in item for _, item in house.items())
    assert any(word.encode() in body for *_, body in house.objects())
    assert files_with(data, word)
    trial = house.call("POST", f"{ERASURES}?dryRun=true", {"subject": {"kind": "participant", "id": "xara"}})
    assert (trial["complete"], trial["heldFactIds"]) == (True, [])

    record = house.erase({"subject": {"kind": "participant", "id": "xara"}})

    assert (record["status"], record["phase"], record.get("lastError")) == ("completed", "done", None)
    assert "selector" not in record
    assert record["counts"] == trial["counts"]
    assert record["counts"] | {"revisions": 0} == {
        "facts": 9, "revisions": 0, "blobs": 2, "uploads": 1, "documents": 9, "messages": 2, "keys": 1, "derived": 1,
    }  # fmt: skip
    assert house.found("xara") == 0
    for fact in house.facts["xara"]:
        for path in ("", "/revisions", "/content", "/provenance", "?version=1"):
            assert house.status("GET", f"{FACTS}/{fact}{path}") == 404
    entries = house.call("GET", "/v1/memory/runs/run-xara/log")["data"]
    assert [(each.get("payload"), each["payloadErasedAt"]) for each in entries] == [
        (None, record["createdAt"])
    ] * 3

    assert [item for _, item in house.items() if word in item] == []
    assert [key for key, _, body in house.objects() if word.encode() in body or word in key] == []
    assert [message for message in house.messages() if word in message] == []
    assert house.buried(dead), "the letter is there still, and names a fact and nobody"
    assert word not in house.ready.output.read_text(errors="replace")
    for name in PEOPLE[1:]:
        assert house.belongings(name) == others[name]
        assert house.found(name) >= 6
    after = {item for table, item in house.items() if table == house.ready.aws["tables"]["log"]}
    assert before <= after, "no entry of the log has changed, hers included"
    (waiting,) = [
        review
        for review in house.call("GET", "/v1/memory/reviews")["data"]
        if "derived-from-erased" in review["why"]
    ]
    assert waiting["fact"]["id"] == house.derived["xara"]

    eventually(lambda: not files_with(data, word), 30)
    holds_and_exports_nothing(house, tmp_path, word)


def holds_and_exports_nothing(house: House, folder: Path, word: str) -> None:
    """Every chain and checkpoint verifies, and no new export has anything of her, the log's and the tenant's."""
    for run in ("run-xara", "run-yves", "run-zoe", "_erasures"):
        assert house.call("GET", f"/v1/memory/runs/{run}/log/verify")["holds"] is True
    house.call("POST", "/v1/memory/checkpoints", {})
    out = folder / "all.jsonl"
    command = [sys.executable, "-m", "factbook_cli", "log"]
    reach = ["--url", house.ready.url, "--token", house.ready.tokens[house.tenant]]
    subprocess.run([*command, "export", "--all", "--out", str(out), *reach], check=True, capture_output=True)
    audit = subprocess.run(
        [*command, "audit", str(out), "--vkey", house.ready.vkey], check=False, capture_output=True, text=True
    )
    assert audit.returncode == 0, audit.stdout + audit.stderr
    assert word not in out.read_text()
    tenant = folder / "tenant.ndjson"
    command = [sys.executable, "-m", "factbook_cli", "export", "--out", str(tenant), *reach]
    subprocess.run(command, check=True, capture_output=True)
    said = told(tenant)
    assert word not in said
    assert all(house.words[name] in said for name in PEOPLE[1:])


def told(export: Path) -> str:
    """What the file of a tenant says, its payloads among it."""
    lines = [json.loads(line) for line in export.read_text().splitlines()]
    payloads = [base64.b64decode(line["chunk"]).decode() for line in lines if "chunk" in line]
    assert payloads
    return "".join([export.read_text(), *payloads])


def test_a_hold_inside_the_selection_refuses_it_and_nothing_has_happened(ready: Ready) -> None:
    house = furnished(ready, "held")
    held = house.facts["xara"][0]
    house.call("POST", f"{FACTS}/{held}/hold", {"reason": "a case"})
    before = house.belongings("xara")
    body = {"subject": {"kind": "participant", "id": "xara"}}
    sent = {"Authorization": f"Bearer {house.ready.tokens[house.tenant]}"}
    answer = urllib3.request("POST", house.ready.url + ERASURES, json=body, headers=sent, timeout=60)
    assert (answer.status, answer.json()["error"]["code"]) == (409, "legal-hold")
    assert answer.json()["error"]["details"] == {"factIds": [held]}
    time.sleep(1)
    assert house.belongings("xara") == before
    assert house.call("GET", ERASURES)["data"] == []
    assert house.found("xara") >= 6
