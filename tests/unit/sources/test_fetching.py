"""Questions to a real server on a socket: whatever it answers, the asking ends, and takes no more than it may."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from support.source_server import Exchange, SourceServer, fetch, json_reply, reply

from factbook.adapters.sources.connecting import Limits
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import SourceRefused, SourceUnavailable

MB = 1024 * 1024
QUICK = Limits(seconds=1.0, connect_seconds=0.5, silence_seconds=0.3)
TOO_LARGE = "the answer is larger than 4 MB"
LATE = "the source did not answer in time"
BROKEN = "the source's answer is no whole HTTP"


def test_an_answer_comes_with_its_headers_and_body_and_nothing_of_the_machine_is_sent(
    server: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.behaviours["/a"] = json_reply('{"b": 1}', etag='"1"', set_cookie="a=b", x_twice="1\r\nx-twice: 2")
    for _ in range(2):
        found = fetch(server, "/a?q=%20ä", headers={"Accept": "application/json"})
    assert (found.status, found.body) == (200, b'{"b": 1}')
    assert found.headers["etag"] == '"1"'
    assert found.headers["x-twice"] == "1, 2"
    assert server.requests[1].target == "/a?q=%20%C3%A4"
    assert server.requests[1].headers == {
        "host": server.netloc,
        "accept-encoding": "gzip",
        "connection": "close",
        "accept": "application/json",
    }


# ---------------------------------------------------------------- slow and broken


def slow_head(exchange: Exchange) -> None:
    exchange.drip(b"HTTP/1.1 200 OK\r\nx-a: bbbb")


def slow_body(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
    exchange.drip(b'"aaaa')


def slow_chunks(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;")
    exchange.drip(b"aaaa")


def silence(exchange: Exchange) -> None:
    exchange.hang()


@pytest.mark.parametrize("behaviour", [slow_head, slow_body, slow_chunks, silence])
def test_what_takes_too_long_is_given_up(server: SourceServer, behaviour: Callable[[Exchange], None]) -> None:
    server.behaviours["/slow"] = behaviour
    with pytest.raises(SourceUnavailable, match=LATE):
        fetch(server, "/slow", limits=QUICK)


def test_the_deadline_of_whoever_asks_counts_where_it_is_earlier(server: SourceServer) -> None:
    server.behaviours["/slow"] = slow_body
    with pytest.raises(SourceUnavailable, match=LATE):
        fetch(server, "/slow", deadline=Deadline(0.4))
    server.requests.clear()
    with pytest.raises(SourceUnavailable, match=LATE):
        fetch(server, "/slow", deadline=Deadline(0))
    assert server.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x16\x03\x01 hello",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n123",
        b"HTTP/1.1 200 OK\r\ncontent-length: ten\r\n\r\n123",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n123",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n123",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: " + b"b" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 999999 OK\r\n\r\n",
    ],
    ids=lambda answer: ascii(answer[:70]),
)
def test_what_is_no_whole_http_is_no_answer(server: SourceServer, answer: bytes) -> None:
    server.behaviours["/a"] = answer
    with pytest.raises(SourceUnavailable, match=BROKEN):
        fetch(server, "/a")


def test_heads_that_only_announce_an_answer_are_not_read_for_ever(server: SourceServer) -> None:
    def announces(exchange: Exchange) -> None:
        while True:
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" * 100)

    server.behaviours["/a"] = announces
    with pytest.raises(SourceUnavailable, match=BROKEN):
        fetch(server, "/a")


def test_a_host_where_nothing_listens_is_not_available(server: SourceServer) -> None:
    server.stop()
    with pytest.raises(SourceUnavailable, match="cannot be reached"):
        fetch(server, "/a", allow="127.0.0.1")


# ---------------------------------------------------------------- too large


def five_gigabytes(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5368709120\r\n\r\n")
    while True:
        exchange.send(bytes(MB))


def without_end(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        exchange.send(bytes(MB))


def chunks_without_end(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        exchange.send(b"10000\r\n" + bytes(0x10000) + b"\r\n")


def framing_without_end(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        exchange.send((b"1;" + b"a" * 10_000 + b"\r\na\r\n") * 100)


def packed_without_end(exchange: Exchange) -> None:
    pack = zlib.compressobj(0, wbits=31)
    exchange.send(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
    while True:
        exchange.send(pack.compress(b"") + pack.flush(zlib.Z_FULL_FLUSH) * 10_000)


@pytest.mark.parametrize(
    "behaviour", [five_gigabytes, without_end, chunks_without_end, framing_without_end, packed_without_end]
)
def test_a_body_that_is_too_large_is_not_read_to_its_end(
    server: SourceServer, behaviour: Callable[[Exchange], None]
) -> None:
    server.behaviours["/large"] = behaviour
    with pytest.raises(SourceRefused, match=TOO_LARGE):
        fetch(server, "/large")
    server.stop()
    assert server.exchanges[0].sent < 32 * MB  # what the system's buffers take counts too


def bomb(size: int) -> bytes:
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([*(pack.compress(bytes(MB)) for _ in range(size // MB)), pack.flush()])


def test_a_gzip_bomb_takes_no_memory(server: SourceServer) -> None:
    packed = bomb(64 * MB)
    server.behaviours["/bomb"] = reply(200, packed, content_encoding="gzip", content_type="application/json")
    tracemalloc.start()
    try:
        with pytest.raises(SourceRefused, match=TOO_LARGE):
            fetch(server, "/bomb")
        assert tracemalloc.get_traced_memory()[1] < 16 * MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 1, 4 * MB])
@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP", "identity", None])
def test_what_fits_arrives_whole(server: SourceServer, size: int, coding: str | None) -> None:
    body = b"\x01\x02" * (size // 2) + b"x" * (size % 2)
    packed = gzip.compress(body) if coding and "gzip" in coding.lower() else body
    headers = {"content_encoding": coding} if coding else {}
    server.behaviours["/a"] = reply(200, packed, **headers)
    assert fetch(server, "/a").body == body


PACKED = gzip.compress(b"hello" * 100)


@pytest.mark.parametrize(
    "body",
    [PACKED[:-1], PACKED[:20], PACKED + b"x", PACKED + PACKED, b"{}", b""],
    ids=["without its last byte", "cut", "and more", "twice", "not packed", "empty"],
)
def test_broken_gzip_is_no_answer(server: SourceServer, body: bytes) -> None:
    server.behaviours["/a"] = reply(200, body, content_encoding="gzip")
    with pytest.raises(SourceUnavailable, match="gzip is broken"):
        fetch(server, "/a")


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_a_packing_that_was_not_asked_for_is_refused(server: SourceServer, coding: str) -> None:
    server.behaviours["/a"] = reply(200, b"x", content_encoding=coding)
    with pytest.raises(SourceRefused, match="packed"):
        fetch(server, "/a")
