"""Connections to checked addresses: a host is resolved here, every address of it is judged, and those are connected to.

Nobody resolves the name a second time. TLS and the Host header go on using the name.
"""

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Thread
from typing import Any

import httpcore2

from factbook.adapters.sources.bodies import MAX_BYTES
from factbook.adapters.sources.networks import refusal_of
from factbook.adapters.sources.urls import literal_address
from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import SourceRefused, SourceUnavailable

Resolver = Callable[[str, int, float], Sequence[str]]
"""The addresses of (host, port), within so many seconds. Raises SourceUnavailable; StorageUnavailable when none is looked up now."""

OUT_OF_TIME = "the source did not answer in time"
MOST_ADDRESSES = 4
"""Of one host, that are tried one after another."""

_RESOLVING = BoundedSemaphore(16)
"""The system's look-up cannot be stopped: so many may go on after nobody waits for them."""


@dataclass(frozen=True)
class Limits:
    """Of one question to a source. `silence_seconds`: without a byte. `body_bytes`: as sent, and again as unpacked."""

    seconds: float = 10.0
    connect_seconds: float = 2.0
    silence_seconds: float = 5.0
    body_bytes: int = MAX_BYTES
    redirects: int = 5

    head_bytes: int = 256 * 1024
    """Before the body: a head, and others that only announce one."""

    @property
    def wire_bytes(self) -> int:
        return 2 * self.body_bytes


class Allowance:
    """How many bytes may still come; beyond them `problem` is raised."""

    def __init__(self, left: int, problem: Exception) -> None:
        self.left = left
        self.problem = problem

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise self.problem


def resolve(host: str, port: int, seconds: float) -> Sequence[str]:
    """What the system's resolver says."""
    if not _RESOLVING.acquire(blocking=False):
        raise StorageUnavailable  # for other names' sake: no failure of this host's
    answers: SimpleQueue[list[str] | OSError] = SimpleQueue()
    Thread(target=_look_up, args=(host, port, answers), daemon=True).start()
    try:
        found = answers.get(timeout=seconds)
    except Empty:
        raise SourceUnavailable("the host's name was not resolved in time") from None
    if isinstance(found, OSError):
        raise SourceUnavailable("the host's name is not known")
    return found


def _look_up(host: str, port: int, answers: "SimpleQueue[list[str] | OSError]") -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        answers.put([str(address[0]) for *_, address in found])
    except OSError as error:
        answers.put(error)
    finally:
        _RESOLVING.release()


class CheckedBackend(httpcore2.NetworkBackend):
    """Connects for one request. `opened`: an operator named the host, so it may be private. `allowance`: of what comes."""

    def __init__(self, resolver: Resolver, deadline: Deadline, allowance: Allowance, *, opened: bool) -> None:
        self._resolver = resolver
        self._deadline = deadline
        self._allowance = allowance
        self._opened = opened
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """A stream to the first address that takes the connection. Raises SourceRefused, SourceUnavailable."""
        problem: Exception = SourceUnavailable("the host's name is not known")
        for address in self._addresses(host, port, remaining(self._deadline, timeout)):
            try:
                stream = self._sockets.connect_tcp(
                    address,
                    port,
                    remaining(self._deadline, timeout),
                    local_address,
                    socket_options,
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
            else:
                return BoundedStream(stream, self._deadline, self._allowance)
        raise problem

    def _addresses(self, host: str, port: int, within: float) -> Sequence[str]:
        """In the order of the resolver. One that may not be asked condemns the host: honest names have none."""
        literal = literal_address(host)
        found = [literal] if literal else map(ip_address, self._resolver(host, port, within))
        addresses = list(dict.fromkeys(found))
        for address in addresses:
            if refusal := refusal_of(address, opened=self._opened):
                raise SourceRefused(refusal)
        return [str(address) for address in addresses[:MOST_ADDRESSES]]


class BoundedStream(httpcore2.NetworkStream):
    """A stream that ends by the deadline, and when its allowance is used up.

    A time-out is of one silence, and a peer that drips bytes never makes one; framing can be many times what it frames.
    """

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline, allowance: Allowance) -> None:
        self._stream = stream
        self._deadline = deadline
        self._allowance = allowance

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._stream.read(max_bytes, remaining(self._deadline, timeout))
        self._allowance.take(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, remaining(self._deadline, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        try:
            within = remaining(self._deadline, timeout)
        except SourceUnavailable:
            self.close()
            raise
        stream = self._stream.start_tls(ssl_context, server_hostname, within)
        return BoundedStream(stream, self._deadline, self._allowance)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def remaining(deadline: Deadline, seconds: float | None) -> float:
    """So many seconds, or what is left of the deadline. Raises SourceUnavailable when that is nothing."""
    left = deadline.left
    if left <= 0:
        raise SourceUnavailable(OUT_OF_TIME)
    return left if seconds is None else min(left, seconds)
