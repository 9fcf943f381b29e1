"""What each value of `Search` makes: which index, who may call it, what its functions are told, and what calls a person."""

from typing import Any

import pytest

from factbook_local.template import Template, TemplateError

from .conftest import DOMAIN, PSEUDO, ROOT, functions_of
from .test_roles import grants_of, role_of

TEMPLATE = ROOT / "template.yaml"
TOPIC = {"AlarmTopicArn": "arn:aws:sns:eu-central-1:123456789012:on-call"}
URL = "https://search.example"
CHOICES = {
    "none": {},
    "dynamodb": {"VectorDimensions": "512", "Embeddings": "built-in"},
    "existing": {"OpenSearchUrl": URL, "OpenSearchDomainArn": DOMAIN},
    "new": {},
}
SEARCHING = {"ReadFunction", "RetrieveFunction", "IndexFunction", "EraseFunction"}
MADE = "arn:aws:es:eu-central-1:123456789012:domain/factbook"


def choosing(search: str, **others: str) -> Template:
    return Template(TEMPLATE, PSEUDO, {"Search": search, **CHOICES[search], **others})


def properties_of(template: Template, name: str) -> dict[str, Any]:
    properties = template.resolve(template.resources[name]["Properties"])
    assert isinstance(properties, dict)
    return properties


@pytest.mark.parametrize("search", CHOICES)
def test_a_choice_makes_its_own_index_and_none_of_another(search: str) -> None:
    made = choosing(search, **TOPIC).resources.keys() - choosing("none", **TOPIC).resources.keys()

    assert {name for name in made if not name.endswith("Alarm")} == {
        "dynamodb": {"VectorsTable"},
        "new": {"SearchDomain", "SearchAdminRole"},
    }.get(search, set())
    assert bool({name for name in made if name.endswith("Alarm")}) == (search == "new")


@pytest.mark.parametrize(
    ("search", "told"),
    [
        ("none", ("", "", "", "")),
        ("dynamodb", ("", "", "factbook-VectorsTable", "512")),
        ("existing", (URL, DOMAIN, "", "")),
        ("new", ("https://SearchDomain.DomainEndpoint", "SearchDomain.Arn", "", "")),
    ],
)
def test_functions_that_search_are_told_where_and_no_others(search: str, told: tuple[str, ...]) -> None:
    names = ("OPENSEARCH_URL", "OPENSEARCH_DOMAIN_ARN", "VECTORS_TABLE", "VECTOR_DIMENSIONS")
    seen = {
        name: tuple(function["Environment"]["Variables"].get(variable) for variable in names)
        for name, function in functions_of(choosing(search))
    }
    nothing = (None, None, None, None)
    assert seen == {name: told if name in SEARCHING else nothing for name in seen}


@pytest.mark.parametrize(
    ("search", "domain"), [("none", ""), ("dynamodb", ""), ("existing", DOMAIN), ("new", MADE)]
)
def test_roles_may_call_the_domain_that_there_is_and_no_other(search: str, domain: str) -> None:
    template = choosing(search)
    calling = {
        (name, resource)
        for name, function in functions_of(template)
        for resource, actions in grants_of(template, role_of(function)).items()
        if any(action.startswith("es:") for action in actions)
    }
    assert calling == ({(name, f"{domain}/*") for name in SEARCHING} if domain else set())


def test_a_new_domain_lets_in_the_roles_that_may_call_it_and_its_administrators_alone() -> None:
    template = choosing("new")
    (statement,) = properties_of(template, "SearchDomain")["AccessPolicies"]["Statement"]
    allowed = {
        f"{role}.Arn"
        for role in template.of_type("AWS::IAM::Role")
        if any(resource == f"{MADE}/*" for resource in grants_of(template, role))
    }
    assert statement["Effect"] == "Allow"
    assert set(statement["Principal"]["AWS"]) == allowed
    assert allowed == {f"{name.removesuffix('Function')}Role.Arn" for name in SEARCHING} | {
        "SearchAdminRole.Arn"
    }
    assert (statement["Action"], statement["Resource"]) == ("es:ESHttp*", f"{MADE}/*")
    assert properties_of(template, "SearchDomain")["DomainName"] == "factbook"


def test_a_new_domain_is_encrypted_on_disk_between_nodes_and_on_the_way_and_knows_no_passwords() -> None:
    domain = properties_of(choosing("new"), "SearchDomain")

    assert domain["EncryptionAtRestOptions"] == domain["NodeToNodeEncryptionOptions"] == {"Enabled": True}
    assert domain["DomainEndpointOptions"] == {
        "EnforceHTTPS": True,
        "TLSSecurityPolicy": "Policy-Min-TLS-1-2-PFS-2023-10",
    }
    assert domain["AdvancedSecurityOptions"] == {
        "Enabled": True,
        "InternalUserDatabaseEnabled": False,
        "MasterUserOptions": {"MasterUserARN": "SearchAdminRole.Arn"},
    }
    # What it logs could hold what callers search for.
    assert "LogPublishingOptions" not in domain


def test_the_administrators_of_the_domain_are_no_function_and_do_nothing_else() -> None:
    template = choosing("new")
    role = properties_of(template, "SearchAdminRole")
    (trusted,) = role["AssumeRolePolicyDocument"]["Statement"]

    assert "SearchAdminRole" not in {role_of(function) for _, function in functions_of(template)}
    assert trusted["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
    assert grants_of(template, "SearchAdminRole") == {f"{MADE}/*": {"es:ESHttpGet", "es:ESHttpPut"}}
    assert "ManagedPolicyArns" not in role


@pytest.mark.parametrize(("count", "zones"), [("1", None), ("3", 3), ("6", 3), ("9", 3)])
def test_nodes_stand_in_three_zones_unless_there_is_one(count: str, zones: int | None) -> None:
    sizes = {
        "SearchInstanceCount": count,
        "SearchInstanceType": "r7g.large.search",
        "SearchVolumeGiB": "100",
        "SearchDomainName": "facts",
    }
    domain = properties_of(choosing("new", **sizes), "SearchDomain")
    cluster = domain["ClusterConfig"]

    assert (cluster["InstanceType"], cluster["InstanceCount"]) == ("r7g.large.search", count)
    assert cluster["ZoneAwarenessEnabled"] is (zones is not None)
    assert cluster.get("ZoneAwarenessConfig") == (zones and {"AvailabilityZoneCount": zones})
    assert domain["EBSOptions"] == {"EBSEnabled": True, "VolumeType": "gp3", "VolumeSize": "100"}
    assert domain["DomainName"] == "facts"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("Search", "opensearch"),
        ("SearchInstanceCount", "2"),  # no quorum with one of them
        ("SearchInstanceType", "r7g.large"),
        ("SearchVolumeGiB", "9"),
        ("SearchDomainName", "Factbook"),
        ("SearchDomainName", "a" * 29),
    ],
)
def test_what_no_domain_can_be_is_refused(name: str, bad: str) -> None:
    with pytest.raises(TemplateError, match=name):
        Template(TEMPLATE, PSEUDO, {"Search": "new", name: bad})


def test_a_new_domain_outlives_the_stack_unless_told_otherwise() -> None:
    domain = choosing("new").resources["SearchDomain"]

    assert (domain["DeletionPolicy"], domain["UpdateReplacePolicy"]) == (
        {"Ref": "StatefulDeletion"},
        "Retain",
    )
    assert domain["UpdatePolicy"] == {"EnableVersionUpgrade": True}


def test_alarms_of_the_domain_look_at_this_one() -> None:
    alarms = {
        name: properties_of(choosing("new", **TOPIC), name)
        for name in choosing("new", **TOPIC).resources.keys() - choosing("none", **TOPIC).resources.keys()
        if name.endswith("Alarm")
    }
    where = [
        {"Name": "DomainName", "Value": "factbook-SearchDomain"},
        {"Name": "ClientId", "Value": "123456789012"},
    ]
    seen = {}
    for name, alarm in alarms.items():
        metric = alarm
        if "Metrics" in alarm:
            share, used = alarm["Metrics"]
            assert share["Expression"] == "100 * left / (1024 * 10)"
            metric = used["MetricStat"]["Metric"]
        assert (metric["Namespace"], metric["Dimensions"]) == ("AWS/ES", where), name
        seen[name.removesuffix("Alarm")] = metric["MetricName"]
    assert seen == {
        "SearchRed": "ClusterStatus.red",
        "SearchYellow": "ClusterStatus.yellow",
        "SearchStorage": "FreeStorageSpace",
        "SearchMemory": "JVMMemoryPressure",
        "SearchCpu": "CPUUtilization",
        "SearchSnapshots": "AutomatedSnapshotFailure",
    }
