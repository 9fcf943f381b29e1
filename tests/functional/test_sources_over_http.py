"""Mirrored facts over the API: a source on a socket that agrees, changes, fails and dies, and what each caller gets."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.emulators import Aws
from support.mirrors import FACTS, Mirrors, json_reply, mirrors, reply
from support.source_server import Exchange

from factbook.domain import times
from factbook.ports.sources.stores import Wanted


@pytest.fixture
def world(ministack: Aws, tenant: str) -> Iterator[Mirrors]:
    with mirrors(ministack, tenant) as made:
        yield made


def stale(world: Mirrors) -> None:
    world.clock.advance(seconds=61)


def test_a_reader_gets_what_the_source_says_now_and_the_log_says_where_it_came_from(world: Mirrors) -> None:
    fact = world.mirror("/price", {"price": 1})
    world.says("/price", {"price": 2}, etag='"two"', cache_control="max-age=60")
    assert "stale" not in world.read(fact["id"]).json
    assert world.server.requests == [], "a fresh one asks nobody"

    stale(world)
    changed = world.read(fact["id"]).json

    assert (changed["version"], changed["content"], changed["trust"]) == (2, {"price": 2}, "asserted")
    assert changed["attributedTo"] == {"kind": "service", "id": "refresh"}
    assert changed["source"]["freshness"] == {
        "ttlSeconds": 60,
        "lastVerifiedAt": world.clock.now(),
        "etag": '"two"',
    }
    (cause,) = changed["causedByLogId"]
    entry = world.admin.call("GET", f"/v1/memory/log/{cause}").json
    assert (entry["kind"], entry["runId"], entry["actor"]) == (
        "tool-result",
        f"_refresh:{fact['id']}",
        "service:refresh",
    )
    assert entry["payload"]["contentHash"] == changed["contentHash"]
    nodes = world.admin.call("GET", f"{FACTS}/{fact['id']}/provenance").json["nodes"]
    assert [node["node"] for node in nodes] == ["fact", "log-entry", "fact"]


def test_a_source_that_answers_304_is_asked_with_its_tag_and_moves_the_time_alone(world: Mirrors) -> None:
    fact = world.mirror("/price", {"price": 1})
    world.says("/price", {"price": 2}, etag='"two"')
    stale(world)
    first = world.read(fact["id"]).json
    world.says("/price", reply(304, etag='"two"'))
    stale(world)

    second = world.read(fact["id"]).json

    assert world.server.requests[-1].headers["if-none-match"] == '"two"'
    assert second["source"]["freshness"].pop("lastVerifiedAt") == world.clock.now()
    first["source"]["freshness"].pop("lastVerifiedAt")
    assert second == first
    assert len(world.read(fact["id"] + "/revisions").json["data"]) == 2


def test_a_source_that_dies_leaves_a_stale_fact_that_says_so_and_503_for_who_wants_a_fresh_one(
    world: Mirrors,
) -> None:
    fact = world.mirror("/price", {"price": 1})
    world.server.stop()
    stale(world)

    found = world.read(fact["id"])
    assert (found.status, found.json["content"]) == (200, {"price": 1})
    assert (found.json["stale"], found.json["staleReason"]) == (True, "source-unavailable")
    refused = world.read(fact["id"], requireFresh="true")
    assert (refused.status, refused.code) == (503, "source-unavailable")
    assert int(refused.headers["Retry-After"]) >= 8
    assert refused.json["error"]["details"] == {"factId": fact["id"], "staleReason": "source-unavailable"}
    assert "price" not in refused.text
    assert world.refresher.calls == 1, "and no reader asks again before it is time"


def test_a_fact_by_its_key_is_asked_for_like_one_by_its_id(world: Mirrors) -> None:
    world.mirror("/price", {"price": 1}, key="k")
    world.says("/price", {"price": 2})
    stale(world)
    query = {"type": "acme.price", "key": "k"}

    found = world.admin.call("GET", f"{FACTS}/by-key", query=query | {"requireFresh": "true"})
    assert (found.status, found.json["content"]) == (200, {"price": 2})
    world.server.stop()
    stale(world)
    assert world.admin.call("GET", f"{FACTS}/by-key", query=query).json["stale"] is True
    refused = world.admin.call("GET", f"{FACTS}/by-key", query=query | {"requireFresh": "true"})
    assert (refused.status, refused.code) == (503, "source-unavailable")


@pytest.mark.parametrize("query", [{"version": 1}, {"asOf": "2026-01-01T00:00:00Z"}])
def test_require_fresh_is_about_now(world: Mirrors, query: dict[str, Any]) -> None:
    fact = world.mirror()

    refused = world.read(fact["id"], requireFresh="true", **query)
    assert (refused.status, refused.code) == (400, "bad-input")


def test_lists_mark_what_is_stale_and_queue_it_and_the_queue_refreshes_it(world: Mirrors) -> None:
    fact = world.mirror("/price", {"price": 1})
    plain = world.admin.call("POST", FACTS, {"type": "acme.price", "content": 1}).json
    world.says("/price", {"price": 2})
    stale(world)

    listed = {each["id"]: each for each in world.admin.call("GET", FACTS).json["data"]}
    assert (listed[fact["id"]]["stale"], listed[fact["id"]]["staleReason"]) == (True, "ttl-passed")
    assert "stale" not in listed[plain["id"]]
    assert world.server.requests == []
    assert world.work() == []
    listed = {each["id"]: each for each in world.admin.call("GET", FACTS).json["data"]}
    assert (listed[fact["id"]]["content"], "stale" in listed[fact["id"]]) == ({"price": 2}, False)


def test_the_schedule_refreshes_what_is_due_and_an_administrator_may_ask_for_it(world: Mirrors) -> None:
    facts = [world.mirror(f"/{number}", "old", strategy="background")["id"] for number in range(3)]
    for number in range(3):
        world.says(f"/{number}", number)
    assert world.admin.call("POST", "/v1/memory/refresh/sweep", {}).json["queued"] == 0
    stale(world)

    swept = world.admin.call("POST", "/v1/memory/refresh/sweep", {})
    assert (swept.status, swept.json) == (202, {"startedAt": world.clock.now(), "queued": 3, "more": False})
    assert world.sweep() == 3
    assert world.work() == []

    assert [world.read(fact_id).json["content"] for fact_id in facts] == [0, 1, 2]
    assert len(world.server.requests) == 3, "however often it was queued: each was asked once"
    user = world.service.of("ann")
    assert user.call("POST", "/v1/memory/refresh/sweep", {}).code == "permission-denied"


def test_by_hand_says_what_happened(world: Mirrors) -> None:
    fact = world.mirror("/price", {"price": 1}, strategy="manual")["id"]
    world.says("/price", {"price": 2})

    answers = [world.refresh(fact).json for _ in range(2)]
    assert [answer["outcome"] for answer in answers] == ["changed", "unchanged"]
    assert answers[1]["fact"] == world.read(fact).json
    world.admin.call("POST", f"{FACTS}/{fact}/hold", {"reason": "a dispute"})
    world.says("/price", {"price": 3})
    held = world.refresh(fact).json
    assert (held["outcome"], held["fact"]["content"], held["fact"]["staleReason"]) == (
        "held",
        {"price": 2},
        "source-changed",
    )
    assert world.read(fact).json["stale"] is True


@pytest.mark.parametrize(
    ("answer", "status", "code", "last"),
    [
        (reply(500), 503, "source-unavailable", "source-unavailable"),
        (reply(429, retry_after="120"), 503, "source-unavailable", "source-unavailable"),
        (reply(404), 503, "source-unavailable", "source-refused"),
        (reply(200, b"\x00\x01", content_type="image/png"), 503, "source-unavailable", "source-refused"),
        (json_reply('{"a":1,"a":2}'), 503, "source-unavailable", "source-refused"),
        (json_reply("{"), 503, "source-unavailable", "source-unavailable"),
        (reply(302, location="http://169.254.169.254/latest"), 422, "source-refused", "source-refused"),
    ],
    ids=["500", "429", "404", "an image", "a key twice", "no JSON", "inward"],
)
def test_what_is_no_usable_answer_leaves_the_fact_as_it_is_and_is_told(
    world: Mirrors, answer: bytes, status: int, code: str, last: str
) -> None:
    fact = world.mirror("/price", {"price": 1})["id"]
    world.says("/price", answer)

    refused = world.refresh(fact)

    assert (refused.status, refused.code) == (status, code)
    assert ("Retry-After" in refused.headers) is (status == 503)
    if answer.startswith(b"HTTP/1.1 429"):
        assert int(refused.headers["Retry-After"]) >= 120
    found = world.read(fact, include="refreshState").json
    assert (found["version"], found["content"]) == (1, {"price": 1})
    state = found["refreshState"]
    assert (state["failures"], state["lastError"]) == (1, last)
    assert state["nextDueAt"] > world.clock.now()


def test_a_pointer_picks_a_part_and_text_becomes_a_string(world: Mirrors) -> None:
    part = world.mirror("/prices#/items/0/price")["id"]
    text = world.mirror("/note")["id"]
    world.says("/prices", {"items": [{"price": 7}]})
    world.says("/note", reply(200, "grüße".encode(), content_type="text/plain"))

    assert world.refresh(part).json["fact"]["content"] == 7
    assert world.refresh(text).json["fact"]["content"] == "grüße"


def test_an_address_that_nobody_opened_is_refused_and_no_byte_is_sent(world: Mirrors) -> None:
    inward = {"uri": "http://127.0.0.1:1/x"}
    fact = world.mirror(source=inward)["id"]

    refused = world.refresh(fact)
    assert (refused.status, refused.code) == (422, "source-refused")


def test_a_handler_that_there_is_not_is_said(world: Mirrors) -> None:
    fact = world.mirror(source={"refresh": {"strategy": "on-read", "handler": "lambda:nowhere"}})["id"]
    plain = world.admin.call("POST", FACTS, {"type": "t", "content": 1}).json["id"]

    for each in (fact, plain):
        assert world.refresh(each).code == "refresh-handler-missing"
    stale(world)
    assert world.read(fact).json["staleReason"] == "refresh-handler-missing"


def test_a_person_is_asked_in_reviews_and_a_verification_answers(world: Mirrors) -> None:
    fact = world.mirror(source={"kind": "user-input"})["id"]
    stale(world)

    assert world.read(fact).json["staleReason"] == "person-asked"
    (review,) = world.admin.call("GET", "/v1/memory/reviews").json["data"]
    assert (review["why"], review["since"], review["fact"]["id"]) == (["source"], world.clock.now(), fact)
    assert review["fact"]["stale"] is True
    assert world.admin.call("POST", f"{FACTS}/{fact}/verify", {}).status == 200
    assert world.admin.call("GET", "/v1/memory/reviews").json["data"] == []
    assert "stale" not in world.read(fact).json


def test_how_refreshing_goes_is_visible(world: Mirrors) -> None:
    fact = world.mirror("/price", strategy="background")["id"]
    due = times.add(world.clock.now(), seconds=60)
    assert world.read(fact, include="refreshState").json["refreshState"] == {
        "failures": 0,
        "nextDueAt": due,
        "circuit": "closed",
    }
    plain = world.admin.call("POST", FACTS, {"type": "t", "content": 1}).json["id"]
    assert "refreshState" not in world.read(plain, include="refreshState").json
    world.says("/price", reply(500))
    for _ in range(5):
        world.refresh(fact)
        world.clock.advance(milliseconds=300)  # the host's places rest
    state = world.read(fact, include="refreshState").json["refreshState"]
    assert (state["failures"], state["circuit"]) == (5, "open")
    assert world.refresh(fact).status == 503, "by hand it is tried all the same"
    assert len(world.server.requests) == 6


def test_dead_letters_are_shown_and_sent_again(world: Mirrors) -> None:
    fact = world.mirror("/price", strategy="background")["id"]
    world.says("/price", reply(403))
    stale(world)
    world.sweep()
    world.work()

    (letter,) = world.handler({"factbook": "dead-letters"}, None)["letters"]
    assert (letter["factId"], letter["why"], letter["detail"]) == (
        fact,
        "source-refused",
        "the source answers 403",
    )
    assert letter["host"] == world.server.netloc
    assert "price" not in json.dumps(letter)


def test_letters_go_back_to_the_queue(world: Mirrors) -> None:
    fact = world.mirror("/price", strategy="background")["id"]
    world.says("/price", reply(403))
    stale(world)
    world.sweep()
    world.work()
    world.says("/price", "mended")
    world.clock.advance(seconds=1)

    assert world.handler({"factbook": "resend"}, None) == {"sent": 1, "unreadable": 0}
    assert world.work() == []
    assert world.read(fact).json["content"] == "mended"
    assert world.handler({"factbook": "resend"}, None) == {"sent": 0, "unreadable": 0}


@pytest.mark.parametrize("body", ["no JSON", "7", '{"why": "due"}', "[" * 100_000], ids=lambda body: body[:9])
def test_a_message_that_nobody_can_read_is_left_to_the_queue_s_own_rule(world: Mirrors, body: str) -> None:
    fact = world.mirror(content="old", strategy="background")["id"]
    world.says("/", "new")
    stale(world)
    queue, url = world.services.sources.queue, world.services.settings.refresh_queue
    world.services._client("sqs").send_message(QueueUrl=url, MessageBody=body)
    assert queue.take(10) == []

    wanted = json.dumps(Wanted(world.service.tenant, fact, "due").to_json())
    records = [{"messageId": f"{place}", "body": each} for place, each in enumerate((body, wanted))]
    assert world.handler({"Records": records}, None) == {"batchItemFailures": [{"itemIdentifier": "0"}]}
    assert world.read(fact).json["content"] == "new"


def test_one_invocation_refreshes_what_is_queued_while_it_waits_for_a_slow_source(world: Mirrors) -> None:
    slow, *others = (world.mirror(f"/{number}", "old", strategy="background")["id"] for number in range(3))
    asked, answers = [], threading.Event()

    def at_once(exchange: Exchange) -> None:
        asked.append(exchange.request.target)
        if len(asked) == len(others):
            answers.set()
        exchange.send(json_reply('"new"'))

    def late(exchange: Exchange) -> None:
        answers.wait(4)  # the service waits for five
        exchange.send(json_reply('"new"'))

    for path, behaviour in (("/0", late), ("/1", at_once), ("/2", at_once)):
        world.says(path, behaviour)
    stale(world)
    sqs, url = world.services._client("sqs"), world.services.settings.refresh_queue
    wanted = [Wanted(world.service.tenant, each, "due") for each in (slow, *others)]
    world.services.sources.queue.send(wanted[1:])
    record = {"messageId": "m", "body": json.dumps(wanted[0].to_json()), "eventSource": "aws:sqs"}

    assert world.handler({"Records": [record]}, None) == {"batchItemFailures": []}
    assert answers.is_set(), "nobody waited for the slow one"
    assert [world.read(fact_id).json["content"] for fact_id in (slow, *others)] == ["new"] * 3
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (found["ApproximateNumberOfMessages"], found["ApproximateNumberOfMessagesNotVisible"]) == (
        "0",
        "0",
    )


def test_a_large_answer_is_kept_beside_the_table(world: Mirrors) -> None:
    fact = world.mirror("/long")["id"]
    world.says("/long", "x" * 100_000)

    done = world.refresh(fact).json
    assert (done["outcome"], done["fact"]["size"]) == ("changed", 100_002)
    assert "contentRef" in done["fact"]
    assert world.refresh(fact).json["outcome"] == "unchanged"


def test_a_personal_fact_s_log_is_sealed_and_its_own(world: Mirrors) -> None:
    ann = world.service.of("ann")
    fact = world.mirror("/mine", scope={"userId": "ann"})["id"]
    world.says("/mine", "new")
    stale(world)

    found = ann.call("GET", f"{FACTS}/{fact}").json
    assert found["content"] == "new"
    run = f"/v1/memory/runs/_refresh:{fact}/log"
    assert ann.call("GET", run).json["data"][0]["payload"]["factId"] == fact
    assert world.service.of("ben").call("GET", run).status == 404
    stored = ann.call("GET", run, query={"form": "stored"}).text
    assert "A256GCM" in stored


def test_a_time_in_the_future_and_an_unknown_field_are_refused(world: Mirrors) -> None:
    ahead = {"freshness": {"ttlSeconds": 60, "lastVerifiedAt": "2126-01-01T00:00:00Z"}}
    body = {
        "type": "t",
        "content": 1,
        "source": {"kind": "user-input", "refresh": {"strategy": "manual"}} | ahead,
    }
    refused = world.admin.call("POST", FACTS, body)
    assert (refused.status, refused.code) == (400, "validation-failed")
    assert refused.json["error"]["details"]["issues"][0]["path"] == "/source/freshness/lastVerifiedAt"
    fact = world.mirror()["id"]
    for path in (f"{FACTS}/{fact}/refresh", "/v1/memory/refresh/sweep"):
        assert world.admin.call("POST", path, {"now": True}).code == "unknown-field"
        assert world.admin.call("POST", path, query={"now": "1"}).code == "unknown-field"


def test_who_may_not_read_a_fact_hears_nothing_of_it_and_who_may_not_write_it_may_not_refresh_it(
    world: Mirrors,
) -> None:
    fact = world.mirror("/x", scope={"projectId": "p"})["id"]
    stranger, reader = world.service.of("sam"), world.service.of("rea", reads=["p"])

    path = f"{FACTS}/{fact}/refresh"
    assert stranger.call("POST", path, {}).code == "fact-not-found"
    assert reader.call("POST", path, {}).code == "permission-denied"
    assert world.server.requests == []
