"""Every erasure method of the schema's public Python client, and every such command, unmodified, seen to the end."""

import json
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import urllib3
from kindgi.client import AuthError, ConflictError, InvalidRequestError, NotFoundError
from pydantic import ValidationError
from support.official import Client, CommandLine

from factbook_local.testing import Ready

from .conftest import NewToken
from .test_cli import ERASURES as COMMANDS
from .test_client import ERASURES as METHODS

SECONDS = 120


def ended(read: Any) -> Any:
    """The record once it has ended."""
    until = time.monotonic() + SECONDS
    while (record := read()).status in ("pending", "running"):
        assert time.monotonic() < until, record
        time.sleep(0.5)
    return record


def offered(ledger: Any) -> list[Any]:
    """The entries of the kinds that the client knows."""
    return [each for each in ledger.data if each.selector_kind != "user"]


@pytest.fixture
def person() -> str:
    return f"end-{uuid.uuid4()}"


def test_an_erasure_lives_through_every_method(client: Client, tenant: str, person: str) -> None:
    scope = {"tenantId": tenant, "projectId": "p", "participantId": person}
    fact = client.write_fact(type="note", scope=scope, content="words")
    about = client.write_fact(
        type="note",
        scope={"tenantId": tenant, "projectId": "p"},
        content="more",
        subjects=[{"kind": "participant", "id": person}],
    )

    made = client.create_erasure(subject={"kind": "participant", "id": person})
    assert (made.selector_kind, made.requested_by, made.matchable) == ("participant", "user:admin", True)
    assert made.status in ("pending", "running")
    assert made.selector.subject.id == person
    with pytest.raises(NotFoundError):
        client.get_fact(fact.id)
    with pytest.raises(ConflictError) as refused:
        client.supersede_fact(about.id, content="again")
    assert refused.value.server_code == "erasure-in-progress"
    assert client.resume_erasure(made.id).id == made.id

    done = ended(lambda: client.get_erasure(made.id))

    assert (done.status, done.phase, done.selector) == ("completed", "done", None)
    assert done.counts["facts"] == 2
    listed = client.list_erasures(limit=1)
    assert listed.data[0].id == made.id
    assert client.resume_erasure(made.id, force=True).status == "completed"

    ledger = client.export_erasures()
    (entry,) = [each for each in ledger.data if each.id == made.id]
    assert (entry.selector_kind, entry.status, entry.requested_by) == (
        "participant",
        "completed",
        "user:admin",
    )
    assert entry.selector_hmac is not None
    assert entry.created_at == done.created_at
    times = [each.created_at for each in ledger.data]
    assert times == sorted(times), "oldest first"

    replayed = client.replay_erasures(erasures=offered(ledger))
    assert (replayed.replayed, replayed.restored) == ([], [])
    assert {each.reason for each in replayed.unmatched} == {"nothing-matched"}
    strange = entry.model_copy(update={"key_id": "another deployment's"})
    bare = {
        "id": str(uuid.uuid4()),
        "selectorKind": "external",
        "requestedBy": "user:a",
        "status": "completed",
    }
    told = client.replay_erasures(
        {"erasures": [strange, bare | {"createdAt": "2026-01-01T00:00:00Z"}]}
    ).unmatched
    assert [each.reason for each in told] == ["unknown-key", "no-keyed-hash"]
    assert client.called >= METHODS


def test_a_fact_and_a_conversation_can_be_erased_and_a_dry_run_is_no_erasure(
    client: Client, tenant: str
) -> None:
    fact = client.write_fact(type="note", scope={"tenantId": tenant}, content="words")
    made = client.create_erasure(factId=fact.id)
    assert made.selector_kind == "fact"
    talk = client.create_erasure(conversation_id=f"thread-{uuid.uuid4()}")
    assert talk.selector_kind == "conversation"

    assert ended(lambda: client.get_erasure(made.id)).counts["facts"] == 1
    assert ended(lambda: client.get_erasure(talk.id)).status == "completed"


def test_the_erasure_of_a_user_is_listed_and_exported_though_the_client_offers_none(
    client: Client, tenant: str, service: Ready
) -> None:
    """It takes no ledger with such an entry either, and says so before it sends anything."""
    answer = urllib3.request(
        "POST",
        f"{service.url}/v1/memory/erasures",
        json={"subject": {"kind": "user", "id": "someone"}},
        timeout=30,
        headers={"Authorization": f"Bearer {service.tokens[tenant]}"},
    )
    assert answer.status == 202, answer.data
    erasure = answer.json()["id"]
    assert ended(lambda: client.get_erasure(erasure)).selector_kind == "user"
    ledger = client.export_erasures()
    (entry,) = [each for each in ledger.data if str(each.id) == erasure]
    with pytest.raises(ValidationError, match="selectorKind"):
        client.replay_erasures(erasures=[entry])
    assert client.replay_erasures(erasures=offered(ledger)).replayed == []


def test_what_is_refused_is_told_apart(client: Client, tenant: str, new_token: NewToken) -> None:
    held = client.write_fact(
        type="note", scope={"tenantId": tenant}, content="words", retention={"legalHold": True}
    )
    with pytest.raises(ConflictError) as refused:
        client.create_erasure(factId=held.id)
    assert refused.value.server_code == "legal-hold"
    with pytest.raises(NotFoundError):
        client.get_erasure(str(uuid.uuid4()))
    with pytest.raises(InvalidRequestError):
        client.create_erasure({"factId": held.id, "conversationId": "c"})
    with client.as_(new_token(tenant, "user", "someone")) as someone:
        for call in (someone.export_erasures, someone.list_erasures):
            with pytest.raises(AuthError):
                call()
        with pytest.raises(AuthError):
            someone.replay_erasures(erasures=[])


def test_an_erasure_lives_through_every_command(cli: CommandLine, person: str, tmp_path: Path) -> None:
    body = {"type": "note", "scope": {"projectId": "p", "participantId": person}, "content": "words"}
    fact = cli("facts", "write", "--input", json.dumps(body)).json

    made = cli("erasures", "create", "--participant", person).json
    assert (made["selectorKind"], made["matchable"]) == ("participant", True)
    gone = cli("facts", "get", fact["id"])
    assert (gone.code, "not-found" in gone.err) == (1, True)
    cli("erasures", "resume", made["id"])
    until = time.monotonic() + SECONDS
    while (done := cli("erasures", "get", made["id"]).json)["status"] != "completed":
        assert time.monotonic() < until, done
    assert done["counts"]["facts"] == 1
    assert cli("erasures", "resume", made["id"], "--force").json["status"] == "completed"
    assert cli("erasures", "list", "--limit", "1").json["data"][0]["id"] == made["id"]

    ledger = cli("erasures", "export").json
    (entry,) = [each for each in ledger["erasures"] if each["id"] == made["id"]]
    assert set(entry) >= {"selectorHmac", "keyId", "requestedBy", "createdAt", "completedAt"}
    path = tmp_path / "ledger.json"
    assert cli("erasures", "export", "--out", str(path)).json == {
        "wrote": str(path),
        "erasures": len(ledger["erasures"]),
    }
    answer = cli("erasures", "replay", str(path)).json
    assert (answer["replayed"], answer["restored"]) == ([], [])
    assert {each["reason"] for each in answer["unmatched"]} == {"nothing-matched"}
    assert cli.called >= COMMANDS
