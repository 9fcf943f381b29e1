"""Where a mirrored fact's value is fetched from: one handler for each way there is."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from factbook.domain.facts.fact import Source
from factbook.ports.deadline import Deadline


@dataclass(frozen=True)
class Ask:
    """One question to a source. `known_hash`: the contentHash of the content the fact has now.

    `place_at`: within it another host is asked that the source leads to. What it raises is no answer: a handler lets it through.
    """

    tenant: str
    fact_id: str
    source: Source
    known_hash: str | None
    place_at: Callable[[str], AbstractContextManager[Any]] = field(
        default=nullcontext, compare=False, repr=False
    )


@dataclass(frozen=True)
class Unchanged:
    """The source says that what is known still holds (304, same version). Validators as they are from now on."""

    etag: str | None = None
    source_version: str | None = None
    max_age_seconds: int | None = None  # from Cache-Control, None when it says nothing


@dataclass(frozen=True)
class Fetched:
    """The source's value, as the JSON text that becomes the fact's content (strictly parsed; text is a JSON string)."""

    content_text: str
    etag: str | None = None
    source_version: str | None = None
    max_age_seconds: int | None = None


@dataclass(frozen=True)
class Asked:
    """A person was asked; the answer comes by supersede or verify."""


Answer = Unchanged | Fetched | Asked


class SourceRefused(Exception):
    """Address, scheme or answer refused for good: not retried. `reason` is short and has no content and no secrets."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AnswerRefused(SourceRefused):
    """The address may be asked, and its answer is none that a fact may have. To whoever asks, that is no usable answer; the
    host is well, so no circuit counts it.
    """


class SourceUnavailable(Exception):
    """No usable answer now. `reason` as above; `retry_after` is in seconds, None when the source did not say."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


class HandlerMissing(Exception):
    """No handler of that id is configured."""


class Handler(Protocol):
    def ask(self, ask: Ask, deadline: Deadline) -> Answer:
        """The source's answer before the deadline. Raises SourceRefused, SourceUnavailable."""
        ...


class Handlers(Protocol):
    def handler(self, source: Source) -> Handler:
        """By `source.refresh.handler`, else the kind's default. Raises HandlerMissing."""
        ...

    def host(self, source: Source) -> str | None:
        """The host (or other endpoint name) that politeness and circuits go by; None when there is none."""
        ...
