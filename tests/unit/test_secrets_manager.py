"""The key of an embeddings endpoint, kept in Secrets Manager: read once in a while, and what cannot be read is told."""

import pytest
from support.emulators import Aws

from factbook.adapters.retrieval.secrets_manager import SecretsManager
from factbook.domain.errors import StorageUnavailable


def test_a_secret_is_read_by_its_arn_and_trusted_for_a_while(moto: Aws) -> None:
    client = moto.client("secretsmanager")
    arn = client.create_secret(Name="embeddings", SecretString="first")["ARN"]
    services = moto.services()
    secrets = services.searching._secrets
    assert secrets(arn) == "first"
    client.put_secret_value(SecretId=arn, SecretString="second")
    assert secrets(arn) == "first"
    assert SecretsManager(client).text(arn) == "second"


def test_a_secret_that_cannot_be_read_is_unavailable_whatever_the_reason(moto: Aws) -> None:
    with pytest.raises(StorageUnavailable):
        SecretsManager(moto.client("secretsmanager")).text("arn:aws:secretsmanager:us-east-1:1:secret:none")
