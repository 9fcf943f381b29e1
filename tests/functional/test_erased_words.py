"""What the log's routes, files and proofs make of words whose key was destroyed, on the keys table and KMS themselves."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import Gateway
from support.logs import Elapsed, LogService

from factbook.adapters.aes_gcm import AesGcm
from factbook.adapters.log.dynamodb_sealing_keys import DynamoKeys
from factbook.adapters.log.kms_wrapper import KmsWrapper
from factbook.domain.log.sealing import KeyName
from factbook.usecases.log.sealing import CACHE_SECONDS, Vault
from factbook.verify.judges import audit
from factbook.wiring.services import Services

ERASED = "2026-11-30T12:00:00.000Z"
ANN, BOB = (
    {"projectId": "p", "threadId": "talk", "participantId": "ann"},
    {"projectId": "p", "threadId": "talk"},
)
SECRET, OTHER, PLAIN = "the giraffe is called Zelda", "the zebra is called Link", "nobody's words"


class Talk:
    """Ann's run, another one of the same conversation, and a plain one; `other` is another process that has read it all."""

    def __init__(self, log: LogService) -> None:
        self.log = log
        self.elapsed = Elapsed()
        log.services.logs.__dict__["vault"] = self.vault()
        message: dict[str, Any] = {"kind": "user-message"}
        self.said = log.append("ann", SECRET, f"{SECRET}!", **message, scope=ANN)
        self.heard = log.append("bob", OTHER, **message, scope=BOB)
        self.plain = log.append("plain", PLAIN)
        caused = {"type": "note", "content": "x", "causedByLogId": [self.said[0]["id"]]}
        self.fact = log.admin.call("POST", "/v1/memory/facts", caused).json["id"]
        log.checkpoint()
        self.process = log.process()
        self.process.logs.__dict__["vault"] = self.vault()
        self.other = log.gateway(self.process)

    def vault(self) -> Vault:
        log = self.log
        keys = DynamoKeys(log.client("dynamodb"), log.settings.keys_table)
        return Vault(keys, KmsWrapper(log.client("kms"), log.settings.kms_key_id), AesGcm(), self.elapsed)

    def get(self, path: str, through: Gateway | None = None, **query: Any) -> Any:
        reply = (through or self.log.admin).call("GET", f"/v1/memory/{path}", query=query)
        assert reply.status == 200, reply.text
        return reply.json

    def texts(self, through: Gateway | None = None) -> str:
        """All that the routes of the log answer, as one text."""
        paths = [f"runs/{run}/log" for run in ("ann", "bob", "plain")]
        paths += [f"log/{entry['id']}" for entry in (*self.said, *self.heard, *self.plain)]
        paths += ["threads/talk/messages", f"facts/{self.fact}/provenance"]
        answers = [self.get(path, through) for path in paths]
        answers.append(self.get("threads/talk/messages", through, projectId="p", order="desc"))
        return json.dumps(answers)

    def erase(self) -> None:
        """As the worker of an erasure does, in a process of its own, and what it waits out."""
        worker: Services = self.log.process()
        assert (
            worker.logs.vault.destroy(self.log.tenant, KeyName(project="p", participant="ann"), ERASED) == 1
        )


@pytest.fixture
def talk(moto: Aws, tmp_path: Path) -> Talk:
    return Talk(LogService(moto, tmp_path))


def test_the_words_are_gone_from_every_route_and_the_others_stay(talk: Talk) -> None:
    before = talk.texts()
    assert all(words in before for words in (SECRET, OTHER, PLAIN))
    talk.erase()
    talk.elapsed.seconds += CACHE_SECONDS

    for through in (talk.log.admin, talk.other):
        after = talk.texts(through)
        assert SECRET not in after
        assert OTHER in after
        assert PLAIN in after
        for entry in talk.get("runs/ann/log", through)["data"]:
            assert (entry["payloadErasedAt"], "payload" in entry) == (ERASED, False)
        messages = talk.get("threads/talk/messages", through)["data"]
        assert ["payload" in each for each in messages] == [False, False, True]
        for entry in talk.get("runs/bob/log", through)["data"]:
            assert "payloadErasedAt" not in entry
    kept = talk.get("runs/ann/log")["data"]
    for entry, former in zip(kept, talk.said, strict=True):
        said = {name: value for name, value in former.items() if name != "payload"}
        assert {name: value for name, value in entry.items() if name != "payloadErasedAt"} == said


def test_a_process_that_had_the_key_reads_on_for_a_minute_and_no_longer(talk: Talk) -> None:
    assert SECRET in talk.texts(talk.other)
    talk.erase()
    talk.elapsed.seconds += CACHE_SECONDS - 0.001
    assert SECRET in talk.texts(talk.other), "what an erasure waits out"
    talk.elapsed.seconds += 0.001
    assert SECRET not in talk.texts(talk.other)


def test_what_is_sealed_within_that_minute_is_erased_with_the_rest_and_what_comes_later_is_not(
    talk: Talk,
) -> None:
    talk.erase()
    late = talk.log.append("ann", "within the minute", kind="user-message", scope=ANN)
    talk.elapsed.seconds += CACHE_SECONDS
    later = talk.log.append("ann", "after the minute", kind="user-message", scope=ANN)
    entries = {entry["id"]: entry for entry in talk.get("runs/ann/log")["data"]}
    assert entries[late[0]["id"]]["payloadErasedAt"] == ERASED
    assert entries[later[0]["id"]]["payload"] == "after the minute"
    stored = talk.get("runs/ann/log", form="stored")["data"]
    assert [json.loads(entry["canonical"])["payload"]["gen"] for entry in stored] == [1, 1, 1, 2]


def test_chains_proofs_and_files_hold_as_before_and_old_files_say_nothing_more(talk: Talk) -> None:
    log = talk.log
    old = log.export_all(log.folder / "old.ndjson")
    proof = talk.get("runs/ann/log/proof", sequence=0)
    stored = talk.get("runs/ann/log", form="stored")
    run_file = log.export_run("ann", log.folder / "ann.jsonl").read_bytes()
    talk.erase()
    talk.elapsed.seconds += CACHE_SECONDS

    assert talk.get("runs/ann/log", form="stored") == stored
    assert talk.get("runs/ann/log/proof", sequence=0) == proof
    assert talk.get("runs/ann/log/verify")["holds"] is True
    assert log.export_run("ann", log.folder / "again.jsonl").read_bytes() == run_file
    assert log.export_all(log.folder / "new.ndjson").read_bytes() == old.read_bytes()
    assert SECRET.encode() not in old.read_bytes(), (
        "a file never had the words, and now nobody can open what it has"
    )
    assert log.verify("ann").code == 0
    log.append("ann", "later", kind="user-message", scope=ANN)
    log.checkpoint()
    assert audit(old, log.key).code == 0
    assert log.audit(pinned=note_of(old)).code == 0


def note_of(file: Path) -> str:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return str(next(line["checkpoint"] for line in reversed(lines) if "checkpoint" in line))


def test_a_cause_that_was_erased_is_shown_without_its_words(talk: Talk) -> None:
    talk.erase()
    talk.elapsed.seconds += CACHE_SECONDS
    nodes = {node["id"]: node for node in talk.get(f"facts/{talk.fact}/provenance")["nodes"]}
    cause = nodes[talk.said[0]["id"]]
    assert cause["node"] == "log-entry"
    assert SECRET not in json.dumps(cause)


def test_a_retry_of_what_was_erased_since_is_refused_and_writes_nothing(talk: Talk) -> None:
    """Nobody can tell whether it says the same: its sender reads the run and sees what there is."""
    talk.erase()
    talk.elapsed.seconds += CACHE_SECONDS
    body = {"entries": [{"kind": "user-message", "payload": SECRET, "scope": ANN}], "afterSequence": -1}
    reply = talk.log.admin.call("POST", "/v1/memory/runs/ann/log", body)
    assert (reply.status, reply.code) == (409, "log-changed")
    assert len(talk.get("runs/ann/log")["data"]) == 2
