"""Raw bodies and parallel callers over a socket, against the service as `factbook local` runs it."""

import http.client
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.raw_contents import EXACT, MALFORMED, body, content_of

from factbook_local.testing import Ready

FACTS = "/v1/memory/facts"


@dataclass
class Caller:
    """One connection to the service, kept alive."""

    service: Ready
    connection: http.client.HTTPConnection

    def send(self, method: str, path: str, raw: str | bytes | None = None, **headers: str) -> tuple[int, str]:
        (token,) = self.service.tokens.values()
        sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        encoded = raw.encode() if isinstance(raw, str) else raw
        self.connection.request(method, path, encoded, sent)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture
def callers(local_service: Ready) -> Iterator[list[Caller]]:
    netloc = urlsplit(local_service.url).netloc
    made = [Caller(local_service, http.client.HTTPConnection(netloc, timeout=60)) for _ in range(20)]
    yield made
    for caller in made:
        caller.connection.close()


def stored(service: Ready) -> int:
    """Items of the facts table."""
    pages = service.client("dynamodb").get_paginator("scan").paginate(
        TableName=service.aws["tables"]["facts"], Select="COUNT"
    )  # fmt: skip
    return sum(page["Count"] for page in pages)


def test_content_comes_back_to_the_letter_over_the_wire(callers: list[Caller]) -> None:
    caller = callers[0]
    for content in EXACT:
        status, written = caller.send("POST", FACTS, body(content))
        assert status == 201
        status, read = caller.send("GET", f"{FACTS}/{json.loads(written)['id']}")
        assert status == 200
        assert content_of(written) == content_of(read) == content


def test_malformed_bodies_are_400_over_the_wire_and_nothing_is_written(
    callers: list[Caller], local_service: Ready
) -> None:
    before = stored(local_service)
    bad: dict[str, Any] = MALFORMED | {
        "bytes that are no UTF-8": b'{"type":"n","content":"\xff"}',
        "an encoded surrogate": b'{"type":"n","content":"\xed\xa0\x80"}',
        "an unknown field": '{"type":"n","content":1,"Scope":{}}',
    }
    for name, raw in bad.items():
        for content_type in ("application/json", "application/octet-stream"):
            status, answer = callers[0].send("POST", FACTS, raw, Content_Type=content_type)
            assert (name, status) == (name, 400)
            assert json.loads(answer)["error"]["code"] in {"bad-input", "validation-failed", "unknown-field"}
    assert stored(local_service) == before


def test_twenty_callers_at_once_with_one_key_make_one_fact(
    callers: list[Caller], local_service: Ready
) -> None:
    before = stored(local_service)
    key = str(uuid.uuid4())

    def write(caller: Caller) -> tuple[int, str]:
        return caller.send("POST", FACTS, body('"once"'), Idempotency_Key=key)

    with ThreadPoolExecutor(20) as pool:
        answers = set(pool.map(write, callers))
    assert len(answers) == 1
    assert answers.pop()[0] == 201
    assert stored(local_service) == before + 1


def test_of_twenty_callers_at_once_one_supersedes_a_version(callers: list[Caller]) -> None:
    _, written = callers[0].send("POST", FACTS, body("1"))
    path = f"{FACTS}/{json.loads(written)['id']}"

    def supersede(caller: Caller) -> tuple[int, Any]:
        status, answer = caller.send("POST", f"{path}/supersede", '{"content":2,"expectVersion":1}')
        return status, json.loads(answer)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(supersede, callers))
    assert sorted(status for status, _ in answers) == [200] + [409] * 19
    refused = [answer["error"] for status, answer in answers if status == 409]
    assert {(each["code"], each["details"]["currentVersion"]) for each in refused} == {("fact-changed", 2)}
    assert json.loads(callers[0].send("GET", path)[1])["version"] == 2


def test_an_encoded_path_is_decoded_once(callers: list[Caller]) -> None:
    for fact_id in ("a%2Fb", "%25", "%252F", "caf%C3%A9", "a%20b", "..%2F..", "%7C"):
        status, answer = callers[0].send("GET", f"{FACTS}/{fact_id}")
        assert (status, json.loads(answer)["error"]["code"]) == (404, "fact-not-found")
