"""The address that was checked is the one that is connected to, and the certificate is still the name's."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import trustme
from support.source_server import SourceServer, json_reply, source_server

from factbook.adapters.sources.connecting import Limits, resolve
from factbook.adapters.sources.fetching import Fetcher, Reply, Request
from factbook.adapters.sources.urls import Allowed, read_url
from factbook.domain.errors import StorageUnavailable
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import SourceRefused, SourceUnavailable


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def https(authority: trustme.CA) -> Iterator[SourceServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("api.example", "127.0.0.1").configure_cert(context)
    with source_server(context) as running:
        running.behaviours["/a"] = json_reply("1")
        yield running


def trusting(authority: trustme.CA) -> Callable[[], ssl.SSLContext]:
    def make() -> ssl.SSLContext:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    return make


def at_home(*_: object) -> Sequence[str]:
    return ["127.0.0.1"]


def ask_by_name(https: SourceServer, host: str, **fetcher: Any) -> Reply:
    made = Fetcher(Allowed.read([f"{host}:{https.port}"]), **{"resolver": at_home, **fetcher})
    return made.fetch(Request(read_url(https.url("/a", host)), lambda _: True), Deadline(30))


def test_the_address_is_pinned_and_the_certificate_checked_for_the_name(
    https: SourceServer, authority: trustme.CA
) -> None:
    names: list[str | None] = []
    assert https.tls is not None
    https.tls.sni_callback = lambda _socket, name, _context: names.append(name)
    assert ask_by_name(https, "api.example", tls=trusting(authority)).body == b"1"
    assert names == ["api.example"]
    assert https.requests[0].headers["host"] == f"api.example:{https.port}"
    assert ask_by_name(https, "127.0.0.1", tls=trusting(authority)).body == b"1"


def test_a_certificate_of_another_name_or_of_an_unknown_authority_is_no_answer(
    https: SourceServer, authority: trustme.CA
) -> None:
    for host, tls in (
        ("other.example", {"tls": trusting(authority)}),
        ("api.example", {"tls": trusting(trustme.CA())}),
        ("api.example", {}),
    ):
        with pytest.raises(SourceUnavailable, match="certificate"):
            ask_by_name(https, host, **tls)
    assert https.requests == []


@pytest.mark.parametrize(
    ("hello", "reason"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "no TLS"), (b"", "in time")],
    ids=["plain", "silent"],
)
def test_a_server_that_speaks_no_tls_is_no_answer(hello: bytes, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fetcher = Fetcher(Allowed.read(["api.example"]), resolver=at_home, limits=Limits(1.0, 1.0, 1.0))
        asked = Request(read_url(f"https://api.example:{listener.getsockname()[1]}/a"), lambda _: True)
        peers: list[socket.socket] = []

        def greet() -> None:
            peers.append(listener.accept()[0])
            peers[0].sendall(hello)

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(SourceUnavailable, match=reason):
            fetcher.fetch(asked, Deadline(30))
        thread.join()
        peers[0].close()


def test_a_name_that_changes_its_address_between_check_and_use_is_asked_for_it_once(
    https: SourceServer, authority: trustme.CA
) -> None:
    """The second answer would be refused; nobody asks for it, so what was checked is what is connected to."""
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])

    def rebinding(host: str, port: int, seconds: float) -> Sequence[str]:
        return next(answers)

    fetcher = Fetcher(Allowed.read(["api.example"]), resolver=rebinding, tls=trusting(authority))
    request = Request(read_url(https.url("/a", "api.example")), lambda _: True)
    assert fetcher.fetch(request, Deadline(30)).body == b"1"
    with pytest.raises(SourceRefused, match="reserved"):
        fetcher.fetch(request, Deadline(30))
    assert https.connections == 1


def test_the_next_address_is_tried_where_the_first_takes_no_connection(
    https: SourceServer, authority: trustme.CA
) -> None:
    found = ask_by_name(
        https,
        "api.example",
        tls=trusting(authority),
        resolver=lambda *_: ["127.255.0.1", "127.0.0.1", "127.0.0.1"],
    )
    assert found.body == b"1"


def test_a_name_without_addresses_and_one_that_nobody_knows_are_not_available(https: SourceServer) -> None:
    with pytest.raises(SourceUnavailable, match="name is not known"):
        ask_by_name(https, "api.example", resolver=lambda *_: [])
    with pytest.raises(SourceUnavailable, match="name is not known"):
        resolve("does-not-exist.invalid", 443, 30)
    assert "127.0.0.1" in resolve("localhost", 443, 30)


def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: waiting.wait(30) and [])
    try:
        for _ in range(16):
            with pytest.raises(SourceUnavailable, match="in time"):
                resolve("api.example", 443, 0.01)
        with pytest.raises(StorageUnavailable):  # no failure of this host's: its fact is asked for again
            resolve("well.example", 443, 0.01)
    finally:
        waiting.set()
