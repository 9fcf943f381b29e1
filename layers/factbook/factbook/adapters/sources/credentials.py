"""The headers that a tenant's secret has for what it mirrors: `{"https://api.example.com/v1/": {"Authorization": "…"}}`.

A secret's name is made of the tenant that asks, so no fact can name another tenant's. A key of it is where the headers may
go: scheme, host and port, and the beginning of a path.
"""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from factbook.adapters.aws_errors import NothingThere, aws_errors
from factbook.adapters.sources.urls import Url, read_url
from factbook.domain.errors import BadInput, StorageUnavailable, Throttled
from factbook.domain.strict_json import parse_json
from factbook.ports.sources.handlers import SourceRefused, SourceUnavailable

_PLAIN = re.compile(r"[A-Za-z0-9_.@=-]{1,256}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e\t]*")
_OURS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "upgrade", "te"}
)
_UNREADABLE = "the credentials of the source cannot be read"


class SecretTexts:
    """`client` is a boto3 Secrets Manager client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def text(self, name: str) -> str:
        """The secret's text, `{}` when there is none. Raises SourceUnavailable."""
        try:
            with aws_errors("secretsmanager"):
                return str(self._client.get_secret_value(SecretId=name)["SecretString"])
        except NothingThere:
            return "{}"
        except (ClientError, BotoCoreError, Throttled, StorageUnavailable, KeyError):
            raise SourceUnavailable(_UNREADABLE) from None


class TenantCredentials:
    """`prefix`: what the names of secrets begin with; `secret` gives the text of one by its name."""

    def __init__(self, prefix: str, secret: Callable[[str], str]) -> None:
        self._prefix = prefix
        self._secret = secret

    def headers(self, tenant: str, url: Url) -> Mapping[str, str]:
        """Those of the longest key that covers the URL, none when no key does. Raises SourceUnavailable."""
        places = read_places(self._secret(self._prefix + secret_name(tenant)))
        covering = [place for place in places if covers(place, url)]
        return places[max(covering, key=len)] if covering else {}


def secret_name(tenant: str) -> str:
    """What follows the prefix: the tenant's id, or a digest of one that no secret's name can have."""
    if _PLAIN.fullmatch(tenant):
        return tenant
    return "+" + urlsafe_b64encode(hashlib.sha256(tenant.encode()).digest()).decode().rstrip("=")


def covers(place: str, url: Url) -> bool:
    """Whether a URL is at the place or below it: `…/v1` covers `…/v1`, `…/v1?q` and `…/v1/x`, and not `…/v12`."""
    asked = url.origin + url.target
    return asked.startswith(place) and (place.endswith("/") or asked[len(place) :][:1] in ("", "/", "?"))


def read_places(text: str) -> Mapping[str, Mapping[str, str]]:
    """A secret's headers by the beginning of the URLs they are for. Raises SourceUnavailable for any other text."""
    try:
        found = parse_json(text)
        if not isinstance(found, dict) or not all(map(_is_headers, found.values())):
            raise SourceRefused(_UNREADABLE)
        places = {read_url(place): headers for place, headers in found.items()}
    except (BadInput, SourceRefused):
        raise SourceUnavailable(_UNREADABLE) from None
    return {place.origin + place.target: headers for place, headers in places.items()}


def _is_headers(headers: Any) -> bool:
    return isinstance(headers, dict) and all(
        _NAME.fullmatch(name)
        and name.lower() not in _OURS
        and isinstance(value, str)
        and _VALUE.fullmatch(value)
        for name, value in headers.items()
    )
