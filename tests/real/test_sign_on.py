"""Single sign-on with a real OpenID Connect issuer: discovery, its tokens, rotated keys, and the issuer switched off."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from support import tables
from support.issuer import AUDIENCE, RealIssuer, new_keys, why_not

from factbook.adapters.access.oidc_issuer import OidcIssuer
from factbook.api.access.authentication import Authenticator
from factbook.domain.access.principals import Actor, Principal
from factbook.domain.errors import AuthMissing, StorageUnavailable
from factbook.ports.access.issuers import IssuerUnavailable
from factbook.usecases.access import sign_on
from factbook.wiring.services import Services

CLAIMS = {
    "tenant": "tid",
    "admin": {"claim": "groups", "value": "memory-admins"},
    "writeProjects": {"claim": "groups", "prefix": "project:"},
}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealIssuer]:
    reason = why_not()
    if reason is not None and os.environ.get("CI") != "true":
        pytest.skip(reason)
    assert reason is None, reason
    made = RealIssuer(tmp_path_factory.mktemp("issuer"))
    made.start(new_keys("one"))
    yield made
    made.stop()


@pytest.fixture
def tables_() -> Iterator[None]:
    with mock_aws():
        tables.make_tables(boto3.client("dynamodb"))
        yield


def service(issuer: RealIssuer, **changed: str) -> Authenticator:
    """A new process of the service, with its own memory and the tables of all."""
    own = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "oidc_claims": json.dumps(CLAIMS), **changed}
    return Services(replace(tables.settings(), **own)).authenticator


def enter(door: Authenticator, token: str) -> Principal:
    return door.authenticate({"authorization": f"Bearer {token}"})


@pytest.mark.usefixtures("tables_")
class TestSignOn:
    def test_a_person_who_signed_in_is_that_person_with_the_groups_of_the_issuer(
        self, issuer: RealIssuer
    ) -> None:
        door = service(issuer)
        ann, root = (enter(door, issuer.sign_in(person)["access_token"]) for person in ("ann", "root"))

        assert ann == Principal("acme", Actor(kind="user", id="ann"), writes_projects=frozenset({"apollo"}))
        assert root == Principal("acme", Actor(kind="user", id="root"), admin=True)

    def test_a_program_with_a_secret_is_a_service(self, issuer: RealIssuer) -> None:
        named = {**CLAIMS, "user": "person", "service": "client_id"}
        door = service(issuer, oidc_claims=json.dumps(named))

        assert enter(door, issuer.program_token()) == Principal("acme", Actor(kind="service", id="crm"))

    def test_a_token_for_another_audience_and_an_id_token_are_nobody(self, issuer: RealIssuer) -> None:
        door, signed_in = service(issuer), issuer.sign_in("ann")
        for token in (issuer.program_token("https://other.example.com"), signed_in["id_token"]):
            with pytest.raises(AuthMissing):
                enter(door, token)

    def test_rotated_keys_come_in_and_withdrawn_ones_go(
        self, issuer: RealIssuer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sign_on, "ASK_AGAIN_SECONDS", 0.0)
        door, before = service(issuer), issuer.program_token()
        enter(door, before)
        issuer.stop()
        issuer.start(new_keys("two"))

        assert enter(door, issuer.program_token()).tenant == "acme"
        with pytest.raises(AuthMissing):
            enter(door, before)

    def test_an_issuer_that_is_down_keeps_nobody_out_who_has_a_token(self, issuer: RealIssuer) -> None:
        token = issuer.program_token()
        enter(service(issuer), token)
        issuer.stop()
        try:
            assert enter(service(issuer), token).tenant == "acme"
        finally:
            issuer.start(new_keys("three"))

    def test_another_deployment_that_never_met_the_issuer_says_that_it_is_down(
        self, issuer: RealIssuer
    ) -> None:
        token = issuer.program_token()
        issuer.stop()
        try:
            with pytest.raises(StorageUnavailable, match="sign-in service"):
                enter(service(issuer), token)
        finally:
            issuer.start(new_keys("four"))


def test_an_issuer_under_another_name_is_not_believed(issuer: RealIssuer) -> None:
    with pytest.raises(IssuerUnavailable, match="of another issuer"):
        OidcIssuer(issuer.url.replace("127.0.0.1", "localhost")).published()


@pytest.mark.parametrize(
    "address", ["http://id.example.com", "ftp://127.0.0.1", "https://", "http://127.0.0.1.evil.com", ""]
)
def test_keys_are_fetched_from_https_and_from_this_machine_alone(address: str) -> None:
    with pytest.raises(IssuerUnavailable, match="not https"):
        OidcIssuer(address).published()


def test_an_issuer_that_is_not_there_is_unavailable(issuer: RealIssuer) -> None:
    nowhere: Any = OidcIssuer("http://127.0.0.1:9")
    with pytest.raises(IssuerUnavailable, match="cannot be reached"):
        nowhere.published()
