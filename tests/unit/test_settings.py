"""Settings that cannot be used say so in one line each, and repeat no value."""

import pytest

from factbook.settings import Settings, misspelt, read_settings

ON = {
    "MEMORY_EMBEDDINGS": "openai-compat",
    "MEMORY_EMBEDDINGS_URL": "http://localhost:11434/v1",
    "MEMORY_EMBEDDINGS_MODEL": "nomic-embed-text",
}
BEDROCK = {"MEMORY_EMBEDDINGS": "bedrock", "MEMORY_EMBEDDINGS_MODEL": "amazon.titan-embed-text-v2:0"}
SEARCH = {"OPENSEARCH_URL": "https://search.example"}
VECTORS = {"VECTORS_TABLE": "v", "VECTOR_DIMENSIONS": "512", "MEMORY_EMBEDDINGS": "built-in"}
SIGNED = {"CHECKPOINT_SIGNER": "kms:1234", "CHECKPOINT_ORIGIN": "factbook.acme"}

SIGN_ON = {
    "OIDC_ISSUER": "https://id.example.com/realms/acme",
    "OIDC_AUDIENCE": "https://memory.example.com",
    "OIDC_CLAIMS": '{"tenant": "tid"}',
}

SOUND = {
    "nothing": {},
    "off": {"MEMORY_EMBEDDINGS": "none"},
    "off, with what it would need": {"MEMORY_EMBEDDINGS_URL": "http://localhost:11434/v1"},
    "on": ON,
    "on, under the schema's names": {f"KINDGI_{name}": value for name, value in ON.items()},
    "with white space from copying": ON | {"MEMORY_EMBEDDINGS": " openai-compat\n"},
    "an address in brackets": ON | {"MEMORY_EMBEDDINGS_URL": "http://[::1]:11434/v1"},
    "built in": {"MEMORY_EMBEDDINGS": "built-in"},
    "a model of Bedrock": BEDROCK,
    "another model of Bedrock": BEDROCK | {"MEMORY_EMBEDDINGS_MODEL": "cohere.embed-multilingual-v3"},
    "prefixes": ON
    | {"MEMORY_EMBEDDINGS_QUERY_PREFIX": "query:", "MEMORY_EMBEDDINGS_DOCUMENT_PREFIX": "passage:"},
    "an index by meaning": VECTORS,
    "a search domain": SEARCH | {"OPENSEARCH_DOMAIN_ARN": "arn:aws:es:eu-west-1:123456789012:domain/d-1"},
    "an issuer": SIGN_ON,
    "an issuer on this machine": SIGN_ON | {"OIDC_ISSUER": "http://127.0.0.1:9000"},
    "an issuer with other signatures": SIGN_ON | {"OIDC_ALGORITHMS": "PS512, EdDSA"},
    "a signer": SIGNED,
    "a signing file": SIGNED | {"CHECKPOINT_SIGNER": "file:/keys/with:colon.pem"},
}
SOUND |= {
    "opened hosts": {"REFRESH_ALLOW": "localhost, api.internal:8443,[::1]:8000 ,10.0.0.7"},
    "buckets and functions": {"REFRESH_BUCKETS": "reports/{tenant}/,notes", "REFRESH_FUNCTIONS": "a,b=arn:x"},
}
REFUSED = {
    "true": (
        {"MEMORY_EMBEDDINGS": "true"},
        "MEMORY_EMBEDDINGS must be openai-compat, bedrock, built-in or none",
    ),
    "openai": (
        ON | {"MEMORY_EMBEDDINGS": "openai"},
        "MEMORY_EMBEDDINGS must be openai-compat, bedrock, built-in or none",
    ),
    "another case": (ON | {"MEMORY_EMBEDDINGS": "OpenAI-compat"}, "MEMORY_EMBEDDINGS must be"),
    "no URL": (ON | {"MEMORY_EMBEDDINGS_URL": ""}, "on without MEMORY_EMBEDDINGS_URL"),
    "no model": (ON | {"MEMORY_EMBEDDINGS_MODEL": " "}, "on without MEMORY_EMBEDDINGS_MODEL"),
    "no model of Bedrock": (BEDROCK | {"MEMORY_EMBEDDINGS_MODEL": ""}, "on without MEMORY_EMBEDDINGS_MODEL"),
    "a model that does not embed": (
        BEDROCK | {"MEMORY_EMBEDDINGS_MODEL": "anthropic.claude"},
        "MEMORY_EMBEDDINGS_MODEL is none of Bedrock's",
    ),
    "no size of vectors": (VECTORS | {"VECTOR_DIMENSIONS": ""}, "VECTOR_DIMENSIONS is no size"),
    "too large a size": (VECTORS | {"VECTOR_DIMENSIONS": "4097"}, "VECTOR_DIMENSIONS is no size"),
    "an index by meaning without one": (VECTORS | {"MEMORY_EMBEDDINGS": ""}, "give MEMORY_EMBEDDINGS too"),
    "a key of two lines": (
        ON | {"MEMORY_EMBEDDINGS_API_KEY": "k3y\nk3y"},
        "MEMORY_EMBEDDINGS_API_KEY has characters",
    ),
    "a key beyond ASCII": (
        ON | {"MEMORY_EMBEDDINGS_API_KEY": "k3y\u65e5"},
        "MEMORY_EMBEDDINGS_API_KEY has characters",
    ),
    "seconds without end": ({"ERASURE_SETTLE_SECONDS": "9" * 5000}, "ERASURE_SETTLE_SECONDS must be"),
    "no scheme": (ON | {"MEMORY_EMBEDDINGS_URL": "localhost:11434/v1"}, "MEMORY_EMBEDDINGS_URL is no http"),
    "another scheme": (ON | {"MEMORY_EMBEDDINGS_URL": "ftp://x/v1"}, "MEMORY_EMBEDDINGS_URL is no http"),
    "no host": (ON | {"MEMORY_EMBEDDINGS_URL": "http:///v1"}, "MEMORY_EMBEDDINGS_URL is no http"),
    "no such port": (ON | {"MEMORY_EMBEDDINGS_URL": "http://x:99999/v1"}, "MEMORY_EMBEDDINGS_URL is no http"),
    "open brackets": (ON | {"MEMORY_EMBEDDINGS_URL": "http://[::1/v1"}, "MEMORY_EMBEDDINGS_URL is no http"),
    "no URL of a search": ({"OPENSEARCH_URL": "localhost:9200"}, "OPENSEARCH_URL is no http or https URL"),
    "another engine": (SEARCH | {"OPENSEARCH_ENGINE": "nmslib"}, "OPENSEARCH_ENGINE must be lucene or faiss"),
    "no ARN": (SEARCH | {"OPENSEARCH_DOMAIN_ARN": "my-domain"}, "OPENSEARCH_DOMAIN_ARN is no ARN"),
    "no signer": (SIGNED | {"CHECKPOINT_SIGNER": "key.pem"}, "CHECKPOINT_SIGNER names no key"),
    "half a signer": (SIGNED | {"CHECKPOINT_SIGNER": "kms:"}, "CHECKPOINT_SIGNER names no key"),
    "a pattern of hosts": ({"REFRESH_ALLOW": "localhost,*.internal"}, "REFRESH_ALLOW is a comma list"),
    "a URL as host": ({"REFRESH_ALLOW": "http://localhost"}, "REFRESH_ALLOW is a comma list"),
    "its own bucket": (
        {"BLOBS_BUCKET": "b", "REFRESH_BUCKETS": "a,b/facts/"},
        "REFRESH_BUCKETS has a bucket",
    ),
    **{f"no {name}": (SIGN_ON | {name: ""}, f"{name} is missing") for name in SIGN_ON},
    "an issuer that is no address": (SIGN_ON | {"OIDC_ISSUER": "id.example.com"}, "OIDC_ISSUER is no https"),
    "an issuer over http": (SIGN_ON | {"OIDC_ISSUER": "http://id.example.com"}, "OIDC_ISSUER is no https"),
    "claims in words": (SIGN_ON | {"OIDC_CLAIMS": "tenant=tid"}, "OIDC_CLAIMS does not say"),
    "claims of no tenant": (SIGN_ON | {"OIDC_CLAIMS": '{"user": "sub"}'}, "OIDC_CLAIMS does not say"),
    "two tenants": (
        SIGN_ON | {"OIDC_CLAIMS": '{"tenant": "tid", "fixedTenant": "acme"}'},
        "OIDC_CLAIMS does not say",
    ),
    "a misspelt claim": (
        SIGN_ON | {"OIDC_CLAIMS": '{"tenant": "tid", "adnin": "x"}'},
        "OIDC_CLAIMS does not say",
    ),
    "a shared secret": (SIGN_ON | {"OIDC_ALGORITHMS": "RS256,HS256"}, "OIDC_ALGORITHMS is a comma list"),
    "no algorithm": (SIGN_ON | {"OIDC_ALGORITHMS": ","}, "OIDC_ALGORITHMS is a comma list"),
    "no origin": ({"CHECKPOINT_SIGNER": "kms:1234"}, "CHECKPOINT_ORIGIN is missing"),
}


@pytest.mark.parametrize("case", SOUND)
def test_settings_that_can_be_used_have_no_problem(case: str) -> None:
    assert read_settings(SOUND[case]).problems == []


@pytest.mark.parametrize("case", REFUSED)
def test_a_setting_that_cannot_be_used_is_named_in_one_line_that_says_what_to_give(case: str) -> None:
    environment, told = REFUSED[case]
    (line,) = read_settings(environment).problems
    assert line.startswith(told) or told in line
    assert line.endswith(".")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("environment", "searches", "by_words"),
    [({}, False, True), (VECTORS, True, False), (SEARCH, True, True), (VECTORS | SEARCH, True, True)],
)
def test_an_index_of_vectors_alone_has_no_words(
    environment: dict[str, str], searches: bool, by_words: bool
) -> None:
    found = read_settings(environment)
    assert (found.searches, found.by_words) == (searches, by_words)


def test_each_part_that_cannot_work_is_said() -> None:
    all_wrong = Settings(memory_embeddings="on", opensearch_url="x", checkpoint_signer="x")
    assert [line.split()[0] for line in all_wrong.problems] == [
        "MEMORY_EMBEDDINGS",
        "OPENSEARCH_URL",
        "CHECKPOINT_SIGNER",
    ]


def test_no_line_repeats_a_value() -> None:
    secret = "s3cr3t"
    names = [name for name in Settings.__dataclass_fields__ if name != "search_sqlite"]
    for name in names:
        given = read_settings(ON | SEARCH | SIGNED | {name.upper(): secret})
        assert secret not in " ".join(given.problems)


def test_prefixes_are_read_under_both_names() -> None:
    for prefix in ("", "KINDGI_"):
        given = {f"{prefix}MEMORY_EMBEDDINGS_{name}_PREFIX": f"{name}: " for name in ("QUERY", "DOCUMENT")}
        found = read_settings(ON | given)
        assert found.memory_embeddings_query_prefix == "QUERY:"
        assert found.memory_embeddings_document_prefix == "DOCUMENT:"


def test_search_by_meaning_is_on_with_settings_that_can_be_used_alone() -> None:
    for on in (ON, BEDROCK, {"MEMORY_EMBEDDINGS": "built-in"}):
        assert read_settings(on).semantic
    for environment in ({}, {"MEMORY_EMBEDDINGS": "none"}, {"MEMORY_EMBEDDINGS": "true"}):
        assert not read_settings(environment).semantic
    assert not read_settings(ON | {"MEMORY_EMBEDDINGS_MODEL": ""}).semantic


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("MEMORY_EMBEDINGS_URL", "MEMORY_EMBEDDINGS_URL"),
        ("MEMORY_EMBEDDING", "MEMORY_EMBEDDINGS"),
        ("MEMORY_EMBEDDINGS_KEY", "MEMORY_EMBEDDINGS_API_KEY"),
        ("KINDGI_MEMORY_EMBEDDINGS_MODELL", "MEMORY_EMBEDDINGS_MODEL"),
        ("OPENSEARCH_URI", "OPENSEARCH_URL"),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_said(given: str, meant: str) -> None:
    assert misspelt([*ON, given]) == [f"There is no setting {given}: is it {meant}?"]


@pytest.mark.parametrize(
    ("given", "meant"), [("REFRESH_ALLOWED", "REFRESH_ALLOW"), ("OIDC_ISSUERS", "OIDC_ISSUER")]
)
def test_what_is_nearly_a_setting_of_another_part_is_said_as_well(given: str, meant: str) -> None:
    assert misspelt([given]) == [f"There is no setting {given}: is it {meant}?"]


def test_variables_of_others_are_let_alone() -> None:
    assert misspelt([*ON, *SEARCH, "KINDGI_MEMORY_EMBEDDINGS", "MEMORY_LIMIT", "PATH"]) == []
    assert misspelt(["OPENSEARCH_INITIAL_ADMIN_PASSWORD", "OPENSEARCH_JAVA_OPTS", "EMBEDDINGS_URL"]) == []
