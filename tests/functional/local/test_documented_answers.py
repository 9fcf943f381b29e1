"""Requests made up from openapi.json against the running service: no server error, no status or shape it leaves out."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import urllib3
from hypothesis import HealthCheck, given, settings
from support.gateway import ROOT

from factbook_local.testing import running

EXAMPLES = 8
SLOW = {("put", "/v1/memory/policy"): 3}  # each takes two seconds by intent
DOCUMENT = ROOT / "openapi.json"
OPERATIONS = [
    (method, path) for path, item in json.loads(DOCUMENT.read_text())["paths"].items() for method in item
]


@dataclass(frozen=True)
class Service:
    """Where it runs, how to get in, and records of it that a path may name."""

    url: str
    headers: dict[str, str]
    records: dict[str, str]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("documented")) as ready:
        headers = {"Authorization": f"Bearer {ready.tokens['demo']}"}
        http = urllib3.PoolManager(headers=headers)

        def post(path: str, body: Any) -> Any:
            answer = http.request("POST", ready.url + path, body=json.dumps(body))
            assert answer.status == 201, answer.data
            return answer.json()

        message = {"kind": "user-message", "scope": {"projectId": "p", "threadId": "t"}, "payload": "hello"}
        fact = post("/v1/memory/facts", {"type": "note", "content": {"text": "hello"}})
        entry = post("/v1/memory/runs/r/log", {"entries": [message]})["entries"][0]
        records = {"id": fact["id"], "runId": "r", "logId": entry["id"], "threadId": "t"}
        assert post("/v1/memory/checkpoints", {})["size"] == 1
        yield Service(ready.url, headers, records)
        http.clear()


@pytest.fixture(scope="module")
def schema() -> Any:
    import schemathesis  # three seconds that every other test does without

    @schemathesis.serializer("application/x-ndjson")
    def lines(_: Any, value: Any) -> bytes:
        return json.dumps(value).encode() + b"\n"

    return schemathesis.openapi.from_path(DOCUMENT)


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=map(" ".join, OPERATIONS))
def test_an_answer_is_one_that_the_document_knows(
    schema: Any, service: Service, method: str, path: str
) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    promised = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    examples = SLOW.get((method, path), EXAMPLES)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=schema[path][method].as_strategy())
    def answers_as_documented(case: Any) -> None:
        for name, value in case.path_parameters.items():
            # Every other path names something that is there, or nothing would get past it.
            if name in service.records and zlib.crc32(str(value).encode("utf-8", "replace")) % 2:
                case.path_parameters[name] = service.records[name]
        answer = case.call(base_url=service.url, headers=service.headers, timeout=60)
        case.validate_response(answer, checks=promised)

    answers_as_documented()


@pytest.mark.parametrize("path", ["/v1/memory/checkpoints?", "/v1/memory/runs/r/log?form=stored&"])
@pytest.mark.parametrize("size", [2, 10**12, 10**40])
def test_a_checkpoint_beyond_the_newest_is_not_found(service: Service, path: str, size: int) -> None:
    with urllib3.PoolManager(headers=service.headers) as http:
        answer = http.request("GET", f"{service.url}{path}checkpointSize={size}")

        assert (answer.status, answer.json()["error"]["code"]) == (404, "not-found")
