"""The one way to a source over HTTP: what is asked is checked, what is answered is bounded.

Nothing of the environment counts here: no proxy, no cookie, no credentials of the machine.
"""

import logging
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpcore2

from factbook.adapters.sources.bodies import TOO_LARGE, unpacked
from factbook.adapters.sources.connecting import (
    OUT_OF_TIME,
    Allowance,
    CheckedBackend,
    Limits,
    Resolver,
    resolve,
)
from factbook.adapters.sources.urls import Allowed, Url, literal_address, require_reachable
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import AnswerRefused, SourceUnavailable

logging.getLogger("httpcore2").setLevel(logging.WARNING)  # it tells headers

_NO_HTTP = "the source's answer is no whole HTTP"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Reply:
    """`headers` by lower-case name, several of one name joined by a comma. `body`: unpacked, empty when not wanted."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def _wants_nothing(_: Url) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Request:
    """One request to a source, and to where it redirects when it is a GET.

    `wants_body` is asked with the head of the answer, and may raise. `credentials` gives the headers for a URL of the host
    that was asked; no other host is sent any. `enough` is given each piece of the body: True ends it there. Another host that
    it is led to is asked within `place_at`.
    """

    url: Url
    wants_body: Callable[[Reply], bool]
    headers: Mapping[str, str] = field(default_factory=dict)
    credentials: Callable[[Url], Mapping[str, str]] = _wants_nothing
    method: str = "GET"
    content: bytes | None = None
    enough: Callable[[bytes], bool] | None = None
    place_at: Callable[[str], AbstractContextManager[Any]] = nullcontext


class Fetcher:
    """`allow`: what an operator opened. `tls` makes the context that servers' certificates are checked with."""

    def __init__(
        self,
        allow: Allowed,
        *,
        limits: Limits | None = None,
        resolver: Resolver = resolve,
        tls: Callable[[], ssl.SSLContext] = httpcore2.default_ssl_context,
    ) -> None:
        self._allow = allow
        self._limits = limits or Limits()
        self._resolver = resolver
        self._make_tls = tls

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._make_tls()  # reads every root certificate

    def fetch(self, request: Request, deadline: Deadline) -> Reply:
        """The answer. Raises SourceRefused and SourceUnavailable, whose reasons name no host, header or content."""
        within = Deadline(min(self._limits.seconds, deadline.left), deadline.elapsed)
        url = request.url
        opened = self._allow.opens(url)
        at_home, host = True, url.netloc
        with ExitStack() as place:
            for _ in range(1 + self._limits.redirects):
                require_reachable(url, opened=opened)
                if url.netloc != host:
                    host = url.netloc
                    place.close()
                    if host != request.url.netloc:  # who asks has a place there
                        place.enter_context(request.place_at(host))
                credentials = request.credentials(url) if at_home else {}
                reply = self._once(request, url, credentials, within, opened=opened)
                if reply.status not in _REDIRECTS:
                    return reply
                if request.method != "GET" or "location" not in reply.headers:
                    raise AnswerRefused("the source redirects")
                url = url.follow(reply.headers["location"])
                # A page out there opens nothing, and once it was led away no request bears credentials again.
                opened = opened and self._allow.opens(url)
                at_home = at_home and url.origin == request.url.origin
        raise AnswerRefused("the source redirects too often")

    def _once(
        self, request: Request, url: Url, credentials: Mapping[str, str], deadline: Deadline, *, opened: bool
    ) -> Reply:
        allowance = Allowance(self._limits.head_bytes, SourceUnavailable(_NO_HTTP))
        backend = CheckedBackend(self._resolver, deadline, allowance, opened=opened)
        sent = _wire_request(request, url, credentials, self._limits)
        connection = httpcore2.HTTPConnection(
            sent.url.origin, self._tls if url.scheme == "https" else None, network_backend=backend
        )
        try:
            response = connection.handle_request(sent)
            head = Reply(response.status, _headers(response.headers))
            if head.status in _REDIRECTS or not request.wants_body(head):
                return head
            allowance.left, allowance.problem = self._limits.wire_bytes, AnswerRefused(TOO_LARGE)
            pieces = unpacked(_stream(response), head.headers, self._limits.body_bytes)
            return Reply(head.status, head.headers, _collected(pieces, request.enough))
        except httpcore2.TimeoutException:
            raise SourceUnavailable(OUT_OF_TIME) from None
        except httpcore2.NetworkError as error:
            raise SourceUnavailable(_network_reason(error)) from None
        except httpcore2.ProtocolError:
            raise SourceUnavailable(_NO_HTTP) from None
        finally:
            connection.close()


def _wire_request(
    request: Request, url: Url, credentials: Mapping[str, str], limits: Limits
) -> httpcore2.Request:
    headers = {
        "Host": url.netloc,
        "Accept-Encoding": "gzip",
        "Connection": "close",
        **request.headers,
        **credentials,
    }
    if request.content is not None:
        headers["Content-Length"] = str(len(request.content))
    silence = limits.silence_seconds
    extensions: dict[str, object] = {
        "timeout": {"connect": limits.connect_seconds, "read": silence, "write": silence}
    }
    if literal_address(url.host) is not None:
        extensions["sni_hostname"] = url.host.strip("[]")
    return httpcore2.Request(
        request.method,
        httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
        headers=list(headers.items()),
        content=request.content,
        extensions=extensions,
    )


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("ascii").lower(), value.decode("utf-8", "replace")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _stream(response: httpcore2.Response) -> Iterator[bytes]:
    assert isinstance(response.stream, Iterable)
    return iter(response.stream)


def _collected(pieces: Iterator[bytes], enough: Callable[[bytes], bool] | None) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if enough is not None and enough(piece):
            break
    return bytes(body)


def _network_reason(error: Exception) -> str:
    if isinstance(error.__cause__, ssl.SSLCertVerificationError):
        return "the source's certificate is not valid for its host"
    if isinstance(error.__cause__, ssl.SSLError):
        return "the source speaks no TLS that is safe"
    return "the source cannot be reached"
