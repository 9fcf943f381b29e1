"""The contract of handlers: over HTTP, on S3, over MCP of each revision, and by a function."""

import gzip
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from support.emulators import Aws
from support.mcp_server import McpServer
from support.source_server import SourceServer, json_reply, reply, source_server

from factbook.adapters.lambda_invoke import LambdaFunction
from factbook.adapters.sources.fetching import Fetcher
from factbook.adapters.sources.http_handler import HttpHandler
from factbook.adapters.sources.lambda_handler import LambdaHandler
from factbook.adapters.sources.mcp_handler import McpHandler
from factbook.adapters.sources.s3_handler import Buckets, S3Handler
from factbook.adapters.sources.urls import Allowed, Url
from factbook.ports.sources.handlers import Fetched, SourceRefused, Unchanged
from factbook.wiring.clients import OF_SERVICE, SDK, sdk_session

from .source_handlers import HandlerContract


def no_credentials(tenant: str, url: Url) -> dict[str, str]:
    return {}


class OnAServer(HandlerContract):
    server: SourceServer

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with source_server() as self.server:
            self.begin()
            yield

    def begin(self) -> None:
        raise NotImplementedError


class TestHttp(OnAServer):
    kind = "http-api"

    def begin(self) -> None:
        self.handler = HttpHandler(Fetcher(Allowed.read([self.server.netloc])), no_credentials)

    def answers(self, text: str) -> str:
        self.server.behaviours["/v"] = json_reply(text)
        return self.server.url("/v")

    def has_nothing(self) -> str:
        return self.server.url("/nothing")

    def fails(self) -> str:
        self.server.behaviours["/v"] = reply(500, b"s3cret")
        return self.server.url("/v")


class OnMcp(OnAServer):
    kind = "mcp-tool"
    speaking: McpServer

    def begin(self) -> None:
        self.handler = McpHandler(Fetcher(Allowed.read([self.server.netloc])), no_credentials)
        self.server.behaviours["/mcp"] = self.speaking = self.make()

    def make(self) -> McpServer:
        raise NotImplementedError

    def answers(self, text: str) -> str:
        self.speaking.result = f'{{"content": [], "structuredContent": {text}}}'
        return self.server.url("/mcp?tool=price")

    def has_nothing(self) -> str:
        self.speaking.error = '{"code": -32602, "message": "Unknown tool: s3cret"}'
        return self.server.url("/mcp?tool=nothing")

    def fails(self) -> str:
        self.speaking.error = None
        self.speaking.result = '{"content": [{"type": "text", "text": "s3cret"}], "isError": true}'
        return self.server.url("/mcp?tool=price")


class TestMcp(OnMcp):
    def make(self) -> McpServer:
        return McpServer()


class TestMcpByEvents(OnMcp):
    def make(self) -> McpServer:
        return McpServer(stream=True)


class TestMcpWithSessions(OnMcp):
    def make(self) -> McpServer:
        return McpServer(sessions="2025-11-25")


class TestMcpWithSessionsByEvents(OnMcp):
    def make(self) -> McpServer:
        return McpServer(sessions="2025-03-26", stream=True)


class TestLambda(OnAServer):
    """The SDK's own client calls a server that answers as Lambda's Invoke does."""

    kind = "external-db"

    def begin(self) -> None:
        client = sdk_session().create_client(
            "lambda",
            "us-east-1",
            endpoint_url=self.server.url(""),
            config=SDK.merge(OF_SERVICE["lambda"]),
        )
        self.handler = LambdaHandler(LambdaFunction(client, "prices"))

    def invoked(self, answer: bytes) -> str:
        self.server.behaviours["/2015-03-31/functions/prices/invocations"] = answer
        return "db://prices/7"

    def answers(self, text: str) -> str:
        return self.invoked(json_reply(f'{{"outcome": "fetched", "content": {text}}}'))

    def has_nothing(self) -> str:
        return self.invoked(json_reply('{"outcome": "refused", "reason": "s3cret"}'))

    def fails(self) -> str:
        return self.invoked(json_reply('{"errorMessage": "s3cret"}', x_amz_function_error="Unhandled"))


class OnS3(HandlerContract):
    kind = "blob"
    client: Any
    bucket: str

    def over(self, aws: Aws) -> None:
        self.client = aws.client("s3")
        self.bucket = f"source-bucket-{uuid.uuid4()}"
        self.client.create_bucket(Bucket=self.bucket)
        versioned = {"Status": "Enabled"}
        self.client.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration=versioned)
        self.handler = S3Handler(self.client, Buckets(frozenset({self.bucket})))

    def answers(self, text: str) -> str:
        self.client.put_object(
            Bucket=self.bucket, Key="v/a b.json", Body=text.encode(), ContentType="application/json"
        )
        return f"s3://{self.bucket}/v/a b.json"

    def has_nothing(self) -> str:
        return f"s3://{self.bucket}/nothing"

    def fails(self) -> str:
        def refused(**_: Any) -> None:
            raise EndpointConnectionError(endpoint_url="s3cret")

        self.client.meta.events.register("before-call.s3.GetObject", refused)
        return f"s3://{self.bucket}/v/a b.json"

    def put(self, key: str, body: bytes, **more: str) -> Any:
        return self.client.put_object(Bucket=self.bucket, Key=key, Body=body, **more)

    def test_an_object_is_known_by_its_tag_and_its_version(self) -> None:
        uri = self.answers("1")
        first = self.ask(uri)
        assert isinstance(first, Fetched)
        assert first.etag
        assert first.source_version
        before = self.ask(uri, 1, etag=first.etag, source_version=first.source_version)
        assert before == Unchanged(first.etag, first.source_version)
        # The tag decides, as the source says; without content to compare with nobody asks by it.
        assert isinstance(self.ask(uri, 2, etag=first.etag), Unchanged)
        assert isinstance(self.ask(uri, etag=first.etag), Fetched)

        self.answers("2")
        second = self.ask(uri, 1, etag=first.etag, source_version=first.source_version)
        assert isinstance(second, Fetched)
        assert second.content_text == "2"
        assert second.source_version not in (None, first.source_version)

    def test_an_etag_that_is_none_is_not_sent(self) -> None:
        uri = self.answers("1")
        for etag in ("1", '"a"\r\nx: 1', '"é"', "*"):
            assert isinstance(self.ask(uri, 2, etag=etag), Fetched)

    @pytest.mark.parametrize(
        ("key", "said", "content"),
        [
            ("a", {"ContentType": "application/json"}, "[1]"),
            ("a.json", {}, "[1]"),
            ("a.txt", {"ContentType": "application/octet-stream"}, '"[1]"'),
            ("a.json", {"ContentType": "text/plain"}, '"[1]"'),
            ("a.md", {}, '"[1]"'),
            ("a.csv", {}, '"[1]"'),
        ],
    )
    def test_the_type_of_an_object_is_what_was_said_or_what_its_name_says(
        self, key: str, said: dict[str, str], content: str
    ) -> None:
        self.put(key, b"[1]", **said)
        found = self.ask(f"s3://{self.bucket}/{key}")
        assert isinstance(found, Fetched)
        assert found.content_text == content

    @pytest.mark.parametrize(
        ("key", "said"), [("a", {}), ("a.png", {}), ("a.json", {"ContentType": "image/png"}), ("a.bin", {})]
    )
    def test_an_object_that_is_no_text_is_refused(self, key: str, said: dict[str, str]) -> None:
        self.put(key, b"[1]", **said)
        with pytest.raises(SourceRefused, match="neither JSON nor text"):
            self.ask(f"s3://{self.bucket}/{key}")

    def test_a_packed_object_is_unpacked_within_the_same_bounds(self) -> None:
        self.put("a.json", gzip.compress(b"[1]"), ContentEncoding="gzip")
        found = self.ask(f"s3://{self.bucket}/a.json")
        assert isinstance(found, Fetched)
        assert found.content_text == "[1]"
        self.put("b.json", gzip.compress(bytes(64 * 1024 * 1024)), ContentEncoding="gzip")
        with pytest.raises(SourceRefused, match="4 MB"):
            self.ask(f"s3://{self.bucket}/b.json")

    def test_a_key_is_written_as_in_any_uri(self) -> None:
        self.put("a#b %.json", b"[1]")
        found = self.ask(f"s3://{self.bucket}/a%23b%20%25.json#/0")
        assert isinstance(found, Fetched)
        assert found.content_text == "1"

    def test_only_what_is_listed_is_read_and_of_a_tenants_part_only_by_that_tenant(self) -> None:
        for tenant in ("acme", "other", "acme%2Feu"):
            self.put(f"{tenant}/a.json", b"[1]")
        self.handler = S3Handler(self.client, Buckets(frozenset({f"{self.bucket}/{{tenant}}/", "elsewhere"})))
        assert isinstance(self.ask(f"s3://{self.bucket}/acme/a.json"), Fetched)
        assert isinstance(self.ask(f"s3://{self.bucket}/acme%252Feu/a.json", tenant="acme/eu"), Fetched)
        for uri, tenant in (
            (f"s3://{self.bucket}/other/a.json", "acme"),
            (f"s3://{self.bucket}/a.json", "acme"),
            (f"s3://{self.bucket}/acme/eu/a.json", "acme/eu"),
            (f"s3://{self.bucket}/acme/../other/a.json", "acme"),
            (f"s3://{self.bucket}/acme/%2e%2e/other/a.json", "acme"),
            (f"s3://{self.bucket}-2/acme/a.json", "acme"),
        ):
            with pytest.raises(SourceRefused, match=r"bucket|dot segment"):
                self.ask(uri, tenant=tenant)


class TestS3(OnS3):
    @pytest.fixture(autouse=True)
    def _client(self, emulator: Aws) -> None:
        self.over(emulator)
