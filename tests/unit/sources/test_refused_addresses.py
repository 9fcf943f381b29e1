"""What is never asked: no form of a private address, and none of the tricks by which one is reached, opens a socket."""

import contextlib
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.adapters.sources.fetching import Fetcher, Reply, Request
from factbook.adapters.sources.urls import Allowed, read_url, require_reachable
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import SourceRefused, SourceUnavailable

PRIVATE = "the host has a private address"
RESERVED = "the host has a reserved address"
NUMBER = "the host is a number that can be read as an address"
UNPLAIN = "the host is not plainly written"
ASCII = "the host is not written in its ASCII form (xn--…)"
UNPLAIN_PORT = "host or port is not plainly written"
CHARACTERS = "the address has a space, control character or backslash"
SCHEME = "the scheme is neither https nor http"
NO_URL = "the address is no URL"
PORT = "only port 443 is asked"
SHORT = "the host is no full name"
USER = "the address has user information"
DOTS = "the path has a dot segment"

REFUSED = [
    # addresses, written as such
    ("https://127.0.0.1/", PRIVATE),
    ("https://127.255.255.254/", PRIVATE),
    ("https://10.0.0.1/", PRIVATE),
    ("https://172.16.0.1/", PRIVATE),
    ("https://172.31.255.255/", PRIVATE),
    ("https://192.168.1.1/", PRIVATE),
    ("https://100.64.0.1/", PRIVATE),
    ("https://100.100.100.200/latest/meta-data/", RESERVED),
    ("https://169.254.169.254/latest/meta-data/", RESERVED),
    ("https://169.254.170.2/v2/credentials", RESERVED),
    ("https://169.254.100.1/", RESERVED),
    ("https://168.63.129.16/machine", RESERVED),
    ("https://0.0.0.0/", RESERVED),
    ("https://0.1.2.3/", RESERVED),
    ("https://192.0.0.192/", RESERVED),
    ("https://192.0.2.1/", RESERVED),
    ("https://198.18.0.1/", RESERVED),
    ("https://203.0.113.9/", RESERVED),
    ("https://224.0.0.1/", RESERVED),
    ("https://240.0.0.1/", RESERVED),
    ("https://255.255.255.255/", RESERVED),
    ("https://[::1]/", PRIVATE),
    ("https://[0:0:0:0:0:0:0:1]/", PRIVATE),
    ("https://[::]/", RESERVED),
    ("https://[fc00::1]/", PRIVATE),
    ("https://[fd12:3456:789a::1]/", PRIVATE),
    ("https://[fd00:ec2::254]/latest/meta-data/", RESERVED),
    ("https://[fd20:ce::254]/computeMetadata/v1/", RESERVED),
    ("https://[fe80::1]/", RESERVED),
    ("https://[100::1]/", RESERVED),
    ("https://[5f00::1]/", RESERVED),
    ("https://[2001:20::1]/", RESERVED),
    ("https://[fec0::1]/", RESERVED),
    ("https://[ff02::1]/", RESERVED),
    ("https://[2001:db8::1]/", RESERVED),
    # IPv4 inside IPv6
    ("https://[::ffff:127.0.0.1]/", RESERVED),
    ("https://[::ffff:7f00:1]/", RESERVED),
    ("https://[::ffff:0:127.0.0.1]/", RESERVED),
    ("https://[::127.0.0.1]/", RESERVED),
    ("https://[64:ff9b::169.254.169.254]/", RESERVED),
    ("https://[64:ff9b:1::7f00:1]/", RESERVED),
    ("https://[64:ff9b:1:ffff::10.0.0.1]/", RESERVED),
    ("https://[::ffff:0:7f00:1]/", RESERVED),
    ("https://[2002:7f00:1::]/", RESERVED),
    ("https://[2001:0:53aa:64c:0:fbff:80ff:fffe]/", RESERVED),
    ("https://[2a00:1450:4001:80b:0:5efe:7f00:1]/", RESERVED),
    # other spellings of numbers
    ("https://2130706433/", NUMBER),
    ("https://0x7f000001/", NUMBER),
    ("https://0x7F.0.0.1/", NUMBER),
    ("https://127.0.0.0x1/", NUMBER),
    ("https://017700000001/", NUMBER),
    ("https://0177.0.0.1/", NUMBER),
    ("https://127.0.0.01/", NUMBER),
    ("https://127.1/", NUMBER),
    ("https://0x7f.1/", NUMBER),
    ("https://4294967296/", NUMBER),
    ("https://127.0.1/", NUMBER),
    ("https://0/", NUMBER),
    ("https://0x/", NUMBER),
    ("https://256.256.256.256/", NUMBER),
    ("https://1.2.3.4.5/", NUMBER),
    ("https://example.com.0x1/", NUMBER),
    # names of this machine and of its network
    ("https://localhost/", SHORT),
    ("https://metadata/", SHORT),
    ("https://inside.example/", PRIVATE),
    ("https://metadata.example/", RESERVED),
    ("https://mixed.example/", PRIVATE),
    ("https://mapped.example/", RESERVED),
    ("https://INSIDE.example/", PRIVATE),
    # hosts that are something else than they look
    ("https://127.0.0.1@example.com/", USER),
    ("https://example.com@127.0.0.1/", USER),
    ("https://user:secret@example.com/", USER),
    ("https://example.com:443@127.0.0.1/", USER),
    ("https://①②⑦.⓪.⓪.①/", ASCII),
    ("https://１２７.0.0.1/", ASCII),
    ("https://127。0。0。1/", ASCII),
    ("https://ｌocalhost/", ASCII),
    ("https://еxample.com/", ASCII),
    ("https://exam\u00adple.com/", ASCII),
    ("https://localho\u017ft/", ASCII),
    ("https://127.0.0.1.:443/", UNPLAIN),
    ("https://localhost./", UNPLAIN),
    ("https://.example.com/", UNPLAIN),
    ("https://%31%32%37.0.0.1/", UNPLAIN),
    ("https://127.0.0.1%00.example.com/", UNPLAIN),
    ("https://[fe80::1%25eth0]/", UNPLAIN_PORT),
    ("https://[::1%lo]/", UNPLAIN_PORT),
    ("https://[::1/128]/", UNPLAIN_PORT),
    ("https://127.0.0.1%2f.example.com/", UNPLAIN),
    ("https://0o177.0.0.1/", NUMBER),
    ("https://169.254.169.254./", UNPLAIN),
    ("https://[::1/", UNPLAIN_PORT),
    ("https://::1/", UNPLAIN_PORT),
    ("https://[127.0.0.1]/", UNPLAIN),
    ("https://[v1.example]/", UNPLAIN_PORT),
    ("https:///etc/passwd", UNPLAIN),
    ("https://example.com\\@127.0.0.1/", CHARACTERS),
    ("https://127.0.0.1\\.example.com/", CHARACTERS),
    ("https://example.com\t.evil.example/", CHARACTERS),
    (" https://example.com/", CHARACTERS),
    ("https://example.com/\r\nHost: 127.0.0.1", CHARACTERS),
    ("https://example.com/\x00", CHARACTERS),
    ("https:example.com", NO_URL),
    ("//example.com/", NO_URL),
    ("example.com", NO_URL),
    ("https:/example.com/", NO_URL),
    # schemes and ports
    ("http://example.com/", "only https is asked"),
    ("HTTP://127.0.0.1/", "only https is asked"),
    ("ftp://example.com/", SCHEME),
    ("file:///etc/passwd", SCHEME),
    ("gopher://127.0.0.1:6379/_", SCHEME),
    ("dict://127.0.0.1:11211/", SCHEME),
    ("unix:///var/run/docker.sock", SCHEME),
    ("wss://example.com/", SCHEME),
    ("data:text/plain,hello", NO_URL),
    ("https://example.com:22/", PORT),
    ("https://example.com:80/", PORT),
    ("https://example.com:8443/", PORT),
    ("https://example.com:0443/", UNPLAIN_PORT),
    ("https://example.com:0/", UNPLAIN_PORT),
    ("https://example.com:/", UNPLAIN_PORT),
    ("https://example.com:65536/", UNPLAIN_PORT),
    ("https://example.com:443:80/", UNPLAIN_PORT),
    ("https://example.com:４４３/", UNPLAIN_PORT),
    # a step out of where credentials are for
    ("https://example.com/v1/../admin", DOTS),
    ("https://example.com/v1/%2e%2e/admin", DOTS),
    ("https://example.com/v1/%252e%252e/admin", DOTS),
    ("https://example.com/v1/%25252E%252e%252Fadmin", DOTS),
    ("https://example.com/v1/..%2fadmin", DOTS),
    ("https://example.com/v1/..;/admin", DOTS),
    ("https://example.com/v1/..%5cadmin", DOTS),
]
NAMES = {
    "inside.example": ["10.1.2.3"],
    "metadata.example": ["169.254.169.254"],
    "mixed.example": ["93.184.216.34", "127.0.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
}

_watching: list[list[Any]] = []


def _watch(event: str, details: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo") and _watching:
        _watching[-1].append((event, *details))


sys.addaudithook(_watch)


@pytest.fixture
def sockets() -> Iterator[list[Any]]:
    """What the interpreter connects to and looks up meanwhile."""
    _watching.append([])
    yield _watching[-1]
    _watching.pop()


def resolver(host: str, port: int, seconds: float) -> Sequence[str]:
    return NAMES[host]


def wants_body(_: Reply) -> bool:
    return True


def ask(url: str, allow: str = "") -> Reply:
    return Fetcher(Allowed.read(allow.split(",")), resolver=resolver).fetch(
        Request(read_url(url), wants_body), Deadline(5)
    )


def test_at_least_sixty_forms_are_tried() -> None:
    assert len({url for url, _ in REFUSED}) == len(REFUSED) >= 60


@pytest.mark.parametrize(("url", "reason"), REFUSED, ids=[ascii(url) for url, _ in REFUSED])
def test_nothing_of_this_is_asked(url: str, reason: str, sockets: list[Any]) -> None:
    with pytest.raises(SourceRefused) as refused:
        ask(url)
    assert refused.value.reason == reason
    assert sockets == []


NEVER = [row for row in REFUSED if row[1] not in (PRIVATE, PORT, SHORT, "only https is asked")]


@pytest.mark.parametrize(("url", "reason"), NEVER, ids=[ascii(url) for url, _ in NEVER])
def test_no_setting_opens_what_is_reserved_or_unplain(url: str, reason: str, sockets: list[Any]) -> None:
    host = url.partition("://")[2].partition("/")[0].removesuffix(":443")
    try:
        allow = Allowed.read(host)
    except ValueError:
        return  # such a host cannot be listed
    fetcher = Fetcher(allow, resolver=resolver)
    with pytest.raises(SourceRefused) as refused:
        fetcher.fetch(Request(read_url(url), wants_body), Deadline(5))
    assert refused.value.reason == reason
    assert sockets == []


@pytest.mark.parametrize("allow", ["127.0.0.1", "10.1.2.3", "inside.example:8000", "localhost"])
def test_an_opened_host_opens_no_name_that_leads_to_it_and_no_other_port(
    allow: str, sockets: list[Any]
) -> None:
    with pytest.raises(SourceRefused, match=PRIVATE):
        ask("https://inside.example/", allow)
    assert sockets == []


def test_the_watch_sees_what_is_connected_to(sockets: list[Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceUnavailable):
        ask(f"http://127.0.0.1:{port}/", f"127.0.0.1:{port}")
    assert ("127.0.0.1", port) in [details[-1] for event, *details in sockets if event == "socket.connect"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_a_plain_url_or_refused(text: str, location: str) -> None:
    for read in (
        lambda: read_url(text),
        lambda: read_url(f"https://{text}/"),
        lambda: read_url("https://a.example/b?c").follow(location),
    ):
        with contextlib.suppress(SourceRefused):
            url = read()
            assert re.fullmatch(
                r"https?://([a-z0-9_.-]+|\[[0-9a-f:]+\])(:\d+)?/[!-~]*", url.origin + url.target
            )


def test_an_entry_that_is_no_host_opens_nothing() -> None:
    entries = [
        "127.1",
        "0x7f000001",
        "*",
        "*.example.com",
        "http://localhost",
        "user@host",
        "10.0.0.0/8",
        "a:0",
    ]
    assert Allowed.read(entries) == Allowed()
    assert Allowed.read([*entries, "LOCALHOST:80"]) == Allowed(frozenset({("localhost", 80)}))


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "[2606:4700::1111]", "[2a00:1450:4001:80b::200e]"]
)
def test_a_public_address_is_not_refused(address: str) -> None:
    require_reachable(read_url(f"https://{address}/"), opened=False)
