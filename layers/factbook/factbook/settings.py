"""The environment of a function, read once by the composition root."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from factbook.domain.access.issuers import ASYMMETRIC, is_fetchable

OFF = ("", "none")
LONGEST_SETTLE = 60
EMBEDDINGS = ("openai-compat", "bedrock", "built-in")
BEDROCK_MODELS = ("amazon.titan-embed-text-v2", "cohere.embed-")
"""What the names of Bedrock's models begin with that can be asked."""
BUILT_IN_MODEL = "universal-sentence-encoder-multilingual-3"
ENGINES = ("lucene", "faiss")
MOST_DIMENSIONS = 4096
_HOST = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[1-9][0-9]{0,4})?", re.ASCII | re.IGNORECASE)
_DOMAIN_ARN = re.compile(r"arn:[^:]+:es:[^:]+:\d{12}:domain/[a-z0-9-]+", re.ASCII)

_OF_AN_ENDPOINT = ("memory_embeddings_url", "memory_embeddings_model")


@dataclass(frozen=True)
class Settings:
    """See docs/settings.md. An empty string means: this function does not use it."""

    facts_table: str = ""
    log_table: str = ""
    keys_table: str = ""
    access_table: str = ""
    blobs_bucket: str = ""
    checkpoints_bucket: str = ""
    kms_key_id: str = ""
    checkpoint_signer: str = ""
    checkpoint_origin: str = ""
    checkpoint_function: str = ""
    erasure_ledger_keys: str = ""
    erasure_queue: str = ""
    erasure_settle_seconds: str = "60"
    opensearch_url: str = ""
    opensearch_domain_arn: str = ""
    opensearch_engine: str = "lucene"
    search_sqlite: str = ""
    vectors_table: str = ""
    vector_dimensions: str = ""
    index_dead_letters: str = ""
    memory_embeddings: str = ""
    memory_embeddings_url: str = ""
    memory_embeddings_model: str = ""
    memory_embeddings_api_key: str = ""
    memory_embeddings_query_prefix: str = ""
    memory_embeddings_document_prefix: str = ""
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_claims: str = ""
    oidc_algorithms: str = "RS256,ES256"
    refresh_function: str = ""
    refresh_queue: str = ""
    refresh_dead_letters: str = ""
    refresh_allow: str = ""
    refresh_secrets: str = ""
    refresh_buckets: str = ""
    refresh_functions: str = ""
    factbook_build: str = "dev"

    @property
    def searches(self) -> bool:
        """Whether there is to be a search index."""
        return bool(self.search_sqlite or self.opensearch_url or self.vectors_table)

    @property
    def by_words(self) -> bool:
        """Whether the search index finds by words: DynamoDB's own finds by meaning alone."""
        return bool(self.search_sqlite or self.opensearch_url) or not self.vectors_table

    @property
    def semantic(self) -> bool:
        """Whether search by meaning is on and its settings can be used."""
        return self.memory_embeddings not in OFF and not self.embeddings_problem

    @property
    def embeddings_problem(self) -> str:
        """Why the settings of embeddings cannot be used and what to give; empty when they can."""
        kind, model = self.memory_embeddings, self.memory_embeddings_model
        if kind in OFF or kind == "built-in":
            return ""
        if kind not in EMBEDDINGS:
            return f"MEMORY_EMBEDDINGS must be {', '.join(EMBEDDINGS)} or none, or be left out."
        needed = ("memory_embeddings_model",) if kind == "bedrock" else _OF_AN_ENDPOINT
        for name in needed:
            if not getattr(self, name):
                return f"MEMORY_EMBEDDINGS is on without {name.upper()}: give it, or leave MEMORY_EMBEDDINGS out."
        if kind == "bedrock":
            begins = " or ".join(BEDROCK_MODELS)
            told = f"MEMORY_EMBEDDINGS_MODEL is none of Bedrock's that can be asked: give one that begins with {begins}."
            return "" if model.startswith(BEDROCK_MODELS) else told
        key = self.memory_embeddings_api_key
        if not (key.isascii() and key.isprintable()):
            return "MEMORY_EMBEDDINGS_API_KEY has characters that no header can carry. Copy it again."
        return _url_problem("MEMORY_EMBEDDINGS_URL", self.memory_embeddings_url, "http://localhost:11434/v1")

    @property
    def embedding_model(self) -> str:
        """The model that makes the vectors: the built-in one has a name of its own."""
        return BUILT_IN_MODEL if self.memory_embeddings == "built-in" else self.memory_embeddings_model

    @property
    def search_problem(self) -> str:
        """The same of the search index."""
        if self.opensearch_engine not in ENGINES:
            return f"OPENSEARCH_ENGINE must be {' or '.join(ENGINES)}."
        if self.opensearch_domain_arn and _DOMAIN_ARN.fullmatch(self.opensearch_domain_arn) is None:
            return "OPENSEARCH_DOMAIN_ARN is no ARN of a domain: give arn:aws:es:REGION:ACCOUNT:domain/NAME."
        if not self.by_words:
            return self._vectors_problem
        if not self.opensearch_url:
            return ""
        return _url_problem("OPENSEARCH_URL", self.opensearch_url, "https://search.example:443")

    @property
    def _vectors_problem(self) -> str:
        dimensions = self.vector_dimensions
        if not (
            dimensions.isascii() and dimensions.isdigit() and 1 <= int(dimensions[:6]) <= MOST_DIMENSIONS
        ):
            return f"VECTOR_DIMENSIONS is no size of vectors: give 1 to {MOST_DIMENSIONS}, as VECTORS_TABLE was made for."
        if self.memory_embeddings in OFF:
            return "VECTORS_TABLE is an index by meaning alone: give MEMORY_EMBEDDINGS too, or another search index."
        return ""

    @property
    def sign_on_problem(self) -> str:
        """The same of single sign-on."""
        wanted = {
            "OIDC_ISSUER": self.oidc_issuer,
            "OIDC_AUDIENCE": self.oidc_audience,
            "OIDC_CLAIMS": self.oidc_claims,
        }
        if not any(wanted.values()):
            return ""
        missing = " and ".join(name for name, value in wanted.items() if not value)
        if missing:
            return f"{missing} is missing: give {', '.join(wanted)}, or none of them."
        if not is_fetchable(self.oidc_issuer):
            return "OIDC_ISSUER is no https address: give it as the issuer writes itself into its tokens."
        if not set(listed(self.oidc_algorithms)) <= ASYMMETRIC or not listed(self.oidc_algorithms):
            return f"OIDC_ALGORITHMS is a comma list of {', '.join(sorted(ASYMMETRIC))}."
        return _claims_problem(self.oidc_claims)

    @property
    def checkpoints_problem(self) -> str:
        """The same of what signs checkpoints."""
        kind, _, where = self.checkpoint_signer.partition(":")
        if self.checkpoint_signer and (kind not in ("kms", "file") or not where):
            return "CHECKPOINT_SIGNER names no key: give kms:<key id> or file:<path>."
        if self.checkpoint_signer and not self.checkpoint_origin:
            return "CHECKPOINT_ORIGIN is missing: give the first line of every checkpoint."
        return ""

    @property
    def refresh_problem(self) -> str:
        """The same of what asks sources; such an entry opens nothing."""
        if not all(_HOST.fullmatch(entry) for entry in listed(self.refresh_allow)):
            return "REFRESH_ALLOW is a comma list of host[:port]: write each host as its URL does."
        own = {self.blobs_bucket, self.checkpoints_bucket}
        if any(entry.partition("/")[0] in own for entry in listed(self.refresh_buckets)):
            return "REFRESH_BUCKETS has a bucket that the service keeps its own data in: leave it out."
        return ""

    @property
    def settle_seconds(self) -> float:
        """How long a write may last and a process may use a data key that it holds: an erasure waits so long."""
        return float(LONGEST_SETTLE if self.erasure_problem else int(self.erasure_settle_seconds))

    @property
    def erasure_problem(self) -> str:
        """The same of erasures."""
        text = self.erasure_settle_seconds
        usable = text.isascii() and text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= LONGEST_SETTLE
        return "" if usable else f"ERASURE_SETTLE_SECONDS must be whole seconds, 1 to {LONGEST_SETTLE}."

    @property
    def problems(self) -> list[str]:
        """One line for each part that cannot work: which setting, and what to give. No value is repeated."""
        found = (
            self.embeddings_problem,
            self.search_problem,
            self.sign_on_problem,
            self.checkpoints_problem,
            self.refresh_problem,
            self.erasure_problem,
        )
        return [problem for problem in found if problem]

    @property
    def shown_embeddings_url(self) -> str:
        """The URL as logs and answers may show it: without user, password, query and fragment."""
        parts = urlsplit(self.memory_embeddings_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def listed(setting: str) -> list[str]:
    """The entries of a comma list."""
    return [entry.strip() for entry in setting.split(",") if entry.strip()]


def _claims_problem(claims: str) -> str:
    from factbook.domain.access.claims import ClaimMap  # here: most deployments have no issuer

    try:
        ClaimMap.model_validate_json(claims)
    except ValueError:
        return 'OIDC_CLAIMS does not say which claims mean what: give JSON such as {"tenant": "tid"} (docs/sign-on.md).'
    return ""


def _url_problem(name: str, url: str, example: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none, brackets that do not close
        usable = False
    return "" if usable else f"{name} is no http or https URL: give one such as {example}."


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings by upper-case name; the embedding ones also under the prefix `KINDGI_`. White space around one is no part of it."""
    found = {}
    for name in Settings.__dataclass_fields__:
        variable = name.upper()
        value = environment.get(variable, "").strip() or environment.get(f"KINDGI_{variable}", "").strip()
        if value:
            found[name] = value
    return Settings(**found)


OURS = ("MEMORY_", "OPENSEARCH_", "OIDC_", "REFRESH_", "ERASURE_")
"""What settings begin with that a person gives by hand."""


def misspelt(names: Iterable[str]) -> list[str]:
    """Variables that are nearly the name of a setting, each with that name: they are ignored otherwise unseen."""
    import difflib  # here: functions read settings at every cold start, and none asks for this

    known = {name.upper() for name in Settings.__dataclass_fields__}
    found: list[str] = []
    for name in sorted(names):
        plain = name.removeprefix("KINDGI_")
        if plain.startswith(OURS) and plain not in known:
            meant = difflib.get_close_matches(plain, known, n=1, cutoff=0.85)
            found += [f"There is no setting {name}: is it {meant[0]}?"] if meant else []
    return found
