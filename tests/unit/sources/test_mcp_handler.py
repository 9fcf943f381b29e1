"""`mcp`: which tool is called with what, on servers of every revision, and what its answer means."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from support.mcp_server import McpServer
from support.source_server import SourceServer, json_reply, reply

from factbook.adapters.sources.fetching import Fetcher
from factbook.adapters.sources.mcp_handler import McpHandler
from factbook.adapters.sources.mcp_messages import Events
from factbook.adapters.sources.urls import Allowed, Url
from factbook.domain.facts.fact import Freshness, Refresh, Source
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import Answer, Ask, Fetched, SourceRefused, SourceUnavailable

EVERY_REVISION = pytest.mark.parametrize(
    "revision",
    ["2025-03-26", "2025-06-18", "2025-11-25", None],
    ids=lambda revision: revision or "2026-07-28",
)
OK = '{"content": [{"type": "text", "text": "ok"}]}'


def ask(server: SourceServer, path: str) -> Answer:
    def credentials(tenant: str, url: Url) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {tenant}"}

    source = Source(
        kind="mcp-tool", uri=server.url(path), freshness=Freshness(), refresh=Refresh(strategy="manual")
    )
    handler = McpHandler(Fetcher(Allowed.read([server.netloc])), credentials)
    return handler.ask(Ask("acme", "f1", source, None), Deadline(30))


@EVERY_REVISION
@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_is_called_with_its_arguments(
    server: SourceServer, revision: str | None, stream: bool
) -> None:
    speaking = McpServer(OK, sessions=revision, stream=stream)
    server.behaviours["/mcp"] = speaking
    arguments = {"city": "Zürich & Köln", "n": [1, None]}
    query = f"?key=a%26b&tool=get+weather%2Fnow&arguments={quote(json.dumps(arguments))}&x"
    assert ask(server, "/mcp" + query) == Fetched('"ok"')
    (call,) = speaking.calls
    assert (call["name"], call["arguments"]) == ("get weather/now", arguments)
    assert {request.target for request in server.requests} == {"/mcp?key=a%26b&x"}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer acme"}
    assert {request.headers["accept"] for request in server.requests if request.method == "POST"} == {
        "application/json, text/event-stream"
    }
    assert speaking.ended == (1 if revision else 0)


def test_a_server_without_sessions_needs_none_and_none_is_ended(server: SourceServer) -> None:
    speaking = McpServer(OK, sessions="2025-06-18", session=None)

    def without_handshake(exchange: Any) -> None:
        if b"_meta" in exchange.request.body:
            exchange.send(reply(400))
        else:
            speaking(exchange)

    server.behaviours["/mcp"] = without_handshake
    assert ask(server, "/mcp?tool=t") == Fetched('"ok"')
    assert [request.method for request in server.requests] == ["POST"] * 4
    assert not any("mcp-session-id" in request.headers for request in server.requests)


@pytest.mark.parametrize("session", ["é", "a b", "a\tb"])
def test_a_session_that_no_header_can_bear_is_refused_and_nothing_unforeseen(
    server: SourceServer, session: str
) -> None:
    server.behaviours["/mcp"] = McpServer(OK, sessions="2025-06-18", session=session)
    with pytest.raises(SourceRefused, match="session"):
        ask(server, "/mcp?tool=t")


def test_a_name_that_no_header_can_bear_is_encoded(server: SourceServer) -> None:
    server.behaviours["/mcp"] = McpServer(OK)
    for name, header in (
        ("plain_name", "plain_name"),
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        (" a", "=?base64?IGE=?="),
        ("a\nb", "=?base64?YQpi?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ):
        ask(server, f"/mcp?tool={quote(name)}")
        assert server.requests[-1].headers["mcp-name"] == header


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ('{"structuredContent": {"a": 1}, "content": [{"type": "text", "text": "x"}]}', '{"a":1}'),
        ('{"structuredContent": null, "content": []}', "null"),
        ('{"content": [{"type": "text", "text": " {\\"a\\": 1.0}\\n"}]}', '{"a":1.0}'),
        ('{"content": [{"type": "text", "text": "[1]"}]}', "[1]"),
        ('{"content": [{"type": "text", "text": "{no json"}]}', '"{no json"'),
        ('{"content": [{"type": "text", "text": "42"}]}', '"42"'),
        ('{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}', '"a\\nb"'),
        ('{"resultType": "complete", "content": [{"type": "text", "text": ""}]}', '""'),
    ],
)
def test_what_a_tool_answers_becomes_the_content(server: SourceServer, result: str, content: str) -> None:
    server.behaviours["/mcp"] = McpServer(result)
    assert ask(server, "/mcp?tool=t") == Fetched(content)


@pytest.mark.parametrize(
    "result",
    [
        '{"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}',
        '{"content": []}',
        '{"content": "text"}',
        "{}",
        '{"resultType": "input_required", "inputRequests": {}}',
        '{"resultType": "later", "content": [{"type": "text", "text": "a"}]}',
    ],
)
def test_what_is_no_content_is_refused(server: SourceServer, result: str) -> None:
    server.behaviours["/mcp"] = McpServer(result)
    with pytest.raises(SourceRefused):
        ask(server, "/mcp?tool=t")


@EVERY_REVISION
@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ('{"code": -32602, "message": "Unknown tool"}', True),
        ('{"code": -32601, "message": "Method not found"}', True),
        ('{"code": -32021, "message": "Missing capability"}', True),
        ('{"code": -32020, "message": "Mcp-Param-Region is missing"}', True),
        ('{"code": -32603, "message": "Internal error"}', False),
        ('{"code": 7, "message": "busy"}', False),
    ],
)
def test_an_error_is_refused_or_may_pass(
    server: SourceServer, revision: str | None, error: str, refused: bool
) -> None:
    server.behaviours["/mcp"] = McpServer(error=error, sessions=revision)
    with pytest.raises(SourceRefused if refused else SourceUnavailable):
        ask(server, "/mcp?tool=t")


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (reply(401), True),
        (reply(403), True),
        (reply(404), True),
        (reply(400, b"{}", content_type="application/json"), True),
        (reply(400, b"{", content_type="application/json"), True),
        (reply(302, location="https://elsewhere.example/"), True),
        (reply(202), False),
        (reply(200, b"<html>", content_type="text/html"), False),
        (json_reply("[]"), False),
        (json_reply('{"jsonrpc": "2.0", "id": 1}'), False),
        (json_reply('{"jsonrpc": "2.0", "id": 1, "result": []}'), False),
        (json_reply('{"jsonrpc": "2.0", "id": 1, "error": "no"}'), False),
        (json_reply("{"), False),
        (reply(200, b"data: {}\n\ndata: [1]\n\n", content_type="text/event-stream"), False),
        (reply(200, b"data: {\n\n", content_type="text/event-stream"), False),
        (
            json_reply(
                '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "data": {"supported": ["2030-01-01"]}}}'
            ),
            True,
        ),
        (json_reply('{"jsonrpc": "2.0", "id": 1, "error": {"code": -32022}}'), True),
    ],
    ids=lambda value: ascii(value)[:90],
)
def test_what_is_no_answer_of_such_a_server_is_none(
    server: SourceServer, answer: bytes, refused: bool
) -> None:
    server.behaviours["/mcp"] = answer
    with pytest.raises(SourceRefused if refused else SourceUnavailable):
        ask(server, "/mcp?tool=t")
    assert len(server.requests) <= 2


def test_a_server_that_names_a_former_revision_is_asked_in_that_one(server: SourceServer) -> None:
    speaking = McpServer(OK, sessions="2025-11-25")
    error = '{"code": -32022, "message": "no", "data": {"supported": ["2025-11-25"]}}'

    def naming(exchange: Any) -> None:
        if b"_meta" in exchange.request.body:
            exchange.send(
                reply(400, f'{{"id": 1, "error": {error}}}'.encode(), content_type="application/json")
            )
        else:
            speaking(exchange)

    server.behaviours["/mcp"] = naming
    assert ask(server, "/mcp?tool=t") == Fetched('"ok"')


def test_a_server_of_a_revision_that_nobody_knows_is_refused(server: SourceServer) -> None:
    server.behaviours["/mcp"] = McpServer(OK, sessions="2024-11-05")
    with pytest.raises(SourceRefused, match="revision"):
        ask(server, "/mcp?tool=t")


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_busy_says_for_how_long(server: SourceServer, status: int) -> None:
    server.behaviours["/mcp"] = McpServer(status=status)
    with pytest.raises(SourceUnavailable, match=str(status)) as raised:
        ask(server, "/mcp?tool=t")
    assert raised.value.retry_after == 7


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?tool=",
        "?tools=t",
        "?tool=a&tool=b",
        "?tool=t&arguments=",
        "?tool=t&arguments=[]",
        "?tool=t&arguments=%7B%22a%22:1,%22a%22:2%7D",
        "?tool=t&arguments={}&arguments={}",
    ],
)
def test_an_address_that_names_no_call_is_refused(server: SourceServer, query: str) -> None:
    with pytest.raises(SourceRefused):
        ask(server, "/mcp" + query)
    assert server.requests == []


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "greeting": {"type": "string", "x-mcp-header": "Greeting"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "absent": {"type": "string", "x-mcp-header": "Absent"},
        "nothing": {"type": "string", "x-mcp-header": "Nothing"},
        "list": {"type": "array", "x-mcp-header": "List"},
        "broken": {"type": "string", "x-mcp-header": "no token\r\nHost: evil"},
        "page": {"type": "object", "properties": {"size": {"type": "integer", "x-mcp-header": "Size"}}},
        "x-mcp-header": {"type": "string"},
    },
}


@pytest.mark.parametrize("stream", [False, True])
def test_parameters_that_a_tool_wants_in_headers_too_are_said_there(
    server: SourceServer, stream: bool
) -> None:
    arguments = {"region": "us-west1", "greeting": " 世界", "dry": True, "nothing": None, "list": [1]}
    arguments |= {"broken": "x", "page": {"size": -7}, "x-mcp-header": "z"}
    wanted = {"region": "us-west1", "greeting": "=?base64?IOS4lueVjA==?=", "dry": "true", "size": "-7"}
    speaking = McpServer(OK, schema=SCHEMA, mirrored=wanted, stream=stream)
    server.behaviours["/mcp"] = speaking

    assert ask(server, f"/mcp?tool=t&arguments={quote(json.dumps(arguments))}") == Fetched('"ok"')
    assert len(speaking.calls) == 1, "the server was asked what it wants before its tool was called"
    said = {
        name.removeprefix("mcp-param-"): value
        for name, value in server.requests[-1].headers.items()
        if name.startswith("mcp-param-")
    }
    assert said == wanted
    assert [json.loads(request.body)["method"] for request in server.requests] == [
        "tools/call",
        "tools/list",
        "tools/list",
        "tools/call",
    ]


@pytest.mark.parametrize("schema", [None, {}, {"properties": []}, {"properties": {"a": 1}}, SCHEMA])
def test_a_server_that_refuses_the_headers_it_asked_for_is_not_asked_for_ever(
    server: SourceServer, schema: Any
) -> None:
    server.behaviours["/mcp"] = McpServer(OK, schema=schema, mirrored={"region": "elsewhere"})

    with pytest.raises(SourceRefused, match="what is not done here"):
        ask(server, "/mcp?tool=t&arguments=%7B%22region%22:%22here%22%7D")
    assert len(server.requests) <= 6


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_events_may_be_cut_anywhere(end: str, size: int) -> None:
    line = end[: len(end) // 2]
    stream = f':{end}data: {{"id":{line}data: 1}}{end}event: x{line}data:[2]{end}data:{{"id": 2}}{end}more'.encode()
    events = Events(lambda text: text.startswith(b"{") and json.loads(text)["id"] == 2)
    pieces = [stream[place : place + size] for place in range(0, len(stream), size)]
    taken = [events.take(piece) for piece in pieces]
    assert any(taken)
    assert events.found == b'{"id": 2}'
