"""Messages of a thread's name, read from the containers that are asked for, whatever else has that name."""

from collections.abc import Iterator, Sequence

from factbook.ports.deadline import NEVER, Deadline
from factbook.ports.log.entries import LogStore, ThreadPage

MOST_READS = 10
"""Reads of the store for one answer: after the first one, each is a megabyte of the index, most of it maybe others'."""

SECONDS = 3.0
"""After so many no further read is begun."""


def thread_pages(
    store: LogStore,
    tenant: str,
    thread: str,
    containers: Sequence[str] | None,
    position: str,
    rows: int,
    *,
    newest_first: bool,
    most_reads: int = MOST_READS,
    deadline: Deadline = NEVER,
) -> Iterator[ThreadPage]:
    """Pages beyond `position` ("" to start), until the thread's end or until reads or time are used up.

    The first read looks at `rows` rows, which is all there is to pay for where nobody else uses the thread's name; the
    others look at as many as one read holds. `containers`: as of `LogStore.thread`.
    """
    deadline = deadline.within(SECONDS)
    for number in range(most_reads):
        page = store.thread(
            tenant, thread, containers, position, rows if number == 0 else None, newest_first=newest_first
        )
        yield page
        if page.following is None or deadline.passed:
            return
        position = page.following
