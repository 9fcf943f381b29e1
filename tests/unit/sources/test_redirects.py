"""Where a source leads: every step is checked like the first one, and nothing that was opened or secret goes along."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import pytest
from support.source_server import SourceServer, fetch, json_reply, reply, source_server

from factbook.adapters.sources.fetching import Fetcher, Reply, Request
from factbook.adapters.sources.urls import Allowed, Url, read_url
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import SourceRefused


def led(location: str, status: int = 302) -> bytes:
    return reply(status, b"<html>", location=location, content_type="text/html")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/b", "b", "?b", "//{netloc}/b", "http://{netloc}/b", "/b#fragment"])
def test_a_redirect_is_followed(server: SourceServer, status: int, location: str) -> None:
    server.behaviours["/a"] = lambda exchange: exchange.send(
        json_reply("2")
        if "?b" in exchange.request.target
        else led(location.format(netloc=server.netloc), status)
    )
    server.behaviours["/b"] = json_reply("2")
    assert fetch(server, "/a").body == b"2"


def test_redirects_end(server: SourceServer) -> None:
    server.behaviours["/loop"] = led("/loop")
    with pytest.raises(SourceRefused, match="redirects too often"):
        fetch(server, "/loop")
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data/", "only https is asked"),
        ("https://169.254.169.254/latest/meta-data/", "reserved address"),
        ("https://127.0.0.1/", "private address"),
        ("https://localhost/", "no full name"),
        ("http://127.0.0.1:1/", "only https is asked"),
        ("https://127.1/", "number"),
        ("https://user@example.com/", "user information"),
        ("file:///etc/passwd", "neither https nor http"),
        ("/a b", "space"),
        ("\\\\127.0.0.1\\", "backslash"),
        ("https://exämple.com/", "ASCII"),
        ("/a/%2e%2e/b", "dot segment"),
        ("//[x", "plainly written"),
        ("//[::1].example.com/", "plainly written"),
        ("//[::ffff:127.0.0.1]/", "only https is asked"),
    ],
)
def test_a_redirect_is_checked_like_a_first_address(server: SourceServer, location: str, reason: str) -> None:
    server.behaviours["/a"] = led(location)
    with pytest.raises(SourceRefused, match=reason):
        fetch(server, "/a")
    assert len(server.requests) == 1


def test_a_redirect_without_a_place_and_one_of_a_post_are_refused(server: SourceServer) -> None:
    server.behaviours |= {"/a": reply(302), "/b": led("/c"), "/c": json_reply("1")}
    for path, method in (("/a", "GET"), ("/b", "POST")):
        with pytest.raises(SourceRefused, match="redirects"):
            fetch(server, path, method=method, content=b"")
    assert [each.target for each in server.requests] == ["/a", "/b"]


def test_credentials_go_to_the_host_that_was_asked_alone_and_not_back_to_it(server: SourceServer) -> None:
    with source_server() as other:
        server.behaviours |= {"/a": led("/b"), "/b": led(other.url("/c")), "/d": json_reply("1")}
        other.behaviours["/c"] = led(server.url("/d"))
        asked: list[Url] = []

        def credentials(url: Url) -> Mapping[str, str]:
            asked.append(url)
            return {"Authorization": f"Bearer {url.path}"}

        found = fetch(server, "/a", allow="127.0.0.1", credentials=credentials)
        assert found.body == b"1"
        sent = [each.headers.get("authorization") for each in server.requests]
        assert sent == ["Bearer /a", "Bearer /b", None]
        assert "authorization" not in other.requests[0].headers
        assert [url.path for url in asked] == ["/a", "/b"]


def test_another_host_is_asked_within_a_place_there_however_often_it_leads_to_itself(
    server: SourceServer,
) -> None:
    places: list[str] = []

    @contextmanager
    def place_at(host: str) -> Iterator[None]:
        places.append(f"in {host}")
        yield
        places.append(f"out of {host}")

    with source_server() as other:
        server.behaviours |= {"/a": led("/b"), "/b": led(other.url("/c")), "/e": led(other.url("/f"))}
        other.behaviours |= {"/c": led("/d"), "/d": led(server.url("/e")), "/f": json_reply("1")}
        assert fetch(server, "/a", allow="127.0.0.1", place_at=place_at).body == b"1"
        assert places == [f"in {other.netloc}", f"out of {other.netloc}"] * 2

        asked = len(other.requests)

        def none(_: str) -> NoReturn:
            raise LookupError

        with pytest.raises(LookupError):
            fetch(server, "/a", allow="127.0.0.1", place_at=none)
        assert len(other.requests) == asked, "who finds no place sends nothing"


def test_a_redirect_to_a_name_that_leads_inside_is_refused(server: SourceServer) -> None:
    server.behaviours["/a"] = led("https://inside.example/")
    fetcher = Fetcher(Allowed.read([server.netloc]), resolver=lambda *_: ["10.0.0.1"])
    with pytest.raises(SourceRefused, match="private"):
        fetcher.fetch(Request(read_url(server.url("/a")), lambda _: True), Deadline(30))


class FromOutside(Fetcher):
    """As if `public.example` had answered: no test reaches a host that nobody opened."""

    def _once(self, request: Request, url: Url, *args: object, **kwargs: object) -> Reply:
        if url.host == "public.example":
            return Reply(302, {"location": request.headers["test-location"]})
        return super()._once(request, url, *args, **kwargs)  # type: ignore[arg-type]


def test_a_page_out_there_opens_nothing(server: SourceServer) -> None:
    """What an operator opened is a host that a fact's own URL names. A redirect from elsewhere does not count."""
    server.behaviours["/inside"] = json_reply("1")
    leading = {"test-location": server.url("/inside")}
    for allow, opened in ((server.netloc, False), (f"{server.netloc},public.example", True)):
        fetcher = FromOutside(Allowed.read(allow.split(",")))
        asked = Request(read_url("https://public.example/"), lambda _: True, leading)
        if opened:
            assert fetcher.fetch(asked, Deadline(30)).body == b"1"
        else:
            with pytest.raises(SourceRefused, match="only https"):
                fetcher.fetch(asked, Deadline(30))
    assert len(server.requests) == 1
