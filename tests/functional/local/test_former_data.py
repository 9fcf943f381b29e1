"""A data folder whose facts an earlier version wrote: it is started on, and nothing is missing from any list."""

from pathlib import Path
from typing import Any

from support.local_cloud import eventually

from factbook_local.testing import Ready, running

FACTS = "/v1/memory/facts"
NEW = {"facts": ("listing-type", "admin-type", "account", "reviews", "held"), "log": ("runs", "runs-admin")}
"""Indexes that tables of the former format do not have."""


def ask(ready: Ready, method: str, path: str, body: Any = None) -> Any:
    import json
    import urllib.request

    request = urllib.request.Request(
        ready.url + path,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {ready.tokens['demo']}"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def set_back(ready: Ready) -> None:
    """The tables as that version left them: without the new indexes and attributes, and without the job."""
    dynamodb, tables = ready.client("dynamodb"), ready.aws["tables"]
    for kind, names in NEW.items():
        for name in names:
            dynamodb.update_table(
                TableName=tables[kind], GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}]
            )
    heads = [item for item in dynamodb.scan(TableName=tables["facts"])["Items"] if item["sk"]["S"] == "h"]
    for item in heads:
        former = {name: value for name, value in item.items() if name not in ("y", "lf", "sj")}
        dynamodb.put_item(TableName=tables["facts"], Item=former)
    job = {"pk": {"S": "job|upgrade"}, "sk": {"S": "job"}}
    assert dynamodb.delete_item(TableName=tables["access"], Key=job, ReturnValues="ALL_OLD")["Attributes"]


def test_facts_of_an_earlier_version_are_in_every_list_after_the_next_start(tmp_path: Path) -> None:
    about = [{"kind": "external", "id": "ann"}]
    with running(tmp_path, data=tmp_path / "data") as ready:
        written = [
            ask(ready, "POST", FACTS, {"type": kind, "content": kind, "subjects": about})["id"]
            for kind in ("acme.note", "acme.task", "other")
        ]
        set_back(ready)
    with running(tmp_path, data=tmp_path / "data") as ready:

        def listed(query: str) -> list[str]:
            return [fact["id"] for fact in ask(ready, "GET", f"{FACTS}?{query}")["data"]]

        assert listed("type=acme.task") == [written[1]]
        assert listed("typePrefix=acme.") == [written[1], written[0]]
        assert listed("limit=10") == written[::-1]
        types = ask(ready, "GET", "/v1/memory/types")
        assert types["data"] == [{"type": name} for name in ("acme.note", "acme.task", "other")]

        dynamodb = ready.client("dynamodb")
        heads = dynamodb.scan(TableName=ready.aws["tables"]["facts"])["Items"]
        assert all({"y", "sj"} <= head.keys() and "lf" not in head for head in heads)
        changed = ask(ready, "POST", f"{FACTS}/{written[0]}/supersede", {"content": "new"})
        assert changed["version"] == 2
        assert ask(ready, "GET", f"{FACTS}/{written[0]}?version=1")["content"] == "acme.note"
        found = {"mode": "keyword", "query": "new"}
        assert eventually(lambda: ask(ready, "POST", "/v1/memory/retrieve", found)["results"])
