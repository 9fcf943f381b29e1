"""The state file: a cut is there whole or not at all, and what was deleted is nowhere."""

import sqlite3
from pathlib import Path

import pytest

from factbook_local.dataplane.expiry import Expiry
from factbook_local.dataplane.store import Cut, Store

ARN = "arn:aws:dynamodb:us-east-1:1:table/t"
ITEM = {"pk": {"S": "a"}, "text": {"S": "é \ud800"}}


def test_everything_of_a_cut_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    store.apply(
        Cut(
            documents={"kms": "{}"},
            items={(ARN, "a", "b\ud800"): '{"pk": 1}'},
            objects={("1", "bucket", "k/é"): ("{}", b"\x00\xff")},
            records=[("2", ARN, '{"n": 2}'), ("1", ARN, '{"n": 1}')],
            positions={"F": "1"},
        )
    )
    store.close()
    again = Store(tmp_path / "state")
    assert again.documents() == {"kms": "{}"}
    assert list(again.items()) == [((ARN, "a", "b\ud800"), {"pk": 1})]
    assert list(again.objects()) == [(("1", "bucket", "k/é"), "{}", b"\x00\xff")]
    assert list(again.records()) == [("1", ARN, {"n": 1}), ("2", ARN, {"n": 2})]
    assert again.positions() == {"F": "1"}
    again.close()


def test_a_later_cut_replaces_deletes_and_trims(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    store.apply(
        Cut(
            items={(ARN, "a", "x"): "1", (ARN, "b", "x"): "2"},
            objects={("1", "b", "k"): ("{}", b"1")},
            records=[("1", ARN, "1"), ("2", ARN, "2"), ("1a", "other", "3")],
        )
    )
    store.apply(
        Cut(
            items={(ARN, "a", "x"): None, (ARN, "b", "x"): "3"},
            objects={("1", "b", "k"): None},
            trimmed={ARN: "1"},
        )
    )
    assert list(store.items()) == [((ARN, "b", "x"), 3)]
    assert list(store.objects()) == []
    assert [sequence for sequence, _, _ in store.records()] == ["1a", "2"]
    store.close()


def test_of_a_table_that_was_deleted_nothing_is_left_but_what_its_next_life_writes(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    other = f"{ARN}2"
    store.apply(
        Cut(
            items={(ARN, "a", "x"): "1", (ARN, "b", "x"): "2", (other, "a", "x"): "3"},
            records=[("1", f"{ARN}/stream/2026", "1"), ("2", f"{other}/stream/2026", "2")],
        )
    )
    store.apply(Cut(dropped={ARN}, items={(ARN, "a", "x"): "4"}))
    assert list(store.items()) == [((other, "a", "x"), 3), ((ARN, "a", "x"), 4)]
    assert [sequence for sequence, _, _ in store.records()] == ["2"]
    assert store.tables() == {ARN, other}
    store.close()


def test_a_cut_that_fails_halfway_leaves_nothing_behind(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    store.apply(Cut(items={(ARN, "a", "x"): "1"}))
    broken = Cut(items={(ARN, "a", "x"): "2"}, records=[("1", ARN, None)])  # type: ignore[list-item]
    with pytest.raises(sqlite3.IntegrityError):
        store.apply(broken)
    assert list(store.items()) == [((ARN, "a", "x"), 1)]
    store.apply(Cut(items={(ARN, "b", "x"): "1"}))
    assert len(list(store.items())) == 2
    store.close()


def test_a_disk_that_is_full_is_said_and_the_next_save_takes_it_along(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(sqlite3.OperationalError, match="database or disk is full"):
        store.apply(Cut(documents={"kms": "x" * 1_000_000}))
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.apply(Cut(documents={"kms": "x" * 1_000_000}))
    assert len(store.documents()["kms"]) == 1_000_000
    store.close()


def test_what_is_deleted_is_not_left_in_the_file(tmp_path: Path) -> None:
    secret = "the words that were erased " * 40
    store = Store(tmp_path / "state")
    store.apply(
        Cut(items={(ARN, "a", "x"): f'"{secret}"'}, objects={("1", "b", "k"): ("{}", secret.encode())})
    )
    store.apply(Cut(items={(ARN, "a", "x"): None}, objects={("1", "b", "k"): None}))
    store.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"erased" not in kept


def table(items: dict[str, dict[str, dict[str, object]]]) -> dict[str, object]:
    return {"TableName": "t", "items": items}


def test_an_item_is_due_once_at_its_own_second() -> None:
    expiry = Expiry({"t": "ttl"})
    item: dict[str, object] = {"ttl": {"N": "100"}}
    place = table({"a": {"x": item}})
    expiry.watch(place, "a", "x", item)
    assert expiry.due(99.9) == []
    assert expiry.due(100.0) == [(place, "a", "x", item)]
    assert expiry.due(101.0) == []


def test_a_stamp_that_was_replaced_removed_or_is_no_number_is_not_due() -> None:
    expiry = Expiry({"t": "ttl"})
    later: dict[str, object] = {"ttl": {"N": "500"}}
    place = table({"prolonged": {"x": later}, "kept": {"x": {}}, "text": {"x": {"ttl": {"S": "1"}}}})
    for key, stamped in (
        ("prolonged", {"ttl": {"N": "100"}}),
        ("prolonged", later),
        ("kept", {"ttl": {"N": "100"}}),
        ("gone", {"ttl": {"N": "100"}}),
        ("text", {"ttl": {"S": "1"}}),
    ):
        expiry.watch(place, key, "x", stamped)
    assert expiry.due(200.0) == []
    assert [key for _, key, _, _ in expiry.due(500.0)] == ["prolonged"]


def test_a_stamp_of_more_than_five_years_ago_is_a_mistake() -> None:
    expiry = Expiry({"t": "ttl"})
    now = 1_800_000_000.0
    items: dict[str, dict[str, dict[str, object]]] = {
        "old": {"x": {"ttl": {"N": str(int(now) - 5 * 365 * 86_400)}}},
        "due": {"x": {"ttl": {"N": str(int(now) - 86_400)}}},
    }
    for key, row in items.items():
        expiry.watch(table(items), key, "x", row["x"])
    assert [key for _, key, _, _ in expiry.due(now)] == ["due"]


def test_a_table_without_a_time_to_live_keeps_everything() -> None:
    expiry = Expiry({"other": "ttl"})
    item: dict[str, object] = {"ttl": {"N": "1"}}
    expiry.watch(table({"a": {"x": item}}), "a", "x", item)
    assert expiry.due(100.0) == []


def test_what_is_deleted_is_in_no_file_once_the_write_ahead_file_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = Store(path)
    word = "quokkazebra"
    store.apply(
        Cut(items={(ARN, "a", "x"): f'"{word}"'}, objects={("1", "b", "k"): ("{}", word.encode() * 900)})
    )
    store.apply(Cut(items={(ARN, "a", "x"): None}, objects={("1", "b", "k"): None}))
    assert [each.name for each in files_with(tmp_path, word)] == ["state.sqlite-wal"]
    store.empty_the_write_ahead_file()
    assert files_with(tmp_path, word) == []
    store.apply(Cut(items={(ARN, "b", "x"): "1"}))
    assert [key for key, _ in store.items()] == [(ARN, "b", "x")]
    store.close()


def files_with(folder: Path, word: str) -> list[Path]:
    return [path for path in folder.iterdir() if word.encode() in path.read_bytes()]
