"""What callers get about where a fact comes from."""

from typing import Annotated, Any, Literal

from pydantic import Field

from factbook.domain.fields import CamelModel


class ProvenanceNode(CamelModel):
    """A revision, a log entry, or `unavailable`: what is not there and what you may not read look alike."""

    node: Literal["fact", "log-entry", "unavailable"]
    id: str
    fact_id: str | None = None
    version: int | None = None
    type: str | None = None
    trust: str | None = None
    recorded_at: str | None = None
    attributed_to: dict[str, Any] | None = None
    generated_by: dict[str, Any] | None = None
    kind: str | None = None
    run_id: str | None = None
    sequence: int | None = None
    actor: str | None = None
    timestamp: str | None = None
    entry_hash: str | None = None
    payload_erased_at: str | None = None
    payload_sealed: Literal[True] | None = None


class ProvenanceEdge(CamelModel):
    """`from` was caused by, or supersedes, `to`."""

    from_: Annotated[str, Field(alias="from")]
    to: str
    relation: Literal["caused-by", "supersedes"]


class ProvenanceAnswer(CamelModel):
    """Where a fact comes from, nearest first. `truncated`: there is more than 200 nodes."""

    fact_id: str
    nodes: list[ProvenanceNode]
    edges: list[ProvenanceEdge]
    truncated: bool
