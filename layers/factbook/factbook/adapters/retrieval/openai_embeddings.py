"""Embeddings from any endpoint that speaks OpenAI's `POST /embeddings`."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import urllib3
from urllib3.util import Retry, Timeout, parse_url

from factbook.adapters.bodies import OutOfTime, read_body
from factbook.adapters.retrieval.embedding_batches import Asking, BatchingEmbedder, Prefixes
from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.retrieval.embeddings import EmbeddingsUnavailable

_REFUSALS = frozenset({400, 413, 422})
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_MAX_RETRY_AFTER = 20


@dataclass(frozen=True)
class EmbeddingSettings:
    """`api_key` is the key itself or the ARN of a secret that holds it; it is left out of every text form."""

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    prefixes: Prefixes = field(default_factory=Prefixes)

    @property
    def shown_url(self) -> str:
        """The URL as logs and the status may show it: without user, password, query."""
        parts = parse_url(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path or ''}"


class OpenAICompatibleEmbedder(BatchingEmbedder):
    """Retries what may pass with backoff and jitter.

    `retries` and `timeout` (seconds, of one request) bound the patience: little for a query that a person waits for,
    more for indexing.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        *,
        retries: int = 3,
        timeout: float = 30.0,
        secret: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(settings.model, settings.prefixes)
        self._settings = settings
        self._secret = secret
        self._retries = Retry(
            total=retries,
            allowed_methods=None,
            status_forcelist=_RETRIED,
            backoff_factor=0.2,
            backoff_jitter=0.2,
            retry_after_max=_MAX_RETRY_AFTER,
            redirect=0,
            raise_on_status=False,
        )
        self._http = urllib3.PoolManager(
            timeout=Timeout(connect=min(timeout, 2.0), read=timeout), retries=self._retries
        )

    def _ask(self, texts: Sequence[str], asking: Asking) -> list[Any] | None:
        answer = self._post(texts, asking)
        return None if answer is None else _vectors_of(answer, len(texts))

    def _post(self, texts: Sequence[str], asking: Asking) -> object | None:
        """The parsed answer, None when the request's content was refused."""
        body = json.dumps({"model": asking.model, "input": list(texts), "encoding_format": "float"})
        headers = {"Content-Type": "application/json", **self._authorization()}
        try:
            response = self._http.request(
                "POST",
                f"{self._settings.url}/embeddings",
                body=body.encode(),
                headers=headers,
                preload_content=False,
                **self._patience(asking),
            )
            data = read_body(response, asking.deadline)
        except OutOfTime:
            raise EmbeddingsUnavailable("no answer (out of time)") from None
        except urllib3.exceptions.HTTPError as error:
            raise EmbeddingsUnavailable(f"no answer ({_cause(error)})") from None
        if response.status in _REFUSALS:
            return None
        if response.status != 200:
            raise EmbeddingsUnavailable(f"answered status {response.status}")
        try:
            parsed: object = json.loads(data)
        except (ValueError, RecursionError):
            raise EmbeddingsUnavailable("answered something that is not JSON") from None
        return parsed

    def _patience(self, asking: Asking) -> dict[str, Any]:
        """How the tries share the time there is. Who waits for a query does not wait for a `Retry-After` of minutes."""
        left = asking.left()
        if left is None:
            return {}
        tries = 1 + int(self._retries.total or 0)
        return {
            "timeout": Timeout(total=left / tries),
            "retries": self._retries.new(respect_retry_after_header=False, backoff_max=left / tries / 10),
        }

    def _authorization(self) -> dict[str, str]:
        key = self._settings.api_key
        if key is None:
            return {}
        if self._secret is not None and key.startswith("arn:"):
            try:
                key = self._secret(key).strip()  # a secret that was made of a file ends with the file's line
            except (Throttled, StorageUnavailable) as error:
                raise EmbeddingsUnavailable("its key could not be read") from error
        if not (key.isascii() and key.isprintable()):  # the header's own error would repeat it
            raise EmbeddingsUnavailable("its key has characters that no header can carry")
        return {"Authorization": f"Bearer {key}"}


def _vectors_of(answer: object, count: int) -> list[Any]:
    """The embeddings in the order of the texts, whatever order the endpoint listed them in."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise EmbeddingsUnavailable("answered without a list of embeddings")
    placed = {item.get("index", position): item.get("embedding") for position, item in enumerate(data)}
    if sorted(placed, key=str) != sorted(range(count), key=str):
        raise EmbeddingsUnavailable(f"answered {len(data)} embeddings for {count} texts")
    return [placed[position] for position in range(count)]


def _cause(error: Exception) -> str:
    """The kind of an error; its text could repeat the URL."""
    return type(getattr(error, "reason", None) or error).__name__
