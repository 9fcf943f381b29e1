"""What the template refuses before anything is made: settings that would deploy and then not work."""

import re

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
        "EmbeddingsUrl",
        "EmbeddingsModel",
        "EmbeddingsApiKeyKmsKeyArn",
        "RefreshSecretsKmsKeyArn",
        "RefreshBuckets",
        "RefreshObjectArns",
        "RefreshFunctions",
        "RefreshFunctionArns",
    ],
)
def test_half_of_what_belongs_together_is_refused_with_the_name_of_the_other_half(name: str) -> None:
    with pytest.raises(TemplateError, match=name):
        Template(TEMPLATE, PSEUDO, {name: OPTIONS[name]})


def test_every_parameter_that_goes_with_another_is_in_a_rule() -> None:
    """What says of itself that it belongs to another one does nothing without that, or makes the deployment fail half-way."""
    text = TEMPLATE.read_text(encoding="utf-8")
    parameters = text.partition("Parameters:")[2].partition("Conditions:")[0]
    rules = text.partition("\nRules:")[2].partition("\nGlobals:")[0]
    together = re.findall(r"\n  (\w+):\n(?:    .*\n)*?    Description: .*goes with (\w+)\.", parameters)
    assert ("RefreshObjectArns", "RefreshBuckets") in together
    for pair in together:
        assert all(f"!Ref {name}," in rules for name in pair), pair


SEARCHES = {
    "none": {},
    "dynamodb": {"VectorDimensions": "384", "Embeddings": "built-in"},
    "existing": {name: OPTIONS[name] for name in ("OpenSearchUrl", "OpenSearchDomainArn")},
    "new": {},
}


@pytest.mark.parametrize("search", SEARCHES)
def test_each_search_is_given_what_it_needs_and_nothing_of_another(search: str) -> None:
    Template(TEMPLATE, PSEUDO, {"Search": search, **SEARCHES[search]})
    for other, given in SEARCHES.items():
        for name, value in given.items():
            if name != "Embeddings" and other != search:
                with pytest.raises(TemplateError, match=f"{name}.* Search {other}"):
                    Template(TEMPLATE, PSEUDO, {"Search": search, **SEARCHES[search], name: value})
    for missing in SEARCHES[search]:
        with pytest.raises(TemplateError, match=f"{missing}.* with"):
            Template(
                TEMPLATE,
                PSEUDO,
                {"Search": search, **{k: v for k, v in SEARCHES[search].items() if k != missing}},
            )


def test_an_update_that_names_an_index_and_no_search_is_told_which_search_it_is() -> None:
    """The parameters that a deployment had before there was `Search`."""
    with pytest.raises(TemplateError, match="Search existing"):
        Template(TEMPLATE, PSEUDO, SEARCHES["existing"])
    with pytest.raises(TemplateError, match="Search dynamodb"):
        Template(TEMPLATE, PSEUDO, SEARCHES["dynamodb"])


def test_each_kind_of_embeddings_is_given_what_it_needs_and_nothing_of_another() -> None:
    url, model = {"EmbeddingsUrl": "https://e.example"}, {"EmbeddingsModel": "m"}
    whole = {"openai-compat": url | model, "bedrock": model, "built-in": {}, "": {}}
    for kind, needed in whole.items():
        Template(TEMPLATE, PSEUDO, {"Embeddings": kind, **needed})
        for other in (url | model, url, model, {}):
            if other != needed:
                with pytest.raises(TemplateError, match="belongs to Embeddings"):
                    Template(TEMPLATE, PSEUDO, {"Embeddings": kind, **other})


@pytest.mark.parametrize("wrong", ["-1", "4097", "many"])
def test_vectors_have_a_size_that_an_index_takes(wrong: str) -> None:
    chosen = {"Search": "dynamodb", "Embeddings": "built-in", "VectorDimensions": wrong}
    with pytest.raises(TemplateError, match="VectorDimensions"):
        Template(TEMPLATE, PSEUDO, chosen)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("CheckpointLockDays", ["1", "36500"], ["0", "36501", "365.5"]),
        ("LogRetentionDays", ["1", "400", "3653"], ["0", "2", "36500"]),
    ],
)
def test_a_number_that_the_service_behind_it_would_refuse_is_refused(
    name: str, good: list[str], bad: list[str]
) -> None:
    for value in good:
        Template(TEMPLATE, PSEUDO, {name: value})
    for value in bad:
        with pytest.raises(TemplateError, match=name):
            Template(TEMPLATE, PSEUDO, {name: value})


def test_every_number_that_a_deployment_chooses_has_both_ends() -> None:
    text = TEMPLATE.read_text(encoding="utf-8").partition("Parameters:")[2].partition("Conditions:")[0]
    declared = {part.partition(":")[0]: part for part in re.split(r"\n  (?=\w+:\n)", text)}
    numbers = {name: each for name, each in declared.items() if "Type: Number" in each}
    assert {"CheckpointLockDays", "LogRetentionDays"} <= numbers.keys()
    for name, each in numbers.items():
        assert "AllowedValues:" in each or ("MinValue:" in each and "MaxValue:" in each), name


def test_the_functions_that_may_call_the_domain_are_those_that_its_policy_lets_in() -> None:
    template = Template(TEMPLATE, PSEUDO, OPTIONS)
    calling = {
        f"{role.removesuffix('Role')}Function"
        for role, properties in template.of_type("AWS::IAM::Role").items()
        if "es:ESHttp" in str(template.resolve(properties["Policies"]))
    }
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (paragraph,) = [text for text in page.split("\n\n") if text.startswith("**`existing`**")]

    assert calling == {"RetrieveFunction", "IndexFunction", "ReadFunction", "EraseFunction"}
    assert [name for name in calling if f"`{name}`" not in paragraph] == []
