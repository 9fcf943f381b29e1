"""A source of the world outside: an HTTP server on a socket that answers what a test says, byte for byte."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from factbook.adapters.sources.connecting import Limits
from factbook.adapters.sources.fetching import Fetcher, Reply, Request
from factbook.adapters.sources.urls import Allowed, read_url
from factbook.ports.deadline import Deadline

CRLF = b"\r\n"


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire; header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Exchange:
    """One request, and the socket to answer it on. Whatever is sent to a peer that has gone ends the exchange."""

    request: Received
    peer: socket.socket
    stopped: threading.Event
    sent: int = 0

    def send(self, data: bytes) -> None:
        self.peer.sendall(data)
        self.sent += len(data)

    def drip(self, data: bytes, seconds: float = 0.02) -> None:
        """A byte at a time, for as long as somebody listens; the last byte again and again."""
        for place in range(1_000_000):
            if self.stopped.wait(seconds):
                return
            self.send(data[min(place, len(data) - 1) :][:1])

    def hang(self) -> None:
        """Nothing more, until the peer goes."""
        with contextlib.suppress(OSError):
            while self.peer.recv(1 << 16):
                pass


Behaviour = Callable[[Exchange], None]


def reply(status: int, body: bytes = b"", **headers: str) -> bytes:
    """An answer as bytes. Headers are named as in Python, `content_type`; a length and `connection: close` come with them."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named = {"connection": "close", "content-length": str(len(body))} | named
    lines = [f"HTTP/1.1 {status} Status".encode()]
    lines += [f"{name}: {value}".encode() for name, value in named.items()]
    return CRLF.join([*lines, b"", body])


def json_reply(text: str, **headers: str) -> bytes:
    return reply(200, text.encode(), content_type="application/json", **headers)


@dataclass
class SourceServer:
    """`behaviours` by path; a path without one is 404. `tls`: with the context of a server."""

    tls: ssl.SSLContext | None = None
    behaviours: dict[str, Behaviour | bytes] = field(default_factory=dict)
    requests: list[Received] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._peers: list[socket.socket] = []
        self._threads[0].start()

    @property
    def netloc(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def stop(self) -> None:
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._peers.append(peer)
            thread = threading.Thread(target=self._serve, args=(peer,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(peer)
            if self.tls is not None:
                peer = stack.enter_context(self.tls.wrap_socket(peer, server_side=True))
            request = _read(peer)
            if request is None:
                return
            exchange = Exchange(request, peer, self._stopped)
            self.requests.append(request)
            self.exchanges.append(exchange)
            behaviour = self.behaviours.get(request.target.partition("?")[0], reply(404))
            if isinstance(behaviour, bytes):
                exchange.send(behaviour)
            else:
                behaviour(exchange)
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_WR)
            exchange.hang()  # or what was not read yet would make the system cut the answer off


def _read(peer: socket.socket) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(1 << 16)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += peer.recv(1 << 16)
    method, target, _ = first.split(" ")
    return Received(method, target, headers, body)


@contextlib.contextmanager
def source_server(tls: ssl.SSLContext | None = None) -> Iterator[SourceServer]:
    server = SourceServer(tls)
    try:
        yield server
    finally:
        server.stop()


def fetch(
    server: SourceServer,
    path: str,
    *,
    allow: str | None = None,
    limits: Limits | None = None,
    deadline: Deadline | None = None,
    **request: Any,
) -> Reply:
    """Ask a server of this machine, which is opened for it; `request`: what else the request has."""
    fetcher = Fetcher(Allowed.read([server.netloc] if allow is None else allow.split(",")), limits=limits)
    asked = Request(read_url(server.url(path)), **{"wants_body": lambda _: True, **request})
    return fetcher.fetch(asked, deadline or Deadline(30))
