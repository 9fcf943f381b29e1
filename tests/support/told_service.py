"""A real server that answers what it is told, one reply after the other."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DROPPED = (0, {}, b"")
OK = (200, {}, b'{"ok":true}')
BUSY = (503, {}, b'{"error":{"code":"storage-unavailable","message":"Try again."}}')


class Service(ThreadingHTTPServer):
    """Answers the given replies one after the other, the last one for ever; keeps what it was asked."""

    daemon_threads = True

    def __init__(self, *replies: tuple[int, dict[str, str], bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.asked: list[tuple[str, str, str | None, bytes]] = []
        self.keys: list[str | None] = []
        """Idempotency-Keys, of each request."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization"), sent))
        self.server.keys.append(self.headers.get("Idempotency-Key"))
        replies = self.server.replies
        status, headers, body = replies.pop(0) if len(replies) > 1 else replies[0]
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - named by the standard library

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def told(*replies: tuple[int, dict[str, str], bytes]) -> Iterator[Service]:
    service = Service(*replies)
    threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
