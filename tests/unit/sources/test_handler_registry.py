"""Which handler a source gets, and which endpoint politeness and circuits go by."""

from typing import Any

import pytest

from factbook.adapters.sources.http_handler import HttpHandler
from factbook.adapters.sources.lambda_handler import LambdaHandler
from factbook.adapters.sources.mcp_handler import McpHandler
from factbook.adapters.sources.s3_handler import S3Handler
from factbook.domain.facts.fact import Freshness, Refresh, Source
from factbook.ports.deadline import Deadline
from factbook.ports.sources.handlers import Ask, Asked, HandlerMissing, SourceRefused
from factbook.settings import Settings
from factbook.wiring.sources.handlers import source_handlers

SETTINGS = Settings(
    refresh_allow="localhost:8000",
    refresh_buckets="reports",
    refresh_functions="prices,stock=arn:aws:lambda:eu-west-1:1:function:stock",
    blobs_bucket="blobs",
)


def source(kind: str, handler: str | None = None, uri: str | None = None) -> Source:
    refresh = Refresh(strategy="manual", handler=handler)
    return Source.model_validate({"kind": kind, "uri": uri, "freshness": Freshness(), "refresh": refresh})


def handlers(settings: Settings = SETTINGS) -> Any:
    return source_handlers(settings, lambda service: service)


@pytest.mark.parametrize(
    ("kind", "handler", "made"),
    [
        ("http-api", None, HttpHandler),
        ("blob", None, S3Handler),
        ("mcp-tool", None, McpHandler),
        ("external-db", "lambda:prices", LambdaHandler),
        ("external-db", "http", HttpHandler),
        ("blob", "http", HttpHandler),
        ("http-api", "lambda:stock", LambdaHandler),
    ],
)
def test_a_source_is_asked_by_the_handler_it_names_or_its_kinds(
    kind: str, handler: str | None, made: type
) -> None:
    registry = handlers()
    found = registry.handler(source(kind, handler))
    assert isinstance(found, made)
    assert registry.handler(source(kind, handler)) is found


def test_a_person_is_asked_where_nobody_else_knows() -> None:
    asked = source("user-input")
    assert handlers().handler(asked).ask(Ask("t", "f", asked, None), Deadline(0)) == Asked()


@pytest.mark.parametrize(
    ("kind", "handler"),
    [
        ("external-db", None),
        ("external-db", "lambda:other"),
        ("external-db", "lambda:"),
        ("http-api", "tool-7"),
        ("http-api", "HTTP"),
    ],
)
def test_a_handler_that_is_not_configured_is_missing(kind: str, handler: str | None) -> None:
    with pytest.raises(HandlerMissing):
        handlers().handler(source(kind, handler))


def test_without_a_list_of_buckets_and_functions_there_is_no_handler_for_them() -> None:
    bare = handlers(Settings())
    assert isinstance(bare.handler(source("http-api")), HttpHandler)
    for kind, handler in (("blob", None), ("external-db", "lambda:prices")):
        with pytest.raises(HandlerMissing):
            bare.handler(source(kind, handler))


@pytest.mark.parametrize(
    ("found", "host"),
    [
        (source("http-api", uri="https://API.example/v1?q#/a"), "api.example"),
        (source("http-api", uri="http://localhost:8000/v1"), "localhost:8000"),
        (source("mcp-tool", uri="https://api.example:443/mcp?tool=t"), "api.example"),
        (source("blob", uri="s3://reports/a/b"), "s3:reports"),
        (source("external-db", "lambda:prices", uri="db://x"), "lambda:prices"),
        (source("user-input"), None),
        (source("external-db"), None),
        (source("http-api"), None),
        (source("http-api", uri="https://127.1/"), None),
        (source("blob", uri="https://reports/a"), None),
        (source("http-api", "unknown", uri="https://api.example/"), None),
    ],
)
def test_politeness_goes_by_the_endpoint(found: Source, host: str | None) -> None:
    assert handlers().host(found) == host


def test_the_services_own_buckets_are_never_read_whatever_is_listed() -> None:
    listed = Settings(
        refresh_buckets="blobs/facts/, blobs, notes, reports",
        blobs_bucket="blobs",
        checkpoints_bucket="notes",
    )
    for bucket in ("blobs", "notes"):
        asked = source("blob", uri=f"s3://{bucket}/facts/a.json")
        with pytest.raises(SourceRefused, match="not one that this deployment reads"):
            handlers(listed).handler(asked).ask(Ask("t", "f", asked, None), Deadline(5))
