"""Keyed facts: one current fact per key, its next versions, its reopening and its lives."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.counting import stored_items
from support.emulators import Aws
from support.fakes import FakeBlobs, FakeClock, FakeFacts, fake_services
from support.gateway import Gateway, Reply
from support.principals import TenantService, principal
from support.sdk_calls import recorded

from factbook.domain.facts.transitions import close
from factbook.domain.retrieval.searchable import index_version
from factbook.ports.facts.store import MARKS_KEPT, Head

FACTS, BLOBS, BY_KEY = "/v1/memory/facts", "/v1/memory/blobs", "/v1/memory/facts/by-key"
SCOPE = {"projectId": "p", "sessionId": "s"}
DAY = {"retention": {"keepDays": 1}}
BYTES = {"size": 3, "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}  # of b"foo"


def keyed(content: Any = 1, **more: Any) -> dict[str, Any]:
    return {"type": "note", "scope": SCOPE, "key": "k", "content": content, **more}


def put(caller: Gateway, content: Any = 1, operation: str | None = None, **more: Any) -> Reply:
    """Write the key, whatever is there."""
    return caller.call("POST", FACTS, keyed(content, onExisting="supersede", **more), key=operation)


def make(caller: Gateway, content: Any = 1, operation: str | None = None, **more: Any) -> Reply:
    """Write the key, which nobody has."""
    return caller.call("POST", FACTS, keyed(content, **more), key=operation)


def by_key(caller: Gateway, key: str = "k", scope: str = '{"projectId":"p","sessionId":"s"}') -> Reply:
    return caller.call("GET", BY_KEY, query={"type": "note", "scope": scope, "key": key})


def versions(caller: Gateway, fact_id: str) -> list[int]:
    answer = caller.call("GET", f"{FACTS}/{fact_id}/revisions").json
    assert answer["hasMore"] is False
    return [fact["version"] for fact in answer["data"]]


class Desk:
    """One tenant over the fakes, at a time of the test's own."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.service = TenantService(fake_services(self.clock), "t")
        self.admin = self.service.admin
        facts, blobs = self.service.services.memory.facts, self.service.services.memory.blobs
        assert isinstance(facts, FakeFacts)
        assert isinstance(blobs, FakeBlobs)
        self.facts, self.blobs = facts, blobs

    def head(self, fact_id: str) -> Head:
        head = self.facts.head("t", fact_id)
        assert head is not None
        return head

    def erase(self, fact_id: str) -> None:
        """As an erasure leaves it: the head, ended for good."""
        head = self.head(fact_id)
        gone = close(head.fact, "user:admin", self.clock.now(), "erased")
        assert self.facts.amend(head, head.followed_by(gone, head.marks[-1])) is None


@pytest.fixture
def desk() -> Desk:
    return Desk()


# -- one key, one fact


def test_a_key_is_written_once_and_found_in_its_exact_scope(desk: Desk) -> None:
    written = make(desk.admin)
    assert (written.status, written.json["version"], written.json["key"]) == (201, 1, "k")
    assert by_key(desk.admin).json == written.json
    refused = make(desk.admin, 2)
    assert (refused.status, refused.code) == (409, "fact-exists")
    assert refused.json["error"]["details"] == {"factId": written.json["id"], "currentVersion": 1}
    for other in ('{"projectId":"p"}', '{"projectId":"p","sessionId":"t"}', "{}"):
        assert by_key(desk.admin, scope=other).code == "fact-not-found"
    assert by_key(desk.admin, key="K").code == "fact-not-found"


def test_the_order_of_a_scopes_names_and_a_named_tenant_make_no_other_key(desk: Desk) -> None:
    fact = make(desk.admin, scope={"sessionId": "s", "projectId": "p", "tenantId": "t"}).json
    assert make(desk.admin).code == "fact-exists"
    assert by_key(desk.admin, scope='{"tenantId":"t","sessionId":"s","projectId":"p"}').json == fact


def test_type_scope_key_and_tenant_each_tell_facts_apart() -> None:
    services = fake_services()
    one, other = TenantService(services, "t").admin, TenantService(services, "u").admin
    bodies = [
        keyed(),
        keyed(type="remark"),
        keyed(key="l"),
        keyed(scope={}),
        keyed(scope={"projectId": "p"}),
        keyed(scope={"userId": "p", "sessionId": "s"}),
        keyed(type="note,k", key=","),
    ]
    written = [one.call("POST", FACTS, body) for body in bodies] + [other.call("POST", FACTS, keyed())]
    assert {reply.status for reply in written} == {201}
    assert len({reply.json["id"] for reply in written}) == len(bodies) + 1


def test_facts_without_a_key_are_not_touched_by_one(desk: Desk) -> None:
    plain = {"type": "note", "scope": SCOPE, "content": 1}
    ids = {desk.admin.call("POST", FACTS, plain).json["id"] for _ in range(2)} | {make(desk.admin).json["id"]}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"key": ""}, "bad-input"),
        ({"key": "x" * 257}, "validation-failed"),
        *(
            ({"key": f"a{bad}"}, "validation-failed")
            for bad in ("\n", "\x00", "\x1f", "\x7f", "\x85", "\x9f")
        ),
        ({"onExisting": "replace"}, "validation-failed"),
        ({"key": 1}, "validation-failed"),
    ],
)
def test_a_key_that_is_none_is_refused_wherever_it_stands(desk: Desk, more: Any, code: str) -> None:
    body = keyed(**more)
    assert desk.admin.call("POST", FACTS, body).code == code
    (result,) = desk.admin.call("POST", f"{FACTS}/batch", {"items": [body]}).json["results"]
    assert (result["status"], result["error"]["code"]) == (400, code)
    if isinstance(more.get("key"), str):
        assert by_key(desk.admin, more["key"]).code == "bad-input"
        assert desk.admin.call("POST", BLOBS, {**BYTES, "type": "note", **more}).code == code


@pytest.mark.parametrize("key", ["x" * 256, "é|%~/ ?#", "\u2028", "😀", " "])
def test_any_other_text_is_a_key(desk: Desk, key: str) -> None:
    fact = make(desk.admin, key=key)
    assert fact.status == 201
    assert by_key(desk.admin, key).json == fact.json


def test_on_existing_without_a_key_is_refused_and_no_revision_changes_a_key(desk: Desk) -> None:
    body = {"type": "note", "content": 1, "onExisting": "supersede"}
    assert desk.admin.call("POST", FACTS, body).code == "validation-failed"
    fact = make(desk.admin).json["id"]
    for field in ("key", "onExisting"):
        assert (
            desk.admin.call("POST", f"{FACTS}/{fact}/supersede", {"content": 2, field: "l"}).code
            == "unknown-field"
        )


@pytest.mark.parametrize("missing", ["type", "key"])
def test_by_key_needs_a_type_and_a_key_and_takes_the_tenants_scope_when_none_is_given(
    desk: Desk, missing: str
) -> None:
    asked = {"type": "note", "key": "k"}
    fact = make(desk.admin, scope={}).json
    assert desk.admin.call("GET", BY_KEY, query=asked).json == fact
    assert desk.admin.call("GET", BY_KEY, query={**asked, missing: ""}).code == "bad-input"
    del asked[missing]
    assert desk.admin.call("GET", BY_KEY, query=asked).code == "bad-input"


@pytest.mark.parametrize(
    ("scope", "code"),
    [
        ("p", "bad-input"),
        ("[]", "bad-input"),
        ('{"project":"p"}', "unknown-field"),
        ('{"tenantId":"other"}', "permission-denied"),
        ('{"participantId":"x"}', "scope-invalid"),
    ],
)
def test_by_key_refuses_a_scope_that_is_none(desk: Desk, scope: str, code: str) -> None:
    assert by_key(desk.admin, scope=scope).code == code


def test_by_key_is_one_read(service: TenantService) -> None:
    fact = make(service.admin).json
    with recorded(service.services._dynamodb) as calls:
        assert by_key(service.admin).json == fact
    assert (calls.operations, calls.attempts) == (["GetItem"], 1)
    with recorded(service.services._dynamodb) as calls:
        assert make(service.admin, key="new").status == 201
    assert (calls.operations, calls.attempts) == (["PutItem"], 1)


# -- who may


def test_a_writer_of_the_scope_writes_a_key_and_a_reader_only_reads_it(desk: Desk) -> None:
    writer, reader, stranger = (
        desk.service.of("ann", writes=["p"]),
        desk.service.of("rob", reads=["p"]),
        desk.service.of("eve"),
    )
    fact = make(writer).json
    assert put(writer, 2).status == 200
    for other in (reader, stranger):
        for refused in (put(other, 3), make(other), put(other, 3, key="new")):
            assert (refused.status, refused.code) == (403, "permission-denied")
    assert by_key(reader).json["version"] == 2
    never_written = by_key(stranger, key="another")
    for missing in (by_key(stranger), never_written):
        assert missing.code == "fact-not-found"
        error = missing.json["error"]
        assert error["message"] == never_written.json["error"]["message"]
        assert all(word in error["message"] for word in ("type", "scope", "key"))
        assert "details" not in error
    assert fact["id"] not in by_key(stranger).text


def test_what_waits_in_review_is_replaced_by_its_writer_and_found_by_no_colleague(desk: Desk) -> None:
    agent = principal("t", "bot", kind="agent", writes=["p"])
    writer = desk.service.as_(agent)
    fact = make(writer).json["id"]
    head = desk.head(fact)
    waiting = head.fact.model_copy(update={"review": "pending"})
    assert desk.facts.amend(head, head.followed_by(waiting, head.marks[0])) is None
    colleague = desk.service.of("ann", writes=["p"])
    for refused in (by_key(writer), by_key(colleague), put(colleague, 2), make(colleague, 2)):
        assert (refused.status, refused.code) == (404, "fact-not-found")
    assert by_key(desk.admin).json["review"] == "pending"
    assert make(writer, 2).code == "fact-exists"
    assert put(writer, 2).json["version"] == 2
    assert put(desk.admin, 3).json["version"] == 3


def test_a_held_one_takes_no_revision(desk: Desk) -> None:
    make(desk.admin, retention={"legalHold": True})
    assert make(desk.admin).code == "fact-exists"
    assert put(desk.admin, 2).code == "legal-hold"


# -- the next version


def test_a_write_that_may_supersede_makes_the_next_revision_and_what_it_does_not_say_stays(
    desk: Desk,
) -> None:
    first = put(desk.admin, {"a": 1}, subjects=[{"kind": "external", "id": "x"}], **DAY)
    assert first.status == 201
    desk.clock.advance(hours=1)
    second = put(desk.admin, {"a": 2}, validFrom="2026-01-01T00:00:00Z")
    assert (second.status, second.json["version"], second.json["content"]) == (200, 2, {"a": 2})
    for name in ("id", "key", "subjects", "retention", "createdAt", "expiresAt"):
        assert second.json[name] == first.json[name]
    assert second.json["supersedes"] == first.json["revisionId"]
    assert by_key(desk.admin).json == second.json


def test_a_write_that_says_nothing_new_changes_nothing_and_is_not_remembered(desk: Desk) -> None:
    said = {"subjects": [{"kind": "external", "id": "x"}], "causedByLogId": []}
    fact = put(desk.admin, {"a": 1, "b": 1.0}, **said).json
    edition = desk.head(fact["id"]).edition
    desk.clock.advance(hours=1)
    for same in (
        put(desk.admin, {"a": 1, "b": 1.0}, "once", **said),
        put(desk.admin, {"b": 1, "a": 1.0}),  # equal content, which is kept as it was sent first
        put(desk.service.of("bob", writes=["p"]), {"a": 1, "b": 1}, subjects=said["subjects"]),
    ):
        assert (same.status, same.json) == (200, fact)
    assert desk.head(fact["id"]).edition == edition
    changed = put(desk.admin, 2, "once")  # the key was not used up
    assert (changed.status, changed.json["version"]) == (200, 2)
    for different in ({"subjects": []}, {"observedAt": "2026-01-01T00:00:00Z"}, DAY):
        before = by_key(desk.admin).json["version"]
        assert put(desk.admin, 2, **different).json["version"] == before + 1
        assert put(desk.admin, 2, **different).json["version"] == before + 1


def test_large_content_that_is_there_already_is_not_stored_again(desk: Desk) -> None:
    large = "x" * 70_000
    fact = put(desk.admin, large).json
    assert put(desk.admin, large).json == fact
    assert set(desk.blobs.bodies) == {fact["contentRef"]}
    assert make(desk.admin, large).code == "fact-exists"
    assert set(desk.blobs.bodies) == {fact["contentRef"]}


def test_new_content_takes_its_writers_trust(desk: Desk) -> None:
    fact = put(desk.admin).json["id"]
    assert desk.admin.call("POST", f"{FACTS}/{fact}/verify", {}).json["trust"] == "verified"
    assert put(desk.admin).json["trust"] == "verified"
    agent = desk.service.of("bot", "agent", writes=["p"])
    assert put(agent, 2).json["trust"] == "unverified"


# -- deleted, and reopened


def test_a_deleted_one_reopens_at_the_next_version_and_says_nothing_of_before(desk: Desk) -> None:
    first = make(desk.admin, subjects=[{"kind": "external", "id": "x"}], **DAY).json
    desk.clock.advance(hours=20)
    gone = desk.admin.call("DELETE", f"{FACTS}/{first['id']}").json
    assert by_key(desk.admin).code == "fact-not-found"
    now = desk.clock.advance(hours=2)
    again = make(desk.admin, 2)
    fact = again.json
    assert (again.status, fact["id"], fact["version"], fact["updatedAt"]) == (200, first["id"], 2, now)
    assert (fact["createdAt"], fact["supersedes"]) == (first["createdAt"], first["revisionId"])
    assert not {"subjects", "retention", "expiresAt", "invalidatedAt"} & set(fact)
    assert by_key(desk.admin).json == fact
    revisions = desk.admin.call("GET", f"{FACTS}/{fact['id']}/revisions").json["data"]
    assert revisions == [fact, gone]
    for instant, status in ((first["updatedAt"], 200), (gone["invalidatedAt"], 404), (now, 200)):
        assert desk.admin.call("GET", f"{FACTS}/{fact['id']}", query={"asOf": instant}).status == status
    assert [each["id"] for each in desk.admin.call("GET", FACTS).json["data"]] == [fact["id"]]


@pytest.mark.parametrize("write", [make, put])
def test_what_reopens_is_kept_from_the_write_that_reopened_it(desk: Desk, write: Any) -> None:
    fact = make(desk.admin, **DAY).json["id"]
    desk.clock.advance(hours=19)
    desk.admin.call("DELETE", f"{FACTS}/{fact}")
    desk.clock.advance(hours=1)
    assert write(desk.admin, 2, **DAY).json["expiresAt"] == "2026-01-02T20:00:00.000Z"
    desk.clock.advance(hours=20)
    assert put(desk.admin, 3).json["expiresAt"] == "2026-01-02T20:00:00.000Z"
    answer = desk.admin.call("POST", f"{FACTS}/{fact}/supersede", {"retention": {"keepDays": 2}})
    assert answer.json["expiresAt"] == "2026-01-03T20:00:00.000Z"
    assert versions(desk.admin, fact) == [4, 3, 2, 1]


def test_a_replay_answers_as_the_first_time_after_later_revisions_a_deletion_and_a_reopening(
    desk: Desk,
) -> None:
    replies: list[tuple[Any, Reply]] = []

    def do(write: Any, content: Any) -> None:
        replies.append(((write, content), write(desk.admin, content, f"o{len(replies)}")))
        for number, ((first, said), reply) in enumerate(replies):
            again = first(desk.admin, said, f"o{number}")
            assert (again.status, again.json) == (reply.status, reply.json)

    do(make, 1)
    do(put, 2)
    fact = replies[0][1].json["id"]
    for content in (3, 5):
        desk.admin.call("DELETE", f"{FACTS}/{fact}")
        do(make, content)
        do(put, content + 1)
    assert [reply.status for _, reply in replies] == [201, 200, 200, 200, 200, 200]
    assert versions(desk.admin, fact) == [6, 5, 4, 3, 2, 1]
    mismatch = make(desk.admin, "other", "o0")
    assert (mismatch.status, mismatch.code) == (409, "idempotency-key-body-mismatch")


def test_two_operations_on_one_key_are_two_writes_with_equal_bodies_too(desk: Desk) -> None:
    assert make(desk.admin, 1, "a").status == 201
    assert make(desk.admin, 1, "b").code == "fact-exists"
    assert make(desk.admin, 1, "a").status == 201


# -- expired or erased, and alive again


def _expire(desk: Desk, fact_id: str) -> None:
    desk.clock.advance(days=1)


def _expire_and_remove(desk: Desk, fact_id: str) -> None:
    desk.clock.advance(days=1, seconds=1)
    desk.facts.remove("t", fact_id)


def _delete_and_expire(desk: Desk, fact_id: str) -> None:
    desk.admin.call("DELETE", f"{FACTS}/{fact_id}")
    desk.clock.advance(days=1)


def _erase(desk: Desk, fact_id: str) -> None:
    desk.erase(fact_id)
    desk.clock.advance(seconds=1)


ENDS = [_expire, _expire_and_remove, _delete_and_expire, _erase]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("write", [make, put])
def test_a_key_whose_fact_is_over_begins_a_new_life_of_which_nothing_former_answers(
    desk: Desk, end: Any, write: Any
) -> None:
    make(desk.admin, "secret 1", "first", **DAY)
    former = put(desk.admin, "secret 2", "second").json
    fact = former["id"]
    before = index_version(desk.head(fact).fact, desk.head(fact).edition)
    end(desk, fact)
    assert by_key(desk.admin).code == "fact-not-found"

    born = write(desk.admin, "new", "third")

    assert (born.status, born.json["id"], born.json["version"]) == (201, fact, 1)
    assert born.json["createdAt"] == born.json["updatedAt"] > former["updatedAt"]
    assert not {"supersedes", "retention", "expiresAt"} & set(born.json)
    assert by_key(desk.admin).json == born.json
    assert write(desk.admin, "new", "third").text == born.text
    assert versions(desk.admin, fact) == [1]
    for query in ({"version": 2}, {"asOf": former["updatedAt"]}, {"version": 1, "asOf": former["updatedAt"]}):
        assert desk.admin.call("GET", f"{FACTS}/{fact}", query=query).code == "fact-not-found"
    assert index_version(desk.head(fact).fact, desk.head(fact).edition) > before

    later = put(desk.admin, "newer")
    assert (later.status, later.json["version"]) == (200, 2)
    assert versions(desk.admin, fact) == [2, 1]
    assert "secret" not in desk.admin.call("GET", f"{FACTS}/{fact}/revisions").text
    assert write(desk.admin, "new", "third").text == born.text


@pytest.mark.parametrize("end", ENDS)
def test_a_write_of_a_former_life_that_is_sent_again_is_a_write_of_now(desk: Desk, end: Any) -> None:
    """Whether the former head is still there must not tell: it is gone whenever the store gets to it."""
    first = make(desk.admin, 1, "first", **DAY).json
    end(desk, first["id"])
    again = make(desk.admin, 1, "first", **DAY)
    assert (again.status, again.json["version"]) == (201, 1)
    assert again.json["createdAt"] > first["createdAt"]
    assert make(desk.admin, 1, "first", **DAY).text == again.text
    end(desk, first["id"])
    assert make(desk.admin, 2, "second").status == 201
    assert make(desk.admin, 1, "first", **DAY).code == "fact-exists"


def test_a_new_life_in_the_second_of_the_formers_first_write_comes_later_for_the_index(desk: Desk) -> None:
    fact = make(desk.admin, retention={"keepUntil": "2026-01-01T00:00:00.100Z"}).json["id"]
    for content in range(3):
        put(desk.admin, content)
    former = desk.head(fact)
    desk.clock.advance(milliseconds=200)
    born = make(desk.admin, "new").json
    assert (born["version"], born["createdAt"]) == (1, "2026-01-01T00:00:00.200Z")
    now = desk.head(fact)
    assert index_version(now.fact, now.edition) > index_version(former.fact, former.edition)


def test_whoever_still_holds_a_former_head_changes_nothing_of_the_new_life(desk: Desk) -> None:
    fact = make(desk.admin, **DAY).json["id"]
    former = desk.head(fact)
    _expire_and_remove(desk, fact)
    make(desk.admin, "new")
    born = desk.head(fact)
    assert (born.edition, born.life != former.life) == (former.edition, True)
    late = former.followed_by(former.fact, former.marks[0])
    assert desk.facts.amend(former, late) == born
    assert desk.facts.advance(former, former.fact, late) == born
    assert desk.head(fact) == born


def test_a_write_that_has_no_time_left_is_refused_in_every_case_and_replayed_where_it_had_some(
    desk: Desk,
) -> None:
    late = {"retention": {"keepUntil": "2026-01-01T01:00:00Z"}}
    first = make(desk.admin, 1, "first", **late)
    put(desk.admin, 1, retention={"keepUntil": "2026-01-09T00:00:00Z"})
    desk.clock.advance(hours=2)
    assert make(desk.admin, 1, "first", **late).text == first.text
    assert put(desk.admin, 2, **late).code == "validation-failed"
    assert make(desk.admin, 2, **late).code == "fact-exists"
    desk.admin.call("DELETE", f"{FACTS}/{first.json['id']}")
    for write in (make, put):
        assert write(desk.admin, "x" * 70_000, **late).code == "validation-failed"
        assert write(desk.admin, "x" * 70_000, key="new", **late).code == "validation-failed"
    assert desk.blobs.bodies == {}


# -- batches


def test_items_of_a_batch_with_one_key_have_each_a_result_of_their_own(desk: Desk) -> None:
    items = [keyed(n, onExisting="supersede") for n in range(4)] + [keyed(key=""), keyed("alone", key="l")]
    first = desk.admin.call("POST", f"{FACTS}/batch", {"items": items}, key="b")
    results = first.json["results"]
    assert sorted(each["status"] for each in results[:4]) == [200, 200, 200, 201]
    assert sorted(each["fact"]["version"] for each in results[:4]) == [1, 2, 3, 4]
    assert len({each["fact"]["id"] for each in results[:4]}) == 1
    assert [each["status"] for each in results[4:]] == [400, 201]
    assert desk.admin.call("POST", f"{FACTS}/batch", {"items": items}, key="b").json == first.json
    assert by_key(desk.admin).json["version"] == 4


def test_items_with_one_key_and_nothing_to_say_of_existing_are_one_fact_and_refusals(desk: Desk) -> None:
    items = [keyed(n) for n in range(4)]
    results = desk.admin.call("POST", f"{FACTS}/batch", {"items": items}).json["results"]
    assert sorted(each["status"] for each in results) == [201, 409, 409, 409]
    assert {each["error"]["code"] for each in results if "error" in each} == {"fact-exists"}


# -- uploads


def upload(desk: Desk, caller: Gateway | None = None, **more: Any) -> str:
    granted = (caller or desk.admin).call("POST", BLOBS, {**BYTES, **more})
    assert granted.status == 201, granted.text
    ref = granted.json["contentRef"]
    desk.blobs.upload(ref, b"foo")
    return str(ref)


OF_KEY = {"type": "note", "scope": SCOPE, "key": "k"}


def large(ref: str, **more: Any) -> dict[str, Any]:
    return {**OF_KEY, "contentRef": ref, **more}


def test_an_upload_for_a_key_fills_that_fact_whether_it_is_there_yet_or_not(desk: Desk) -> None:
    early, late = upload(desk, **OF_KEY), upload(desk, **OF_KEY)
    first = desk.admin.call("POST", FACTS, large(early))
    assert (first.status, first.json["contentRef"], first.json["size"]) == (201, early, 3)
    same = desk.admin.call("POST", FACTS, large(late, onExisting="supersede"))
    assert (same.status, same.json) == (200, first.json)  # the same bytes
    second = desk.admin.call("POST", FACTS, large(late, onExisting="supersede", content="a summary"))
    assert (second.json["version"], second.json["contentRef"]) == (2, late)
    by_id = upload(desk, factId=first.json["id"])
    third = desk.admin.call("POST", FACTS, large(by_id, onExisting="supersede", content="another"))
    assert (third.json["version"], third.json["contentRef"]) == (3, by_id)
    again = desk.admin.call(
        "POST", f"{FACTS}/{first.json['id']}/supersede", {"contentRef": upload(desk, **OF_KEY)}
    )
    assert again.json["version"] == 4


def test_an_upload_that_changes_nothing_stays_pending_so_that_the_bucket_removes_it(desk: Desk) -> None:
    early, late = upload(desk, **OF_KEY), upload(desk, **OF_KEY)
    for ref in (early, late):
        desk.admin.call("POST", FACTS, large(ref, onExisting="supersede"))
    assert desk.blobs.pending == {late}


def test_an_upload_for_one_fact_fills_no_other(desk: Desk) -> None:
    fact = make(desk.admin, key="there").json["id"]
    refs = {
        "a key": upload(desk, **OF_KEY),
        "another key": upload(desk, **{**OF_KEY, "key": "l"}),
        "another scope": upload(desk, **{**OF_KEY, "scope": {"projectId": "p"}}),
        "no key": upload(desk),
        "no key, described": upload(desk, type="note", scope=SCOPE),
        "a fact that has a key": upload(desk, factId=fact),
    }
    for name, ref in refs.items():
        if name != "a key":
            assert desk.admin.call("POST", FACTS, large(ref)).code == "bad-input", name
        if not name.startswith("no key"):
            unkeyed = {"type": "note", "scope": SCOPE, "contentRef": ref}
            assert desk.admin.call("POST", FACTS, unkeyed).code == "bad-input", name
    assert by_key(desk.admin).code == "fact-not-found"


def test_an_upload_of_a_keyed_fact_that_is_gone_makes_no_fact_without_a_key(desk: Desk) -> None:
    fact = make(desk.admin, **DAY).json["id"]
    ref = upload(desk, factId=fact)
    _expire_and_remove(desk, fact)
    unkeyed = {"type": "note", "scope": SCOPE, "contentRef": ref}
    assert desk.admin.call("POST", FACTS, unkeyed).code == "bad-input"
    assert desk.admin.call("POST", FACTS, large(ref)).status == 201


@pytest.mark.parametrize(
    "more",
    [
        {"factId": "f", "type": "note"},
        {"factId": "f", "scope": {}},
        {"factId": "f", "key": "k"},
        {"key": "k"},
        {"key": "k", "scope": {}},
    ],
)
def test_an_upload_is_for_one_fact(desk: Desk, more: Any) -> None:
    assert desk.admin.call("POST", BLOBS, {**BYTES, **more}).code == "validation-failed"


def test_who_may_not_write_a_scope_gets_no_upload_for_it(desk: Desk) -> None:
    reader = desk.service.of("rob", reads=["p"])
    for more in (OF_KEY, {"type": "note", "scope": SCOPE}, {"scope": SCOPE}):
        assert reader.call("POST", BLOBS, {**BYTES, **more}).code == "permission-denied"


# -- at once, on a store that is atomic


def test_twenty_parallel_writers_of_one_key_make_one_fact_without_gaps_and_are_told_the_truth(
    service: TenantService, ministack: Aws
) -> None:
    def write(number: int) -> tuple[int, Reply]:
        return number, put(service.admin, number, f"o{number}")

    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(write, range(20)))
    landed = {reply.json["version"]: number for number, reply in replies if reply.status in (200, 201)}
    assert {reply.status for _, reply in replies} <= {200, 201, 429}
    assert [reply.json["version"] for _, reply in replies if reply.status == 201] == [1]
    assert sorted(landed) == list(range(1, len(landed) + 1))
    fact = by_key(service.admin).json
    assert fact["version"] == len(landed)
    revisions = service.admin.call("GET", f"{FACTS}/{fact['id']}/revisions").json["data"]
    assert {each["version"]: each["content"] for each in revisions} == landed
    assert stored_items(ministack, service.tenant) == len(landed)
    for version, number in landed.items():
        if version == 1 or version > len(landed) - MARKS_KEPT:
            again = put(service.admin, number, f"o{number}").json
            assert (again["version"], again["content"]) == (version, number)
    for number, reply in replies:
        if reply.status == 429:  # who was told to come again gets through
            assert put(service.admin, number, f"o{number}").status == 200
    assert by_key(service.admin).json["version"] == 20


def test_of_twenty_parallel_writers_who_expect_nothing_one_creates_and_all_others_learn_of_it(
    service: TenantService,
) -> None:
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda number: make(service.admin, number), range(20)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 19
    (fact,) = [reply.json for reply in replies if reply.status == 201]
    details = {str(reply.json["error"]["details"]) for reply in replies if reply.status == 409}
    assert details == {str({"factId": fact["id"], "currentVersion": 1})}


def test_parallel_writers_of_a_deleted_and_of_an_expired_key_begin_it_once(service: TenantService) -> None:
    def at_once(**more: Any) -> list[Reply]:
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda number: make(service.admin, number, **more), range(8)))

    fact = make(service.admin, **DAY).json["id"]
    service.admin.call("DELETE", f"{FACTS}/{fact}")
    replies = at_once()
    assert sorted(reply.status for reply in replies) == [200] + [409] * 7
    assert by_key(service.admin).json["version"] == 2
    facts = service.services.memory.facts
    head = facts.head(service.tenant, fact)
    assert head is not None
    expired = head.fact.model_copy(update={"expires_at": head.fact.updated_at})
    assert facts.amend(head, head.followed_by(expired, head.marks[0])) is None
    replies = at_once()
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    assert by_key(service.admin).json["version"] == 1
    assert put(service.admin, "next").json["version"] == 2
    assert versions(service.admin, fact) == [2, 1]
