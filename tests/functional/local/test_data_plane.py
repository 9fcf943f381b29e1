"""The data plane by itself, with a file, through its ends and starts."""

import sqlite3
from pathlib import Path
from typing import Any

from support.emulators import Aws
from support.tables import settings

from factbook_local.dataplane.process import DataPlaneProcess

KEYS = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class Plane:
    """Runs on one file; `again` ends it, which saves, and starts it anew."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._start()

    def _start(self) -> None:
        self._process = DataPlaneProcess(file=self._file, expiring={})
        self._process.wait_until_serving()
        self.client = Aws(self._process.url, settings()).client("dynamodb")

    def stop(self) -> None:
        assert self._process.stop() == 0

    def again(self) -> None:
        self.stop()
        self._start()

    def make(self, table: str, *items: str) -> None:
        self.client.create_table(TableName=table, **KEYS)
        for item in items:
            self.client.put_item(TableName=table, Item={"pk": {"S": item}})

    def items(self, table: str) -> list[str]:
        found: list[dict[str, Any]] = self.client.scan(TableName=table)["Items"]
        return sorted(item["pk"]["S"] for item in found)


def test_a_table_that_was_deleted_is_gone_after_a_start_and_the_others_are_there(tmp_path: Path) -> None:
    plane = Plane(tmp_path / "state.sqlite")
    plane.make("kept", "a")
    plane.make("former", "b", "c")
    plane.make("remade", "d")
    plane.again()
    plane.client.delete_table(TableName="former")
    plane.client.delete_table(TableName="remade")
    plane.make("remade", "e")
    plane.again()

    assert plane.client.list_tables()["TableNames"] == ["kept", "remade"]
    assert (plane.items("kept"), plane.items("remade")) == (["a"], ["e"])
    plane.stop()


def test_items_whose_table_is_nowhere_stop_no_start(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    plane = Plane(file)
    plane.make("kept", "a")
    plane.stop()
    with sqlite3.connect(file) as state:
        state.execute(
            "INSERT INTO items SELECT 'arn:aws:dynamodb:us-east-1:1:table/x', pk, sk, body FROM items"
        )
    state.close()

    again = Plane(file)
    assert again.items("kept") == ["a"]
    again.stop()
    with sqlite3.connect(file) as state:
        assert state.execute("SELECT count(*) FROM items").fetchone() == (1,)
    state.close()
