"""Which vectors the search index holds now, asked of the index seldom: it changes when an operator changes the model."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from factbook.ports.retrieval.embeddings import Embedder, EmbeddingFailure, Vector
from factbook.ports.retrieval.index import EmbeddingSpace, IndexInfo, SearchIndex

TRUSTED_SECONDS = 5.0


@dataclass
class Spaces:
    """The indexes there are, remembered for a few seconds, and the embedder that serves their spaces."""

    index: SearchIndex
    embedder: Embedder
    _known: Sequence[IndexInfo] = ()
    _asked: float = field(default=float("-inf"))

    def known(self) -> Sequence[IndexInfo]:
        if not self._known or time.monotonic() - self._asked > TRUSTED_SECONDS:
            asked = time.monotonic()
            self._known, self._asked = self.index.indexes(), asked
        return self._known

    def forget(self) -> None:
        """An index was found missing: ask anew."""
        self._known = ()

    def active(self) -> EmbeddingSpace | None:
        """The space of the active index; None while it has no vectors or there is no index."""
        return next((info.space for info in self.known() if info.active), None)

    def embed(self, texts: Sequence[str], space: EmbeddingSpace) -> list[Vector | EmbeddingFailure]:
        """Vectors of a space, by the model that made it. Raises EmbeddingsUnavailable."""
        return self.embedder.embed(texts, space.dimensions, model=space.model)

    def embed_query(self, texts: Sequence[str]) -> Vector | EmbeddingFailure | None:
        """The mean of the texts' vectors in the active space, its length not scaled; None while there is no space.

        Raises EmbeddingsUnavailable.
        """
        space = self.active()
        if space is None:
            return None
        vectors: list[Vector] = []
        for made in self.embed(texts, space):
            if isinstance(made, EmbeddingFailure):
                return made
            vectors.append(made)
        return tuple(sum(values) / len(vectors) for values in zip(*vectors, strict=True))
