"""Content over raw bodies: it comes back equal, or the request is 400 and nothing is written."""

import base64
import hashlib
import json
import urllib.request
from decimal import Decimal

import pytest
from support.counting import stored_items
from support.emulators import Aws
from support.gateway import Gateway
from support.principals import TenantService
from support.raw_contents import EXACT, MALFORMED, body, content_of

EQUAL = [
    "1e-7",
    "1E5",
    "1.50",
    "-0",
    "0.1e1",
    '"\\ud83d\\ude00"',
    '"\\u00e9"',
    "[ 1 , 2 ]",
    "123456789012345678901234567890",
]


@pytest.mark.parametrize("content", EXACT)
def test_content_comes_back_to_the_letter(admin: Gateway, content: str) -> None:
    written = admin.call("POST", "/v1/memory/facts", raw=body(content))
    assert written.status == 201
    read = admin.call("GET", f"/v1/memory/facts/{written.json['id']}")
    assert content_of(written.text) == content_of(read.text) == content


@pytest.mark.parametrize("content", EQUAL)
def test_content_comes_back_equal_in_value_and_kind_of_number(admin: Gateway, content: str) -> None:
    written = admin.call("POST", "/v1/memory/facts", raw=body(content))
    (listed,) = admin.call("GET", "/v1/memory/facts").json["data"]
    revised = admin.call("GET", f"/v1/memory/facts/{written.json['id']}/revisions").json["data"][0]
    for fact in (written.json, listed, revised):
        assert repr(fact["content"]) == repr(-0.0 if content == "-0" else json.loads(content))


def test_a_decimal_is_a_double_everywhere(admin: Gateway) -> None:
    written = admin.call("POST", "/v1/memory/facts", raw=body("[0.1,1e-7,2.5]"))
    numbers = json.loads(content_of(written.text), parse_float=Decimal)
    assert numbers == [Decimal("0.1"), Decimal("1e-7"), Decimal("2.5")]


def test_large_content_comes_back_to_the_letter_from_its_download(admin: Gateway, ministack: Aws) -> None:
    content = json.dumps(
        {"text": "é\U0001f600" * 20_000, "n": 1.0, "z": -0.0}, ensure_ascii=False, separators=(",", ":")
    )
    written = admin.call("POST", "/v1/memory/facts", raw=body(content)).json
    assert "content" not in written
    assert written["size"] == len(content.encode())
    assert written["contentRef"].startswith(f"blob://s3/{ministack.settings.blobs_bucket}/")
    moved = admin.call("GET", f"/v1/memory/facts/{written['id']}/content")
    assert (moved.status, moved.text) == (307, "")
    with urllib.request.urlopen(moved.headers["Location"], timeout=10) as answer:
        assert answer.read().decode() == content


@pytest.mark.parametrize("said", [{}, {"ChecksumAlgorithm": "SHA256"}])
@pytest.mark.parametrize("body_of_another", [b"another", b'{"x":1}' * 20_000])
def test_a_download_of_an_object_that_somebody_replaced_is_refused(
    admin: Gateway, ministack: Aws, body_of_another: bytes, said: dict[str, str]
) -> None:
    size, blobs = len(body_of_another), ministack.client("s3")
    sha256 = hashlib.sha256(b"x" * size).hexdigest()
    asked = {"size": size, "sha256": sha256, "type": "n", "scope": {}}
    upload = admin.call("POST", "/v1/memory/blobs", asked).json
    bucket, _, key = upload["contentRef"].removeprefix("blob://s3/").partition("/")
    blobs.put_object(Bucket=bucket, Key=key, Body=b"x" * size, ChecksumAlgorithm="SHA256")
    uploaded = admin.call("POST", "/v1/memory/facts", {"type": "n", "contentRef": upload["contentRef"]}).json
    stored = admin.call("POST", "/v1/memory/facts", {"type": "n", "content": "x" * 70_000}).json
    for fact in (uploaded, stored):
        path = f"/v1/memory/facts/{fact['id']}/content"
        assert admin.call("GET", path).status == 307
        bucket, _, key = fact["contentRef"].removeprefix("blob://s3/").partition("/")
        blobs.put_object(Bucket=bucket, Key=key, Body=body_of_another, **said)
        refused = admin.call("GET", path)
        assert (refused.status, refused.json["error"]["code"]) == (404, "not-found")
        assert "was replaced" in refused.json["error"]["message"]


def test_the_edge_between_inline_and_object_is_64_kilobytes_of_stored_text(admin: Gateway) -> None:
    edge = '"' + "é" * (32 * 1024 - 1) + '"'
    inline = admin.call("POST", "/v1/memory/facts", raw=body(edge)).json
    assert (inline["size"], "content" in inline, "contentRef" in inline) == (65536, True, False)
    above = admin.call("POST", "/v1/memory/facts", raw=body(edge[:-1] + 'x"')).json
    assert (above["size"], "content" in above, "contentRef" in above) == (65537, False, True)


def test_the_hash_is_the_servers_and_the_same_for_equal_content(admin: Gateway) -> None:
    bodies = ['{"a":1.0,"b":[2]}', '{ "b" : [2], "a" : 1 }']
    facts = [
        admin.call(
            "POST", "/v1/memory/facts", raw='{"type":"n","contentHash":"sha256:lie","content":' + text + "}"
        )
        for text in bodies
    ]
    one, other = (fact.json["contentHash"] for fact in facts)
    assert one == other
    assert one.startswith("sha256:")
    assert one != "sha256:lie"


def test_a_base64_body_is_decoded_and_the_content_type_is_not_asked(admin: Gateway) -> None:
    raw = base64.b64encode(body('"é"').encode()).decode()
    written = admin.call("POST", "/v1/memory/facts", raw=raw, base64=True, content_type="text/plain")
    assert written.json["content"] == "é"


MALFORMED_REVISIONS = {
    name: raw.replace('"type":"note","scope":{},', "")
    for name, raw in MALFORMED.items()
    if name != "nothing"  # an empty body keeps everything: a revision without a change
}


def test_a_malformed_write_is_400_and_nothing_is_written(service: TenantService, ministack: Aws) -> None:
    for name, raw in MALFORMED.items():
        refused = service.admin.call("POST", "/v1/memory/facts", raw=raw)
        assert (name, refused.status) == (name, 400)
        assert refused.code in {"bad-input", "validation-failed"}
    assert stored_items(ministack, service.tenant) == 0


def test_a_malformed_supersede_is_400_and_nothing_is_written(service: TenantService, ministack: Aws) -> None:
    fact = service.admin.call("POST", "/v1/memory/facts", {"type": "note", "content": 1}).json
    for name, raw in MALFORMED_REVISIONS.items():
        refused = service.admin.call("POST", f"/v1/memory/facts/{fact['id']}/supersede", raw=raw)
        assert (name, refused.status) == (name, 400)
        assert refused.code in {"bad-input", "unknown-field"}
    assert stored_items(ministack, service.tenant) == 1
    assert service.admin.call("GET", f"/v1/memory/facts/{fact['id']}").json == fact


def test_a_malformed_batch_or_item_is_400_and_nothing_is_written(
    service: TenantService, ministack: Aws
) -> None:
    for name, raw in MALFORMED.items():
        answer = service.admin.call("POST", "/v1/memory/facts/batch", raw='{"items":[' + raw + "]}")
        if answer.status == 200:  # the batch is well-formed, its item is not
            (result,) = answer.json["results"]
            assert (name, result["status"]) == (name, 400)
        else:
            assert (name, answer.status) == (name, 400)
    assert stored_items(ministack, service.tenant) == 0


@pytest.mark.parametrize("raw", [b'{"type":"n","content":"\xff"}', b'{"type":"n","content":"\xed\xa0\x80"}'])
def test_bytes_that_are_no_utf_8_are_400(admin: Gateway, raw: bytes) -> None:
    refused = admin.call("POST", "/v1/memory/facts", raw=base64.b64encode(raw).decode(), base64=True)
    assert (refused.status, refused.code) == (400, "bad-input")


def test_a_body_above_4_megabytes_is_413_and_one_just_below_is_kept(admin: Gateway) -> None:
    limit = 4 * 1024 * 1024
    envelope = len(body('""'))
    kept = admin.call("POST", "/v1/memory/facts", raw=body('"' + "x" * (limit - envelope) + '"'))
    assert kept.status == 201
    refused = admin.call("POST", "/v1/memory/facts", raw=body('"' + "x" * (limit - envelope + 1) + '"'))
    assert (refused.status, refused.code) == (413, "request-too-large")
