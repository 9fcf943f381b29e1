"""Receipts that were altered, put together, cut or signed by another key: none of them holds, and each is told apart."""

import base64
import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.gateway import ROOT
from support.principals import principal
from support.receipts import ANN, DONE, Signer, StatingService, judged

from factbook.canonical import log_canonical
from factbook.domain.log.chain import text_hash
from factbook.domain.scope import Scope
from factbook.domain.strict_json import Json
from factbook.usecases.erasure.receipts import ReceiptPorts, receipt_of
from factbook.usecases.erasure.stating import statement_of
from factbook.usecases.log.appending import Request, append_as
from factbook.verify.findings import Tampered, Unsupported
from factbook.verify.receipt import MOST_BYTES
from factbook.verify.statement import FORM, read_statement

BOB = replace(ANN, id="0d9a4c6e-6f1f-4a55-9c61-3a1d5b7f0002", selector_hmac="cd" * 32)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> StatingService:
    """Two erasures of one tenant under one leaf, among other leaves, and one of another tenant."""
    service = StatingService(tmp_path_factory.mktemp("receipts"))
    for number in range(5):
        service.append(f"run {number}", number)
        service.checkpoint("acme", f"run {number}")
    service.state(ANN)
    service.state(BOB)
    service.checkpoint("acme", "_erasures")
    return service


@pytest.fixture(scope="module")
def receipt(service: StatingService) -> Json:
    return receipt_of(ReceiptPorts(service.log, service.tree), service.state(ANN))


@pytest.fixture(scope="module")
def of_bob(service: StatingService) -> Json:
    return receipt_of(ReceiptPorts(service.log, service.tree), service.state(BOB))


@pytest.fixture
def altered(receipt: Json) -> Json:
    return copy.deepcopy(receipt)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every value of a JSON document by where it stands, the containers among them."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in items:
        yield from places(child, (*path, name))


def holder(document: Any, path: tuple[Any, ...]) -> Any:
    for name in path[:-1]:
        document = document[name]
    return document


def other_values(value: Any) -> list[Any]:
    """What somebody may write in its place."""
    if isinstance(value, str):
        flipped = chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
        changed = [
            flipped,
            value[:-1],
            value + "x",
            value + " ",
            "",
            value.upper(),
            value.swapcase(),
            value[::-1],
        ]
        return [None, 0, [], {}, *(each for each in changed if each != value)]
    if isinstance(value, int):
        return [None, value + 1, -1, str(value), value + 0.5, float(value), value == 1, 10**30]
    if isinstance(value, list):
        return [
            None,
            {},
            "",
            value[:-1] if value else ["x"],
            [*value, "x"],
            [*value, *value[-1:]],
            value[::-1][:-1],
        ]
    return [None, [], "", {}, {**value, "more": 1}]


def test_the_receipt_itself_holds(service: StatingService, receipt: Json, of_bob: Json) -> None:
    assert service.judge(receipt).code == 0
    assert service.judge(of_bob).code == 0
    assert len(receipt["proof"]["following"]) == 1
    assert receipt["proof"]["inclusion"]


def test_no_field_can_be_altered(service: StatingService, receipt: Json) -> None:
    """Every value at every place, in every way of `other_values`; the format alone may make it another file."""
    tried = 0
    for path in list(places(receipt)):
        for value in other_values(receipt if not path else holder(receipt, path)[path[-1]]):
            changed = copy.deepcopy(receipt)
            holder(changed, path)[path[-1]] = value
            if changed == receipt and json.dumps(changed) == json.dumps(receipt):
                continue
            verdict = service.judge(changed)
            assert verdict.code in ((1, 3) if path[-1] == "format" else (1,)), (path, value, verdict)
            assert verdict.statement is None
            tried += 1
    assert tried > 150


def test_no_field_can_be_left_out_or_added(service: StatingService, receipt: Json) -> None:
    for path in list(places(receipt)):
        changed = copy.deepcopy(receipt)
        within = holder(changed, path)
        del within[path[-1]]
        assert service.judge(changed).code == (3 if path == ("format",) else 1), path
    assert service.judge(receipt | {"claims": "everything"}).code == 1


def test_no_character_of_the_signed_entry_can_be_altered(service: StatingService, receipt: Json) -> None:
    text = receipt["entry"]["canonical"]
    for at in range(0, len(text), 7):
        changed = copy.deepcopy(receipt)
        changed["entry"]["canonical"] = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
        assert service.judge(changed).code == 1, at


def test_an_entry_that_is_altered_and_hashed_anew_is_not_the_one_that_was_signed(
    service: StatingService, altered: Json
) -> None:
    entry = json.loads(altered["entry"]["canonical"])
    entry["payload"]["counts"]["facts"] = 0
    text = log_canonical(entry)
    altered["entry"] |= {"canonical": text, "entryHash": text_hash(text)}
    assert service.judge(altered).code == 1

    altered["proof"] |= {"following": []}
    altered["proof"]["leaf"] |= {"head": text_hash(text), "sequence": entry["sequence"]}
    verdict = service.judge(altered)
    assert (verdict.code, verdict.why) == (1, "the leaf is not in the tree that the checkpoint signs for")


@pytest.mark.parametrize("part", ["erasureId", "entry", "proof", "checkpoint"])
def test_no_part_of_another_erasures_receipt_fits(
    service: StatingService, receipt: Json, of_bob: Json, part: str
) -> None:
    mixed = receipt | {part: of_bob[part]}
    if mixed == receipt:  # one checkpoint signs for both
        assert part == "checkpoint"
        return
    assert service.judge(mixed).code == 1
    if part == "entry":
        assert service.judge(mixed | {"erasureId": of_bob["erasureId"]}).code == 1


def test_anothers_entry_under_ones_own_id_is_told(service: StatingService, of_bob: Json) -> None:
    verdict = service.judge(of_bob | {"erasureId": ANN.id})

    assert (verdict.code, verdict.why) == (1, "the receipt is of another erasure than its entry states")


def test_a_checkpoint_of_another_tenant_signs_for_nothing_here(
    service: StatingService, receipt: Json
) -> None:
    service.state(replace(ANN, tenant="other"))
    service.checkpoint("other", "_erasures")
    theirs = receipt_of(ReceiptPorts(service.log, service.tree), service.state(replace(ANN, tenant="other")))
    assert service.judge(theirs).tenant == "other"

    verdict = service.judge(receipt | {"checkpoint": theirs["checkpoint"]})
    assert (verdict.code, "another log" in verdict.why) == (1, True)
    assert service.judge(theirs | {"checkpoint": receipt["checkpoint"]}).code == 1
    assert service.judge(receipt | {name: theirs[name] for name in ("proof", "checkpoint")}).code == 1


def test_an_older_or_newer_checkpoint_of_the_same_log_does_not_fit_the_proof(
    service: StatingService, receipt: Json
) -> None:
    (older,) = service.tree.notes("acme", 4, 1)
    assert service.judge(receipt | {"checkpoint": older.note}).code == 1
    service.append("run 9", 9)
    newer = service.checkpoint("acme", "run 9")
    assert newer is not None
    assert service.judge(receipt | {"checkpoint": newer.note}).code == 1


def test_only_the_key_that_the_verifier_trusts_counts(
    service: StatingService, receipt: Json, tmp_path: Path
) -> None:
    """A whole log made and signed by somebody else holds under their key alone, whatever the file says of it."""
    forger = StatingService(tmp_path, Signer())
    forged = forger.receipt(ANN)
    assert forger.judge(forged).code == 0

    assert service.judge(forged).code == 1
    assert service.judge(forged | {"vkey": service.vkey}).code == 1
    assert service.judge(receipt, forger.vkey).code == 1
    assert service.judge(receipt | {"vkey": forger.vkey}, forger.vkey).code == 1
    verdict = service.judge(receipt | {"vkey": forger.vkey})
    assert (verdict.code, verdict.why) == (1, "the receipt names another key than the one that signed")


def test_a_statement_that_a_caller_appended_to_a_run_of_theirs_is_no_receipt(
    service: StatingService, receipt: Json
) -> None:
    """Anybody may log any payload, and it is signed for as what it is: an entry of their run."""
    payload = json.loads(receipt["entry"]["canonical"])["payload"]
    service.append("mine", payload)
    service.checkpoint("acme", "mine")
    (own,) = service.log.newest("acme", "mine", 1)
    leaf = service.tree.last_leaf("acme", "mine")
    assert leaf is not None
    entry = {
        "sequence": 0,
        "format": own.format,
        "entryHash": own.entry_hash,
        "canonical": own.text,
    }
    shown = {
        "index": leaf.index,
        "runId": "mine",
        "sequence": 0,
        "head": leaf.head,
        "salt": leaf.salt,
    }
    forged = receipt | {"entry": entry, "proof": receipt["proof"] | {"following": [], "leaf": shown}}

    verdict = service.judge(forged)

    assert (verdict.code, "_erasures" in verdict.why) == (1, True)


def test_an_entry_of_the_run_that_states_nothing_is_no_receipt(tmp_path: Path) -> None:
    service = StatingService(tmp_path)
    service.append("_erasures", {"statement": "factbook-erasure-v9", "erasureId": ANN.id})
    service.state(ANN)
    service.checkpoint("acme", "_erasures")
    done = replace(service.state(ANN), entry_id="_erasures:0:" + "0" * 16)
    receipt = receipt_of(ReceiptPorts(service.log, service.tree), done)

    verdict = service.judge(receipt)

    assert (verdict.code, "factbook-erasure-v9" in verdict.why) == (3, True)


def test_a_statement_in_a_narrower_scope_than_the_tenants_is_none_of_the_service(tmp_path: Path) -> None:
    service = StatingService(tmp_path)
    admin = principal("acme", "admin", admin=True)
    payload = statement_of(ANN, DONE, searched=False)
    narrow = Scope(tenantId="acme", projectId="p")
    (entry,) = append_as(
        service.writer(), admin, "_erasures", [Request("event-emitted", payload, scope=narrow)]
    )
    service.checkpoint("acme", "_erasures")
    done = replace(ANN, status="completed", entry_id=entry.id)

    verdict = service.judge(receipt_of(ReceiptPorts(service.log, service.tree), done))

    assert (verdict.code, verdict.why) == (1, "the entry does not say whose log it is of")


CUT: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "empty": (lambda raw: b"", 2),
    "blank": (lambda raw: b" \n", 2),
    "cut at a third": (lambda raw: raw[: len(raw) // 3], 2),
    "cut by one byte": (lambda raw: raw[:-1], 2),
    "cut in a text": (lambda raw: raw[: raw.index(b"canonical") + 40], 2),
    "twice": (lambda raw: raw + raw, 1),
    "another file": (lambda raw: b"PK\x03\x04", 3),
    "text": (lambda raw: b"a receipt", 3),
    "a list": (lambda raw: b"[" + raw + b"]", 3),
    "UTF-16": (lambda raw: raw.decode().encode("utf-16"), 3),
    "a key twice": (lambda raw: raw.replace(b'{"format"', b'{"format":"x","format"', 1), 1),
    "a comma lost": (lambda raw: raw.replace(b",", b" ", 1), 1),
    "another format": (lambda raw: raw.replace(b"receipt-v1", b"receipt-v2", 1), 3),
    "no format": (lambda raw: raw.replace(b'"format"', b'"form"', 1), 3),
    "the refusal": (lambda raw: b'{"error":{"code":"receipt-pending","message":"wait"}}', 2),
    "too large": (lambda raw: raw + b" " * MOST_BYTES, 3),
    "deep": (lambda raw: b'{"format":' + b"[" * 100_000, 1),
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_that_was_damaged_is_told_apart_by_its_exit_code(
    service: StatingService, receipt: Json, name: str
) -> None:
    damage, code = CUT[name]

    verdict = judged(service.folder, damage(json.dumps(receipt).encode()), service.vkey)

    assert verdict.code == code, verdict
    assert verdict.why


def test_indented_or_sorted_it_is_the_same_receipt(service: StatingService, receipt: Json) -> None:
    text = json.dumps(receipt, indent=2, sort_keys=True, ensure_ascii=False)

    assert judged(service.folder, "\n" + text + "\n", service.vkey).code == 0


def test_a_proof_written_in_another_way_is_not_taken(service: StatingService, altered: Json) -> None:
    """Base64 has bits that say nothing: a file must not be alterable in them either."""
    first = altered["proof"]["inclusion"][0]
    loose = first[:-2] + chr(ord(first[-2]) + 1) + "="
    assert base64.b64decode(loose) == base64.b64decode(first)
    altered["proof"]["inclusion"][0] = loose
    assert service.judge(altered).code == 1


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"statement": "factbook-erasure-v2"}, Unsupported),
        ({"alsoErased": 1}, Unsupported),
        ({"statement": None}, Tampered),
        ({"counts": {"facts": -1}}, Tampered),
        ({"counts": {"facts": True}}, Tampered),
        ({"completedAt": "yesterday"}, Tampered),
        ({"notClaimed": [1]}, Tampered),
        ({"warnings": "none"}, Tampered),
        ({"keyId": 1}, Tampered),
    ],
)
def test_a_signed_statement_that_says_something_else_is_not_told_as_if_it_were_understood(
    receipt: Json, change: Json, finding: type[Exception]
) -> None:
    payload = json.loads(receipt["entry"]["canonical"])["payload"]
    assert read_statement(payload)["statement"] == FORM
    with pytest.raises(finding):
        read_statement(payload | change)


def command(service: StatingService, file: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """Where nothing of the product can be imported but the verifier, and no module that reaches a network."""
    script = (
        "import sys, runpy\n"
        "sys.modules['socket'] = sys.modules['pydantic'] = sys.modules['botocore'] = None\n"
        "sys.argv = ['verify', *sys.argv[1:]]\n"
        "runpy.run_module('factbook.verify', run_name='__main__')\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script, "receipt", str(file), "--vkey", service.vkey, *more],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT / "layers" / "factbook",
    )


def test_the_command_says_what_is_claimed_and_what_is_not(
    service: StatingService, receipt: Json, tmp_path: Path
) -> None:
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt))

    done = command(service, file)

    assert (done.returncode, done.stderr) == (0, "")
    claimed, not_claimed = done.stdout.split("not claimed:")
    for said in ("one participant", "user:admin", "2026-01-01T00:00:00.000Z", "12 facts", "31 revisions"):
        assert said in claimed
    assert "From 2026-01-02T00:01:30.000Z on, no copy is left but in backups" in claimed
    for said in (
        "24 hours",
        "7 days, until 2026-01-08",
        "exports",
        "wider scope",
        "Ids",
        "what the service said",
    ):
        assert said in not_claimed
    as_json = json.loads(command(service, file, "--json").stdout)
    assert as_json["holds"]
    assert as_json["statement"]["erasureId"] == ANN.id


def test_the_command_of_a_forgery_says_nothing_of_what_it_states(
    service: StatingService, altered: Json, tmp_path: Path
) -> None:
    file = tmp_path / "receipt.json"
    altered["entry"]["canonical"] = altered["entry"]["canonical"].replace("user:admin", "user:other")
    file.write_text(json.dumps(altered))

    done = command(service, file)

    assert (done.returncode, done.stdout.splitlines()) == (
        1,
        ["TAMPERED: its text does not hash to its entryHash: it was edited"],
    )
    assert command(service, tmp_path / "none.json").returncode == 2
    assert command(service, tmp_path).returncode == 3
    assert json.loads(command(service, file, "--json").stdout)["holds"] is False
