"""The operator's commands on erasures: what they send, how they wait, and what their exit codes mean."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.told_service import Service, told

from factbook_cli import erasure, replaying
from factbook_cli.main import main

ID = "0d9a4c6e-6f1f-4a55-9c61-3a1d5b7f0001"
RECORD = {
    "id": ID,
    "selectorKind": "participant",
    "status": "pending",
    "phase": "seed",
    "requestedBy": "user:admin",
    "matchable": True,
    "counts": {},
    "attempts": 0,
    "createdAt": "2026-01-01T00:00:00.000Z",
}
DONE = RECORD | {"status": "completed", "phase": "done", "counts": {"facts": 3, "blobs": 0}}
FAILED = RECORD | {"status": "failed", "lastError": "legal-hold"}
Run = Callable[..., int]


def answer(body: Any, status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {}, json.dumps(body).encode()


def refusal(status: int, code: str) -> tuple[int, dict[str, str], bytes]:
    return answer({"error": {"code": code, "message": "Wait."}}, status)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(replaying, "POLL_SECONDS", 0.0)


def run(service: Service, *words: str) -> int:
    return main(["erasure", *words, "--url", service.url, "--token", "fb_x"])


def test_whom_to_erase_is_sent_as_the_api_has_it_and_awaited(capsys: pytest.CaptureFixture[str]) -> None:
    with told(answer(RECORD, 202), answer(RECORD), answer(DONE)) as service:
        assert run(service, "create", "--participant", "ann", "--project", "p", "--yes", "--wait") == 0

    assert json.loads(service.asked[0][3]) == {
        "subject": {"kind": "participant", "id": "ann"},
        "projectId": "p",
    }
    assert [asked[:2] for asked in service.asked[1:]] == [("GET", f"/v1/memory/erasures/{ID}")] * 2
    assert (service.keys[0] or "").startswith("erase-")
    said = capsys.readouterr()
    assert said.out.startswith(f"{ID} completed (participant, 2026-01-01T00:00:00.000Z, phase done): 3 facts")
    assert "seed: " in said.err


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["--fact", "f"], {"factId": "f"}),
        (["--conversation", "c"], {"conversationId": "c"}),
        (["--external", "e"], {"subject": {"kind": "external", "id": "e"}}),
        (["--user", "u"], {"subject": {"kind": "user", "id": "u"}}),
    ],
)
def test_every_kind_can_be_erased(words: list[str], body: Any) -> None:
    with told(answer(RECORD, 202)) as service:
        assert run(service, "create", *words, "--yes") == 0
    assert json.loads(service.asked[0][3]) == body


def test_without_yes_nobody_is_erased_where_nobody_can_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    counted = {"dryRun": True, "counts": {"facts": 2}, "heldFactIds": ["f9"], "complete": False}
    with told(answer(counted)) as service:
        assert run(service, "create", "--user", "u") == 2
    assert [path for _, path, _, _ in service.asked] == ["/v1/memory/erasures?dryRun=true"]
    said = capsys.readouterr()
    assert "2 facts" in said.out
    assert "f9" in said.out
    assert "maybe more" in said.out
    assert "--yes" in said.err


def test_a_dry_run_asks_nobody_and_erases_nothing() -> None:
    with told(answer({"dryRun": True, "counts": {}, "heldFactIds": [], "complete": True})) as service:
        assert run(service, "create", "--user", "u", "--dry-run") == 0
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["create"],
        ["create", "--user", "u", "--fact", "f"],
        ["create", "--fact", "f", "--project", "p", "--yes"],
    ],
)
def test_a_command_line_that_asks_for_what_cannot_be_is_refused_before_anything_is_sent(
    words: list[str],
) -> None:
    with told(answer(RECORD)) as service:
        try:
            code: Any = run(service, *words)
        except SystemExit as ended:
            code = ended.code
    assert (code, service.asked) == (2, [])


def test_a_failed_erasure_is_an_exit_code_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    with told(answer(FAILED)) as service:
        assert run(service, "status", ID, "--wait") == 1
        assert run(service, "resume", ID, "--force") == 1
    assert json.loads(service.asked[-1][3]) == {"force": True}
    assert "legal-hold" in capsys.readouterr().out


def test_a_refusal_for_a_legal_hold_says_of_which_facts(capsys: pytest.CaptureFixture[str]) -> None:
    held = [f"f{number}" for number in range(12)]
    error = {
        "code": "legal-hold",
        "message": "Release them first.",
        "requestId": "r",
        "details": {"factIds": held},
    }
    with told(answer({"error": error}, 409)) as service:
        assert run(service, "create", "--user", "u", "--yes") == 1
    assert (
        "Release them first. Held: f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 and 2 more. (legal-hold)"
        in capsys.readouterr().err
    )


def test_a_record_can_be_had_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with told(answer(DONE)) as service:
        assert run(service, "status", ID, "--json") == 0
    assert json.loads(capsys.readouterr().out) == DONE


def test_the_ledger_is_written_whole_from_all_of_its_pages(tmp_path: Path) -> None:
    out = tmp_path / "ledger.json"
    first = {"data": [{"id": "a"}], "hasMore": True, "nextCursor": "c"}
    with told(answer(first), answer({"data": [{"id": "b"}], "hasMore": False})) as service:
        assert run(service, "export", "--out", str(out)) == 0
    assert json.loads(out.read_text()) == {"erasures": [{"id": "a"}, {"id": "b"}]}
    assert [path for _, path, _, _ in service.asked] == [
        "/v1/memory/erasures/export?limit=100",
        "/v1/memory/erasures/export?limit=100&cursor=c",
    ]


def test_a_ledger_that_could_not_be_read_to_its_end_leaves_no_file(tmp_path: Path) -> None:
    out = tmp_path / "ledger.json"
    first = {"data": [{"id": "a"}], "hasMore": True, "nextCursor": "c"}
    with told(answer(first), refusal(403, "permission-denied")) as service:
        assert run(service, "export", "--out", str(out)) == 1
    assert list(tmp_path.iterdir()) == []


def outcome(**lists: Any) -> tuple[int, dict[str, str], bytes]:
    return answer({"replayed": [], "restored": [], "unmatched": []} | lists)


def unmatched(erasure_id: str, reason: str) -> dict[str, str]:
    return {"id": erasure_id, "reason": reason, "message": "In words."}


@pytest.fixture(params=["erasures", "data"])
def ledger(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """As a command line wrote it, and as the API answers it."""
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps({request.param: [{"id": f"e{number}"} for number in range(5)]}))
    return str(path)


def test_a_replay_asks_again_under_one_key_until_the_service_has_looked_everywhere(
    ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    looking = outcome(replayed=["e0"], unmatched=[unmatched("e1", "still-looking")])
    known = outcome(replayed=["e0"], restored=["e1"], unmatched=[unmatched("e1", "nothing-matched")])
    with told(looking, looking, known, answer(RECORD), answer(DONE)) as service:
        assert run(service, "replay", ledger) == 0

    posts = [asked for asked in service.asked if asked[0] == "POST"]
    assert len(posts) == 3
    assert len(set(service.keys[:3])) == 1
    assert len({asked[3] for asked in posts}) == 1
    assert [path for _, path, _, _ in service.asked[3:]] == [
        "/v1/memory/erasures/e0",
        f"/v1/memory/erasures/{ID}",
    ]
    said = capsys.readouterr()
    assert said.out.startswith("1 found and erased again, 1 of which nothing is there, 1 of these put back")
    assert "looking for 1 of 5" in said.err


def test_a_long_ledger_goes_in_parts_each_under_a_key_of_its_own(
    ledger: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replaying, "AT_ONCE", 2)
    with told(outcome()) as service:
        assert run(service, "replay", ledger, "--json") == 0
    sent = [[each["id"] for each in json.loads(body)["erasures"]] for _, _, _, body in service.asked]
    assert sent == [["e0", "e1"], ["e2", "e3"], ["e4"]]
    assert len(set(service.keys)) == 3
    assert json.loads(capsys.readouterr().out)["replayed"] == []


@pytest.mark.parametrize("reason", ["no-keyed-hash", "unknown-key", "failed", "legal-hold"])
def test_what_nothing_could_be_looked_for_is_an_exit_code_of_one_and_said(
    ledger: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with told(outcome(unmatched=[unmatched("e1", reason)])) as service:
        assert run(service, "replay", ledger) == 1
    assert f"e1: {reason}: In words." in capsys.readouterr().out


def test_an_erasure_that_fails_again_is_an_exit_code_of_one(
    ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with told(outcome(replayed=["e0"]), answer(FAILED | {"id": "e0"})) as service:
        assert run(service, "replay", ledger) == 1
    assert "e0: failed" in capsys.readouterr().out
    with told(outcome(replayed=["e0"])) as service:
        assert run(service, "replay", ledger, "--no-wait") == 0


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '"data"', '{"erasures": 1}', '{"data": 1}', '{"data": [{}]}', '{"data": [{"id": 1}]}'],
)
def test_what_is_no_ledger_is_refused_before_anything_is_sent(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(text)
    with told(outcome()) as service:
        assert run(service, "replay", str(path)) == 2
        assert run(service, "replay", str(tmp_path / "none")) == 2
    assert service.asked == []


def test_a_receipt_is_waited_for_where_that_is_asked_and_written_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "receipt.json"
    with told(refusal(409, "receipt-pending"), answer({"format": "f"})) as service:
        assert run(service, "receipt", ID, "--out", str(out), "--wait") == 0
    assert json.loads(out.read_text()) == {"format": "f"}
    assert capsys.readouterr().err == "There is no receipt yet; it is waited for …\n"


def test_a_list_is_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with told(answer({"data": [DONE, FAILED], "hasMore": False})) as service:
        assert run(service, "list") == 0
        assert run(service, "list", "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert json.loads(lines[2]) == DONE
    assert service.asked[0][1] == "/v1/memory/erasures?limit=100"


def test_each_phase_is_told_with_what_happens_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    with told(
        answer(RECORD), answer(RECORD | {"phase": "settle"}), answer(RECORD | {"phase": "new"}), answer(DONE)
    ) as service:
        assert run(service, "status", ID, "--wait") == 0

    said = capsys.readouterr().err.splitlines()
    assert said == [f"{ID}: settle: what was begun before ends, for about a minute", f"{ID}: new"]


def test_a_receipt_that_is_not_there_yet_is_told_in_terms_of_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with told(refusal(409, "receipt-pending")) as service:
        assert run(service, "receipt", ID, "--out", str(tmp_path / "receipt.json")) == 1

    said = capsys.readouterr().err
    assert "There is no receipt yet. Give --wait, or run it again in a minute." in said
    assert "Retry-After" not in said
    assert not list(tmp_path.iterdir())
