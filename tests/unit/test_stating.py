"""What the service states of an erasure: once, plain, without a name, and signed for soon after."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.receipts import ANN, ASKED, DONE, StatingService

from factbook.domain.errors import StorageUnavailable
from factbook.domain.strict_json import parse_json
from factbook.ports.log.checkpoints import CheckpointRefused
from factbook.usecases.erasure import stating
from factbook.usecases.erasure.stating import state_erasure, statement_of

RUN = "_erasures"


@pytest.fixture
def service(tmp_path: Path) -> StatingService:
    return StatingService(tmp_path)


def test_a_statement_says_when_how_much_and_by_whom_and_only_a_hash_of_whom(service: StatingService) -> None:
    service.state()

    (entry,) = service.log.newest("acme", RUN, 5)
    said = parse_json(entry.text)
    assert (said["scope"], said["actor"]) == ({"tenantId": "acme"}, "user:admin")
    assert said["payload"] == {
        "statement": "factbook-erasure-v1",
        "erasureId": ANN.id,
        "selectorKind": "participant",
        "selectorHmac": "ab" * 32,
        "keyId": "k1",
        "requestedBy": "user:admin",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "completedAt": "2026-01-01T00:01:30.000Z",
        "settledAt": "2026-01-02T00:01:30.000Z",
        "backupsUntil": "2026-01-08T00:01:30.000Z",
        "counts": {"facts": 12, "revisions": 31, "blobs": 0, "keys": 2},
        "notClaimed": [
            "stream-records",
            "backups",
            "exports",
            "plain-entries",
            "late-uploads",
            "expired-facts",
            "ids",
        ],
        "warnings": [],
    }


def test_where_a_search_domain_is_its_segments_and_snapshots_are_not_claimed() -> None:
    said = statement_of(ANN, DONE, searched=True)

    assert said["notClaimed"][-2:] == ["search-segments", "search-snapshots"]


def test_a_record_without_a_hash_states_none_and_warnings_are_bounded() -> None:
    bare = replace(ANN, selector_hmac=None, key_id=None, warnings=("x" * 1000,) * 30)

    said = statement_of(bare, DONE, searched=False)

    assert not {"selectorHmac", "keyId", "replayedAt"} & said.keys()
    assert [len(each) for each in said["warnings"]] == [300] * 10


def test_a_worker_that_tries_again_finds_the_first_statement_and_its_time(service: StatingService) -> None:
    first = state_erasure(service.ports(), ANN, DONE)
    later = state_erasure(service.ports(), replace(ANN, counts={"facts": 99}), "2026-01-01T00:09:00.000Z")

    assert later == first
    assert later.completed_at == DONE
    assert len(service.log.newest("acme", RUN, 5)) == 1


def test_a_replay_is_stated_anew_and_each_replay_once(service: StatingService) -> None:
    service.state()
    again = replace(
        ANN, replayed_at="2026-01-03T00:00:00.000Z", replayed_by="service:restore", counts={"facts": 1}
    )
    first = state_erasure(service.ports(), again, "2026-01-03T00:01:00.000Z")

    assert state_erasure(service.ports(), again, "2026-01-03T00:02:00.000Z") == first
    entries = service.log.newest("acme", RUN, 5)
    assert len(entries) == 2
    assert parse_json(entries[0].text)["payload"]["replayedAt"] == "2026-01-03T00:00:00.000Z"
    assert parse_json(entries[0].text)["payload"]["createdAt"] == ASKED
    assert parse_json(entries[0].text)["payload"]["replayedBy"] == "service:restore"
    assert parse_json(entries[0].text)["payload"]["requestedBy"] == "user:admin"
    assert parse_json(entries[0].text)["actor"] == "service:restore", "a ledger may say anything of who asked"


def test_one_that_a_replay_had_begin_again_states_what_it_did_then(service: StatingService) -> None:
    service.state()
    again = replace(ANN, resumed_by="replay:r1", counts={"facts": 20})
    state_erasure(service.ports(), again, "2026-01-01T00:05:00.000Z")
    state_erasure(service.ports(), again, "2026-01-01T00:06:00.000Z")

    newest, _ = (parse_json(each.text)["payload"] for each in service.log.newest("acme", RUN, 5))
    assert (newest["completedAt"], newest["counts"]) == ("2026-01-01T00:05:00.000Z", {"facts": 20})


def test_a_statement_is_signed_for_at_once_unless_no_time_is_left_for_that(service: StatingService) -> None:
    service.state()
    assert (service.asked, service.tree.last_leaf("acme", RUN)) == (0, None)
    state_erasure(service.ports(), replace(ANN, id="another"), DONE)
    leaf = service.tree.last_leaf("acme", RUN)
    assert leaf is not None
    assert (service.asked, leaf.sequence) == (1, 1)


@pytest.mark.parametrize("refusal", [StorageUnavailable(), CheckpointRefused()])
def test_a_checkpoint_that_cannot_be_made_stops_no_erasure(
    service: StatingService, refusal: Exception
) -> None:
    service.refuses = refusal
    stated = state_erasure(service.ports(), ANN, DONE)
    assert stated.entry_id.startswith("_erasures:0:")
    assert service.asked == 1


def test_statements_that_nothing_signs_for_yet_do_not_pile_up(
    service: StatingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receipt carries those between its own and the next signed one."""
    monkeypatch.setattr(stating, "MOST_UNSIGNED", 3)
    for number in range(8):
        service.state(replace(ANN, id=f"erasure {number}"))

    leaves = [leaf.sequence for leaf in service.tree.run_leaves("acme", RUN, 0, 10)]
    assert leaves == [2, 5]
    service.refuses = StorageUnavailable()
    for number in range(8, 12):
        service.state(replace(ANN, id=f"erasure {number}"))
    assert len(service.log.newest("acme", RUN, 20)) == 12, (
        "a log that cannot be signed does not stop an erasure"
    )
