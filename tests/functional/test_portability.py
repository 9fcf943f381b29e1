"""A tenant moves from one service into another: nothing is lost, nothing is made up, and no step is done by halves."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from support.emulators import Aws
from support.principals import issue, principal
from support.two_services import FACTS, LinesApi, OneService, filled, ok, with_erasures

from factbook.domain import wire
from factbook.ports.deadline import Deadline
from factbook.usecases.erasure.working import work_on_erasure
from factbook_cli.api import ApiError
from factbook_cli.errors import CommandError, UsageError
from factbook_cli.tenant_check import check_file
from factbook_cli.tenant_export import TenantExport, public_key
from factbook_cli.tenant_file import FileLines, Summed
from factbook_cli.tenant_import import TenantImport, read_keys

WRITTEN, PRESENT, LEFT = "written", "present", "other"


@pytest.fixture
def source(ministack: Aws, tmp_path: Path) -> OneService:
    return OneService(ministack, tmp_path, f"t-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def target(ministack: Aws, tmp_path: Path, source: OneService) -> OneService:
    return OneService(ministack, tmp_path, source.tenant)


@dataclass(frozen=True)
class Full:
    """A service with something of every kind in one tenant, which no test changes; ids of it, and its file."""

    service: OneService
    ids: dict[str, str]
    path: Path


@pytest.fixture(scope="module")
def full(ministack: Aws, tmp_path_factory: pytest.TempPathFactory) -> Full:
    folder = tmp_path_factory.mktemp("full")
    service = OneService(ministack, folder, f"t-{uuid.uuid4().hex[:12]}")
    return Full(service, filled(service), exported(service, folder / "tenant"))


@pytest.fixture
def empty(ministack: Aws, tmp_path: Path, full: Full) -> OneService:
    """Where the tenant of `full` is to go."""
    return OneService(ministack, tmp_path, full.service.tenant)


def exported(service: OneService, path: Path, api: LinesApi | None = None, **query: str) -> Path:
    TenantExport(api or service.api, path, quiet=True, **query).run()  # type: ignore[arg-type]
    return path


def imported(
    service: OneService, path: Path, api: LinesApi | None = None, *, dry_run: bool = False, **more: Any
) -> TenantImport:
    contents = check_file(path)
    done = TenantImport(api or service.api, path, contents, dry_run=dry_run, quiet=True)  # type: ignore[arg-type]
    done.run(more.get("keys", []))
    return done


def outcomes(done: TenantImport) -> set[str]:
    return {outcome for counts in done.counts.values() for outcome in counts}


class Killed(Exception):
    """What ends a command in the middle."""


def killed_at(api: LinesApi, count: int) -> LinesApi:
    """The same, of which the call after so many ends the command."""
    left = iter(range(count))

    def before(_: str) -> None:
        if next(left, None) is None:
            raise Killed

    return LinesApi(api.gateway, api.url, before)


def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many answers and many requests, where there would be one."""
    monkeypatch.setattr(wire, "ANSWER_BYTES", 6_000)
    monkeypatch.setattr("factbook_cli.tenant_import.BODY_BYTES", 4_000)


# -- nothing is lost


def test_stored_forms_are_equal_to_the_byte_and_the_log_passes_its_audit_under_the_new_origin(
    full: Full, empty: OneService, tmp_path: Path
) -> None:
    done = imported(empty, full.path)

    assert empty.stored() == full.service.stored()
    assert empty.objects() == full.service.objects()
    assert set(map(len, empty.tags().values())) == {0}
    assert outcomes(done) - {PRESENT} == {WRITTEN}
    assert [kind for kind, counts in done.counts.items() if PRESENT in counts] == [
        "key",  # young ones come twice
        "blob",  # after their upload
    ]
    assert done.uploaded == 2
    empty.checkpoint()
    verdict = empty.audit(tmp_path / "log")
    assert (verdict.holds, verdict.leaves, verdict.newer) == (
        True,
        full.service.audit(tmp_path / "old").leaves,
        0,
    )
    assert verdict.entries == 37  # of five runs, of the hold, and one with a cause


def test_what_only_finds_a_record_is_there_too(full: Full, empty: OneService, tmp_path: Path) -> None:
    imported(empty, full.path)

    for path, query in (
        (FACTS, {"limit": 100}),
        (FACTS, {"type": "acme.other", "limit": 100}),
        ("/v1/memory/types", {}),
        ("/v1/memory/reviews", {}),
        ("/v1/memory/agents/scribe/memories", {}),
        ("/v1/memory/runs", {}),
        (f"{FACTS}/{full.ids['note-3']}/revisions", {}),
        (f"{FACTS}/by-key", {"type": "acme.keyed", "scope": "{}", "key": "é|%~"}),
        ("/v1/memory/policy", {}),
    ):
        here, there = (ok(each.admin.call("GET", path, query=query)) for each in (full.service, empty))
        without_bucket = json.loads(
            json.dumps(here).replace(full.service.settings.blobs_bucket, empty.settings.blobs_bucket)
        )
        assert {**there, "nextCursor": None} == {**without_bucket, "nextCursor": None}, path
    held = empty.admin.call("DELETE", f"{FACTS}/{full.ids['note-1']}")
    assert (held.status, held.code) == (409, "legal-hold")
    again = {"type": "acme.note", "scope": {"projectId": "p"}, "content": {"n": 0, "x": 1.0, "-": -0.0}}
    replayed = empty.admin.call("POST", FACTS, again, key="k0")  # the former service's answer was lost
    assert (replayed.status, replayed.json["id"]) == (201, full.ids["note-0"])


def test_the_log_goes_on_behind_its_last_entry_and_a_new_note_extends_the_former_leaves(
    full: Full, empty: OneService, tmp_path: Path
) -> None:
    last = ok(full.service.admin.call("GET", "/v1/memory/checkpoints/latest"))
    imported(empty, full.path)
    entries = {"entries": [{"kind": "tool-call", "payload": "here"}], "afterSequence": 7}
    made = ok(empty.admin.call("POST", "/v1/memory/runs/run-0/log", entries))["entries"][0]
    assert made["sequence"] == 8

    newest = empty.checkpoint()
    assert (newest["size"], newest["vkey"]) == (last["size"] + 1, empty.vkey)
    assert empty.audit(tmp_path / "log").holds
    # The former notes are evidence: whoever exports again has them, with the key that signed them.
    notes = [line.value for line in FileLines(exported(empty, tmp_path / "again")) if line.kind == "note"]
    assert {note["vkey"] for note in notes} == {full.service.vkey, empty.vkey}
    assert last["note"] in {note["note"] for note in notes}
    assert check_file(tmp_path / "again").counts["note"] == len(notes)


def test_a_page_may_end_behind_any_record_and_a_request_before_any(
    full: Full, empty: OneService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [line.raw for line in FileLines(exported(full.service, tmp_path / "whole"))][1:]
    small_pages(monkeypatch)
    calls: list[str] = []
    path = exported(full.service, tmp_path / "pages", LinesApi(full.service.admin, "u", calls.append))

    assert [line.raw for line in FileLines(path)][1:] == whole
    assert len(calls) > 10
    imported(empty, path)
    assert empty.stored() == full.service.stored()


def test_payloads_that_a_request_lacks_are_asked_for_together(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    for number in range(8):
        body = {"type": "n", "scope": {}, "content": f"{number} " * 40_000}
        ok(source.admin.call("POST", FACTS, body))
    calls: list[str] = []
    done = imported(target, exported(source, tmp_path / "tenant"), LinesApi(target.admin, "u", calls.append))

    assert target.objects() == source.objects()
    assert target.stored() == source.stored()
    assert done.uploaded == 8
    assert len(calls) == 3  # to begin, all records, and all once more when their payloads are there


# -- interrupted, and again


def test_an_export_that_is_killed_twice_goes_on_where_it_was_and_is_the_same_file(
    full: Full, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_pages(monkeypatch)
    whole = [line.raw for line in FileLines(exported(full.service, tmp_path / "whole"))][1:]
    for _ in range(2):
        with pytest.raises(Killed):
            exported(full.service, tmp_path / "killed", killed_at(full.service.api, 4))
        with (tmp_path / "killed.part").open("ab") as file:
            file.write(b"half a line")  # what a kill in the middle of a write leaves
    calls: list[str] = []
    path = exported(
        full.service, tmp_path / "killed", LinesApi(full.service.admin, full.service.api.url, calls.append)
    )

    assert [line.raw for line in FileLines(path)][1:] == whole
    check_file(path)
    assert sorted(each.name for each in tmp_path.glob("killed*")) == ["killed"]


def test_an_import_that_is_killed_twice_goes_on_where_it_was(
    full: Full, empty: OneService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_pages(monkeypatch)
    for _ in range(2):
        with pytest.raises(Killed):
            imported(empty, full.path, killed_at(empty.api, 6))
    done = imported(empty, full.path)

    assert empty.stored() == full.service.stored()
    assert empty.objects() == full.service.objects()
    assert sum(map(sum, (counts.values() for counts in done.counts.values()))) < check_file(full.path).records


@pytest.mark.parametrize("call", range(1, 12))
def test_an_answer_that_is_lost_is_a_request_that_is_sent_twice(
    source: OneService, target: OneService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    ok(source.admin.call("POST", FACTS, {"type": "n", "scope": {}, "content": "large " * 20_000}))
    ok(source.admin.call("POST", "/v1/memory/runs/r/log", {"entries": [{"kind": "tool-call"}] * 9}))
    source.checkpoint()
    path = exported(source, tmp_path / "tenant")
    monkeypatch.setattr("factbook_cli.tenant_import.AT_ONCE", 2)

    class Losing(LinesApi):
        sent = 0

        def post_lines(self, lines: Any, *where: str, **query: Any) -> Any:
            lines = list(lines)
            type(self).sent += 1
            if self.sent == call:
                super().post_lines(iter(lines), *where, **query)
            return super().post_lines(iter(lines), *where, **query)

    imported(target, path, Losing(target.admin, "u"))
    assert target.stored() == source.stored()
    assert target.objects() == source.objects()


def test_a_file_that_is_imported_again_changes_nothing(full: Full, empty: OneService, tmp_path: Path) -> None:
    imported(empty, full.path)
    before = empty.stored()

    assert outcomes(imported(empty, full.path)) == {PRESENT}
    assert empty.stored() == before
    ok(empty.admin.call("POST", f"{FACTS}/{full.ids['note-0']}/supersede", {"content": "later"}))
    ok(empty.admin.call("POST", "/v1/memory/runs/run-0/log", {"entries": [{"kind": "tool-call"}]}))
    later = empty.stored()
    done = imported(empty, full.path)
    assert empty.stored() == later
    assert done.counts["fact"][LEFT] == 1
    assert outcomes(done) == {PRESENT, LEFT}


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    full: Full, empty: OneService, tmp_path: Path
) -> None:
    before = empty.items(empty.settings.access_table)
    said = imported(empty, full.path, dry_run=True)

    assert empty.items(empty.settings.access_table) == before
    assert {name: len(kept) for name, kept in empty.stored().items()} == dict.fromkeys(empty.stored(), 0)
    assert empty.objects() == {}
    done = imported(empty, full.path)
    assert {kind: sum(counts.values()) for kind, counts in said.counts.items()} == {
        kind: sum(counts.values()) for kind, counts in done.counts.items()
    }
    assert outcomes(said) == {WRITTEN}
    assert outcomes(imported(empty, full.path, dry_run=True)) == {PRESENT}


# -- refused


def cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def left_out(lines: list[bytes]) -> list[bytes]:
    return [*lines[:20], *lines[21:]]


def swapped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:20], lines[21], lines[20], *lines[22:]]


def flipped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:20], lines[20][:-3] + b"!" + lines[20][-2:], *lines[21:]]


def half_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:20], lines[20][:-9]]


def appended(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1]]


@pytest.mark.parametrize(
    ("damage", "line", "why"),
    [
        (flipped, 21, "its sum is wrong"),
        (left_out, 21, "its sum is wrong"),
        (swapped, 21, "its sum is wrong"),
        (half_a_line, 21, "it is cut"),
        (cut, None, "the file ends before its end"),
        (appended, None, "its sum is wrong"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_damaged_file_is_refused_with_its_line_and_the_reason_and_nothing_is_written(
    source: OneService,
    target: OneService,
    tmp_path: Path,
    damage: Callable[[list[bytes]], list[bytes]],
    line: int | None,
    why: str,
) -> None:
    ok(source.admin.call("POST", "/v1/memory/runs/r/log", {"entries": [{"kind": "tool-call"}] * 40}))
    path = exported(source, tmp_path / "tenant")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(damage(lines)))

    with pytest.raises(CommandError, match=why) as refused:
        imported(target, path)
    assert line is None or f"line {line}:" in str(refused.value)
    assert target.items(target.settings.log_table) == {}


def rewritten(path: Path, change: Callable[[str, Any], Any]) -> Path:
    """The file with records changed, and all sums made anew: what damage never is, and malice may be."""
    lines = [line.raw for line in FileLines(path)]
    with path.open("wb") as file:
        written = Summed(file)
        for raw in lines:
            ((kind, value),) = json.loads(raw).items()
            written.write(
                json.dumps({kind: change(kind, value)}, ensure_ascii=False, separators=(",", ":")).encode()
            )
    return path


def _payload_changed(kind: str, value: Any) -> Any:
    if kind == "entry":
        value["text"] = value["text"].replace('"payload":3', '"payload":4')
    return value


def _whole_entry_changed(kind: str, value: Any) -> Any:
    import hashlib

    if kind == "entry" and '"payload":3' in value["text"]:
        value["text"] = value["text"].replace('"payload":3', '"payload":4')
        value["hash"] = "sha256:" + hashlib.sha256(value["text"].encode()).hexdigest()
    return value


def _leaf_changed(kind: str, value: Any) -> Any:
    return value | {"salt": "00" * 16} if kind == "leaf" else value


def _other_tenant(kind: str, value: Any) -> Any:
    if kind == "fact":
        value["fact"]["scope"]["tenantId"] = "another"
    return value


def _unknown_field(kind: str, value: Any) -> Any:
    return value | {"more": 1} if kind == "fact" else value


def _bad_id(kind: str, value: Any) -> Any:
    if kind == "fact":
        value["fact"]["id"] = "a|b"
    return value


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_payload_changed, "does not hash to its hash"),
        (_whole_entry_changed, "not the one that the entry behind it was chained to"),
        (_leaf_changed, "not those that a note was signed for"),
        (_other_tenant, "of another tenant"),
        (_unknown_field, "more"),
        (_bad_id, "characters that none has"),
    ],
)
def test_what_no_service_wrote_is_refused_whatever_its_sums_say(
    source: OneService, target: OneService, tmp_path: Path, change: Callable[[str, Any], Any], why: str
) -> None:
    entries = {"entries": [{"kind": "tool-call", "payload": number} for number in range(6)]}
    ok(source.admin.call("POST", "/v1/memory/runs/r/log", entries))
    ok(source.admin.call("POST", FACTS, {"type": "n", "scope": {}, "content": 1}))
    source.checkpoint()
    path = rewritten(exported(source, tmp_path / "tenant"), change)
    with pytest.raises(CommandError, match=why):
        imported(target, path)
    assert target.items(target.settings.log_table) == {}

    # The service judges by itself: it is not only this command that can send it something.
    lines = [line for line in FileLines(path) if line.kind not in ("chunk", "end")]
    asked = ("v1", "memory", "import")
    target.api.post_lines(iter([lines[0].raw]), *asked, file="0" * 32)
    if change in (_whole_entry_changed, _leaf_changed):
        return  # well-formed alone: an audit finds them
    with pytest.raises(ApiError, match=why) as refused:
        target.api.post_lines(iter([line.raw for line in lines]), *asked, file="0" * 32, at=0)
    assert refused.value.code == "bad-input"


def test_another_version_of_the_format_is_refused_before_anything_is_written(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    def later(kind: str, value: Any) -> Any:
        return value | {"version": 2} if kind == "header" else value

    path = rewritten(exported(source, tmp_path / "tenant"), later)
    with pytest.raises(CommandError, match="has version 2 of the format"):
        imported(target, path)
    header = json.dumps({"header": {"format": "factbook-export", "version": 2}}).encode()
    with pytest.raises(ApiError, match="has version 2 of the format"):
        target.api.post_lines(iter([header]), "v1", "memory", "import", file="0" * 32)
    (tmp_path / "other").write_text("no export\n")
    with pytest.raises(UsageError, match="is no export of a tenant"):
        check_file(tmp_path / "other")


def test_only_an_administrator_of_the_same_tenant_may_export_and_import(
    source: OneService, target: OneService, ministack: Aws, tmp_path: Path
) -> None:
    path = exported(source, tmp_path / "tenant")
    someone = principal(source.tenant, "ann", writes=["p"], administers_orgs=["o"])
    for service in (source, target):
        asked = LinesApi(service.admin.as_(issue(service.services, someone)), "u")
        for refused in (
            lambda asked=asked: exported(source, tmp_path / "n", asked),
            lambda asked=asked: imported(target, path, asked),
        ):
            with pytest.raises(ApiError) as error:
                refused()
            assert error.value.code == "permission-denied"
    assert not list(tmp_path.glob("n*")), "what was refused leaves no beginning of a file"
    elsewhere = OneService(ministack, tmp_path, f"{source.tenant}-2")
    with pytest.raises(ApiError, match="another id") as error:
        imported(elsewhere, path)
    assert error.value.code == "permission-denied"


def test_a_tenant_that_has_a_log_takes_no_other_and_keeps_its_own(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    filled(source)
    path = exported(source, tmp_path / "tenant")
    ok(target.admin.call("POST", "/v1/memory/runs/own/log", {"entries": [{"kind": "tool-call"}]}))
    before = target.stored()
    for dry_run in (True, False):
        with pytest.raises(ApiError, match="log is not empty") as refused:
            imported(target, path, dry_run=dry_run)
        assert refused.value.code == "log-changed"
    assert target.stored() == before


def test_the_records_of_a_file_that_was_not_begun_are_refused(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    lines = [line.raw for line in FileLines(exported(source, tmp_path / "tenant"))][:-1]
    with pytest.raises(ApiError, match="was not begun"):
        target.api.post_lines(iter(lines), "v1", "memory", "import", file="0" * 32, at=0)


def test_nothing_is_put_behind_what_is_there_nor_after_the_file_was_in(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    entries = {"entries": [{"kind": "tool-call", "payload": number} for number in range(4)]}
    ok(source.admin.call("POST", "/v1/memory/runs/r/log", entries))
    path = exported(source, tmp_path / "tenant")
    lines = {line.kind: line.raw for line in FileLines(path)}
    newest_first = [line.raw for line in FileLines(path) if line.kind == "entry"]
    where: tuple[str, ...] = ("v1", "memory", "import")
    asked = {"file": check_file(path).digest}

    def send(*records: bytes, at: int = 0, **more: str) -> Any:
        return target.api.post_lines(iter([lines["header"], *records]), *where, **asked, at=at, **more)

    target.api.post_lines(iter([lines["header"]]), *where, **asked)
    send(newest_first[1])
    with pytest.raises(ApiError, match="entries already that are not of this file"):
        send(newest_first[0])  # it would come behind the one that is there
    with pytest.raises(ApiError, match="entries already that are not of this file"):
        send(newest_first[3])  # the one between is missing
    send(newest_first[2], newest_first[3])
    with pytest.raises(ApiError, match="Records before these are missing"):
        send(newest_first[0], at=9)
    send(at=0, last="true")
    assert send(newest_first[0])["counts"] == {"entry": {"missing": 1}}
    assert len(target.items(target.settings.log_table)) == 3


def test_of_two_files_that_were_begun_one_goes_on_and_the_other_is_told(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    ok(source.admin.call("POST", FACTS, {"type": "n", "scope": {}, "content": 1}))
    ok(source.admin.call("POST", "/v1/memory/runs/r/log", {"entries": [{"kind": "tool-call"}] * 3}))
    records = [line.raw for line in FileLines(exported(source, tmp_path / "tenant")) if line.kind != "end"]
    where = ("v1", "memory", "import")

    def send(file: str, lines: list[bytes], **at: int) -> Any:
        return target.api.post_lines(iter(lines), *where, file=file * 32, **at)

    send("a", records[:1])
    send("a", records[:2], at=0)  # the policy, and no entry yet
    send("b", records[:1])
    with pytest.raises(ApiError, match="another file's was since"):
        send("a", [records[0], *records[2:]], at=1)
    assert target.items(target.settings.log_table) == {}
    send("b", records, at=0)
    with pytest.raises(ApiError, match="log is not empty"):
        send("a", records[:1])
    assert target.stored() == source.stored()


def test_an_import_is_not_done_because_a_request_without_records_says_so(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    ok(source.admin.call("POST", FACTS, {"type": "n", "scope": {}, "content": 1}))
    path = exported(source, tmp_path / "tenant")
    header, asked = next(iter(FileLines(path))).raw, {"file": check_file(path).digest}
    target.api.post_lines(iter([header]), "v1", "memory", "import", **asked)
    with pytest.raises(ApiError, match="Records before these are missing"):
        target.api.post_lines(iter([header]), "v1", "memory", "import", **asked, at=9, last="true")
    imported(target, path)
    assert target.stored() == source.stored()


# -- what is sealed


def key_pair(folder: Path, name: str, bits: int = 2048) -> tuple[Path, Path]:
    private: RSAPrivateKey = generate_private_key(65537, bits)
    paths = folder / f"{name}.private", folder / f"{name}.public"
    paths[0].write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    paths[1].write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return paths


def exported_keys(service: OneService, folder: Path) -> tuple[Path, Path]:
    """A tenant's data keys encrypted for somebody, and their private key."""
    private, public = key_pair(folder, "mine")
    return exported(service, folder / "keys", rewrapFor=public_key(public)), private


def test_a_sealed_payload_travels_sealed_and_is_told_as_such_and_what_comes_later_is_sealed_anew(
    full: Full, empty: OneService, tmp_path: Path
) -> None:
    imported(empty, full.path)

    there = ok(empty.admin.call("GET", f"/v1/memory/log/{full.ids['entry-1']}"))
    assert (there["payloadSealed"], "payload" in there) == (True, False)
    plain = ok(empty.admin.call("GET", f"/v1/memory/log/{full.ids['entry-0']}"))
    assert ("payloadSealed" in plain, plain["payload"]) == (False, {"text": "é 0"})
    said = {"entries": [{"kind": "user-message", "payload": {"text": "here"}}]}
    made = ok(empty.admin.call("POST", "/v1/memory/runs/run-1/log", said))["entries"][0]
    assert ok(empty.admin.call("GET", f"/v1/memory/log/{made['id']}"))["payload"] == {"text": "here"}
    assert "payloadSealed" in ok(empty.admin.call("GET", f"/v1/memory/log/{full.ids['entry-1']}"))
    stored = full.service.items(full.service.settings.keys_table).values()
    secrets = [bytes(item["w"]).hex() for item in stored]
    assert secrets
    assert not [secret for secret in secrets if secret in full.path.read_text()]


def test_data_keys_that_were_encrypted_for_the_target_open_what_is_sealed_there_and_nowhere_else(
    full: Full, empty: OneService, tmp_path: Path
) -> None:
    wrapped, private = exported_keys(full.service, tmp_path)
    contents = check_file(full.path)
    other, _ = key_pair(tmp_path, "other")
    with pytest.raises(CommandError, match="does not open"):
        read_keys(wrapped, other, contents)

    done = imported(empty, full.path, keys=read_keys(wrapped, private, contents))
    assert done.counts["wrapped"] == {WRITTEN: 2}
    for entry in ("entry-1", "entry-3"):
        here, there = (
            ok(each.admin.call("GET", f"/v1/memory/log/{full.ids[entry]}")) for each in (full.service, empty)
        )
        assert here == there
    assert {name: kept for name, kept in empty.stored().items() if name != "keys"} == {
        name: kept for name, kept in full.service.stored().items() if name != "keys"
    }
    assert imported(empty, full.path, keys=read_keys(wrapped, private, contents)).counts["wrapped"] == {
        PRESENT: 2
    }


def test_what_is_sealed_while_an_export_runs_is_in_it_with_its_key(
    source: OneService, target: OneService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(source)
    small_pages(monkeypatch)
    calls = iter(range(10**6))
    late = "/v1/memory/runs/late/log"

    def before(_: str) -> None:
        if next(calls) == 1:  # the page with all the keys is out
            scope = {"projectId": "p", "threadId": "t-late"}
            said = [{"kind": "user-message", "payload": {"text": "late"}, "scope": scope}]
            ok(source.admin.call("POST", late, {"entries": said}))

    path = exported(source, tmp_path / "tenant", LinesApi(source.admin, "u", before))
    keys = [line.value.get("thread") for line in FileLines(path) if line.kind == "key"]
    assert keys.count("t-late") == 1
    imported(target, path)

    (there,) = ok(target.admin.call("GET", late))["data"]
    assert there["payloadSealed"] is True
    entries = {"entries": [{"kind": "user-message", "payload": {"text": "here"}}]}
    made = ok(target.admin.call("POST", late, entries))["entries"][0]
    assert ok(target.admin.call("GET", f"/v1/memory/log/{made['id']}"))["payload"] == {"text": "here"}
    assert "payloadSealed" in ok(target.admin.call("GET", f"/v1/memory/log/{there['id']}"))


def test_no_key_from_outside_seals_what_is_said_where_nothing_is_imported(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    filled(source)
    private, public = key_pair(tmp_path, "mine")
    wrapped = exported(source, tmp_path / "keys", rewrapFor=public_key(public))
    path = exported(source, tmp_path / "tenant")
    header = next(iter(FileLines(path))).raw
    keys = [header, *read_keys(wrapped, private, check_file(path))]

    said = target.api.post_lines(iter(keys), "v1", "memory", "import", file="0" * 32, at=0)
    assert said["counts"] == {"wrapped": {LEFT: 2}}
    assert target.items(target.settings.keys_table) == {}


def test_a_data_key_is_of_one_generation_of_one_persons_words_and_opens_as_no_other(
    full: Full, tmp_path: Path
) -> None:
    wrapped, private = exported_keys(full.service, tmp_path)

    def moved(kind: str, value: Any) -> Any:
        return value | {"thread": "t9"} if kind == "wrapped" else value

    with pytest.raises(CommandError, match="does not open"):
        read_keys(rewritten(wrapped, moved), private, check_file(full.path))


@pytest.mark.parametrize("key", ["AAAA", "!!", "short"])
def test_a_public_key_that_is_none_or_too_weak_is_refused(full: Full, tmp_path: Path, key: str) -> None:
    given = public_key(key_pair(tmp_path, "weak", 1024)[1]) if key == "short" else key
    with pytest.raises(ApiError) as refused:
        exported(full.service, tmp_path / "keys", rewrapFor=given)
    assert refused.value.code == "bad-input"


# -- what is erased


def erase(service: OneService, selector: Any) -> str:
    """Erase, and be done with it, in a process that knows of no erasure in force any more; the erasure's id."""
    made = ok(with_erasures(service).call("POST", "/v1/memory/erasures", selector))
    for settled in (5, 0):
        work_on_erasure(service.services.erasures.working, service.tenant, made["id"], Deadline(60))
        service.clock.seconds += settled
    record = service.services.erasures.records.erasure(service.tenant, made["id"])
    assert record is not None
    assert record.ended
    service.services = service.admin.services = service.process()
    return str(made["id"])


ANN = {"subject": {"kind": "external", "id": "ann"}}
T1 = {"conversationId": "t1"}


def test_what_was_erased_leaves_as_a_tombstone_and_a_destroyed_key_and_its_words_in_no_line(
    source: OneService, target: OneService, tmp_path: Path
) -> None:
    ids = filled(source)
    erase(source, ANN)
    erase(source, T1)
    source.checkpoint()
    path = exported(source, tmp_path / "tenant")

    assert "ann likes tea" not in path.read_text()
    imported(target, path)
    assert target.stored() == source.stored()
    assert target.admin.call("GET", f"{FACTS}/{ids['ann']}").status == 404
    assert "payloadErasedAt" in ok(target.admin.call("GET", f"/v1/memory/log/{ids['entry-1']}"))
    target.checkpoint()
    assert target.audit(tmp_path / "log").holds


def test_an_export_while_an_erasure_is_in_force_has_nothing_of_what_it_names(
    source: OneService, tmp_path: Path
) -> None:
    ids = filled(source)
    _, public = key_pair(tmp_path, "mine")
    gateway = with_erasures(source)
    for selector in (ANN, T1):
        ok(gateway.call("POST", "/v1/memory/erasures", selector))  # nobody works on them

    path = exported(source, tmp_path / "tenant")
    assert ids["ann"] not in path.read_text()
    assert check_file(path).counts["fact"] > 5
    wrapped = exported(source, tmp_path / "keys", rewrapFor=public_key(public))
    assert [line.value["thread"] for line in FileLines(wrapped) if line.kind == "wrapped"] == ["t3"]


def test_what_the_target_erased_is_not_brought_back_by_importing_again(
    full: Full, empty: OneService, tmp_path: Path
) -> None:
    wrapped, private = exported_keys(full.service, tmp_path)
    keys = read_keys(wrapped, private, check_file(full.path))
    imported(empty, full.path)
    erase(empty, ANN)
    erase(empty, {"factId": full.ids["large"]})
    erase(empty, T1)
    before, objects = empty.stored(), empty.objects()

    done = imported(empty, full.path, keys=keys)
    assert done.counts["fact"][LEFT] == 2
    assert done.counts["revision"][LEFT] == 3
    assert done.counts["blob"] == {LEFT: 2}
    assert done.counts["wrapped"] == {LEFT: 1, WRITTEN: 1}
    after = empty.stored()
    assert {**after, "keys": 0} == {**before, "keys": 0}
    assert empty.objects() == objects == {}
    assert "payloadErasedAt" in ok(empty.admin.call("GET", f"/v1/memory/log/{full.ids['entry-1']}"))
    assert ok(empty.admin.call("GET", f"/v1/memory/log/{full.ids['entry-3']}"))["payload"] == {"text": "é 0"}


def test_what_an_erasure_in_force_names_is_not_imported(
    full: Full, empty: OneService, tmp_path: Path
) -> None:
    ok(with_erasures(empty).call("POST", "/v1/memory/erasures", ANN))

    with pytest.raises(ApiError) as refused:
        imported(empty, full.path)
    assert refused.value.code == "erasure-in-progress"
    assert "ann likes tea" not in json.dumps(
        [item.get("c") for item in empty.items(empty.settings.facts_table).values()]
    )
