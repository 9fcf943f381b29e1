"""What the template refuses before anything is made: settings that would deploy and then not work."""

import pytest

from factbook_local.template import Template, TemplateError

from .conftest import OPTIONS, PSEUDO, ROOT

TEMPLATE = ROOT / "template.yaml"


def test_nothing_given_and_all_given_are_both_whole() -> None:
    Template(TEMPLATE, PSEUDO)
    Template(TEMPLATE, PSEUDO, OPTIONS)


@pytest.mark.parametrize(
    "name",
    [
        "OpenSearchUrl",
        "OpenSearchDomainArn",
        "Embeddings",
        "EmbeddingsUrl",
        "EmbeddingsModel",
        "EmbeddingsApiKeyKmsKeyArn",
    ],
)
def test_half_of_what_belongs_together_is_refused_with_the_name_of_the_other_half(name: str) -> None:
    with pytest.raises(TemplateError, match=name):
        Template(TEMPLATE, PSEUDO, {name: OPTIONS[name]})


def test_the_functions_that_may_call_the_domain_are_those_that_its_policy_lets_in() -> None:
    template = Template(TEMPLATE, PSEUDO, OPTIONS)
    calling = {
        f"{role.removesuffix('Role')}Function"
        for role, properties in template.of_type("AWS::IAM::Role").items()
        if "es:ESHttp" in str(template.resolve(properties["Policies"]))
    }
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (paragraph,) = [text for text in page.split("\n\n") if "access policy" in text]

    assert calling == {"RetrieveFunction", "IndexFunction", "ReadFunction"}
    assert [name for name in calling if f"`{name}`" not in paragraph] == []
