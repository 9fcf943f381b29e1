"""Replays, parallel twins and lost replies: one write, and its first answer every time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import botocore.endpoint
import pytest
from botocore.exceptions import ReadTimeoutError
from support.counting import stored_items
from support.emulators import Aws
from support.fakes import FakeClock, fake_services
from support.gateway import Gateway, Reply
from support.principals import TenantService

from factbook.domain.errors import StorageUnavailable

NOTE = {"type": "note", "content": {"text": "x"}}
FACTS = "/v1/memory/facts"


def write(caller: Gateway, key: str | None = "k", body: Any = None) -> Reply:
    return caller.call("POST", FACTS, NOTE if body is None else body, key=key)


def at_once(call: Any, times: int = 20) -> list[Reply]:
    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(lambda _: call(), range(times)))


def listed(caller: Gateway) -> list[str]:
    return [fact["id"] for fact in caller.call("GET", FACTS, query={"limit": 100}).json["data"]]


def test_twenty_parallel_writes_with_one_key_make_one_fact_and_twenty_equal_answers(
    service: TenantService, ministack: Aws
) -> None:
    replies = at_once(lambda: write(service.admin))
    assert {reply.status for reply in replies} == {201}
    assert len({reply.text for reply in replies}) == 1
    assert stored_items(ministack, service.tenant) == 1


def test_twenty_parallel_large_writes_with_one_key_keep_one_object(
    service: TenantService, ministack: Aws
) -> None:
    body = {"type": "note", "content": "x" * 70_000}
    replies = at_once(lambda: write(service.admin, body=body))
    assert len({reply.text for reply in replies}) == 1
    fact = replies[0].json
    assert stored_items(ministack, service.tenant) == 2
    assert service.admin.call("GET", f"{FACTS}/{fact['id']}/content").status == 307


def test_a_refused_write_is_refused_also_when_its_object_cannot_be_removed(service: TenantService) -> None:
    assert write(service.admin).status == 201
    kept = service.services.memory

    class Stubborn:
        def __getattr__(self, name: str) -> Any:
            return getattr(kept.blobs, name)

        def discard(self, ref: str) -> None:
            tried.append(ref)
            raise StorageUnavailable

    tried: list[str] = []
    service.services.__dict__["memory"] = replace(kept, blobs=Stubborn())
    refused = write(service.admin, body={"type": "note", "content": "y" * 70_000})
    assert (refused.status, refused.code) == (409, "idempotency-key-body-mismatch")
    assert len(tried) == 1


def test_the_same_key_of_another_principal_or_route_is_another_write(service: TenantService) -> None:
    ann, bob = service.of("ann", writes=["p"]), service.of("bob", writes=["p"])
    job = service.of("ann", "service", writes=["p"])
    body = {**NOTE, "scope": {"projectId": "p"}}
    ids = [write(caller, body=body).json["id"] for caller in (ann, bob, job)]
    batch = ann.call("POST", f"{FACTS}/batch", {"items": [body]}, key="k").json["results"][0]["fact"]["id"]
    assert len({*ids, batch}) == 4
    assert (
        write(service.of("ann", writes=["p"]), body=body).json["id"] == ids[0]
    )  # another token of the same person


def test_a_key_is_no_ones_in_another_tenant(service: TenantService) -> None:
    other = TenantService(service.services, service.tenant + "|x")
    assert write(service.admin).json["id"] != write(other.admin).json["id"]


def test_without_a_key_every_write_is_a_new_one(admin: Gateway) -> None:
    assert len({write(admin, key=None).json["id"] for _ in range(3)}) == 3


def test_a_replayed_write_answers_as_the_first_time_whatever_happened_since(service: TenantService) -> None:
    first = write(service.admin)
    fact = first.json["id"]
    assert write(service.admin).text == first.text
    for number in range(20):  # more than the marks a head keeps
        assert service.admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": number}).status == 200
        assert write(service.admin).text == first.text
    service.admin.call("DELETE", f"{FACTS}/{fact}")
    assert write(service.admin).text == first.text
    assert write(service.admin, body={"type": "note", "content": 2}).code == "idempotency-key-body-mismatch"
    assert listed(service.admin) == []


def test_a_replayed_supersede_is_one_revision_and_answers_as_the_first_time(service: TenantService) -> None:
    admin = service.admin
    fact = write(admin).json["id"]
    replies = at_once(lambda: admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}, key="s"))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.text for reply in replies}) == 1
    assert replies[0].json["version"] == 2
    verified = admin.call("POST", f"{FACTS}/{fact}/verify", {}, key="s")
    assert verified.json["version"] == 3
    for number in range(13):
        admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": number})
    assert admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}, key="s").text == replies[0].text
    assert admin.call("POST", f"{FACTS}/{fact}/verify", {}, key="s").text == verified.text
    admin.call("DELETE", f"{FACTS}/{fact}")
    assert admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}, key="s").text == replies[0].text
    versions = [each["version"] for each in admin.call("GET", f"{FACTS}/{fact}/revisions").json["data"]]
    assert versions == list(range(16, 0, -1))


def test_a_replay_comes_before_the_version_is_checked(admin: Gateway) -> None:
    fact = write(admin).json["id"]
    body = {"content": 2, "expectVersion": 1}
    first = admin.call("POST", f"{FACTS}/{fact}/supersede", body, key="s")
    assert admin.call("POST", f"{FACTS}/{fact}/supersede", body, key="s").text == first.text
    assert admin.call("POST", f"{FACTS}/{fact}/supersede", body, key="t").code == "fact-changed"


@pytest.mark.parametrize("other", [{"content": 3}, {"content": 2, "observedAt": "2026-01-01T00:00:00Z"}])
def test_the_same_key_with_another_body_is_refused_and_writes_nothing(admin: Gateway, other: Any) -> None:
    fact = write(admin).json["id"]
    assert (
        write(admin, body={"type": "note", "content": {"text": "y"}}).code == "idempotency-key-body-mismatch"
    )
    admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}, key="s")
    refused = admin.call("POST", f"{FACTS}/{fact}/supersede", other, key="s")
    assert (refused.status, refused.code) == (409, "idempotency-key-body-mismatch")
    assert admin.call("GET", f"{FACTS}/{fact}").json["version"] == 2


def test_only_a_success_is_remembered(admin: Gateway) -> None:
    fact = write(admin).json["id"]
    refused = admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2, "expectVersion": 7}, key="s")
    assert refused.code == "fact-changed"
    assert admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}, key="s").status == 200
    assert write(admin, "w", {"type": "note"}).status == 400
    assert write(admin, "w").status == 201


def test_a_replay_shows_nothing_of_a_fact_that_expired() -> None:
    clock = FakeClock()
    service = TenantService(fake_services(clock), "t")
    body = {**NOTE, "retention": {"keepDays": 1}}
    fact = write(service.admin, body=body).json["id"]
    service.admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}, key="s")
    clock.advance(days=1)
    assert write(service.admin, body=body).code == "fact-not-found"
    assert (
        service.admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}, key="s").code
        == "fact-not-found"
    )


def test_a_replayed_batch_writes_each_item_once(admin: Gateway) -> None:
    items = [{"type": "note", "content": number} for number in range(10)]
    items[3] = {"type": "note"}
    first = admin.call("POST", f"{FACTS}/batch", {"items": items}, key="b")
    assert [result["status"] for result in first.json["results"]] == [201] * 3 + [400] + [201] * 6
    assert admin.call("POST", f"{FACTS}/batch", {"items": items}, key="b").text == first.text
    assert len(listed(admin)) == 9
    others = [{"type": "note", "content": -1}] * 3
    changed = admin.call("POST", f"{FACTS}/batch", {"items": others}, key="b")
    assert len(listed(admin)) == 9
    assert {result["error"]["code"] for result in changed.json["results"]} == {
        "idempotency-key-body-mismatch"
    }


def test_a_batch_sent_again_with_more_or_repaired_items_writes_those_and_replays_the_others(
    admin: Gateway,
) -> None:
    def send(key: str, *items: Any) -> list[Any]:
        return list(admin.call("POST", f"{FACTS}/batch", {"items": items}, key=key).json["results"])

    a, b, c = ({"type": "note", "content": number} for number in range(3))
    first = send("more", a, b)
    again = send("more", a, b, c)
    assert again[:2] == first
    assert again[2]["status"] == 201
    refused, written = send("repaired", {"type": "note"}, b)
    assert refused["status"] == 400
    assert [result["status"] for result in send("repaired", a, b)] == [201, 201]
    assert send("repaired", a, b)[1] == written
    named = [{**a, "key": "x"}, {**b, "key": "y"}]
    first = send("named", *named)
    assert send("named", *named, {**c, "key": "z"})[:2] == first
    assert send("named", {**c, "key": "x"})[0]["status"] == 409
    assert len(listed(admin)) == 8


def test_an_upload_that_is_asked_for_again_has_the_same_reference(admin: Gateway) -> None:
    def ask(key: str | None, size: int = 3) -> str:
        body = {"size": size, "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}
        return str(admin.call("POST", "/v1/memory/blobs", body, key=key).json["contentRef"])

    assert ask("u") == ask("u")
    assert len({ask("u"), ask("v"), ask("u", 4), ask(None), ask(None)}) == 5


def test_a_replayed_token_creation_is_withheld_and_makes_no_second_token(admin: Gateway) -> None:
    body = {"actor": {"kind": "user", "id": "ann"}}
    first = admin.call("POST", "/v1/access/tokens", body, key="t")
    assert first.status == 201
    for again in (body, {"actor": {"kind": "user", "id": "bob"}}):
        refused = admin.call("POST", "/v1/access/tokens", again, key="t")
        assert (refused.status, refused.code) == (409, "idempotency-key-replay-withheld")
        assert "fb_" not in refused.text
    made = [each["id"] for each in admin.call("GET", "/v1/access/tokens").json["data"]]
    assert made.count(first.json["id"]) == 1
    replies = at_once(lambda: admin.call("POST", "/v1/access/tokens", body, key="u"))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 19


@pytest.mark.parametrize("key", ["", "x" * 256])
@pytest.mark.parametrize("path", [FACTS, f"{FACTS}/batch"])
def test_a_key_that_is_empty_or_too_long_is_refused(admin: Gateway, key: str, path: str) -> None:
    body = NOTE if path == FACTS else {"items": [NOTE]}
    assert admin.call("POST", path, body, key=key).code == "bad-input"
    assert listed(admin) == []


# -- parallel writers of one fact


def test_of_twenty_parallel_supersedes_of_one_version_one_wins_and_no_version_is_lost(admin: Gateway) -> None:
    fact = write(admin).json["id"]
    body = {"content": 2, "expectVersion": 1}
    replies = at_once(lambda: admin.call("POST", f"{FACTS}/{fact}/supersede", body))
    assert sorted(reply.status for reply in replies) == [200] + [409] * 19
    refusals = [reply.json["error"] for reply in replies if reply.status == 409]
    assert {(each["code"], each["details"]["currentVersion"]) for each in refusals} == {("fact-changed", 2)}
    assert admin.call("GET", f"{FACTS}/{fact}").json["version"] == 2


def test_parallel_changes_without_a_version_all_land_or_ask_to_retry_and_leave_no_gap(admin: Gateway) -> None:
    fact = write(admin).json["id"]
    replies = at_once(lambda: admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2}), 8)
    assert {reply.status for reply in replies} <= {200, 429}
    landed = sorted(reply.json["version"] for reply in replies if reply.status == 200)
    assert landed == list(range(2, len(landed) + 2))
    assert all(int(reply.headers["Retry-After"]) >= 1 for reply in replies if reply.status == 429)
    revisions = admin.call("GET", f"{FACTS}/{fact}/revisions").json["data"]
    assert [each["version"] for each in revisions] == list(range(len(landed) + 1, 0, -1))


def test_parallel_deletes_close_a_fact_once(admin: Gateway) -> None:
    fact = write(admin).json["id"]
    replies = at_once(lambda: admin.call("DELETE", f"{FACTS}/{fact}"), 8)
    assert sorted(reply.status for reply in replies) == [200] + [404] * 7


# -- the store did it, but its answer got lost


@contextmanager
def lost_replies(client: Any, operation: str, times: int = 1) -> Iterator[list[str]]:
    """The first `times` requests of an operation reach the store; the caller sees a time-out."""
    lost: list[str] = []

    def send_then_lose(request: Any, **_: Any) -> None:
        if len(lost) < times:
            lost.append(operation)
            client._endpoint.http_session.send(request)
            raise ReadTimeoutError(endpoint_url=request.url)

    event = f"before-send.dynamodb.{operation}"
    client.meta.events.register(event, send_then_lose)
    try:
        yield lost
    finally:
        client.meta.events.unregister(event, send_then_lose)


@pytest.mark.parametrize("content", ["x", "x" * 70_000], ids=["inline", "object"])
def test_a_write_whose_reply_was_lost_is_answered_once_with_its_content_kept(
    service: TenantService, ministack: Aws, content: str
) -> None:
    with lost_replies(service.services._dynamodb, "PutItem") as lost:
        written = write(service.admin, key=None, body={"type": "note", "content": content})
    assert lost == ["PutItem"]
    assert (written.status, written.json["version"]) == (201, 1)
    assert stored_items(ministack, service.tenant) == 1 + len(content) // 70_000
    assert service.admin.call("GET", f"{FACTS}/{written.json['id']}").text == written.text


@pytest.mark.parametrize("content", ["x", "x" * 70_000], ids=["inline", "object"])
def test_a_supersede_whose_reply_was_lost_makes_one_revision(
    service: TenantService, ministack: Aws, content: str
) -> None:
    fact = write(service.admin).json["id"]
    with lost_replies(service.services._dynamodb, "TransactWriteItems") as lost:
        answer = service.admin.call(
            "POST", f"{FACTS}/{fact}/supersede", {"content": content, "expectVersion": 1}
        )
    assert lost == ["TransactWriteItems"]
    assert (answer.status, answer.json["version"]) == (200, 2)
    assert stored_items(ministack, service.tenant) == 2 + len(content) // 70_000
    assert service.admin.call("GET", f"{FACTS}/{fact}").text == answer.text


def test_a_delete_whose_reply_was_lost_answers_the_closed_revision(service: TenantService) -> None:
    fact = write(service.admin).json["id"]
    with lost_replies(service.services._dynamodb, "PutItem") as lost:
        answer = service.admin.call("DELETE", f"{FACTS}/{fact}")
    assert lost == ["PutItem"]
    assert (answer.status, answer.json["invalidationReason"]) == (200, "deleted")
    assert service.admin.call("DELETE", f"{FACTS}/{fact}").status == 404


def test_a_store_that_never_answers_is_503_and_the_retry_finds_what_was_written(
    service: TenantService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(botocore.endpoint, "time", SimpleNamespace(sleep=lambda _: None))
    with lost_replies(service.services._dynamodb, "PutItem", times=100) as lost:
        refused = write(service.admin)
    assert len(lost) == 3
    assert (refused.status, refused.code, refused.headers["Retry-After"]) == (503, "storage-unavailable", "1")
    (fact,) = service.admin.call("GET", FACTS).json["data"]
    assert write(service.admin).json == fact
