"""Requests to a search domain are signed for its ARN's region, whatever its endpoint is called."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from factbook.domain.errors import SearchUnavailable
from factbook.settings import Settings
from factbook.wiring.services import Services

ARN = "arn:aws:es:eu-west-1:123456789012:domain/facts"


@contextmanager
def search_endpoint() -> Iterator[tuple[str, list[str]]]:
    """A URL on no AWS host, and the Authorization of each request to it."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("arn", "signed"), [(ARN, True), ("", False)])
def test_a_domain_is_known_by_its_arn(arn: str, signed: bool) -> None:
    with search_endpoint() as (url, seen):
        index = Services(Settings(opensearch_url=url, opensearch_domain_arn=arn)).searching.index
        with pytest.raises(SearchUnavailable):
            index.indexes()

    assert seen
    assert all(("AWS4-HMAC-SHA256" in each and "/eu-west-1/es/" in each) == signed for each in seen)
