"""Requests over HTTP reach a function as payload 2.0 and its result comes back as an answer."""

import base64
import http.client
import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.local_cloud import Cloud


def raw(cloud: Cloud, request: bytes, *, then_close: bool = False) -> bytes:
    """Everything a server says to bytes that no client library would send; it is the server that closes."""
    where = urlsplit(cloud.ready.url)
    with socket.create_connection((where.hostname, where.port), timeout=30) as connection:
        connection.sendall(request)
        if then_close:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(1 << 16):
            answer += chunk
        return answer


def exchange(
    cloud: Cloud, method: str, target: str, headers: list[tuple[str, str]], body: bytes = b""
) -> Any:
    """The event of one request, its headers sent exactly as given."""
    where = urlsplit(cloud.ready.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    if body:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body or None)
    try:
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_an_event_has_the_shape_of_payload_two(cloud: Cloud) -> None:
    event = exchange(
        cloud,
        "GET",
        "/things/a1?limit=5&tag=x&tag=y&empty=",
        [("User-Agent", "probe"), ("X-Odd", "one"), ("x-odd", "two")],
    )

    assert event["version"] == "2.0"
    assert event["routeKey"] == event["requestContext"]["routeKey"] == "GET /things/{id}"
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/things/a1"
    assert event["rawQueryString"] == "limit=5&tag=x&tag=y&empty="
    assert event["queryStringParameters"] == {"limit": "5", "tag": "x,y", "empty": ""}
    assert event["pathParameters"] == {"id": "a1"}
    assert event["headers"]["x-odd"] == "one,two"
    assert event["headers"]["host"] == urlsplit(cloud.ready.url).netloc
    assert event["requestContext"]["http"] | {"path": ""} == {
        "method": "GET",
        "path": "",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "probe",
    }
    assert event["requestContext"]["stage"] == "$default"
    assert event["isBase64Encoded"] is False
    assert {"body", "cookies"} & event.keys() == set()


def test_cookies_come_apart_from_the_headers(cloud: Cloud) -> None:
    event = exchange(cloud, "GET", "/any", [("Cookie", "a=1; b=2"), ("Cookie", "c=3")])
    assert event["cookies"] == ["a=1", "b=2", "c=3"]
    assert "cookie" not in event["headers"]


def test_a_path_is_decoded_but_for_its_slashes_and_percents(cloud: Cloud) -> None:
    event = exchange(cloud, "GET", "/things/a%2Fb%20c%25d%C3%A9", [])
    assert event["rawPath"] == "/things/a%2Fb c%25dé"
    assert event["pathParameters"] == {"id": "a%2Fb c%25dé"}


def test_the_most_specific_route_is_selected(cloud: Cloud) -> None:
    assert exchange(cloud, "GET", "/things/known", [])["routeKey"] == "GET /things/known"
    assert exchange(cloud, "GET", "/things/other", [])["routeKey"] == "GET /things/{id}"
    assert exchange(cloud, "POST", "/things/known", [], b"{}")["routeKey"] == "$default"
    assert exchange(cloud, "GET", "/things/known/", [])["routeKey"] == "$default"


def test_a_body_is_text_only_where_its_type_says_so(cloud: Cloud) -> None:
    for kind in ("application/json", "text/plain; charset=utf-8", "application/xml"):
        event = exchange(cloud, "POST", "/any", [("Content-Type", kind)], "é".encode())
        assert (event["body"], event["isBase64Encoded"]) == ("é", False)
    for headers in (
        [("Content-Type", "application/octet-stream")],
        [("Content-Type", "application/x-www-form-urlencoded")],
        [],
        [("Content-Type", "application/json"), ("Content-Encoding", "gzip")],
    ):
        event = exchange(cloud, "POST", "/any", headers, b"a\xff")
        assert (base64.b64decode(event["body"]), event["isBase64Encoded"]) == (b"a\xff", True)
    assert (
        exchange(cloud, "POST", "/any", [("Content-Type", "text/plain")], b"\xff")["isBase64Encoded"] is True
    )


def test_an_answer_carries_status_headers_cookies_and_bytes(cloud: Cloud) -> None:
    value = {
        "statusCode": 418,
        "headers": {"X-Number": 5, "X-Bool": True},
        "cookies": ["a=1", "b=2"],
        "body": base64.b64encode(b"\x00\xff").decode(),
        "isBase64Encoded": True,
    }
    where = urlsplit(cloud.ready.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
    connection.request(
        "POST", "/any", json.dumps({"do": "return", "value": value}), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (418, b"\x00\xff")
    assert (answer.headers["x-number"], answer.headers["x-bool"]) == ("5", "true")
    assert answer.headers.get_all("set-cookie") == ["a=1", "b=2"]
    connection.close()


def test_a_result_without_a_status_is_the_body_of_a_200(cloud: Cloud) -> None:
    reply = cloud.do("return", value={"a": [1, None]})
    assert (reply.status, reply.headers["content-type"], reply.json) == (
        200,
        "application/json",
        {"a": [1, None]},
    )


def test_a_result_that_is_no_answer_is_a_500_of_the_gateway(cloud: Cloud) -> None:
    for value in (
        {"statusCode": "many"},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "headers": {"a": "b\r\nc: d"}},
        {"statusCode": 200, "body": "no base64!", "isBase64Encoded": True},
        {"statusCode": 1},
    ):
        reply = cloud.do("return", value=value)
        assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})


def test_a_function_that_fails_is_a_500_and_the_next_request_is_served(cloud: Cloud) -> None:
    for what in ("raise", "exit", "kill"):
        reply = cloud.do(what)
        assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})
        assert cloud.request("GET", "/any").status == 200


def test_a_function_past_its_timeout_is_killed_and_answered_for(cloud: Cloud) -> None:
    reply = cloud.do("sleep", seconds=60)
    assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})
    assert cloud.do("sleep", seconds=0).status == 200


@pytest.mark.exhaustive
def test_an_integration_past_thirty_seconds_is_unavailable(cloud: Cloud) -> None:
    reply = cloud.do("sleep", "/slow", seconds=33)
    assert (reply.status, reply.json) == (503, {"message": "Service Unavailable"})


def test_what_is_too_large_never_reaches_a_function(cloud: Cloud) -> None:
    before = len(cloud.invocations())
    for size in (
        10 * 1024 * 1024 + 1,
        5 * 1024 * 1024,
    ):  # above the gateway's limit; above Lambda's once in base64
        reply = cloud.request("POST", "/any", b"x" * size)
        assert (reply.status, reply.json) == (413, {"message": "Request Entity Too Large"})
    reply = cloud.request("GET", "/any", headers={"X-Long": "x" * 10_240})
    assert (reply.status, reply.json) == (431, {"message": "Request Header Fields Too Large"})
    assert len(cloud.invocations()) == before


def test_an_answer_above_six_megabytes_is_a_500(cloud: Cloud) -> None:
    assert cloud.do("large", size=5_000_000).status == 200
    assert cloud.do("large", size=7_000_000).status == 500


def test_an_answer_is_measured_as_it_goes_over_the_wire(cloud: Cloud) -> None:
    assert cloud.do("large", size=3_000_000, of="é").status == 200  # the runtime escapes nothing but for JSON
    assert cloud.do("large", size=3_000_000, of='"').status == 200
    assert cloud.do("large", size=3_200_000, of='"').status == 500


HOST = b"Host: x\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01\x02\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /%FF%FE HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Bad Header: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 300_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
    ],
    ids=[
        "no HTTP",
        "another protocol",
        "no host",
        "path of no UTF-8",
        "path of raw bytes",
        "space in a header's name",
        "huge header",
        "huge path",
        "negative length",
        "two lengths",
        "bad chunk",
        "unknown coding",
        "NUL in a header",
    ],
)
def test_hostile_bytes_are_refused_and_the_gateway_goes_on(cloud: Cloud, request_bytes: bytes) -> None:
    assert raw(cloud, request_bytes).split(b" ")[1][:1] == b"4"
    assert cloud.request("GET", "/any").status == 200


def test_a_request_that_breaks_off_reaches_no_function(cloud: Cloud) -> None:
    before = len(cloud.invocations())
    start = b"POST /any HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\nshort"
    assert raw(cloud, start, then_close=True) == b""
    assert len(cloud.invocations()) == before
    assert cloud.request("GET", "/any").status == 200


def test_a_caller_cannot_claim_another_address(cloud: Cloud) -> None:
    event = exchange(
        cloud, "GET", "/any", [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https")]
    )
    assert event["requestContext"]["http"]["sourceIp"] == "127.0.0.1"
    assert event["headers"]["x-forwarded-for"] == "203.0.113.9, 127.0.0.1"
