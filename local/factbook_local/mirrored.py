"""The demo's chapter about facts that mirror something outside: a price list on this machine that changes its mind and dies."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .story import Broken, Story, chapter, check, show

TTL_SECONDS = 1


class PriceList:
    """An HTTP server that says one JSON value, and the same tag as long as it is the same value."""

    def __init__(self) -> None:
        self.says: Any = {"price": 19}
        self.asked: list[str] = []
        """What became of each question: its status."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.netloc = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def die(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        prices = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(prices.says).encode()
                tag = f'"{abs(hash(body))}"'
                same = self.headers.get("If-None-Match") == tag
                self.send_response(304 if same else 200)
                self.send_header("ETag", tag)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "0" if same else str(len(body)))
                self.end_headers()
                self.wfile.write(b"" if same else body)
                prices.asked.append("304" if same else "200")

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                """Nothing: the demo tells what it asks."""

        return Handler


@contextlib.contextmanager
def price_list() -> Iterator[PriceList]:
    prices = PriceList()
    try:
        yield prices
    finally:
        with contextlib.suppress(OSError):
            prices.die()


def tell_mirrors(story: Story, prices: PriceList) -> None:
    chapter("A fact mirrors a price list; it says when it may be out of date, and keeps itself from being so")
    source = {
        "kind": "http-api",
        "uri": f"http://{prices.netloc}/prices#/price",
        "freshness": {"ttlSeconds": TTL_SECONDS, "lastVerifiedAt": "2026-01-01T00:00:00Z"},
        "refresh": {"strategy": "on-read"},
    }
    made = {"type": "acme.price", "content": 18, "source": source}
    status, fact = story.call("POST", "/v1/memory/facts", made)
    check(status == 201 and fact["stale"] is True, "a copy of long ago is stale")
    show(
        "a price of long ago is written, with its source", f"{fact['content']}, stale: {fact['staleReason']}"
    )
    path = f"/v1/memory/facts/{fact['id']}"
    read = _read_until(story, path, lambda fact: "stale" not in fact)
    check((read["content"], read["version"]) == (19, 2), "a read asks the source")
    show("GET …/{id}: the read asks the list first", f"{read['content']}, version {read['version']}")
    again = story.call("POST", f"{path}/refresh", {})[1]
    check(again["outcome"] == "unchanged" and prices.asked[-1] == "304", "the same tag is no change")
    show("POST …/refresh, with the tag of before", f"{again['outcome']}, by a {prices.asked[-1]}")
    prices.says = {"price": 23}
    changed = story.call("POST", f"{path}/refresh", {})[1]
    check((changed["outcome"], changed["fact"]["content"]) == ("changed", 23), "a change is a revision")
    cause = story.call("GET", f"/v1/memory/log/{changed['fact']['causedByLogId'][0]}")[1]
    show("the list changes its mind; POST …/refresh", f"{changed['outcome']}: {changed['fact']['content']}")
    show("the log has an entry of it", f"{cause['kind']} by {cause['actor']}")
    prices.die()
    told = _read_until(story, path, lambda fact: fact.get("staleReason") == "source-unavailable")
    check(told["content"] == 23, "the copy is still answered")
    show("the list dies; GET …/{id}", f"{told['content']}, stale: {told['staleReason']}")
    status, refused = story.call("GET", f"{path}?requireFresh=true")
    check(status == 503, "nobody who asks for a fresh answer gets a stale one")
    show("GET …/{id}?requireFresh=true", f"HTTP {status} {refused['error']['code']}")


def _read_until(story: Story, path: str, holds: Callable[[Any], bool]) -> Any:
    """The fact as soon as a read shows it so: its time to live has to pass, and a function that starts may keep a read waiting."""
    for _ in range(200):
        fact = story.call("GET", path)[1]
        if holds(fact):
            return fact
        time.sleep(0.05)
    raise Broken("the fact is as its source says")
