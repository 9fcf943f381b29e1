"""The URLs of sources, read strictly: the text that is checked is taken apart once, and its parts are what is sent.

No other parser sees the text, so none can read another host out of it. Everything here raises SourceRefused.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, unquote, urljoin

from factbook.adapters.sources.networks import refusal_of
from factbook.ports.sources.handlers import SourceRefused

MAX_URL = 8192
DEFAULT_PORTS = {"http": 80, "https": 443}
_FORM = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::(?P<port>[1-9][0-9]{0,4}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A last label like this makes some readers take the host for an IPv4 address in one of its old spellings."""
_NOT_PLAIN = "the host is not plainly written"
_NO_URL = re.compile(r"[\x00-\x20\x7f\\]")
_KEPT = "!$%&'()*+,-./:;=?@[]_~"
"""What a path and a query keep as it is, beside letters and digits; anything else is percent-encoded."""


@dataclass(frozen=True)
class Url:
    """`host` in lower case, an IPv6 address in brackets. `target`: path and query as sent. `fragment`: still encoded."""

    scheme: str
    host: str
    port: int
    target: str = "/"
    fragment: str = ""

    @property
    def netloc(self) -> str:
        return self.host if self.port == DEFAULT_PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.netloc}"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def follow(self, location: str) -> "Url":
        """Where a redirect leads, which may be said relative to here."""
        _require_characters(location)
        try:
            return read_url(urljoin(self.origin + self.target, location))
        except ValueError:  # brackets that do not close
            raise SourceRefused(_NOT_PLAIN) from None


def read_url(text: str) -> Url:
    """The parts of an http or https URL."""
    _require_characters(text)
    found = _FORM.fullmatch(text)
    if found is None or len(text) > MAX_URL:
        raise SourceRefused("the address is no URL")
    scheme = found["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise SourceRefused("the scheme is neither https nor http")
    host, port = read_authority(found["authority"])
    target = quote(found["target"], safe=_KEPT)
    if not target.startswith("/"):
        target = "/" + target
    if _has_dot_segment(target.partition("?")[0]):
        raise SourceRefused("the path has a dot segment")
    return Url(scheme, host, port or DEFAULT_PORTS[scheme], target, found["fragment"] or "")


def read_authority(text: str) -> tuple[str, int | None]:
    """Host and port of `host[:port]`."""
    if "@" in text:
        raise SourceRefused("the address has user information")
    found = _AUTHORITY.fullmatch(text)
    if found is None or int(found["port"] or 1) > 0xFFFF:
        raise SourceRefused("host or port is not plainly written")
    return _host(found["host"]), int(found["port"]) if found["port"] else None


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is, unless it is a name."""
    try:
        return IPv6Address(host[1:-1]) if host.startswith("[") else IPv4Address(host)
    except AddressValueError:
        return None


@dataclass(frozen=True)
class Allowed:
    """The hosts that an operator opened, each for one port or, with None, for all."""

    hosts: frozenset[tuple[str, int | None]] = frozenset()

    @staticmethod
    def read(entries: Iterable[str]) -> "Allowed":
        """From `host[:port]`; one that no URL could have opens nothing."""
        hosts = set()
        for entry in entries:
            with suppress(SourceRefused):
                hosts.add(read_authority(entry))
        return Allowed(frozenset(hosts))

    def opens(self, url: Url) -> bool:
        return not self.hosts.isdisjoint({(url.host, None), (url.host, url.port)})


def require_reachable(url: Url, *, opened: bool) -> None:
    """Refuse what may not be asked: for a host that was opened less than for any other."""
    if not opened:
        if url.scheme != "https":
            raise SourceRefused("only https is asked")
        if url.port != DEFAULT_PORTS["https"]:
            raise SourceRefused("only port 443 is asked")
        if "." not in url.host and not url.host.startswith("["):
            raise SourceRefused("the host is no full name")
    address = literal_address(url.host)
    if address is not None and (refusal := refusal_of(address, opened=opened)):
        raise SourceRefused(refusal)


def _host(text: str) -> str:
    host = text.lower()
    if not host.isascii():
        raise SourceRefused("the host is not written in its ASCII form (xn--…)")
    if host.startswith("["):
        address = literal_address(host)
        if address is None:
            raise SourceRefused(_NOT_PLAIN)
        return f"[{address.compressed}]"
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise SourceRefused(_NOT_PLAIN)
    if _NUMBER.fullmatch(labels[-1]) and literal_address(host) is None:
        raise SourceRefused("the host is a number that can be read as an address")
    return host


def _has_dot_segment(path: str) -> bool:
    """Whether some server could read it as a step up, out of what credentials were given for."""
    while (once_more := unquote(path)) != path:  # servers behind one another may each decode it
        path = once_more
    segments = path.replace("\\", "/").split("/")
    return any(segment.partition(";")[0] in (".", "..") for segment in segments)


def _require_characters(text: str) -> None:
    if _NO_URL.search(text):
        raise SourceRefused("the address has a space, control character or backslash")
