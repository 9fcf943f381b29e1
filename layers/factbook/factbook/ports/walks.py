"""Walks over many records in pages, from any record on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Record = TypeVar("Record")


@dataclass(frozen=True)
class Stop(Generic[Record]):
    """One record of a walk; a walk that is given `cursor` goes on behind it."""

    record: Record
    cursor: str


@dataclass(frozen=True)
class WalkPage(Generic[Record]):
    """Some stops, in order, maybe none; `next` resumes behind the whole page, None at the walk's end."""

    stops: Sequence[Stop[Record]]
    next: str | None

    @property
    def records(self) -> list[Record]:
        return [stop.record for stop in self.stops]
