"""Large values, one at a time: parsed, a value may take fifty times the memory of its text, and seconds to be judged.

One fact's source is not to end a process that refreshes others' facts beside it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import Deadline

LARGE_BYTES = 256 * 1024
_LONGEST_SECONDS = 60.0
_TURN = Lock()


@contextmanager
def in_turn(size: int, deadline: Deadline) -> Iterator[None]:
    """Within it this thread alone has values of large texts. Raises StorageUnavailable when its turn does not come in time.

    `size`: of the text, in bytes; one that is not large waits for nobody. Nothing of the network belongs in here.
    """
    if size <= LARGE_BYTES:
        yield
        return
    if not _TURN.acquire(timeout=min(deadline.left, _LONGEST_SECONDS)):
        raise StorageUnavailable
    try:
        yield
    finally:
        _TURN.release()
