"""`factbook token`: how the first administrator of a deployed tenant comes in."""

import boto3
import pytest
from moto import mock_aws
from support import tables

from factbook.domain.access.principals import Principal
from factbook.wiring.services import Services
from factbook_cli.main import main


def printed_token(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["token", "--table", tables.settings().access_table, *arguments]) == 0
    return capsys.readouterr().out.strip()


def authenticated(token: str) -> Principal:
    return Services(tables.settings()).authenticator.authenticate({"authorization": f"Bearer {token}"})


@mock_aws
def test_the_token_that_is_printed_is_its_tenants_administrator(capsys: pytest.CaptureFixture[str]) -> None:
    tables.make_tables(boto3.client("dynamodb"))
    token = printed_token(capsys, "--tenant", "acme", "--user", "alice")
    holder = authenticated(token)

    assert (holder.tenant, holder.name, holder.admin) == ("acme", "user:alice", True)


@mock_aws
def test_a_second_token_is_another_one_and_leaves_the_first_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables.make_tables(boto3.client("dynamodb"))
    tokens = [printed_token(capsys, "--tenant", tenant) for tenant in ("acme", "acme", "other")]

    assert len(set(tokens)) == 3
    assert [authenticated(token).tenant for token in tokens] == ["acme", "acme", "other"]
