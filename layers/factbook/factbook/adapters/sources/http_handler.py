"""`http`: a GET that says what is known already."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus

from factbook.adapters.sources.contents import Validators, answer, media_type, read_value, sendable_etag
from factbook.adapters.sources.fetching import Fetcher, Reply, Request
from factbook.adapters.sources.urls import Url, read_url
from factbook.domain.facts.fact import Freshness, Source
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import (
    AnswerRefused,
    Ask,
    Fetched,
    SourceRefused,
    SourceUnavailable,
    Unchanged,
)
from factbook.ports.sources.large import in_turn

Credentials = Callable[[str, Url], Mapping[str, str]]
"""The headers that a tenant's secret has for a URL. Raises SourceUnavailable."""

USER_AGENT = "factbook"
LONGEST_WAIT = 86_400
LONGEST_AGE = 2**31
_HTTP_DATE = re.compile(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT", re.ASCII)
_DIRECTIVE = re.compile(r'([a-z-]+)(?:="?(\d{1,19})"?)?', re.ASCII)
_PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class HttpHandler:
    """Handler."""

    def __init__(self, fetcher: Fetcher, credentials: Credentials) -> None:
        self._fetcher = fetcher
        self._credentials = credentials

    def ask(self, ask: Ask, deadline: Deadline) -> Fetched | Unchanged:
        url = source_url(ask.source)
        known = ask.source.freshness if ask.known_hash is not None else Freshness()
        conditions = _conditions(known)
        reply = self._fetcher.fetch(
            Request(
                url,
                partial(_wants_body, conditional=bool(conditions)),
                {
                    "Accept": "application/json, text/*;q=0.8, */*;q=0.1",
                    "User-Agent": USER_AGENT,
                    **conditions,
                },
                partial(self._credentials, ask.tenant),
                place_at=ask.place_at,
            ),
            deadline,
        )
        etag, modified = reply.headers.get("etag"), settled_change(reply.headers)
        fresh_for = max_age(reply.headers)
        if reply.status == HTTPStatus.NOT_MODIFIED:
            return Validators(etag or known.etag, modified or known.source_version, fresh_for).unchanged()
        with in_turn(len(reply.body), deadline):
            value = read_value(reply.body, reply.headers["content-type"])
            return answer(ask, value, url.fragment, Validators(etag, modified, fresh_for))


def source_url(source: Source) -> Url:
    if source.uri is None:
        raise SourceRefused("the source has no uri")
    return read_url(source.uri)


def is_passing(status: int) -> bool:
    """Whether a later request may be answered otherwise, though nobody changes anything."""
    return status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def require_usable(reply: Reply) -> None:
    """Raises SourceUnavailable for what may pass, SourceRefused for any other status but 200 and 203."""
    if is_passing(reply.status):
        raise SourceUnavailable(f"the source answers {reply.status}", retry_after(reply.headers))
    if reply.status not in (HTTPStatus.OK, HTTPStatus.NON_AUTHORITATIVE_INFORMATION):
        raise AnswerRefused(f"the source answers {reply.status}")


def _wants_body(reply: Reply, *, conditional: bool) -> bool:
    if reply.status == HTTPStatus.NOT_MODIFIED and conditional:
        return False
    require_usable(reply)
    media_type(reply.headers.get("content-type", ""))
    return True


def _conditions(known: Freshness) -> Mapping[str, str]:
    """A validator that is none is not sent: whoever wrote the fact may have made it up."""
    found = {}
    if etag := sendable_etag(known):
        found["If-None-Match"] = etag
    if known.source_version and _HTTP_DATE.fullmatch(known.source_version):
        found["If-Modified-Since"] = known.source_version
    return found


def settled_change(headers: Mapping[str, str]) -> str | None:
    """The time of the last change, once its second is over by the same clock: what changes again within it bears the same."""
    modified = headers.get("last-modified", "")
    changed, answered = _date(modified), _date(headers.get("date", ""))
    return modified if changed and answered and answered - changed >= timedelta(seconds=1) else None


def max_age(headers: Mapping[str, str]) -> int | None:
    """For how many seconds the answer holds by its Cache-Control, less its age; None when that says nothing."""
    said = dict(_DIRECTIVE.findall(headers.get("cache-control", "").lower()))
    if "no-store" in said or "no-cache" in said:
        return 0
    seconds = said.get("s-maxage") or said.get("max-age")
    if not seconds:
        return None
    age = headers.get("age", "")
    spent = int(age) if age.isascii() and age.isdecimal() and len(age) < 19 else 0
    return min(max(0, int(seconds) - spent), LONGEST_AGE)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number of them or a date; a day at most."""
    said = headers.get("retry-after", "")
    if said.isascii() and said.isdecimal():
        return min(float(said), LONGEST_WAIT)
    date = _date(said)
    if date is None:
        return None
    return min(max(0.0, (date - datetime.now(UTC)).total_seconds()), LONGEST_WAIT)


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # a year or a zone that no date has
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
