"""What every embedder over a network does alike: batches, refusals found by halves, prefixes, vectors that are checked."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Purpose, Vector

MAX_TEXTS = 64
MAX_CHARACTERS = 200_000

PLAIN_WORD = "word"
"""No model refuses it for what it says."""

REFUSED_TEXT = EmbeddingFailure("the endpoint refused the text", refused=True)


@dataclass(frozen=True)
class Prefixes:
    """What stands before each text, a space between, for models that were trained so (`query:` and `passage:`)."""

    query: str = ""
    document: str = ""

    def before(self, text: str, purpose: Purpose) -> str:
        prefix = self.query if purpose == "query" else self.document
        return f"{prefix} {text}" if prefix else text


@dataclass(frozen=True)
class Asking:
    """How texts are to be embedded. `deadline`: of `time.monotonic`; None where nobody waits."""

    model: str
    dimensions: int | None = None
    deadline: float | None = None
    purpose: Purpose = "document"

    def left(self) -> float | None:
        """Seconds that are left. Raises EmbeddingsUnavailable when there are none."""
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise EmbeddingsUnavailable("no answer (out of time)")
        return left


class BatchingEmbedder(ABC):
    """Batches texts, and checks every vector before anybody keeps it."""

    max_texts = MAX_TEXTS

    def __init__(self, model: str, prefixes: Prefixes | None = None) -> None:
        self._model = model
        self._prefixes = prefixes or Prefixes()

    @property
    def model(self) -> str:
        return self._model

    def embed(
        self,
        texts: Sequence[str],
        dimensions: int | None = None,
        *,
        model: str | None = None,
        within: float | None = None,
        purpose: Purpose = "document",
    ) -> list[Vector | EmbeddingFailure]:
        deadline = None if within is None else time.monotonic() + within
        asking = Asking(model or self.model, dimensions, deadline, purpose)
        said = [self._prefixes.before(text, purpose) for text in texts]
        made = [
            result for batch in _batches(said, self.max_texts) for result in self._embed_batch(batch, asking)
        ]
        if made and all(isinstance(result, EmbeddingFailure) and result.refused for result in made):
            self._check_that_it_takes_any(asking)
        return made

    @abstractmethod
    def _ask(self, texts: Sequence[str], asking: Asking) -> list[Any] | None:
        """What the endpoint gave for each text, in order; None when it refused what is in the request, or in place of a
        text's vector REFUSED_TEXT where it is known to be that one.

        Raises EmbeddingsUnavailable.
        """

    def _check_that_it_takes_any(self, asking: Asking) -> None:
        """Raises EmbeddingsUnavailable when the endpoint refuses a plain word too: then no text is to blame."""
        if self._ask([PLAIN_WORD], asking) is None:
            raise EmbeddingsUnavailable("refuses every text")

    def _embed_batch(self, texts: Sequence[str], asking: Asking) -> list[Vector | EmbeddingFailure]:
        answer = self._ask(texts, asking)
        if answer is not None:
            return [checked(vector, asking.dimensions) for vector in answer]
        # The endpoint refused the batch for what is in it: halves find the text, the others get their vectors.
        if len(texts) == 1:
            return [REFUSED_TEXT]
        half = len(texts) // 2
        return [result for part in (texts[:half], texts[half:]) for result in self._embed_batch(part, asking)]


def checked(vector: Any, dimensions: int | None) -> Vector | EmbeddingFailure:
    """The vector with length 1, or why no index can hold it."""
    if isinstance(vector, EmbeddingFailure):
        return vector
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


def _batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        if batch and (len(batch) == most or sum(map(len, batch)) + len(text) > MAX_CHARACTERS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch
