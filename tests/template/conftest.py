"""The deployment as template.yaml declares it, every option switched on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from factbook_local.template import Template

ROOT = Path(__file__).parents[2]
PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::StackName": "factbook",
    "AWS::URLSuffix": "amazonaws.com",
}
DOMAIN = "arn:aws:es:eu-central-1:123456789012:domain/search"
OPTIONS = {
    "Search": "existing",
    "OpenSearchUrl": "https://search.example",
    "OpenSearchDomainArn": DOMAIN,
    "Embeddings": "openai-compat",
    "EmbeddingsUrl": "https://embeddings.example",
    "EmbeddingsModel": "small",
    "EmbeddingsApiKeyArn": "secret-arn",
    "EmbeddingsApiKeyKmsKeyArn": "secret-key-arn",
    "OidcIssuer": "https://id.example",
    "OidcAudience": "https://memory.example",
    "OidcClaims": '{"tenant": "tid"}',
    "RefreshSecrets": "factbook/",
    "RefreshSecretsKmsKeyArn": "tenants-key-arn",
    "RefreshBuckets": "prices",
    "RefreshObjectArns": "objects-arn",
    "RefreshFunctions": "stock",
    "RefreshFunctionArns": "function-arn",
    "Tracing": "Active",
}


def functions_of(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, properties in template.of_type("AWS::Serverless::Function").items():
        yield name, template.resolve(properties)


@pytest.fixture(scope="session")
def template() -> Template:
    return Template(ROOT / "template.yaml", PSEUDO, OPTIONS)
