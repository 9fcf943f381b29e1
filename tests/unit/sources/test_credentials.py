"""Whose credentials go where: those of the tenant that asks, to the places its secret names, and nowhere else."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from support.emulators import Aws

from factbook.adapters.sources.credentials import (
    SecretTexts,
    TenantCredentials,
    read_places,
    secret_name,
)
from factbook.adapters.sources.urls import read_url
from factbook.ports.sources.handlers import SourceUnavailable

SECRETS = {
    "factbook/sources/acme": {
        "https://api.example": {"Authorization": "Bearer acme"},
        "https://api.example/v2/": {"X-Key": "acme-2"},
        "https://api.example/v3": {"X-Key": "acme-3"},
        "https://API.example:8443/": {"X-Key": "acme-8443"},
        "http://inside.example:8000/a?b": {"X-Key": "acme-inside"},
    },
    "factbook/sources/other": {"https://api.example": {"Authorization": "Bearer other"}},
}


def headers(tenant: str, url: str) -> dict[str, str]:
    credentials = TenantCredentials("factbook/sources/", lambda name: json.dumps(SECRETS.get(name, {})))
    return dict(credentials.headers(tenant, read_url(url)))


@pytest.mark.parametrize(
    ("tenant", "url", "sent"),
    [
        ("acme", "https://api.example/", {"Authorization": "Bearer acme"}),
        ("acme", "https://api.example", {"Authorization": "Bearer acme"}),
        ("acme", "https://API.EXAMPLE:443/v1?q#/p", {"Authorization": "Bearer acme"}),
        ("acme", "https://api.example/v2/x", {"X-Key": "acme-2"}),
        ("acme", "https://api.example/v2", {"Authorization": "Bearer acme"}),
        ("acme", "https://api.example/v3", {"X-Key": "acme-3"}),
        ("acme", "https://api.example/v3?q", {"X-Key": "acme-3"}),
        ("acme", "https://api.example/v3/x", {"X-Key": "acme-3"}),
        ("acme", "https://api.example/v31", {"Authorization": "Bearer acme"}),
        ("acme", "https://api.example:8443/x", {"X-Key": "acme-8443"}),
        ("acme", "http://inside.example:8000/a?b", {"X-Key": "acme-inside"}),
        ("acme", "http://inside.example:8000/a?bc", {}),
        ("acme", "http://inside.example:8000/a", {}),
        ("acme", "http://api.example/", {}),
        ("acme", "https://api.example.org/", {}),
        ("acme", "https://evil.example/?https://api.example/", {}),
        ("acme", "https://api.example:444/", {}),
        ("other", "https://api.example/v2/x", {"Authorization": "Bearer other"}),
        ("nobody", "https://api.example/", {}),
        ("../sources/acme", "https://api.example/", {}),
        ("x/../acme", "https://api.example/", {}),
    ],
)
def test_headers_go_where_the_secret_of_the_tenant_says(tenant: str, url: str, sent: dict[str, str]) -> None:
    assert headers(tenant, url) == sent


@given(st.text(min_size=1, max_size=256), st.text(min_size=1, max_size=256))
def test_two_tenants_have_two_secrets_with_names_that_aws_takes(one: str, other: str) -> None:
    assert (secret_name(one) == secret_name(other)) == (one == other)
    assert 1 <= len(secret_name(one)) <= 256
    assert set(secret_name(one)) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+=.@-"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Bearer token",
        "[]",
        '{"https://a.example": "Bearer token"}',
        '{"https://a.example": {"Authorization": 1}}',
        '{"https://a.example": {"Authorization": "a\\r\\nb: c"}}',
        '{"https://a.example": {"Author ization": "a"}}',
        '{"https://a.example": {"Host": "b.example"}}',
        '{"https://a.example": {"content-length": "1"}}',
        '{"https://a.example": {"X": "é"}}',
        '{"a.example": {"X": "1"}}',
        '{"https://*.example": {"X": "1"}}',
        '{"https://a.example": {"X": "1"}, "https://a.example": {"X": "2"}}',
    ],
)
def test_a_secret_of_another_form_is_told_without_a_word_of_it(text: str) -> None:
    with pytest.raises(SourceUnavailable) as raised:
        read_places(text)
    assert raised.value.reason == "the credentials of the source cannot be read"
    assert raised.value.__suppress_context__


def test_a_secret_is_read_by_its_name_and_none_is_no_headers(moto: Aws) -> None:
    client = moto.client("secretsmanager")
    client.create_secret(Name="factbook/sources/acme", SecretString='{"https://a.example": {"X": "1"}}')
    client.create_secret(Name="factbook/sources/bytes", SecretBinary=b"x")
    credentials = TenantCredentials("factbook/sources/", SecretTexts(client).text)
    url = read_url("https://a.example/b")
    assert credentials.headers("acme", url) == {"X": "1"}
    assert credentials.headers("other", url) == {}
    with pytest.raises(SourceUnavailable):
        credentials.headers("bytes", url)


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "DecryptionFailure"])
def test_a_secret_that_may_not_be_read_is_not_taken_for_none(code: str, moto: Aws) -> None:
    client = moto.client("secretsmanager")

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetSecretValue")

    client.meta.events.register("before-call.secrets-manager.GetSecretValue", refuse)
    with pytest.raises(SourceUnavailable):
        SecretTexts(client).text("factbook/sources/acme")
