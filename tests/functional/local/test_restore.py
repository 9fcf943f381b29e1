"""A restore from before an erasure: the replayed ledger erases what came back, and nothing else, before anybody asks."""

import json
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from factbook_local.testing import Ready, running

TENANT = "acme"
QUICK = {"ERASURE_SETTLE_SECONDS": "1"}
LARGE = 70_000


@dataclass
class Service:
    """A running local service, called as its users and operators do."""

    ready: Ready
    folder: Path
    http: urllib3.PoolManager = field(default_factory=urllib3.PoolManager)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.ready.tokens[TENANT]}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        answer = self.http.request(method, self.ready.url + path, body=sent, headers=headers, redirect=False)
        return answer.status, json.loads(answer.data) if answer.data else None

    def made(self, path: str, body: Any) -> Any:
        status, answer = self.call("POST", path, body)
        assert status in (200, 201), answer
        return answer

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        service = (
            () if words[0] == "verify" else ("--url", self.ready.url, "--token", self.ready.tokens[TENANT])
        )
        return subprocess.run(
            [sys.executable, "-m", "factbook_cli", "erasure", *words, *service],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=self.folder,
        )

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Every raw item of every table."""
        client = self.ready.client("dynamodb")
        return {
            name: [
                item
                for page in client.get_paginator("scan").paginate(TableName=table)
                for item in page["Items"]
            ]
            for name, table in self.ready.aws["tables"].items()
        }

    def put(self, name: str, items: list[dict[str, Any]]) -> None:
        """Make a table what it was: what is there goes, these items come."""
        client, table = self.ready.client("dynamodb"), self.ready.aws["tables"][name]
        for item in self.tables()[name]:
            client.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
        for item in items:
            client.put_item(TableName=table, Item=item)

    def objects(self) -> list[bytes]:
        """Every version of every object."""
        client = self.ready.client("s3")
        bodies = []
        for bucket in self.ready.aws["buckets"].values():
            for version in client.list_object_versions(Bucket=bucket).get("Versions", []):
                got = client.get_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])
                bodies.append(got["Body"].read())
        return bodies

    def has(self, words: str) -> list[str]:
        """Where some words are: tables, objects, and what the API still shows an administrator."""
        found = [name for name, items in self.tables().items() if words in _text(items)]
        found += ["objects"] if any(words.encode() in body for body in self.objects()) else []
        answers = [
            self.call("GET", "/v1/memory/facts?limit=100"),
            self.call("GET", "/v1/memory/runs/chat/log"),
            self.call("POST", "/v1/memory/retrieve", {"mode": "keyword", "query": words, "limit": 100}),
        ]
        return found + [f"answer {at}" for at, answer in enumerate(answers) if words in json.dumps(answer)]


def _text(items: list[dict[str, Any]]) -> str:
    return "\n".join(str(item) for item in items)


@dataclass
class Story:
    """Words of ann and of bob, by which they are found wherever they are."""

    ann: str = field(default_factory=lambda: f"ann{uuid.uuid4().hex}")
    bob: str = field(default_factory=lambda: f"bob{uuid.uuid4().hex}")

    def tell(self, service: Service) -> None:
        for name, word in (("ann", self.ann), ("bob", self.bob)):
            person = {"projectId": "p", "participantId": name}
            subject = [{"kind": "participant", "id": name}]
            fact = service.made("/v1/memory/facts", {"type": "t", "scope": person, "content": word})
            service.made(f"/v1/memory/facts/{fact['id']}/supersede", {"content": f"{word} again"})
            service.made(
                "/v1/memory/facts",
                {"type": "t", "scope": {"projectId": "p"}, "subjects": subject, "content": word},
            )
            service.made("/v1/memory/facts", {"type": "t", "scope": person, "content": word * (LARGE // 30)})
            entries = [
                {"kind": "user-message", "payload": {"text": word}, "scope": person | {"threadId": name}}
            ]
            run = "chat" if name == "ann" else "chat-of-bob"
            service.made(f"/v1/memory/runs/{run}/log", {"entries": entries})


ANN = ("--participant", "ann", "--project", "p")


def erase_ann(service: Service) -> None:
    done = service.command("create", *ANN, "--yes", "--wait", "--quiet")
    assert done.returncode == 0, done
    assert "completed" in done.stdout


def export_ledger(service: Service, name: str) -> list[dict[str, Any]]:
    done = service.command("export", "--out", name)
    assert done.returncode == 0, done
    entries: list[dict[str, Any]] = json.loads((service.folder / name).read_text())["erasures"]
    return entries


def replay(service: Service, ledger: str) -> dict[str, Any]:
    done = service.command("replay", ledger, "--json", "--quiet")
    answer: dict[str, Any] = json.loads(done.stdout)
    lost = [each for each in answer["unmatched"] if each["reason"] != "nothing-matched"]
    assert done.returncode == bool(lost or answer["failed"]), done
    return answer


def own(items: list[dict[str, Any]], words: str) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True, default=repr) for item in items if words in str(item))


def test_what_a_restore_of_tables_brings_back_goes_again_and_nothing_else(tmp_path: Path) -> None:
    """Facts and keys are set back while the log and the records of erasures stay: the usual restore of a table."""
    story = Story()
    with running(tmp_path, [TENANT], QUICK) as ready:
        service = Service(ready, tmp_path)
        story.tell(service)
        before = service.tables()
        assert {"facts", "objects", "answer 0", "answer 1", "answer 2"} <= set(service.has(story.ann))
        erase_ann(service)
        (entry,) = export_ledger(service, "ledger.json")
        assert service.has(story.ann) == []

        for name in ("facts", "keys"):
            service.put(name, before[name])
        assert {"facts", "answer 0"} <= set(service.has(story.ann)), "the restore has brought her back"
        status, later = service.call(
            "POST",
            "/v1/memory/facts",
            {
                "type": "t",
                "scope": {"projectId": "p", "participantId": "ann"},
                "content": "came back in person",
            },
        )
        assert status == 201
        bobs = {name: own(items, story.bob) for name, items in service.tables().items()}

        answer = replay(service, "ledger.json")

        assert (answer["replayed"], answer["restored"], answer["unmatched"]) == ([entry["id"]], [], [])
        assert service.has(story.ann) == []
        after = service.tables()
        assert {name: own(items, story.bob) for name, items in after.items()} == bobs
        assert service.call("GET", f"/v1/memory/facts/{later['id']}")[1]["content"] == "came back in person"
        keys = [item for item in after["keys"] if "ann" in str(item)]
        assert keys
        assert [item for item in keys if "w" in item and item not in before["keys"]] != keys, (
            "hers is destroyed"
        )
        record = service.call("GET", f"/v1/memory/erasures/{entry['id']}")[1]
        assert (record["status"], record["createdAt"]) == ("completed", entry["createdAt"])
        assert record["replayedAt"] > entry["createdAt"]

        done = service.command("receipt", entry["id"], "--out", "receipt.json", "--wait", "--quiet")
        assert done.returncode == 0, done
        verified = service.command("verify", "receipt.json", "--vkey", ready.vkey)
        assert verified.returncode == 0, verified
        assert "A restore had brought something of it back" in verified.stdout

        again = replay(service, "ledger.json")
        assert [each["reason"] for each in again["unmatched"]] == ["nothing-matched"]
        ledger = json.loads((tmp_path / "ledger.json").read_text())
        ledger["erasures"][0]["keyId"] = "another-deployments"
        (tmp_path / "foreign.json").write_text(json.dumps(ledger))
        assert [each["reason"] for each in replay(service, "foreign.json")["unmatched"]] == ["unknown-key"]


def test_what_a_restore_of_everything_brings_back_goes_again_by_a_ledger_that_was_kept_elsewhere(
    tmp_path: Path,
) -> None:
    """All tables, objects, keys and the search index are of before the erasure; nothing there knows that there was one."""
    story, data, backup = Story(), tmp_path / "data", tmp_path / "backup"
    with running(tmp_path, [TENANT], QUICK, data=data) as ready:
        story.tell(Service(ready, tmp_path))
    shutil.copytree(data, backup)
    with running(tmp_path, [TENANT], QUICK, data=data) as ready:
        service = Service(ready, tmp_path)
        erase_ann(service)
        (entry,) = export_ledger(service, "ledger.json")
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    with running(tmp_path, [TENANT], QUICK, data=data) as ready:
        service = Service(ready, tmp_path)
        assert {"facts", "objects", "answer 0", "answer 1", "answer 2"} <= set(service.has(story.ann))
        assert service.call("GET", "/v1/memory/erasures")[1]["data"] == []
        bobs = {name: own(items, story.bob) for name, items in service.tables().items()}

        answer = replay(service, "ledger.json")

        assert (answer["replayed"], answer["unmatched"]) == ([entry["id"]], [])
        assert service.has(story.ann) == []
        assert {name: own(items, story.bob) for name, items in service.tables().items()} == bobs
        assert service.has(story.bob) != []
        record = service.call("GET", f"/v1/memory/erasures/{entry['id']}")[1]
        assert (record["status"], record["requestedBy"]) == ("completed", "user:admin")
        kept = {name: record[name] for name in ("id", "selectorKind", "createdAt")}
        assert kept == {name: entry[name] for name in kept}
        done = service.command("receipt", entry["id"], "--out", "receipt.json", "--wait", "--quiet")
        assert done.returncode == 0, done
        assert service.command("verify", "receipt.json", "--vkey", ready.vkey).returncode == 0
    left = [path for path in data.rglob("*") if path.is_file() and story.ann.encode() in path.read_bytes()]
    assert left == [], "no file of the service has her words"
