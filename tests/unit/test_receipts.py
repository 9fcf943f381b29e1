"""Receipts as the service answers them: not before their checkpoint, whole, bounded, and good for as long as the log is."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.receipts import ANN, StatingService

from factbook.domain import wire
from factbook.domain.errors import LogChanged, NotFound, ReceiptPending, RequestTooLarge
from factbook.usecases.erasure.receipts import ReceiptPorts, receipt_of
from factbook.usecases.erasure.stating import MOST_UNSIGNED

RUN = "_erasures"


@pytest.fixture
def service(tmp_path: Path) -> StatingService:
    return StatingService(tmp_path)


def ports(service: StatingService) -> ReceiptPorts:
    return ReceiptPorts(service.log, service.tree)


def test_a_receipt_verifies_offline_and_says_what_was_stated(service: StatingService) -> None:
    service.append("other", {"n": 1})
    receipt = service.receipt()

    verdict = service.judge(receipt)

    assert (verdict.code, verdict.why, verdict.tenant, verdict.size) == (0, "", "acme", 2)
    assert verdict.statement is not None
    assert verdict.statement["erasureId"] == ANN.id
    assert set(receipt) == {"format", "erasureId", "entry", "proof", "checkpoint", "vkey"}
    assert receipt["proof"]["following"] == []


def test_a_receipt_of_one_among_many_verifies_whenever_it_is_asked_for(service: StatingService) -> None:
    """The head that was checkpointed came later, and so did other leaves and other checkpoints."""
    before = service.state(replace(ANN, id="before"))
    done = service.state()
    for number in range(3):
        service.state(replace(ANN, id=f"later {number}"))
    service.checkpoint("acme", RUN)
    first = receipt_of(ports(service), done)
    for number in range(20):
        service.append(f"run {number}", number)
        service.checkpoint("acme", f"run {number}")
    service.state(replace(ANN, id="last"))
    service.checkpoint("acme", RUN)

    receipts = [first, *(receipt_of(ports(service), each) for each in (done, before))]

    assert [service.judge(each).code for each in receipts] == [0, 0, 0]
    assert [len(each["proof"]["following"]) for each in receipts] == [3, 3, 4]
    assert len(receipts[1]["proof"]["inclusion"]) > len(first["proof"]["inclusion"])


@pytest.mark.parametrize("status", ["pending", "running"])
def test_what_is_still_worked_on_has_no_receipt_yet(service: StatingService, status: str) -> None:
    working = replace(ANN, status=status)  # type: ignore[arg-type]
    with pytest.raises(ReceiptPending, match="worked on") as refused:
        receipt_of(ports(service), working)
    assert refused.value.retry_after > 0


def test_a_record_that_a_replay_put_back_alone_never_has_one_and_says_so(service: StatingService) -> None:
    with pytest.raises(NotFound, match="put back"):
        receipt_of(ports(service), replace(ANN, status="completed", entry_id=None))


def test_a_replay_that_goes_on_has_no_receipt_though_an_earlier_statement_is_there(
    service: StatingService,
) -> None:
    service.receipt()
    again = replace(service.state(), status="running")
    with pytest.raises(ReceiptPending):
        receipt_of(ports(service), again)


def test_before_its_checkpoint_a_receipt_is_pending(service: StatingService) -> None:
    service.receipt(replace(ANN, id="an older one"))
    done = service.state()
    with pytest.raises(ReceiptPending, match="checkpoint"):
        receipt_of(ports(service), done)
    service.checkpoint("acme", RUN)

    assert service.judge(receipt_of(ports(service), done)).code == 0


def test_a_leaf_that_no_published_note_signs_for_is_not_enough(
    service: StatingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = service.state()
    monkeypatch.setattr(service.tree, "keep_note", lambda *_: None)
    service.checkpoint("acme", RUN)
    assert service.tree.last_leaf("acme", RUN) is not None
    with pytest.raises(ReceiptPending):
        receipt_of(ports(service), done)


def test_a_failed_erasure_has_none(service: StatingService) -> None:
    with pytest.raises(NotFound, match="failed"):
        receipt_of(ports(service), replace(ANN, status="failed"))


def test_a_run_whose_entries_are_gone_is_told_as_changed(service: StatingService) -> None:
    done = service.state()
    service.state(replace(ANN, id="later"))
    service.checkpoint("acme", RUN)
    del service.log._entries["acme", RUN, 1]
    with pytest.raises(LogChanged):
        receipt_of(ports(service), done)


def test_a_receipt_with_as_many_others_as_may_be_left_unsigned_has_room(service: StatingService) -> None:
    long = replace(ANN, warnings=("w" * 300,) * 10, requested_by="user:" + '"' * 251)
    first = service.state(long)
    for number in range(MOST_UNSIGNED - 1):
        service.state(replace(long, id=f"{number}"))
    assert service.tree.last_leaf("acme", RUN) is None
    service.checkpoint("acme", RUN)

    receipt = receipt_of(ports(service), first)

    assert len(receipt["proof"]["following"]) == MOST_UNSIGNED - 1
    assert wire.value_bytes(receipt) <= wire.ANSWER_BYTES / 2
    assert service.judge(receipt).code == 0


def test_a_receipt_that_no_answer_has_room_for_is_refused_with_another_way(
    service: StatingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = service.state()
    service.state(replace(ANN, id="later"))
    service.checkpoint("acme", RUN)
    monkeypatch.setattr(wire, "ANSWER_BYTES", 3_000)
    with pytest.raises(RequestTooLarge, match="log export --run _erasures"):
        receipt_of(ports(service), done)
