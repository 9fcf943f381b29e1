"""A batch begins nothing that its invocation has no time left for, and is not in its own way."""

import json
import time
from types import SimpleNamespace
from typing import Any

from support.fakes import FakeClock, fake_services
from support.principals import TenantService

from factbook.api.app import RESERVE_SECONDS
from factbook.ports.facts.store import Head

BATCH = "/v1/memory/facts/batch"


def test_items_that_the_time_is_too_short_to_begin_are_told_to_be_sent_again() -> None:
    admin = TenantService(fake_services(), "t").admin
    headers = {"authorization": "Bearer " + admin.token, "idempotency-key": "k"}
    body = json.dumps({"items": [{"type": "note", "content": number} for number in range(20)]})

    def send(seconds: float) -> list[Any]:
        app, event = admin._event("POST", BATCH, "", headers, body)
        context = SimpleNamespace(
            get_remaining_time_in_millis=lambda: 1_000 * seconds,
            function_name="write",
            memory_limit_in_mb=1,
            invoked_function_arn="arn",
            aws_request_id="r",
        )
        return list(json.loads(app(event, context)["body"])["results"])

    facts: Any = admin.services.memory.facts
    create = facts.create

    def slow(head: Head) -> Head | None:
        time.sleep(1.1)
        return create(head)

    facts.create = slow
    late = [each for each in send(RESERVE_SECONDS + 1) if each["status"] != 201]
    facts.create = create
    assert late
    assert {(each["status"], each["error"]["code"]) for each in late} == {(503, "storage-unavailable")}
    assert [each["status"] for each in send(29)] == [201] * 20


def test_items_of_one_fact_are_written_in_their_order() -> None:
    admin = TenantService(fake_services(), "t").admin
    item = {"type": "note", "key": "k", "onExisting": "supersede"}
    items = [{**item, "content": number} for number in range(100)]
    results = admin.call("POST", BATCH, {"items": items}).json["results"]
    assert [each["fact"]["version"] for each in results] == list(range(1, 101))
    assert results[-1]["fact"]["content"] == 99


def test_the_subjects_of_all_revisions_leave_room_to_verify_and_end_the_fact() -> None:
    admin = TenantService(fake_services(), "t").admin
    fact = (
        "/v1/memory/facts/"
        + admin.call("POST", "/v1/memory/facts", {"type": "note", "content": 1}).json["id"]
    )
    for number in range(60):
        subjects = [
            {"kind": "external", "id": (f"{number}-{each}-" + "字" * 256)[:256]} for each in range(20)
        ]
        reply = admin.call("POST", f"{fact}/supersede", {"subjects": subjects})
        if reply.status != 200:
            break
    assert (reply.status, reply.code) == (413, "request-too-large")
    assert admin.call("POST", f"{fact}/verify", {}).status == 200
    assert admin.call("DELETE", fact).status == 200


def test_a_refusal_repeats_no_text_that_can_be_no_id() -> None:
    admin = TenantService(fake_services(), "t").admin
    reply = admin.call("GET", "/v1/memory/facts/" + "x" * 8_000)
    assert (reply.status, len(reply.text) < 500) == (404, True)


def test_a_page_as_of_an_instant_reads_a_bounded_number_of_revisions_and_goes_on() -> None:
    clock = FakeClock()
    admin = TenantService(fake_services(clock), "t").admin
    ids = [admin.call("POST", "/v1/memory/facts", {"type": "n", "content": 0}).json["id"] for _ in range(100)]
    clock.advance(seconds=1)
    instant = clock.instant
    clock.advance(seconds=1)
    for fact_id in ids:
        for number in range(15):
            admin.call("POST", f"/v1/memory/facts/{fact_id}/supersede", {"content": number})
    facts: Any = admin.services.memory.facts
    read, reads = facts.revision, list[int]()
    facts.revision = lambda head, version: (reads.append(version), read(head, version))[1]
    query = {"limit": 100, "asOf": instant}
    page = admin.call("GET", "/v1/memory/facts", query=query).json
    assert (page["hasMore"], len(reads) <= 300) == (True, True)
    found = page["data"]
    while page["hasMore"]:
        page = admin.call("GET", "/v1/memory/facts", query={**query, "cursor": page["nextCursor"]}).json
        found += page["data"]
    assert sorted(fact["id"] for fact in found) == sorted(ids)
    assert {fact["version"] for fact in found} == {1}
