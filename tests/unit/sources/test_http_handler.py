"""`http`: what is asked with what is known, and what each answer means."""

import gzip
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.source_server import SourceServer, json_reply, reply, source_server

from factbook.adapters.sources.contents import read_value
from factbook.adapters.sources.fetching import Fetcher
from factbook.adapters.sources.http_handler import HttpHandler, max_age, retry_after
from factbook.adapters.sources.urls import Allowed, Url
from factbook.domain.facts.fact import Freshness, Refresh, Source
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import (
    Answer,
    Ask,
    Fetched,
    SourceRefused,
    SourceUnavailable,
    Unchanged,
)

MONDAY = "Mon, 02 Nov 2026 10:00:00 GMT"
TUESDAY = "Tue, 03 Nov 2026 10:00:00 GMT"


def ask(
    server: SourceServer, path: str = "/v", known_hash: str | None = "sha256:0", **freshness: Any
) -> Answer:
    def credentials(tenant: str, url: Url) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {tenant}"}

    source = Source(
        kind="http-api",
        uri=server.url(path),
        freshness=Freshness(**freshness),
        refresh=Refresh(strategy="manual"),
    )
    handler = HttpHandler(Fetcher(Allowed.read([server.netloc])), credentials)
    return handler.ask(Ask("acme", "f1", source, known_hash), Deadline(30))


def test_a_host_that_the_source_leads_to_is_asked_within_a_place_there(server: SourceServer) -> None:
    places: list[str] = []
    with source_server() as other:
        server.behaviours["/a"] = reply(302, location=other.url("/b"))
        other.behaviours["/b"] = json_reply("1")
        source = Source(
            kind="http-api",
            uri=server.url("/a"),
            freshness=Freshness(),
            refresh=Refresh(strategy="manual"),
        )
        asked = Ask("acme", "f1", source, None, lambda host: nullcontext(places.append(host)))
        handler = HttpHandler(Fetcher(Allowed.read(["127.0.0.1"])), lambda *_: {})
        assert handler.ask(asked, Deadline(30)) == Fetched("1")
        assert places == [other.netloc]


# ---------------------------------------------------------------- what is known


def test_validators_of_an_answer_are_told_and_sent_the_next_time(server: SourceServer) -> None:
    headers = {"etag": '"1"', "last_modified": MONDAY, "date": TUESDAY, "cache_control": "max-age=60"}
    server.behaviours["/v"] = json_reply("1", **headers)
    assert ask(server) == Fetched("1", '"1"', MONDAY, 60)

    server.behaviours["/v"] = reply(304, cache_control="max-age=30")
    assert ask(server, etag='"1"', source_version=MONDAY) == Unchanged('"1"', MONDAY, 30)
    sent = server.requests[-1].headers
    assert (sent["if-none-match"], sent["if-modified-since"]) == ('"1"', MONDAY)
    assert sent["authorization"] == "Bearer acme"
    assert sent["accept"].startswith("application/json")

    server.behaviours["/v"] = reply(304, etag='W/"2"', last_modified=MONDAY, date=TUESDAY)
    assert ask(server, etag='"1"') == Unchanged('W/"2"', MONDAY, None)


@pytest.mark.parametrize(
    ("date", "kept"),
    [
        ("Mon, 02 Nov 2026 10:00:00 GMT", False),
        ("Mon, 02 Nov 2026 09:59:59 GMT", False),
        ("Mon, 02 Nov 2026 10:00:01 GMT", True),
        ("soon", False),
        (None, False),
    ],
)
def test_a_time_of_change_is_no_validator_before_its_second_is_over(
    server: SourceServer, date: str | None, kept: bool
) -> None:
    """What changes once more within it bears the same time, and would be taken for unchanged for ever."""
    headers = {"last_modified": MONDAY} | ({"date": date} if date else {})
    server.behaviours["/v"] = json_reply("1", **headers)
    assert ask(server) == Fetched("1", None, MONDAY if kept else None)

    server.behaviours["/v"] = reply(304, **headers)
    assert ask(server, etag='"1"') == Unchanged('"1"', MONDAY if kept else None)


def test_a_changed_answer_brings_its_own_validators_and_drops_the_old_ones(server: SourceServer) -> None:
    server.behaviours["/v"] = json_reply("2")
    assert ask(server, etag='"1"', source_version=MONDAY) == Fetched("2")


def test_nothing_is_asked_conditionally_where_no_content_is_known(server: SourceServer) -> None:
    server.behaviours["/v"] = json_reply("2")
    ask(server, known_hash=None, etag='"1"', source_version=MONDAY)
    assert not {"if-none-match", "if-modified-since"} & set(server.requests[0].headers)


@pytest.mark.parametrize(
    ("etag", "version"),
    [
        ("1", "v7"),
        ('"1"\r\nx-injected: 1', MONDAY + "\r\nx-injected: 1"),
        ('"é"', "Mon, 02 Nov 2026"),
        ('"1" , "2"', "yesterday"),
        ("*", f" {MONDAY}"),
    ],
)
def test_a_validator_that_is_none_is_not_sent(server: SourceServer, etag: str, version: str) -> None:
    server.behaviours["/v"] = json_reply("2")
    ask(server, etag=etag, source_version=version)
    assert not {"if-none-match", "if-modified-since", "x-injected"} & set(server.requests[0].headers)


def test_not_modified_is_no_answer_where_nothing_was_known(server: SourceServer) -> None:
    server.behaviours["/v"] = reply(304)
    with pytest.raises(SourceRefused, match="304"):
        ask(server)


def test_a_validator_that_a_fact_has_no_room_for_is_dropped(server: SourceServer) -> None:
    server.behaviours["/v"] = json_reply("2", etag=f'"{"x" * 1100}"')
    assert ask(server) == Fetched("2")


# ---------------------------------------------------------------- statuses


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 521])
@pytest.mark.parametrize("wait", [None, "17"])
def test_what_may_pass_is_not_available_and_says_for_how_long(
    server: SourceServer, status: int, wait: str | None
) -> None:
    server.behaviours["/v"] = reply(status, b"<html>", **({"retry_after": wait} if wait else {}))
    with pytest.raises(SourceUnavailable, match=str(status)) as raised:
        ask(server)
    assert raised.value.retry_after == (17 if wait else None)


@pytest.mark.parametrize(
    "status", [201, 202, 204, 205, 206, 300, 305, 400, 401, 403, 404, 405, 406, 410, 418, 451]
)
def test_any_other_status_is_refused(server: SourceServer, status: int) -> None:
    server.behaviours["/v"] = reply(
        status, b"{}" * (status not in (204, 304)), content_type="application/json"
    )
    with pytest.raises(SourceRefused, match=str(status)):
        ask(server)


def test_an_answer_that_somebody_transformed_on_the_way_is_one(server: SourceServer) -> None:
    server.behaviours["/v"] = reply(203, b"1", content_type="application/json")
    assert ask(server) == Fetched("1")


def test_retry_after_may_be_a_date_and_is_a_day_at_most() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    found = retry_after({"retry-after": soon})
    assert found is not None
    assert 0 < found <= 100
    assert retry_after({"retry-after": MONDAY.replace("2026", "1999")}) == 0
    assert retry_after({"retry-after": MONDAY.replace("2026", "2999")}) == 86_400
    assert retry_after({"retry-after": "9" * 400}) == 86_400
    for nothing in ("", "-1", "1.5", "soon", "١٧"):
        assert retry_after({"retry-after": nothing}) is None


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("", None),
        ("public", None),
        ("max-age", None),
        ("max-age=", None),
        ("max-age=soon", None),
        ("max-age=60", 60),
        ('MAX-AGE="60"', 60),
        ("private, max-age=60, must-revalidate", 60),
        ("max-age=60, s-maxage=600", 600),
        ("max-age=0", 0),
        ("max-age=60, no-store", 0),
        ("no-cache", 0),
        ('no-cache="set-cookie", max-age=60', 0),
        ("max-age=99999999999999999", 2**31),
        ("max-age=" + "9" * 400, 2**31),
    ],
)
def test_how_long_an_answer_holds(said: str, seconds: int | None) -> None:
    assert max_age({"cache-control": said}) == seconds


def test_the_age_of_an_answer_counts() -> None:
    assert max_age({"cache-control": "max-age=60", "age": "45"}) == 15
    assert max_age({"cache-control": "max-age=60", "age": "61"}) == 0
    assert max_age({"cache-control": "max-age=60", "age": "old"}) == 60


@given(st.text(), st.text(), st.text())
@example("", "", "Mon, 01 Jan 2024 00:00:00 +99999999999999999999")
@example("", "", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT")
def test_no_header_breaks_the_reading_of_it(control: str, age: str, wait: str) -> None:
    seconds = max_age({"cache-control": control, "age": age})
    assert seconds is None or 0 <= seconds <= 2**31
    waiting = retry_after({"retry-after": wait})
    assert waiting is None or 0 <= waiting <= 86_400


# ---------------------------------------------------------------- contents


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=latin-1",
        "application/problem+json",
        "application/vnd.api.v2+json",
        "text/json",
    ],
)
def test_json_is_read_as_utf_8_whatever_its_type_says_besides(
    server: SourceServer, content_type: str
) -> None:
    server.behaviours["/v"] = reply(200, '{"a":"é"}'.encode(), content_type=content_type)
    assert ask(server) == Fetched('{"a":"é"}')


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain", "é\n".encode()),
        ("text/plain; charset=utf-8", "é\n".encode()),
        ("text/plain", b"\xef\xbb\xbf" + "é\n".encode()),
        ("text/csv; header=present; charset=ISO-8859-1", b"\xe9\n"),
        ('text/html; charset="windows-1252"', b"\xe9\n"),
        ("text/markdown;charset=UTF-16", "é\n".encode("utf-16")),
        ("application/xml", "é\n".encode()),
        ("application/rss+xml", "é\n".encode()),
        ("application/yaml", "é\n".encode()),
    ],
)
def test_other_text_is_a_string(server: SourceServer, content_type: str, body: bytes) -> None:
    packed = gzip.compress(body)
    server.behaviours["/v"] = reply(200, packed, content_type=content_type, content_encoding="gzip")
    assert ask(server) == Fetched('"é\\n"')


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "image/png",
        "application/octet-stream",
        "application/pdf",
        "text/event-stream",
        "multipart/mixed",
        "json",
        "application/jsonp",
        "text/",
        "application/json, text/html",
    ],
)
def test_another_type_is_refused_before_its_body_is_read(server: SourceServer, content_type: str) -> None:
    def endless(exchange: Any) -> None:
        head = reply(200, content_type=content_type, content_length="99").removesuffix(b"\r\n")
        exchange.send(head + b"\r\n")
        exchange.hang()

    server.behaviours["/v"] = endless
    with pytest.raises(SourceRefused, match="neither JSON nor text"):
        ask(server)


@pytest.mark.parametrize(
    "charset", ["idna", "punycode", "unicode_escape", "utf-7", "rot13", "zlib", "no-such"]
)
def test_a_charset_that_is_none_or_is_seldom_meant_is_refused(charset: str) -> None:
    with pytest.raises(SourceRefused, match="charset"):
        read_value(b"+AGE-", f"text/plain; charset={charset}")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b""),
        ("application/json", b"<html>down for maintenance</html>"),
        ("application/json", b'{"a": 1'),
        ("application/json", b"\xff"),
        ("application/json", b"\xef\xbb\xbf{}"),
        ("application/json", b"{} {}"),
        ("text/plain", b"\xff"),
        ("text/plain; charset=us-ascii", b"\xe9"),
    ],
)
def test_garbage_is_no_answer(server: SourceServer, content_type: str, body: bytes) -> None:
    server.behaviours["/v"] = reply(200, body, content_type=content_type)
    with pytest.raises(SourceUnavailable):
        ask(server)


@given(
    st.binary(max_size=40), st.sampled_from(["application/json", "text/plain", "text/plain;charset=utf-16"])
)
def test_any_bytes_become_a_value_or_a_refusal(body: bytes, content_type: str) -> None:
    try:
        read_value(body, content_type)
    except (SourceRefused, SourceUnavailable) as error:
        assert error.reason  # noqa: PT017 - either may happen
