"""Receipt, ledger and replay over HTTP: who may ask, what is refused and how, pages, and what a whole answer holds."""

import json
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import Reply, load_app
from support.logs import LogService, checkpoints_of
from support.principals import TenantService
from support.receipts import judged

from factbook.domain import wire
from factbook.domain.access.erasing import Selector
from factbook.domain.erasure.ledger import new_keys
from factbook.ports.deadline import NEVER
from factbook.ports.erasure.records import Erasure
from factbook.usecases.erasure.outcomes import REASONS
from factbook.wiring.services import Services

ERASURES = "/v1/memory/erasures"
AT, DONE = "2026-01-01T00:00:00.000Z", "2026-01-01T00:01:30.000Z"
ANN = Selector("external", "ann")


class Deployment:
    """A tenant whose erasures are stated, listed and replayed by the real handlers; nothing is erased by a worker here."""

    def __init__(self, aws: Aws, folder: Path) -> None:
        self.log = LogService(aws, folder)
        (folder / "ledger.json").write_text(json.dumps(new_keys("k1")))
        queue = aws.client("sqs").create_queue(QueueName=f"q{uuid.uuid4().hex}")["QueueUrl"]
        self.settings = replace(
            self.log.settings,
            erasure_ledger_keys=f"file:{folder}/ledger.json",
            erasure_queue=queue,
            erasure_settle_seconds="1",
        )
        self.services = Services(self.settings, None, aws.client)
        self.services.logs.__dict__["checkpoint_requests"] = checkpoints_of(self.services.logs)
        self.tenant = self.log.tenant
        service = TenantService(self.services, self.tenant)
        self.admin, self.someone = service.admin, service.of("someone", writes=["p"])
        for gateway in (self.admin, self.someone):
            gateway.apps["erase"] = load_app("erase")
            gateway.apps["erase"].services = lambda: self.services

    def record(self, number: int = 0, **more: Any) -> Erasure:
        """One that a worker has completed, and nobody has stated yet."""
        keyed = self.services.erasures._ledger.ledger.hash_of(self.tenant, ANN)
        assert keyed is not None
        at = f"2026-01-01T00:00:{number % 60:02d}.{number // 60:03d}Z"
        erasure = Erasure(
            str(uuid.uuid4()),
            self.tenant,
            "external",
            None,
            "user:admin",
            at,
            "completed",
            "done",
            {"facts": 2},
            completed_at=DONE,
            selector_hmac=keyed.hmac,
            key_id=keyed.key_id,
        )
        return replace(erasure, **more)

    def keep(self, *erasures: Erasure) -> None:
        for start in range(0, len(erasures), 50):
            self.services.erasures.records.put_back(erasures[start : start + 50])

    def stated(self, **more: Any) -> Erasure:
        erasure = self.record(**more)
        stated = self.services.erasures.requesting.state(erasure, DONE, NEVER)
        erasure = replace(erasure, entry_id=stated.entry_id)
        self.keep(erasure)
        return erasure

    def receipt(self, erasure_id: str) -> Reply:
        return self.admin.call("GET", f"{ERASURES}/{erasure_id}/receipt")


@pytest.fixture
def here(ministack: Aws, tmp_path: Path) -> Deployment:
    return Deployment(ministack, tmp_path)


def test_a_receipt_over_http_verifies_offline(here: Deployment, tmp_path: Path) -> None:
    erasure = here.stated()

    reply = here.receipt(erasure.id)

    assert reply.status == 200, reply.text
    verdict = judged(tmp_path, reply.text, here.log.vkey)
    assert (verdict.code, verdict.tenant) == (0, here.tenant)
    assert verdict.statement is not None
    assert verdict.statement["erasureId"] == erasure.id
    altered = reply.text.replace('\\"facts\\":2', '\\"facts\\":3')
    assert altered != reply.text
    assert judged(tmp_path, altered, here.log.vkey).code == 1


def test_before_there_is_a_receipt_its_route_says_when_to_ask_again(here: Deployment) -> None:
    running = here.record(status="running", phase="erase", completed_at=None)
    failed = here.record(status="failed", completed_at=None)
    here.keep(running, failed)

    pending = here.receipt(running.id)
    assert (pending.status, pending.code) == (409, "receipt-pending")
    assert int(pending.headers["Retry-After"]) >= 1
    assert (here.receipt(failed.id).status, here.receipt(failed.id).code) == (404, "not-found")
    for unknown in (str(uuid.uuid4()), "x", "%7C", "_erasures"):
        assert (here.receipt(unknown).status, here.receipt(unknown).code) == (404, "not-found")


def test_all_of_it_is_for_administrators(here: Deployment) -> None:
    erasure = here.stated()
    asked = [
        ("GET", f"{ERASURES}/{erasure.id}/receipt", None),
        ("GET", f"{ERASURES}/export", None),
        ("POST", f"{ERASURES}/replay", {"erasures": []}),
    ]
    for method, path, body in asked:
        refused = here.someone.call(method, path, body)
        assert (refused.status, refused.code) == (403, "permission-denied"), path


def test_the_ledger_is_the_tenants_oldest_first_and_without_a_name(here: Deployment) -> None:
    made = [here.record(number) for number in (2, 0, 1)]
    waiting = here.record(3, status="running", completed_at=None, selector=ANN)
    here.keep(*made, waiting, replace(here.record(4), tenant=f"{here.tenant}-other"))

    answer = here.admin.call("GET", f"{ERASURES}/export").json

    assert [entry["id"] for entry in answer["data"]] == [made[1].id, made[2].id, made[0].id, waiting.id]
    assert answer["hasMore"] is False
    assert "ann" not in json.dumps(answer)
    assert answer["data"][0] == {
        "id": made[1].id,
        "selectorKind": "external",
        "selectorHmac": made[1].selector_hmac,
        "keyId": "k1",
        "requestedBy": "user:admin",
        "status": "completed",
        "createdAt": made[1].created_at,
        "completedAt": DONE,
    }


def test_the_ledger_comes_in_pages_to_who_asks_for_them_and_is_refused_whole_when_it_is_too_large(
    here: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [here.record(number) for number in range(130)]
    here.keep(*made)
    whole = here.admin.call("GET", f"{ERASURES}/export").json["data"]
    assert len(whole) == 130
    data, query = [], {"limit": 60}
    for _ in range(3):
        page = here.admin.call("GET", f"{ERASURES}/export", query=query).json
        data += page["data"]
        query = {"limit": 60, "cursor": page.get("nextCursor", "")}
    assert (data, page["hasMore"]) == (whole, False)

    monkeypatch.setattr(wire, "ANSWER_BYTES", 40_000)
    refused = here.admin.call("GET", f"{ERASURES}/export")
    assert (refused.status, refused.code) == (413, "request-too-large")
    assert here.admin.call("GET", f"{ERASURES}/export", query={"limit": 60}).status == 200
    assert here.admin.call("GET", f"{ERASURES}/export", query={"limit": 0}).status == 400
    assert here.admin.call("GET", f"{ERASURES}/export", query={"cursor": "x"}).status == 400
    other = here.admin.call("GET", ERASURES, query={"limit": 1}).json["nextCursor"]
    assert here.admin.call("GET", f"{ERASURES}/export", query={"cursor": other}).status == 400


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"selectorHmac": "AB" * 32}, "validation-failed"),
        ({"selectorHmac": "ab"}, "validation-failed"),
        ({"id": "1"}, "validation-failed"),
        ({"id": "../../x"}, "validation-failed"),
        ({"selectorKind": "everybody"}, "validation-failed"),
        ({"status": "done"}, "validation-failed"),
        ({"createdAt": "2026-01-01T00:00:00"}, "validation-failed"),
        ({"requestedBy": ""}, "bad-input"),
        ({"keyId": None}, "bad-input"),
        ({"selector": {"factId": "f"}}, "unknown-field"),
    ],
)
def test_what_is_no_ledger_is_refused_and_nothing_is_kept_of_it(
    here: Deployment, change: dict[str, Any], code: str
) -> None:
    here.keep(here.record())
    (entry,) = here.admin.call("GET", f"{ERASURES}/export").json["data"]
    assert here.admin.call("POST", f"{ERASURES}/replay", {"erasures": [entry]}).status == 200

    refused = here.admin.call("POST", f"{ERASURES}/replay", {"erasures": [entry | change]})

    assert (refused.status, refused.code) == (400, code), refused.text
    assert here.services.erasures.replaying.replays.waiting(here.tenant) == []


def test_a_replay_says_of_each_erasure_what_became_of_it(here: Deployment) -> None:
    fact = {"type": "t", "content": "words", "subjects": [{"kind": "external", "id": "ann"}]}
    written = here.admin.call("POST", "/v1/memory/facts", fact).json
    here.keep(here.record())
    (entry,) = here.admin.call("GET", f"{ERASURES}/export").json["data"]
    later = entry | {"id": str(uuid.uuid4()), "createdAt": "2999-01-01T00:00:00Z"}
    foreign = entry | {"id": str(uuid.uuid4()), "keyId": "k9"}
    body = {"erasures": [entry, later, foreign]}

    answer = here.admin.call("POST", f"{ERASURES}/replay", body, key="one").json

    assert (answer["replayed"], answer["restored"]) == ([later["id"]], [])
    assert [(each["id"], each["reason"]) for each in answer["unmatched"]] == [
        (entry["id"], "nothing-matched"),
        (foreign["id"], "unknown-key"),
    ]
    assert answer["unmatched"][1]["message"] == REASONS["unknown-key"]
    record = here.admin.call("GET", f"{ERASURES}/{later['id']}").json
    assert (record["status"], record["selector"]) == (
        "pending",
        {"subject": {"kind": "external", "id": "ann"}},
    )
    assert here.admin.call("GET", f"/v1/memory/facts/{written['id']}").status == 404
    lost = here.admin.call("GET", f"{ERASURES}/{foreign['id']}").json
    assert [warning["code"] for warning in lost["warnings"]] == ["unknown-key"]

    again = here.admin.call("POST", f"{ERASURES}/replay", body, key="one")
    assert (again.status, again.json) == (200, answer)
    other = here.admin.call("POST", f"{ERASURES}/replay", {"erasures": [entry]}, key="one")
    assert (other.status, other.code) == (409, "idempotency-key-body-mismatch")


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_a_ledger_of_up_to_ten_thousand_is_answered_whole_and_one_more_is_refused(
    here: Deployment, count: int
) -> None:
    here.keep(here.record())
    (entry,) = here.admin.call("GET", f"{ERASURES}/export").json["data"]
    many = [entry | {"id": str(uuid.uuid4()), "keyId": "k9"} for _ in range(10_001)]
    refused = here.admin.call("POST", f"{ERASURES}/replay", {"erasures": many})
    assert (refused.status, refused.code) == (400, "validation-failed")

    answer = here.admin.call("POST", f"{ERASURES}/replay", {"erasures": many[:count]})

    assert answer.status == 200, answer.text[:300]
    assert len(answer.json["unmatched"]) == count


def test_where_there_are_no_ledger_keys_an_erasure_says_that_no_replay_finds_it(
    ministack: Aws, tmp_path: Path
) -> None:
    here = Deployment(ministack, tmp_path)
    here.services.erasures.__dict__["requesting"] = replace(
        here.services.erasures.requesting, hash_of=lambda *_: None
    )
    made = here.admin.call("POST", ERASURES, {"conversationId": "c"})
    assert made.status == 202, made.text
    assert (made.json["matchable"], [each["code"] for each in made.json["warnings"]]) == (
        False,
        ["erasure-unmatchable"],
    )


def test_a_fact_whose_record_was_changed_in_the_store_is_refused_by_its_id_and_stays(
    here: Deployment,
) -> None:
    fact = here.admin.call("POST", "/v1/memory/facts", {"type": "note", "content": "words"}).json["id"]
    client, table = here.services._client("dynamodb"), here.settings.facts_table
    where = {"pk": {"S": f"{here.tenant}|{fact}"}, "sk": {"S": "h"}}
    broken = client.get_item(TableName=table, Key=where)["Item"] | {"d": {"S": "no JSON"}}
    client.put_item(TableName=table, Item=broken)
    for query in ({}, {"dryRun": "true"}):
        refused = here.admin.call("POST", ERASURES, {"factId": fact}, query=query)
        assert (refused.status, refused.code) == (409, "fact-unreadable")
        assert refused.json["error"]["details"] == {"factId": fact}
    assert client.get_item(TableName=table, Key=where)["Item"] == broken
    assert here.admin.call("GET", ERASURES).json["data"] == []
