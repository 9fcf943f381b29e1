"""API tokens: made, shown once, listed, revoked; by administrators and for their tenant only."""

from typing import Any

import pytest
from support.emulators import Aws
from support.gateway import Gateway
from support.principals import TenantService, issue, principal

TOKENS = "/v1/access/tokens"


def make(caller: Gateway, name: str = "ann", kind: str = "user", **grants: Any) -> Any:
    reply = caller.call("POST", TOKENS, {"actor": {"kind": kind, "id": name}, **grants})
    assert reply.status == 201, reply.text
    return reply.json


def test_a_new_token_works_at_once_and_holds_what_it_was_given(service: TenantService) -> None:
    made = make(service.admin, projects={"read": ["r"], "write": ["w"]}, orgs={"read": ["o"], "admin": ["a"]})
    holder = service.admin.as_(made["token"])
    assert holder.call("GET", "/v1/identity/whoami").json["actor"] == "user:ann"
    for scope, status in (
        ({"projectId": "w"}, 201),
        ({"projectId": "r"}, 403),
        ({"orgId": "a"}, 201),
        ({"orgId": "o"}, 403),
        ({}, 403),
    ):
        reply = holder.call("POST", "/v1/memory/facts", {"type": "n", "scope": scope, "content": 1})
        assert reply.status == status
    assert made["projects"] == {"read": ["r"], "write": ["w"]}
    assert made["orgs"] == {"read": ["o"], "admin": ["a"]}
    assert (made["admin"], made["createdBy"]) == (False, "user:admin")


def test_a_secret_is_shown_once_and_stored_nowhere(service: TenantService, ministack: Aws) -> None:
    made = make(service.admin)
    secret = made["token"].split("_", 2)[2]
    assert secret not in service.admin.call("GET", TOKENS).text
    pages = (
        ministack.client("dynamodb").get_paginator("scan").paginate(TableName=ministack.settings.access_table)
    )
    items = [item for page in pages for item in page["Items"]]
    assert any(item["pk"]["S"] == f"token|{made['id']}" for item in items)
    assert secret not in str(items)


def test_tokens_are_listed_oldest_first_in_pages(service: TenantService) -> None:
    made = [make(service.admin, f"u{number}")["id"] for number in range(5)]
    seen, cursor = [], ""
    while True:
        page = service.admin.call("GET", TOKENS, query={"limit": 2, "cursor": cursor}).json
        seen += page["data"]
        if not page["hasMore"]:
            break
        cursor = page["nextCursor"]
    assert [each["id"] for each in seen if each["id"] in made] == made
    assert len({each["id"] for each in seen}) == len(seen)
    assert all("token" not in each for each in seen)


def test_a_revoked_token_stays_listed_and_revoking_again_changes_nothing(service: TenantService) -> None:
    made = make(service.admin)
    revoked = service.admin.call("DELETE", f"{TOKENS}/{made['id']}").json
    assert revoked["revokedAt"] is not None
    assert service.admin.call("DELETE", f"{TOKENS}/{made['id']}").json == revoked
    (listed,) = [each for each in service.admin.call("GET", TOKENS).json["data"] if each["id"] == made["id"]]
    assert listed == revoked
    reply = (
        TenantService(service.services, service.tenant)
        .admin.as_(made["token"])
        .call("GET", "/v1/identity/whoami")
    )
    assert (reply.status, reply.code) == (401, "auth-revoked")


def test_an_expired_token_is_refused_as_expired(service: TenantService) -> None:
    ann = principal(service.tenant, "ann")
    expired = issue(service.services, ann, expires_at="2020-01-01T00:00:00.000Z")
    reply = service.admin.as_(expired).call("GET", "/v1/identity/whoami")
    assert (reply.status, reply.code) == (401, "auth-expired")


def test_a_token_that_has_expired_already_is_not_made(service: TenantService) -> None:
    body = {"actor": {"kind": "user", "id": "ann"}, "expiresAt": "2020-01-01T00:00:00Z"}
    before = len(service.admin.call("GET", TOKENS).json["data"])
    reply = service.admin.call("POST", TOKENS, body)
    assert (reply.status, reply.code) == (400, "validation-failed")
    assert reply.json["error"]["message"] == "/expiresAt has passed already. Send a later time."
    assert reply.json["error"]["details"]["issues"][0]["path"] == "/expiresAt"
    assert len(service.admin.call("GET", TOKENS).json["data"]) == before
    assert make(service.admin, expiresAt="2999-01-01T00:00:00Z")["expiresAt"] == "2999-01-01T00:00:00.000Z"


def test_only_administrators_handle_tokens_and_only_their_tenants(service: TenantService) -> None:
    made = make(service.admin)
    ann = service.admin.as_(made["token"])
    for method, path, body in (
        ("POST", TOKENS, {"actor": {"kind": "user", "id": "eve"}, "admin": True}),
        ("GET", TOKENS, None),
        ("DELETE", f"{TOKENS}/{made['id']}", None),
    ):
        assert ann.call(method, path, body).code == "permission-denied"
    other = TenantService(service.services, service.tenant + "2").admin
    assert other.call("DELETE", f"{TOKENS}/{made['id']}").code == "not-found"
    assert made["id"] not in other.call("GET", TOKENS).text
    assert ann.call("GET", "/v1/identity/whoami").status == 200


def test_an_agents_token_names_its_definition(service: TenantService) -> None:
    assert make(service.admin, "helper", "agent")["agentId"] == "helper"
    assert make(service.admin, "helper-7", "agent", agentId="helper")["agentId"] == "helper"
    assert "agentId" not in make(service.admin, "job", "service")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"actor": {}},
        {"actor": {"kind": "person", "id": "x"}},
        {"actor": {"kind": "user", "id": ""}},
        {"actor": {"kind": "user", "id": "x", "name": "y"}},
        {"actor": {"kind": "user", "id": "x"}, "tenant": "other"},
        {"actor": {"kind": "user", "id": "x"}, "admin": "yes"},
        {"actor": {"kind": "user", "id": "x"}, "admin": None},
        {"actor": {"kind": "user", "id": "x"}, "projects": ["p"]},
        {"actor": {"kind": "user", "id": "x"}, "projects": {"reads": ["p"]}},
        {"actor": {"kind": "user", "id": "x"}, "projects": {"read": [""]}},
        {"actor": {"kind": "user", "id": "x"}, "expiresAt": "2030-01-01T00:00:00"},
        {"actor": {"kind": "user", "id": "x"}, "projects": {"write": [f"p{n}" for n in range(50)]}},
        {"actor": {"kind": "user", "id": "x"}, "orgs": {"read": [f"o{n}" for n in range(99)]}},
    ],
)  # fmt: skip
def test_a_token_that_is_not_well_described_is_not_made(service: TenantService, body: Any) -> None:
    before = len(service.admin.call("GET", TOKENS).json["data"])
    assert service.admin.call("POST", TOKENS, body).status == 400
    assert len(service.admin.call("GET", TOKENS).json["data"]) == before


def test_a_token_may_reach_exactly_a_hundred_containers(service: TenantService) -> None:
    made = make(service.admin, orgs={"read": [f"o{n}" for n in range(98)]})
    assert service.admin.as_(made["token"]).call("GET", "/v1/memory/facts").status == 200
