"""Walks over the data plane while others write, large pages, and lists as of an instant."""

import json
from typing import Any

import pytest
from support.gateway import Gateway
from support.principals import TenantService

FACTS = "/v1/memory/facts"
FOUR_MEGABYTES = 4 * 1024 * 1024


def write_many(caller: Gateway, count: int, **fields: Any) -> list[str]:
    ids: list[str] = []
    while len(ids) < count:
        items = [{"type": "note", "content": number} | fields for number in range(min(100, count - len(ids)))]
        results = caller.call("POST", f"{FACTS}/batch", {"items": items}).json["results"]
        ids += [result["fact"]["id"] for result in results]
    return ids


def pages(caller: Gateway, **query: Any) -> list[Any]:
    """The pages of a walk, each checked for its form."""
    found = []
    cursor = ""
    while True:
        reply = caller.call("GET", FACTS, query=query | {"cursor": cursor})
        assert reply.status == 200, reply.text
        assert len(reply.text.encode()) <= FOUR_MEGABYTES
        page = reply.json
        assert ("nextCursor" in page) is page["hasMore"]
        found.append(page["data"])
        if not page["hasMore"]:
            return found
        cursor = page["nextCursor"]


@pytest.mark.parametrize("scope", [{}, {"projectId": "p"}], ids=["tenant", "project"])
def test_257_facts_are_each_walked_once_while_others_come_and_go(
    service: TenantService, scope: dict[str, str]
) -> None:
    reader = service.of("ann", reads=["p"])
    originals = write_many(service.admin, 257, scope=scope)
    doomed = write_many(service.admin, 20, scope=scope)
    seen: list[str] = []
    sizes = []
    cursor = ""
    while True:
        page = reader.call("GET", FACTS, query={"limit": 50, "cursor": cursor}).json
        seen += [fact["id"] for fact in page["data"]]
        sizes.append(len(page["data"]))
        if not page["hasMore"]:
            break
        cursor = page["nextCursor"]
        write_many(service.admin, 7, scope=scope)
        for fact_id in doomed[:4]:
            service.admin.call("DELETE", f"{FACTS}/{fact_id}")
        service.admin.call("POST", f"{FACTS}/{originals[0]}/supersede", {"content": "moved"})
        del doomed[:4]
    assert [seen.count(fact_id) for fact_id in originals] == [1] * 257
    assert len(seen) == len(set(seen))
    assert max(sizes) == 50


def test_a_hundred_facts_of_64_kilobytes_come_in_short_pages_below_4_megabytes(
    service: TenantService,
) -> None:
    content = "x" * (64 * 1024 - 2)
    ids = []
    for _ in range(2):
        ids += write_many(service.admin, 50, content=content)
    found = pages(service.admin, limit=100)
    assert sorted(fact["id"] for page in found for fact in page) == sorted(ids)
    assert {fact["content"] for page in found for fact in page} == {content}
    assert len(found) == 2


def test_pages_stay_below_4_megabytes_when_every_character_is_escaped(service: TenantService) -> None:
    content = '"\\' * (16 * 1024 - 8)
    for _ in range(3):
        write_many(service.admin, 20, content=content)
    cursor, count = "", 0
    while True:
        reply = service.admin.call("GET", FACTS, query={"limit": 100, "cursor": cursor})
        # A function's answer is itself a JSON text, in which a body's quotes and backslashes are escaped again.
        assert len(json.dumps(reply.text, ensure_ascii=False).encode()) <= FOUR_MEGABYTES
        count += len(reply.json["data"])
        if not reply.json["hasMore"]:
            break
        cursor = reply.json["nextCursor"]
    assert count == 60


def test_revisions_past_4_megabytes_come_in_pages_whole_and_newest_first(admin: Gateway) -> None:
    content = "x" * 65_000
    fact = admin.call("POST", FACTS, {"type": "note", "content": content}).json["id"]
    for _ in range(69):
        admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": content})
    versions: list[int] = []
    cursor, count = "", 0
    while True:
        reply = admin.call("GET", f"{FACTS}/{fact}/revisions", query={"cursor": cursor})
        assert len(reply.text.encode()) <= FOUR_MEGABYTES
        assert all(each["content"] == content for each in reply.json["data"])
        versions += [each["version"] for each in reply.json["data"]]
        count += 1
        if not reply.json["hasMore"]:
            break
        cursor = reply.json["nextCursor"]
    assert versions == list(range(70, 0, -1))
    assert count == 2


def test_a_list_as_of_an_instant_holds_what_was_current_then_deleted_since_or_not(
    service: TenantService,
) -> None:
    admin, reader = service.admin, service.of("ann", reads=["p"])
    scope = {"projectId": "p"}
    kept, gone, changed = write_many(admin, 3, scope=scope)
    then = max(fact["updatedAt"] for fact in pages(admin)[0])
    admin.call("DELETE", f"{FACTS}/{gone}")
    admin.call("POST", f"{FACTS}/{changed}/supersede", {"content": "new"})
    later = write_many(admin, 1, scope=scope)[0]
    for caller in (admin, reader):
        now = {fact["id"]: fact["version"] for page in pages(caller) for fact in page}
        assert now == {kept: 1, changed: 2, later: 1}
        for limit in (1, 2, 100):
            past = {fact["id"]: fact for page in pages(caller, asOf=then, limit=limit) for fact in page}
            assert {each: fact["version"] for each, fact in past.items()} == {kept: 1, changed: 1, gone: 1}
            assert past[gone]["invalidationReason"] == "deleted"
        assert pages(caller, asOf="2020-01-01T00:00:00Z") == [[]]


def test_a_walk_ends_with_a_page_that_says_so(service: TenantService) -> None:
    write_many(service.admin, 10)
    assert [len(page) for page in pages(service.admin, limit=5)][:2] == [5, 5]
    assert sum(len(page) for page in pages(service.admin, limit=5)) == 10


@pytest.mark.parametrize("content", ["x" * 65_000, '"\\' * 12_000], ids=["plain", "escaped"])
def test_a_batch_is_answered_below_4_megabytes_and_all_of_it_is_kept(
    service: TenantService, content: str
) -> None:
    body = {"items": [{"type": "note", "content": content}] * 64}
    reply = service.admin.call("POST", f"{FACTS}/batch", body, key="b")
    assert len(json.dumps(reply.text, ensure_ascii=False).encode()) <= FOUR_MEGABYTES
    facts = [result["fact"] for result in reply.json["results"]]
    assert len(facts) == 64
    assert 0 < sum("content" in fact for fact in facts) < 64
    assert service.admin.call("POST", f"{FACTS}/batch", body, key="b").text == reply.text
    assert service.admin.call("GET", f"{FACTS}/{facts[-1]['id']}").json["content"] == content
