"""The environment of a function, read once by the composition root."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


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
    opensearch_url: str = ""
    opensearch_domain_arn: str = ""
    opensearch_engine: str = "lucene"
    search_sqlite: str = ""
    index_dead_letters: str = ""
    memory_embeddings: str = ""
    memory_embeddings_url: str = ""
    memory_embeddings_model: str = ""
    memory_embeddings_api_key: str = ""
    factbook_build: str = "dev"

    @property
    def searches(self) -> bool:
        """Whether there is to be a search index."""
        return bool(self.search_sqlite or self.opensearch_url)

    @property
    def semantic(self) -> bool:
        return self.memory_embeddings == "openai-compat"

    @property
    def shown_embeddings_url(self) -> str:
        """The URL as logs and answers may show it: without user, password, query and fragment."""
        parts = urlsplit(self.memory_embeddings_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings by upper-case name; the embedding ones also under the prefix `KINDGI_`."""
    found = {}
    for name in Settings.__dataclass_fields__:
        variable = name.upper()
        value = environment.get(variable) or environment.get(f"KINDGI_{variable}")
        if value:
            found[name] = value
    return Settings(**found)
