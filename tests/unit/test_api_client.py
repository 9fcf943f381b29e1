"""The commands' HTTP client against a real server that answers as it is told."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.told_service import BUSY, DROPPED, OK, told

from factbook_cli.api import READING, Api, ApiError, BadService
from factbook_local.sockets import listen


@pytest.fixture
def serving() -> Iterator[Any]:
    with ExitStack() as services:
        yield lambda *replies: services.enter_context(told(*replies))


def test_a_get_sends_the_token_and_encodes_each_part_and_leaves_out_what_is_none(serving: Any) -> None:
    service = serving(OK)
    assert Api(service.url + "/base/", "fb_x").get("runs", "a/b ?", limit=2, cursor=None) == {"ok": True}
    assert service.asked == [("GET", "/base/runs/a%2Fb%20%3F?limit=2", "Bearer fb_x", b"")]


def test_a_post_sends_json(serving: Any) -> None:
    service = serving(OK)
    assert Api(service.url, "fb_x").post({"runIds": []}, "v1") == {"ok": True}
    (asked,) = service.asked
    assert json.loads(asked[3]) == {"runIds": []}


@pytest.mark.parametrize("method", ["get", "post"])
def test_what_a_busy_service_refused_is_asked_again(serving: Any, method: str) -> None:
    service = serving(BUSY, OK)
    api = Api(service.url, "fb_x")
    assert (api.get("v1") if method == "get" else api.post({}, "v1")) == {"ok": True}
    assert len(service.asked) == 2


def test_a_service_that_stays_busy_is_given_up_with_its_own_words(
    serving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factbook_cli.api.READING", READING.new(total=2))
    service = serving(BUSY)
    with pytest.raises(ApiError) as refused:
        Api(service.url, "fb_x").get("v1")
    assert (refused.value.status, refused.value.code) == (503, "storage-unavailable")
    assert "Try again." in str(refused.value)
    assert len(service.asked) == 3


def test_a_get_whose_connection_dropped_is_asked_again(serving: Any) -> None:
    service = serving(DROPPED, OK)
    assert Api(service.url, "fb_x").get("v1") == {"ok": True}
    assert len(service.asked) == 2


def test_a_post_whose_answer_was_lost_is_not_sent_twice(serving: Any) -> None:
    service = serving(DROPPED, OK)
    with pytest.raises(ApiError, match="did not answer") as lost:
        Api(service.url, "fb_x").post({}, "v1")
    assert (lost.value.status, lost.value.code) == (0, "no-answer")
    assert len(service.asked) == 1


def test_a_post_with_a_key_is_sent_again_under_the_same_one(serving: Any) -> None:
    service = serving(DROPPED, BUSY, OK)
    assert Api(service.url, "fb_x").post({"a": 1}, "v1", key="k", dryRun="true") == {"ok": True}
    assert service.keys == ["k"] * 3
    assert [(path, body) for _, path, _, body in service.asked] == [("/v1?dryRun=true", b'{"a": 1}')] * 3


def test_a_redirect_is_not_followed_as_the_token_would_go_with_it(serving: Any) -> None:
    other = serving(OK)
    service = serving((307, {"Location": other.url}, b""))
    with pytest.raises(ApiError, match="307"):
        Api(service.url, "fb_x").get("v1")
    assert other.asked == []


def test_where_nothing_listens_the_message_says_what_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factbook_cli.api.READING", READING.new(total=1))
    closed = listen(0)
    port = closed.getsockname()[1]
    closed.close()
    with pytest.raises(ApiError, match=r"did not answer: Connection refused\. Check the URL"):
        Api(f"http://127.0.0.1:{port}", "fb_x").get("v1")


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://", "http://[", "/v1"])
def test_what_is_no_url_of_a_service_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(ApiError, match="must begin with http"):
        Api(url, "fb_x")


def test_a_url_that_ends_in_the_routes_own_prefix_is_refused_with_the_right_one() -> None:
    with pytest.raises(ApiError, match=r"without its path: http://host/base$") as refused:
        Api("http://host/base/v1/", "fb_x")
    assert refused.value.exit_code == 2


def test_an_unknown_token_is_told_in_the_commands_own_words(serving: Any) -> None:
    service = serving(
        (401, {}, b'{"error":{"code":"auth-missing","message":"Send it as Authorization: Bearer."}}')
    )
    with pytest.raises(ApiError, match=r"--token or FACTBOOK_TOKEN") as refused:
        Api(service.url, "fb_x").get("v1")
    assert "Bearer" not in str(refused.value)
    assert (refused.value.status, refused.value.code) == (401, "auth-missing")


def test_a_refused_request_is_told_with_its_first_issue(serving: Any) -> None:
    issues = [{"path": "/a", "message": "is no a"}, {"path": "/b", "message": "is no b"}]
    error = {"code": "validation-failed", "message": "See details.issues.", "details": {"issues": issues}}
    service = serving((400, {}, json.dumps({"error": error}).encode()))
    with pytest.raises(ApiError) as refused:
        Api(service.url, "fb_x").get("v1")
    assert str(refused.value) == "/a: is no a (validation-failed)"


@pytest.mark.parametrize("details", [None, [], {}, {"issues": []}, {"issues": ["x"]}, {"issues": {}}])
def test_details_that_name_no_issue_leave_the_services_message(serving: Any, details: Any) -> None:
    error = {"code": "bad-input", "message": "Send less.", "details": details}
    service = serving((400, {}, json.dumps({"error": error}).encode()))
    with pytest.raises(ApiError, match=r"^Send less\. \(bad-input\)$"):
        Api(service.url, "fb_x").get("v1")


@pytest.mark.parametrize("status", [200, 502])
def test_an_answer_of_something_else_than_the_service_is_told_as_such(serving: Any, status: int) -> None:
    service = serving((status, {}, b"<html>"))
    with pytest.raises(ApiError, match="Is it the service's URL"):
        Api(service.url, "fb_x").get("v1")


@pytest.mark.parametrize(
    "url", ["http://u:S3CRET@127.0.0.1:1", "https://S3CRET@memory.example", "u:S3CRET@memory.example"]
)
def test_a_password_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(BadService) as refused:
        Api(url, "fb_a_b")
    assert "a user or password" in str(refused.value)
    assert "S3CRET" not in str(refused.value)
