"""Embeddings from a model of Amazon Bedrock, asked by the function's role (`InvokeModel`).

Two bodies are known. Cohere's `embed` models take up to 96 texts and are told what a text is for; Titan's take one text a
request, so that a batch is as many requests, a few at once.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as OutOfTime
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from factbook.adapters.retrieval.embedding_batches import REFUSED_TEXT, Asking, BatchingEmbedder, Prefixes
from factbook.ports.retrieval.embeddings import EmbeddingsUnavailable

AT_ONCE = 8
"""Requests; no more than the client keeps connections."""

COHERE_CHARACTERS = 2_048
"""Of one text: the service refuses a longer one before the model could cut it."""

_TITAN = "amazon.titan-"
"""What the names of its models begin with; `settings.BEDROCK_MODELS` are those that can be chosen."""

_REFUSED = "ValidationException"


@dataclass(frozen=True)
class _Titan:
    """One text a request; the model may be asked for 256, 512 or 1,024 dimensions."""

    texts_a_request = 1

    def body(self, texts: Sequence[str], asking: Asking) -> dict[str, Any]:
        size = {} if asking.dimensions is None else {"dimensions": asking.dimensions}
        return {"inputText": texts[0], "normalize": True, **size}

    def vectors(self, answer: dict[str, Any]) -> list[Any]:
        return [answer["embedding"]]


@dataclass(frozen=True)
class _Cohere:
    """A text of too many tokens is cut at its end by the model, one of too many characters here."""

    texts_a_request = 96

    def body(self, texts: Sequence[str], asking: Asking) -> dict[str, Any]:
        told = "search_query" if asking.purpose == "query" else "search_document"
        said = [text[:COHERE_CHARACTERS] for text in texts]
        return {"texts": said, "input_type": told, "truncate": "END", "embedding_types": ["float"]}

    def vectors(self, answer: dict[str, Any]) -> list[Any]:
        found = answer["embeddings"]
        return list(found["float"] if isinstance(found, dict) else found)


_Family = _Titan | _Cohere


class BedrockEmbedder(BatchingEmbedder):
    """`client` gives a botocore client of `bedrock-runtime` at first use: its configuration bounds one request and its tries."""

    def __init__(self, model: str, client: Callable[[], Any], prefixes: Prefixes | None = None) -> None:
        super().__init__(model, prefixes)
        self._client = client
        self._pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="bedrock")

    def _ask(self, texts: Sequence[str], asking: Asking) -> list[Any] | None:
        family = _family_of(asking.model)
        size = family.texts_a_request
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        client = self._client()
        asked = [self._pool.submit(_invoke, client, family, part, asking) for part in parts]
        try:
            answers = [_awaited(each, asking) for each in asked]
        finally:
            for each in asked:
                each.cancel()  # of what failed, the rest would only stand in the way of the next batch
        if len(answers) == 1:
            return answers[0]
        if size > 1:
            return None if None in answers else [vector for answer in answers for vector in answer or ()]
        return [REFUSED_TEXT if answer is None else answer[0] for answer in answers]


def _invoke(client: Any, family: _Family, texts: Sequence[str], asking: Asking) -> list[Any] | None:
    asking.left()  # it may have waited for its turn
    try:
        answer = client.invoke_model(
            modelId=asking.model,
            body=json.dumps(family.body(texts, asking)),
            contentType="application/json",
            accept="application/json",
        )
        data = answer["body"].read()
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == _REFUSED:
            return None
        raise EmbeddingsUnavailable(f"answered {code}") from None  # its text could repeat ours
    except BotoCoreError as error:
        raise EmbeddingsUnavailable(f"no answer ({type(error).__name__})") from None
    try:
        vectors = family.vectors(json.loads(data))
    except (ValueError, KeyError, TypeError):
        raise EmbeddingsUnavailable("answered without embeddings") from None
    if len(vectors) != len(texts):
        raise EmbeddingsUnavailable(f"answered {len(vectors)} embeddings for {len(texts)} texts")
    return vectors


def _awaited(asked: "Future[list[Any] | None]", asking: Asking) -> list[Any] | None:
    """Who waits does so for no longer than its time; a request that goes on is bounded by its client."""
    try:
        return asked.result(asking.left())
    except OutOfTime:
        raise EmbeddingsUnavailable("no answer (out of time)") from None


def _family_of(model: str) -> _Family:
    return _Titan() if model.startswith(_TITAN) else _Cohere()
