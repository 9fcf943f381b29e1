"""Attacks on the tables behind the service's back, each judged from a fresh export with the public key alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.logs import LogService

from factbook.adapters.dynamodb.client import from_item, to_item
from factbook.adapters.dynamodb.key_parts import key
from factbook.canonical import log_canonical
from factbook.domain.log.chain import LogId, nonce_for, text_hash

LENGTH = 6
Attack = Callable[["Intruder"], None]


class Intruder:
    """Holds the tables' keys, and writes past the service."""

    def __init__(self, log_service: LogService) -> None:
        self.log_service = log_service
        self.client = log_service.client("dynamodb")
        self.table = log_service.settings.log_table

    def where(self, run: str, sequence: int) -> dict[str, Any]:
        return to_item({"pk": key(self.log_service.tenant, run), "sk": sequence})

    def item(self, run: str, sequence: int) -> dict[str, Any]:
        return from_item(self.client.get_item(TableName=self.table, Key=self.where(run, sequence))["Item"])

    def put(self, item: dict[str, Any]) -> None:
        self.client.put_item(TableName=self.table, Item=to_item(item))

    def delete(self, run: str, *sequences: int) -> None:
        for sequence in sequences:
            self.client.delete_item(TableName=self.table, Key=self.where(run, sequence))

    def forget(self, *partition: str) -> int:
        """Delete a partition of the access table; how many items it had."""
        table = self.log_service.settings.access_table
        items = self.log_service.partition(table, *partition)
        for item in items:
            self.client.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
        return len(items)

    def rewrite(self, run: str, start: int, change: Callable[[dict[str, Any]], Any]) -> None:
        """Entries from `start` on, changed and chained anew with hashes that hold."""
        before = self.item(run, start - 1)["h"] if start else "sha256:" + "0" * 64
        for sequence in range(start, LENGTH):
            item = self.item(run, sequence)
            entry = json.loads(item["j"])
            change(entry)
            entry["prevHash"] = before
            text = log_canonical(entry)
            before = text_hash(text)
            self.put(item | {"j": text, "h": before})


def edit_payload(intruder: Intruder) -> None:
    item = intruder.item("r1", 2)
    intruder.put(item | {"j": item["j"].replace('"step":2', '"step":9')})


def edit_metadata(intruder: Intruder) -> None:
    item = intruder.item("r1", 2)
    intruder.put(item | {"j": item["j"].replace('"kind":"tool-call"', '"kind":"tool-result"')})


def edit_cause(intruder: Intruder) -> None:
    intruder.put(intruder.item("r1", 2) | {"cause": "r1:0:0123456789abcdef"})


def delete_middle(intruder: Intruder) -> None:
    intruder.delete("r1", 2)


def cut_tail(intruder: Intruder) -> None:
    intruder.delete("r1", 4, 5)


def empty_run(intruder: Intruder) -> None:
    intruder.delete("r1", *range(LENGTH))


def drop_run(intruder: Intruder) -> None:
    """Entries, and everything that says the run was there but the leaves themselves."""
    empty_run(intruder)
    assert intruder.forget("head", intruder.log_service.tenant, "r1") == 2


def rewrite_run(intruder: Intruder) -> None:
    intruder.rewrite("r1", 0, lambda entry: entry.update(actor="user:nobody"))


def rewrite_last(intruder: Intruder) -> None:
    intruder.rewrite("r1", LENGTH - 1, lambda entry: entry.update(payload={"step": 99}))


# the attack, the entry to name, whether one run's own file is enough to see it
ATTACKS: list[tuple[Attack, int, bool]] = [
    (edit_payload, 2, True),
    (edit_metadata, 2, True),
    (edit_cause, 2, True),
    (delete_middle, 2, True),
    (cut_tail, 4, True),
    (empty_run, 0, True),
    (drop_run, 0, False),
    (rewrite_run, 2, True),  # the first entry a leaf commits to
    (rewrite_last, 5, True),
]
BY_NAME = [pytest.param(*attack, id=attack[0].__name__) for attack in ATTACKS]


@pytest.fixture
def log_service(ministack: Aws, tmp_path: Path) -> LogService:
    """Two runs, the first in three appends with a checkpoint in between: its file holds a middle leaf and a last one."""
    log_service = LogService(ministack, tmp_path)
    first = log_service.append("r1", {"step": 0}, {"step": 1}, scope={"projectId": "p"})
    log_service.append("r1", {"step": 2}, causedByLogId=first[0]["id"])
    log_service.checkpoint()
    log_service.append("r1", *({"step": step} for step in range(3, LENGTH)))
    log_service.append("r2", *({"step": step} for step in range(LENGTH)))
    log_service.checkpoint()
    return log_service


def test_an_untouched_log_holds(log_service: LogService) -> None:
    verdict = log_service.audit()
    assert (verdict.code, verdict.why, verdict.entries, verdict.runs) == (0, "", 2 * LENGTH, 2)
    assert [log_service.verify(run).code for run in ("r1", "r2")] == [0, 0]


@pytest.mark.parametrize(("attack", "sequence", "alone"), BY_NAME)
def test_an_attack_is_caught_and_the_entry_named(
    log_service: LogService, attack: Attack, sequence: int, alone: bool
) -> None:
    attack(Intruder(log_service))
    verdict = log_service.audit()
    assert (verdict.code, verdict.run, verdict.sequence) == (1, "r1", sequence), verdict
    if alone:
        verdict = log_service.verify("r1")
        assert (verdict.code, verdict.run, verdict.sequence) == (1, "r1", sequence), verdict
    assert log_service.verify("r2").code == 0


def launder(intruder: Intruder) -> None:
    """With the signing key, too: chain anew what is left, forget the tree and every note, and have it all signed again."""
    log_service = intruder.log_service
    left = [from_item(item) for item in log_service.partition(intruder.table, log_service.tenant, "r1")]
    intruder.delete("r1", *(item["sk"] for item in left))
    before = "sha256:" + "0" * 64
    for sequence, item in enumerate(left):
        entry = json.loads(item["j"])
        log_id = LogId("r1", sequence, nonce_for(entry["id"].rpartition(":")[2][:16], item.get("cause")))
        text = log_canonical(entry | {"id": str(log_id), "sequence": sequence, "prevHash": before})
        before = text_hash(text)
        intruder.put(item | {"sk": sequence, "j": text, "h": before})
    for partition in (("tree",), ("leaf", "0"), ("note",)):
        intruder.forget(partition[0], log_service.tenant, *partition[1:])
    for run in ("r1", "r2"):
        intruder.forget("head", log_service.tenant, run)
    s3, bucket = log_service.client("s3"), log_service.settings.checkpoints_bucket
    for item in s3.list_objects_v2(Bucket=bucket, Prefix=log_service.tenant)["Contents"]:
        s3.delete_object(Bucket=bucket, Key=item["Key"])
    log_service.checkpoint()


@pytest.mark.parametrize(("attack", "sequence", "alone"), BY_NAME)
def test_a_thief_of_the_signing_key_is_caught_by_whoever_kept_a_checkpoint(
    log_service: LogService, attack: Attack, sequence: int, alone: bool
) -> None:
    kept = log_service.admin.call("GET", "/v1/memory/checkpoints/latest").json["note"]
    assert log_service.audit(pinned=kept).code == 0
    intruder = Intruder(log_service)
    attack(intruder)
    launder(intruder)
    assert log_service.audit().code == 0, "the thief's history is sound in itself"
    verdict = log_service.audit(pinned=kept)
    assert verdict.code == 1, verdict
    assert "pinned" in verdict.why
    assert log_service.verify("r2", pinned=kept).code != 0


def test_a_reader_is_told_that_an_entry_was_changed_and_gets_none_of_it(log_service: LogService) -> None:
    edit_payload(Intruder(log_service))
    reply = log_service.admin.call("GET", "/v1/memory/runs/r1/log")
    assert (reply.status, reply.code, reply.json["error"]["details"]) == (409, "log-changed", {"sequence": 2})
    verified = log_service.admin.call("GET", "/v1/memory/runs/r1/log/verify").json
    assert (verified["holds"], verified["finding"]["sequence"]) == (False, 2)


def test_a_run_that_contradicts_its_leaf_gets_no_further_leaf(log_service: LogService) -> None:
    size = log_service.checkpoint()["size"]
    rewrite_last(Intruder(log_service))
    Intruder(log_service).put(Intruder(log_service).item("r1", LENGTH - 1) | {"sk": LENGTH})
    assert log_service.checkpoint()["size"] == size
    verdict = log_service.audit()
    assert (verdict.code, verdict.run, verdict.sequence) == (1, "r1", LENGTH - 1)


def test_a_reader_of_a_run_is_told_that_an_entry_is_missing(log_service: LogService) -> None:
    Intruder(log_service).delete("r1", 2)
    run = "/v1/memory/runs/r1/log"
    for query in ({}, {"sinceSequence": 1}, {"sinceSequence": 2, "limit": 1}):
        refused = log_service.admin.call("GET", run, query=query)
        assert (refused.status, refused.code) == (409, "log-changed")
        assert refused.json["error"]["details"] == {"sequence": 2}
        assert refused.json["error"]["message"] == (
            "Entry 2 of the run is missing: someone removed it from the store. Verify the run, and compare it with an "
            "export. What is behind the gap begins at sinceSequence=3."
        )
    for query, sequences in (({"limit": 2}, [0, 1]), ({"sinceSequence": 3}, [3, 4, 5])):
        page = log_service.admin.call("GET", run, query=query)
        assert [entry["sequence"] for entry in page.json["data"]] == sequences


def test_a_reader_of_a_run_without_its_first_entry_is_told(log_service: LogService) -> None:
    Intruder(log_service).delete("r1", 0)
    refused = log_service.admin.call("GET", "/v1/memory/runs/r1/log")
    assert (refused.status, refused.code, refused.json["error"]["details"]) == (
        409,
        "log-changed",
        {"sequence": 0},
    )
