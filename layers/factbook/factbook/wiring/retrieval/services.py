"""The composition root of the functions that search: what only they carry is imported here, at first use."""

from functools import cached_property, partial
from typing import Any

from factbook.adapters.facts.s3_reader import S3BlobReader
from factbook.adapters.retrieval.dynamodb_backlog import DynamoBacklog
from factbook.adapters.retrieval.embedding_batches import Prefixes
from factbook.adapters.retrieval.openai_embeddings import EmbeddingSettings, OpenAICompatibleEmbedder
from factbook.adapters.retrieval.secrets_manager import SecretsManager
from factbook.adapters.retrieval.sqs_dead_letters import SqsDeadLetters
from factbook.domain.errors import SearchUnavailable
from factbook.domain.retrieval.tokenizer import Tokenizer
from factbook.ports.clock import Clock
from factbook.ports.facts.walks import FactWalk
from factbook.ports.jobs import JobStore
from factbook.ports.policy.store import PolicyStore
from factbook.ports.retrieval.embeddings import Embedder
from factbook.ports.retrieval.index import SearchIndex
from factbook.settings import Settings
from factbook.usecases.caches import TrustedAnswers
from factbook.usecases.facts.ports import FactPorts
from factbook.usecases.retrieval.embedding_spaces import Spaces
from factbook.usecases.retrieval.index_jobs import IndexJobPorts
from factbook.usecases.retrieval.indexing import IndexingPorts
from factbook.usecases.retrieval.messages import MessagePorts
from factbook.usecases.retrieval.recall import RecallPorts
from factbook.usecases.retrieval.searching import SearchPorts
from factbook.wiring.log.services import LogServices

QUERY_PATIENCE = {"retries": 1, "timeout": 2.0}
SECRET_SECONDS = 300.0
INDEXING_PATIENCE = {"retries": 1, "timeout": 8.0}
"""Together less than an invocation keeps in reserve, so that words go in while the endpoint hangs."""


class SearchServices:
    """What retrieval and indexing use; each part is made at first use."""

    def __init__(
        self,
        settings: Settings,
        client: Any,
        clock: Clock,
        policies: PolicyStore,
        facts: FactPorts,
        logs: LogServices,
        walk: FactWalk,
        jobs: JobStore,
    ) -> None:
        self.settings = settings
        self._client = client
        self._clock = clock
        self._policies = policies
        self._facts = facts
        self._logs = logs
        self._walk = walk
        self._job_store = jobs

    @cached_property
    def engine(self) -> SearchPorts:
        return SearchPorts(
            self.index, self.tokenizer, self._spaces(QUERY_PATIENCE), by_words=self.settings.by_words
        )

    @cached_property
    def recall(self) -> RecallPorts:
        logs = self._logs
        return RecallPorts(self.engine, logs.store, logs.entries, logs.vault, logs.erasing)

    @cached_property
    def conversations(self) -> MessagePorts:
        return MessagePorts(self.indexing, self._logs.store, self._logs.vault)

    @cached_property
    def indexing(self) -> IndexingPorts:
        return IndexingPorts(
            index=self.index,
            tokenizer=self.tokenizer,
            blobs=S3BlobReader(self._client("s3")),
            policies=self._policies,
            backlog=self.backlog,
            dead_letters=self.dead_letters,
            spaces=self._spaces(INDEXING_PATIENCE),
        )

    @cached_property
    def dead_letters(self) -> SqsDeadLetters:
        return SqsDeadLetters(self._client("sqs"), self.settings.index_dead_letters)

    @cached_property
    def backlog(self) -> DynamoBacklog:
        return DynamoBacklog(self._client("dynamodb"), self.settings.access_table)

    @cached_property
    def leftovers(self) -> DynamoBacklog:
        return DynamoBacklog(self._client("dynamodb"), self.settings.access_table, of="leftovers-")

    @cached_property
    def jobs(self) -> IndexJobPorts:
        return IndexJobPorts(
            indexing=self.indexing,
            facts=self._facts.facts,
            walk=self._walk,
            jobs=self._job_store,
            clock=self._clock,
            conversations=self.conversations,
            entries=self._logs.entries,
            leftovers=self.leftovers,
        )

    @cached_property
    def _secrets(self) -> TrustedAnswers[str, str]:
        return TrustedAnswers(
            lambda arn: SecretsManager(self._client("secretsmanager")).text(arn), SECRET_SECONDS
        )

    @cached_property
    def tokenizer(self) -> Tokenizer:
        from factbook_search.english import english_tokenizer

        return english_tokenizer()

    @cached_property
    def index(self) -> SearchIndex:
        """Raises SearchUnavailable when the deployment has no search, or one that its settings do not describe."""
        settings = self.settings
        if settings.search_problem:
            raise SearchUnavailable(settings.search_problem)
        if settings.search_sqlite:
            from factbook_search.sqlite_index import SqliteIndex

            return SqliteIndex(settings.search_sqlite)
        if settings.opensearch_url:
            return _opensearch(settings)
        if settings.vectors_table:
            from factbook.adapters.retrieval.dynamodb_index import DynamoIndex

            table, size = settings.vectors_table, int(settings.vector_dimensions)
            return DynamoIndex(self._client("dynamodb"), table, size)
        raise SearchUnavailable(
            "This deployment has no search index. An operator adds one with OPENSEARCH_URL."
        )

    def _spaces(self, patience: dict[str, Any]) -> Spaces | None:
        settings = self.settings
        if not settings.semantic:
            return None
        return Spaces(self.index, self._embedder(patience))

    def _embedder(self, patience: dict[str, Any]) -> Embedder:
        settings = self.settings
        if settings.memory_embeddings == "built-in":
            from factbook_search.built_in_embeddings import BuiltInEmbedder

            return BuiltInEmbedder(settings.embedding_model)
        prefixes = Prefixes(
            settings.memory_embeddings_query_prefix, settings.memory_embeddings_document_prefix
        )
        if settings.memory_embeddings == "bedrock":
            from factbook.adapters.retrieval.bedrock_embeddings import BedrockEmbedder
            from factbook.wiring.clients import bedrock_client

            return BedrockEmbedder(settings.embedding_model, partial(bedrock_client, **patience), prefixes)
        found = EmbeddingSettings(
            settings.memory_embeddings_url.rstrip("/"),
            settings.memory_embeddings_model,
            settings.memory_embeddings_api_key or None,
            prefixes,
        )
        return OpenAICompatibleEmbedder(found, secret=self._secrets, **patience)


def _opensearch(settings: Settings) -> SearchIndex:
    from factbook.wiring.clients import sdk_session
    from factbook_search.opensearch_client import connect
    from factbook_search.opensearch_index import OpenSearchIndex

    # A domain may have an endpoint of its own name, so the URL does not say whose it is.
    arn = settings.opensearch_domain_arn
    client = connect(
        settings.opensearch_url,
        credentials=sdk_session().get_credentials() if arn else None,
        region=arn.split(":")[3] if arn else None,
    )
    return OpenSearchIndex(client, engine="faiss" if settings.opensearch_engine == "faiss" else "lucene")
