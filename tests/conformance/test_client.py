"""Every fact method of the schema's public Python client, unmodified, both of its kinds, against the local service."""

import datetime as dt
import inspect
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from kindgi.client import AuthError, ConflictError, InvalidRequestError, NotFoundError, ServerError
from kindgi.client._resources import MemoryResource
from support.gateway import ROOT
from support.official import Client

from factbook_local.testing import Ready

from .conftest import NewToken

ERASURES = {
    "create_erasure",
    "get_erasure",
    "list_erasures",
    "resume_erasure",
    "export_erasures",
    "replay_erasures",
}
METHODS = {name for name, _ in inspect.getmembers(MemoryResource, inspect.isfunction) if name[0] != "_"}


@pytest.fixture
def scope(tenant: str) -> dict[str, str]:
    """A project of its own for each test."""
    return {"tenantId": tenant, "projectId": f"p {uuid.uuid4()}"}


@pytest.fixture
def fact(client: Client, scope: dict[str, str]) -> Any:
    return client.write_fact(type="note", scope=scope, content="v1")


def test_a_fact_lives_through_every_method(client: Client, scope: dict[str, str]) -> None:
    written = client.write_fact(type="note", scope=scope, content={"text": "v1"}, retention={"keepDays": 30})
    assert (written.version, written.trust, written.content) == (1, "asserted", {"text": "v1"})
    assert written.scope.project_id == scope["projectId"]
    assert written.expires_at == written.created_at + dt.timedelta(days=30)
    assert (written.attributed_to.kind, written.attributed_to.id) == ("user", "admin")

    superseded = client.supersede_fact(written.id, content={"text": "v2"}, expectVersion=1)
    assert (superseded.version, superseded.supersedes) == (2, written.revision_id)
    assert superseded.retention.keep_days == 30

    verified = client.verify_fact(written.id, expectVersion=2)
    assert (verified.version, verified.trust, verified.verified_by) == (3, "verified", "user:admin")
    assert verified.content == {"text": "v2"}

    assert client.get_fact(written.id) == verified
    assert client.get_fact(written.id, version=1).content == {"text": "v1"}
    assert client.get_fact(written.id, as_of=str(superseded.updated_at)).version == 2
    assert [each.id for each in client.list_facts(scope=_json(scope)).data] == [written.id]

    found = client.retrieve(mode="list", scope=scope, type="note").results
    assert [(hit.fact.id, hit.score) for hit in found] == [(written.id, None)]

    deleted = client.delete_fact(written.id, expect_version=3)
    assert (deleted.version, deleted.invalidation_reason, deleted.invalidated_by) == (
        3,
        "deleted",
        "user:admin",
    )
    history = client.list_fact_revisions(written.id).data
    assert [(each.version, each.invalidation_reason) for each in history] == [
        (3, "deleted"),
        (2, "superseded"),
        (1, "superseded"),
    ]
    assert client.called == METHODS - ERASURES


def test_a_walk_meets_each_fact_once(client: Client, scope: dict[str, str]) -> None:
    written = [client.write_fact(type="note", scope=scope, content=n).id for n in range(7)]
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.list_facts(limit=3, cursor=cursor, scope=_json(scope))
        assert page.has_more == (page.next_cursor is not None)
        found += [fact.id for fact in page.data]
        cursor = page.next_cursor

    assert found == written[::-1]


def test_a_list_is_narrowed_by_type_container_and_time(client: Client, scope: dict[str, str]) -> None:
    first = client.write_fact(type="one", scope=scope, content=1)
    time.sleep(0.01)  # the list is asked as of the second's beginning
    second = client.write_fact(type="two", scope=scope | {"threadId": "t"}, content=2)
    project = {"scope_kind": "project", "scope_id": scope["projectId"]}

    assert _ids(client.list_facts(type="two", **project)) == [second.id]
    assert _ids(client.list_facts(**project)) == [second.id, first.id]
    assert _ids(client.list_facts(inherit=False, **project)) == [first.id]
    assert _ids(
        client.list_facts(as_of=str(second.created_at - dt.timedelta(milliseconds=1)), **project)
    ) == [first.id]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(client: Client, limit: int) -> None:
    with pytest.raises(InvalidRequestError):
        client.list_facts(limit=limit)


def test_a_limit_above_a_hundred_is_a_hundred(client: Client) -> None:
    assert client.list_facts(limit=101).data is not None


@pytest.mark.parametrize("named", [{"type": ""}, {"scope": ""}, {"scope": "{"}, {"scope_kind": "org"}])
def test_a_filter_that_says_nothing_is_refused_not_ignored(client: Client, named: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        client.list_facts(**named)


@pytest.mark.parametrize(
    "change",
    [
        lambda client, fact_id: client.supersede_fact(fact_id, content=2, expectVersion=7),
        lambda client, fact_id: client.verify_fact(fact_id, expectVersion=7),
        lambda client, fact_id: client.delete_fact(fact_id, expect_version=7),
    ],
    ids=["supersede", "verify", "delete"],
)
def test_an_expectation_that_fails_is_a_conflict(
    client: Client, fact: Any, change: Callable[[Client, str], Any]
) -> None:
    with pytest.raises(ConflictError) as raised:
        change(client, fact.id)

    assert raised.value.server_code == "fact-changed"
    assert raised.value.details == {"factId": fact.id, "currentVersion": 1}
    assert client.get_fact(fact.id).version == 1


@pytest.mark.parametrize("expected", [0, -1])
def test_an_expectation_below_one_is_refused(client: Client, fact: Any, expected: int) -> None:
    with pytest.raises(InvalidRequestError):
        client.delete_fact(fact.id, expect_version=expected)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client, fact_id: client.get_fact(fact_id),
        lambda client, fact_id: client.list_fact_revisions(fact_id),
        lambda client, fact_id: client.supersede_fact(fact_id, content=1),
        lambda client, fact_id: client.verify_fact(fact_id),
        lambda client, fact_id: client.delete_fact(fact_id),
    ],
    ids=["get", "revisions", "supersede", "verify", "delete"],
)
def test_a_fact_that_is_not_there_is_not_found(client: Client, ask: Callable[[Client, str], Any]) -> None:
    for fact_id in (str(uuid.uuid4()), "no such/fact %2F ü"):
        with pytest.raises(NotFoundError) as raised:
            ask(client, fact_id)
        assert raised.value.server_code in ("fact-not-found", "not-found")


def test_a_fact_another_may_not_see_is_not_found_and_named(
    client: Client, fact: Any, tenant: str, new_token: NewToken
) -> None:
    with client.as_(new_token(tenant, "user", "eve")) as eve, pytest.raises(NotFoundError) as raised:
        eve.get_fact(fact.id)

    assert raised.value.id == fact.id


def test_a_reader_who_writes_is_forbidden(
    client: Client, fact: Any, scope: dict[str, str], tenant: str, new_token: NewToken
) -> None:
    token = new_token(tenant, "user", "ann", projects={"read": [scope["projectId"]]})
    with client.as_(token) as reader:
        assert reader.get_fact(fact.id).content == "v1"
        changes: list[Callable[[], Any]] = [
            lambda: reader.write_fact(type="note", scope=scope, content=1),
            lambda: reader.write_fact(type="note", scope={"tenantId": "another"}, content=1),
            lambda: reader.supersede_fact(fact.id, content=1),
            lambda: reader.verify_fact(fact.id),
            lambda: reader.delete_fact(fact.id),
        ]
        for change in changes:
            with pytest.raises(AuthError) as raised:
                change()
            assert (raised.value.reason, raised.value.server_code) == ("forbidden", "permission-denied")


def test_a_token_that_is_unknown_expired_or_revoked_says_which(
    client: Client, tenant: str, service: Ready, new_token: NewToken
) -> None:
    ends = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=5)  # a token that has ended already is not made
    expiring = new_token(tenant, "user", "bob", expiresAt=ends.isoformat())
    while dt.datetime.now(dt.UTC) <= ends:
        time.sleep(0.05)
    for token, reason in (
        ("nobody's", "unauthenticated"),
        (f"fb_{uuid.uuid4().hex}_{'x' * 43}", "unauthenticated"),
        (expiring, "token-expired"),
    ):
        with client.as_(token) as stranger, pytest.raises(AuthError) as raised:
            stranger.list_facts()
        assert raised.value.reason == reason


def test_a_replay_answers_as_the_first_time(client: Client, scope: dict[str, str]) -> None:
    key = str(uuid.uuid4())
    first = client.write_fact(type="note", scope=scope, content="v1", idempotency_key=key)
    again = client.write_fact(type="note", scope=scope, content="v1", idempotency_key=key)
    assert again == first
    superseded = client.supersede_fact(first.id, content="v2", idempotency_key=key)
    assert client.supersede_fact(first.id, content="v2", idempotency_key=key) == superseded
    verified = client.verify_fact(first.id, idempotency_key=key)
    assert client.verify_fact(first.id, idempotency_key=key) == verified
    assert client.write_fact(type="note", scope=scope, content="v1", idempotency_key=key) == first

    assert [fact.version for fact in client.list_fact_revisions(first.id).data] == [3, 2, 1]
    assert _ids(client.list_facts(scope=_json(scope))) == [first.id]


def test_the_same_key_with_another_body_is_a_conflict(client: Client, scope: dict[str, str]) -> None:
    key = str(uuid.uuid4())
    client.write_fact(type="note", scope=scope, content="v1", idempotency_key=key)
    with pytest.raises(ConflictError) as raised:
        client.write_fact(type="note", scope=scope, content="v2", idempotency_key=key)

    assert raised.value.server_code == "idempotency-key-body-mismatch"


@pytest.mark.parametrize(
    "content",
    [1.0, -0.0, 1e-07, 0.1 + 0.2, 2**53 - 1, 2**63 - 1, "", None, [], {}, {"a": [None, {"b": "e\u0301 🜁"}]}],
    ids=repr,
)
def test_content_comes_back_as_it_was_sent(client: Client, scope: dict[str, str], content: Any) -> None:
    written = client.write_fact(type="note", scope=scope, content=content)
    read = client.get_fact(written.id).content

    assert (read, type(read), repr(read)) == (content, type(content), repr(content))


def test_content_above_64_kb_is_read_by_its_reference(client: Client, scope: dict[str, str]) -> None:
    written = client.write_fact(type="note", scope=scope, content="x" * 70_000)

    assert written.content is None
    assert written.content_ref.startswith("blob://s3/")
    assert (written.size, client.get_fact(written.id)) == (70_002, written)


def test_fields_of_ours_reach_the_service_through_the_client(client: Client, scope: dict[str, str]) -> None:
    written = client.write_fact(
        type="note",
        scope=scope,
        content=1,
        key="favourite",
        causedByLogId=["run:0:0123456789abcdef"],
        subjects=[{"kind": "external", "id": "customer 7"}],
        validFrom=dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    )

    assert written.model_extra["key"] == "favourite"
    assert written.caused_by_log_id == ["run:0:0123456789abcdef"]
    assert [(subject.kind, subject.id) for subject in written.subjects] == [("external", "customer 7")]
    assert written.valid_from == dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)


def test_a_misspelt_field_is_refused_by_its_name(client: Client, scope: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        client.write_fact(type="note", scope=scope, content=1, retentoin={"keepDays": 1})

    assert raised.value.server_code == "unknown-field"
    assert "retentoin" in str(raised.value)


def test_what_is_wrong_with_a_field_is_told_by_its_pointer(client: Client, scope: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        client.write_fact(type="note", scope=scope, content=1, source={"kind": "http-api"})

    assert {issue["path"] for issue in raised.value.issues} == {"/source/freshness", "/source/refresh"}


def test_an_explicit_none_is_refused(client: Client, fact: Any) -> None:
    with pytest.raises(InvalidRequestError):
        client.supersede_fact(fact.id, content=1, subjects=None)


def test_an_empty_list_clears_and_an_absent_one_keeps(client: Client, scope: dict[str, str]) -> None:
    subjects = [{"kind": "external", "id": "a"}]
    written = client.write_fact(type="note", scope=scope, content=1, subjects=subjects)

    assert client.supersede_fact(written.id, content=2).subjects is not None
    assert client.supersede_fact(written.id, content=3, subjects=[]).subjects is None


@pytest.fixture
def indexed(client: Client, scope: dict[str, str]) -> Callable[[str], dict[str, Any]]:
    """Write a fact to search for; the `after` that waits until it is found."""

    def write(text: str) -> dict[str, Any]:
        fact = client.write_fact(type="note", scope=scope, content=text)
        return {"id": fact.id, "version": fact.version}

    return write


@pytest.mark.parametrize("mode", ["keyword", "both"])
def test_a_search_finds_words_and_ranks_them(
    client: Client, scope: dict[str, str], indexed: Callable[[str], dict[str, Any]], mode: str
) -> None:
    after = [indexed("the walrus sings"), indexed("a walrus, a walrus and no song")]
    indexed("nothing of the kind")
    found = client.retrieve(mode=mode, query="walrus", scope=scope, after=after, limit=5)

    assert {hit.fact.id for hit in found.results} == {each["id"] for each in after}
    assert [hit.score for hit in found.results] == sorted((hit.score for hit in found.results), reverse=True)
    assert found.model_extra.get("degraded") == ("no-embeddings" if mode == "both" else None)


def test_a_search_by_meaning_without_embeddings_says_so(client: Client) -> None:
    with pytest.raises(ServerError) as raised:
        client.retrieve(mode="semantic", query="walrus")

    assert (raised.value.status, raised.value.server_code) == (422, "semantic-unavailable")


def test_a_search_without_a_query_is_refused(client: Client) -> None:
    with pytest.raises(InvalidRequestError):
        client.retrieve(mode="keyword")


def test_the_document_names_every_method_there_is() -> None:
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")

    assert {name for name in METHODS if f"`{name}`" in text} == METHODS


def _ids(page: Any) -> list[str]:
    return [fact.id for fact in page.data]


def _json(scope: dict[str, str]) -> str:
    return f'{{"projectId": "{scope["projectId"]}"}}'
