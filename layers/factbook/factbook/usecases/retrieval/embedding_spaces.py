"""Which vectors the search index holds now, asked of the index seldom: it changes when an operator changes the model."""

from collections.abc import Sequence

from factbook.ports.retrieval.embeddings import Embedder, EmbeddingFailure, Vector
from factbook.ports.retrieval.index import EmbeddingSpace, IndexInfo, SearchIndex
from factbook.usecases.caches import TrustedAnswers

TRUSTED_SECONDS = 5.0


class Spaces:
    """The indexes there are, remembered for a few seconds, and the embedder that serves their spaces."""

    def __init__(self, index: SearchIndex, embedder: Embedder) -> None:
        self.embedder = embedder
        self._indexes: TrustedAnswers[str, Sequence[IndexInfo] | None] = TrustedAnswers(
            lambda _: index.indexes() or None, TRUSTED_SECONDS
        )

    def known(self) -> Sequence[IndexInfo]:
        """That there is none is asked anew each time: a first build may have begun."""
        return self._indexes("all") or ()

    def forget(self) -> None:
        """An index was found missing: ask anew."""
        self._indexes.forget()

    def active(self) -> EmbeddingSpace | None:
        """The space of the active index; None while it has no vectors or there is no index."""
        return next((info.space for info in self.known() if info.active), None)

    def embed(
        self, texts: Sequence[str], space: EmbeddingSpace, within: float | None = None
    ) -> list[Vector | EmbeddingFailure]:
        """Vectors of a space, by the model that made it. Raises EmbeddingsUnavailable, also after so many seconds."""
        return self.embedder.embed(texts, space.dimensions, model=space.model, within=within)

    def embed_query(self, texts: Sequence[str], within: float) -> Vector | EmbeddingFailure | None:
        """The mean of the texts' vectors in the active space, its length not scaled; None while there is no space.

        Raises EmbeddingsUnavailable when there is no answer within so many seconds.
        """
        space = self.active()
        if space is None:
            return None
        vectors: list[Vector] = []
        made_of_texts = self.embedder.embed(
            texts, space.dimensions, model=space.model, within=within, purpose="query"
        )
        for made in made_of_texts:
            if isinstance(made, EmbeddingFailure):
                return made
            vectors.append(made)
        return tuple(sum(values) / len(vectors) for values in zip(*vectors, strict=True))
