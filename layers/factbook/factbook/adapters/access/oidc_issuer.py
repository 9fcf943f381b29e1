"""The keys of an OpenID Connect issuer, over HTTP: its discovery document names them."""

import time
from collections.abc import Sequence
from typing import Any

import urllib3

from factbook.adapters.bodies import OutOfTime, read_body
from factbook.domain.access.issuers import is_fetchable
from factbook.domain.errors import BadInput
from factbook.domain.strict_json import parse_json
from factbook.ports.access.issuers import IssuerUnavailable, PublicKey

DISCOVERY = "/.well-known/openid-configuration"
MOST_BYTES = 512 * 1024
MOST_KEYS = 100
SECONDS = 6.0
_EACH = urllib3.Timeout(connect=1.5, read=1.5)


class AnotherIssuer(IssuerUnavailable):
    """The discovery document names its issuer otherwise, so its tokens do, too."""


class OidcIssuer:
    """Issuer at an https address, or at an http one of this machine. It has `seconds` in all, redirects none."""

    def __init__(self, issuer: str, seconds: float = SECONDS) -> None:
        self._issuer = issuer
        self._seconds = seconds
        self._http = urllib3.PoolManager(retries=False, timeout=_EACH, num_pools=2)

    def published(self) -> Sequence[PublicKey]:
        until = time.monotonic() + self._seconds
        document = self._document(f"{self._issuer.rstrip('/')}{DISCOVERY}", until)
        if document.get("issuer") != self._issuer:
            raise AnotherIssuer("the discovery document is of another issuer")
        keys = self._document(str(document.get("jwks_uri", "")), until).get("keys")
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
            raise IssuerUnavailable("the issuer publishes no list of keys")
        return keys[:MOST_KEYS]

    def _document(self, url: str, until: float) -> dict[str, Any]:
        if not is_fetchable(url):
            raise IssuerUnavailable("the issuer names an address that is not https")
        try:
            answer = self._http.request("GET", url, redirect=False, preload_content=False)
            body = read_body(answer, until, MOST_BYTES)
        except OutOfTime as error:
            raise IssuerUnavailable("the issuer takes too long to answer") from error
        except urllib3.exceptions.HTTPError as error:
            raise IssuerUnavailable(f"the issuer cannot be reached ({type(error).__name__})") from error
        if answer.status != 200 or len(body) > MOST_BYTES:
            raise IssuerUnavailable(f"the issuer answers {answer.status} with {len(body)} bytes")
        try:
            document = parse_json(body.decode())
        except (BadInput, ValueError) as error:
            raise IssuerUnavailable("the issuer answers no JSON") from error
        if not isinstance(document, dict):
            raise IssuerUnavailable("the issuer answers no JSON object")
        return document
