"""Bodies of answers over HTTP, read as they come in: a timeout is of one silence, and who drips never makes one."""

import time

import urllib3

_READ_BYTES = 1 << 16


class OutOfTime(Exception):
    """The answer went on for longer than there was time."""


def read_body(response: urllib3.BaseHTTPResponse, until: float | None, most: int | None = None) -> bytes:
    """The body, and of one that is longer than `most` that and a little more. `until`: of the monotonic clock.

    Raises OutOfTime, and what urllib3 raises.
    """
    parts: list[bytes] = []
    size = 0
    while part := response.read1(_READ_BYTES):
        parts.append(part)
        size += len(part)
        late = until is not None and time.monotonic() > until
        if late or (most is not None and size > most):
            response.close()
            if late:
                raise OutOfTime
            break
    else:
        response.release_conn()
    return b"".join(parts)
