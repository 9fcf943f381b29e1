"""What turns texts into vectors, as the use cases need it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Vector = tuple[float, ...]
Purpose = Literal["document", "query"]
"""What a text is embedded for: to be found, or to find. Some models want to be told."""


class EmbeddingsUnavailable(Exception):
    """The endpoint gave no usable answer in time. The message names no text, no key and no URL's user part."""


@dataclass(frozen=True, slots=True)
class EmbeddingFailure:
    """Why one text has no vector: the endpoint refused it, or answered something no index can hold.

    `refused`: it will refuse the text again, while it takes others; anything else may pass.
    """

    reason: str
    refused: bool = False


class Embedder(Protocol):
    @property
    def model(self) -> str:
        """The name of the model, which names the space its vectors live in."""
        ...

    def embed(
        self,
        texts: Sequence[str],
        dimensions: int | None = None,
        *,
        model: str | None = None,
        within: float | None = None,
        purpose: Purpose = "document",
    ) -> list[Vector | EmbeddingFailure]:
        """One result per text, in order. A vector has length 1, and `dimensions` numbers when that is given.

        `model` names another model of the same endpoint, while an index of a former one still serves.
        `within` so many seconds, tries and waits together, or EmbeddingsUnavailable: for who waits. Raises EmbeddingsUnavailable when the endpoint as a whole failed.
        """
        ...
