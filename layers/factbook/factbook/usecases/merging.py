"""Merge ordered sources, newest first, into pages that one position resumes.

Every source is ordered by the same key, so a position in that order resumes them all, and a page reads at most so many
rows of all of them together, whatever they hold (docs/architecture.md, Paging). Nothing here knows what a row is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Generic, Protocol, TypeVar

from factbook.ports.deadline import NEVER, Deadline
from factbook.usecases.tally import counted

NEWEST = "~"
"""The position before every row."""

THREADS = 16
Item = TypeVar("Item")
Result = TypeVar("Result")


class Ordered(Protocol):
    @property
    def order(self) -> str: ...


Row = TypeVar("Row", bound=Ordered)


@dataclass
class Source(Generic[Row]):
    """One source being merged. `read` answers its rows below a position, newest first, at most so many, and whether more
    remain; `frontier` is how far down it has been read.
    """

    read: Callable[[str, int], tuple[list[Row], bool]]
    frontier: str
    more: bool = True

    def next(self, limit: int) -> list[Row]:
        rows, self.more = self.read(self.frontier, limit)
        if rows:
            self.frontier = rows[-1].order
        return rows


def newest(
    sources: Sequence[Source[Row]],
    keeps: Callable[[Row], bool],
    limit: int,
    most_rows: int,
    deadline: Deadline = NEVER,
    share: float = 1.0,
) -> tuple[list[Row], str | None]:
    """The next rows that are kept, at most `limit`, and the position after them (None when nothing is left).

    Reads at most `most_rows`; there must be one for each source, or nothing is read. When they or the share of the time run
    out first, the page is short, and so it may be when nothing of what was read is kept. Each source is read once at
    least: raises StorageUnavailable when there is no time for that.
    """
    found: dict[str, Row] = {}
    last = deadline.share(share)
    batch, each = list(sources), min(limit, 2 * limit // max(1, len(sources))) + 1
    while batch and most_rows >= len(batch):
        each = min(each, most_rows // len(batch))
        most_rows -= each * len(batch)
        for rows in at_once(partial(_next_rows, each), batch, deadline):
            # By order: what moves from one source to another between two reads is in both.
            found |= {row.order: row for row in rows if keeps(row)}
        batch, each = [] if last.passed else _behind(sources, found, limit), 2 * each
    safe = max((source.frontier for source in sources if source.more), default="")
    whole = [found[order] for order in sorted(found, reverse=True) if order >= safe]
    if len(whole) > limit:
        return whole[:limit], whole[limit - 1].order
    return whole, safe or None


def _next_rows(limit: int, source: Source[Row]) -> list[Row]:
    return source.next(limit)


def at_once(
    call: Callable[[Item], Result], items: Iterable[Item], deadline: Deadline = NEVER
) -> Iterator[Result]:
    """The call of each item, several at a time; results in order. None begins when the deadline has passed: the first
    result that is not there for that raises StorageUnavailable.
    """

    def in_time(item: Item) -> Result:
        deadline.require()
        return call(item)

    return _pool().map(counted(in_time), items)


@cache
def _pool() -> ThreadPoolExecutor:
    """Kept for the life of the process: starting threads would cost a page more than its queries do."""
    return ThreadPoolExecutor(max_workers=THREADS)


def _behind(sources: Sequence[Source[Row]], found: dict[str, Row], limit: int) -> list[Source[Row]]:
    """The sources to read next: of those that may hold a row of this page, the ones the merge waits for longest."""
    needed = sorted(found, reverse=True)[limit] if len(found) > limit else ""
    behind = [source for source in sources if source.more and source.frontier > needed]
    return sorted(behind, key=lambda source: source.frontier, reverse=True)[:THREADS]
