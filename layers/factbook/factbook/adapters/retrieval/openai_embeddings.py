"""Embeddings from any endpoint that speaks OpenAI's `POST /embeddings`."""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import urllib3
from urllib3.util import Retry, Timeout, parse_url

from factbook.domain.errors import StorageUnavailable, Throttled
from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Vector

MAX_TEXTS = 64
MAX_CHARACTERS = 200_000
_REFUSALS = frozenset({400, 413, 422})
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_MAX_RETRY_AFTER = 20
_READ_BYTES = 1 << 16

PLAIN_WORD = "word"
"""No model refuses it for what it says."""


@dataclass(frozen=True)
class EmbeddingSettings:
    """`api_key` is the key itself or the ARN of a secret that holds it; it is left out of every text form."""

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def shown_url(self) -> str:
        """The URL as logs and the status may show it: without user, password, query."""
        parts = parse_url(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path or ''}"

    @staticmethod
    def checked(kind: str, url: str, model: str, api_key: str = "") -> "EmbeddingSettings | None":
        """The settings MEMORY_EMBEDDINGS, …_URL, …_MODEL and …_API_KEY; None when embeddings are off.

        Raises ValueError when they are on but incomplete, so that a deployment fails at its start.
        """
        if kind in ("", "none"):
            return None
        if kind != "openai-compat":
            raise ValueError("MEMORY_EMBEDDINGS must be openai-compat, none or absent")
        if not url or not model:
            raise ValueError(
                "MEMORY_EMBEDDINGS=openai-compat needs MEMORY_EMBEDDINGS_URL and MEMORY_EMBEDDINGS_MODEL"
            )
        if parse_url(url).scheme not in ("http", "https") or not parse_url(url).host:
            raise ValueError("MEMORY_EMBEDDINGS_URL must be an http or https URL")
        return EmbeddingSettings(url.rstrip("/"), model, api_key or None)


class OpenAICompatibleEmbedder:
    """Batches texts, retries what may pass with backoff and jitter, and checks every vector before anybody keeps it.

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

    @property
    def model(self) -> str:
        return self._settings.model

    def embed(
        self,
        texts: Sequence[str],
        dimensions: int | None = None,
        *,
        model: str | None = None,
        within: float | None = None,
    ) -> list[Vector | EmbeddingFailure]:
        name = model or self.model
        deadline = None if within is None else time.monotonic() + within
        made = [
            result
            for batch in _batches(texts)
            for result in self._embed_batch(batch, dimensions, name, deadline)
        ]
        if made and all(isinstance(result, EmbeddingFailure) and result.refused for result in made):
            self._check_that_it_takes_any(name, deadline)
        return made

    def _check_that_it_takes_any(self, model: str, deadline: float | None) -> None:
        """Raises EmbeddingsUnavailable when the endpoint refuses a plain word too: then no text is to blame."""
        if self._post([PLAIN_WORD], model, deadline) is None:
            raise EmbeddingsUnavailable("refuses every text")

    def _embed_batch(
        self, texts: Sequence[str], dimensions: int | None, model: str, deadline: float | None
    ) -> list[Vector | EmbeddingFailure]:
        answer = self._post(texts, model, deadline)
        if answer is not None:
            return [_checked(vector, dimensions) for vector in _vectors_of(answer, len(texts))]
        # The endpoint refused the batch for what is in it: halves find the text, the others get their vectors.
        if len(texts) == 1:
            return [EmbeddingFailure("the endpoint refused the text", refused=True)]
        half = len(texts) // 2
        halves = texts[:half], texts[half:]
        return [result for part in halves for result in self._embed_batch(part, dimensions, model, deadline)]

    def _post(self, texts: Sequence[str], model: str, deadline: float | None) -> object | None:
        """The parsed answer, None when the request's content was refused."""
        body = json.dumps({"model": model, "input": list(texts), "encoding_format": "float"})
        headers = {"Content-Type": "application/json", **self._authorization()}
        try:
            response = self._http.request(
                "POST",
                f"{self._settings.url}/embeddings",
                body=body.encode(),
                headers=headers,
                preload_content=False,
                **self._patience(deadline),
            )
            data = _read(response, deadline)
        except urllib3.exceptions.HTTPError as error:
            raise EmbeddingsUnavailable(f"no answer ({_cause(error)})") from None
        if response.status in _REFUSALS:
            return None
        if response.status != 200:
            raise EmbeddingsUnavailable(f"answered status {response.status}")
        try:
            parsed: object = json.loads(data)
        except ValueError:
            raise EmbeddingsUnavailable("answered something that is not JSON") from None
        return parsed

    def _patience(self, deadline: float | None) -> dict[str, Any]:
        """How the tries share the time there is. Who waits for a query does not wait for a `Retry-After` of minutes."""
        if deadline is None:
            return {}
        left = deadline - time.monotonic()
        if left <= 0:
            raise EmbeddingsUnavailable("no answer (out of time)")
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
                key = self._secret(key)
            except (Throttled, StorageUnavailable) as error:
                raise EmbeddingsUnavailable("its key could not be read") from error
        return {"Authorization": f"Bearer {key}"}


def _read(response: urllib3.BaseHTTPResponse, deadline: float | None) -> bytes:
    """The body, as it comes in: a timeout is of one silence, and an endpoint that drips never makes one."""
    parts: list[bytes] = []
    while part := response.read1(_READ_BYTES):
        if deadline is not None and time.monotonic() > deadline:
            response.close()
            raise EmbeddingsUnavailable("no answer (out of time)")
        parts.append(part)
    response.release_conn()
    return b"".join(parts)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        if batch and (len(batch) == MAX_TEXTS or sum(map(len, batch)) + len(text) > MAX_CHARACTERS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _vectors_of(answer: object, count: int) -> list[Any]:
    """The embeddings in the order of the texts, whatever order the endpoint listed them in."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise EmbeddingsUnavailable("answered without a list of embeddings")
    placed = {item.get("index", position): item.get("embedding") for position, item in enumerate(data)}
    if sorted(placed, key=str) != sorted(range(count), key=str):
        raise EmbeddingsUnavailable(f"answered {len(data)} embeddings for {count} texts")
    return [placed[position] for position in range(count)]


def _checked(vector: Any, dimensions: int | None) -> Vector | EmbeddingFailure:
    if not isinstance(vector, list) or not all(isinstance(value, int | float) for value in vector):
        return EmbeddingFailure("the endpoint's vector is not a list of numbers")
    if dimensions is not None and len(vector) != dimensions:
        return EmbeddingFailure(f"the endpoint's vector has {len(vector)} dimensions, the index {dimensions}")
    try:
        values = tuple(map(float, vector))
    except OverflowError:
        values = (math.inf,)
    length = math.hypot(*values)
    if not math.isfinite(length):
        return EmbeddingFailure("the endpoint's vector has a value that is not finite")
    if length == 0:
        return EmbeddingFailure("the endpoint's vector is zero")
    return tuple(value / length for value in values)


def _cause(error: Exception) -> str:
    """The kind of an error; its text could repeat the URL."""
    return type(getattr(error, "reason", None) or error).__name__
