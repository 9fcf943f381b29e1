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
    """Some stops, in order, maybe none; `next` resumes behind the whole page, None at the walk's end.

    `unreadable`: how many records of the page are left out, since they were edited past being read.
    """

    stops: Sequence[Stop[Record]]
    next: str | None
    unreadable: int = 0

    @property
    def records(self) -> list[Record]:
        return [stop.record for stop in self.stops]
