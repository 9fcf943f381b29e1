"""`factbook cost`: the sums, what the command prints, and the page that quotes it."""

import json
import math
import random
import re
import uuid
from typing import Any

import pytest
from support.gateway import ROOT
from support.sdk_calls import item_size
from support.tables import declared

from factbook.adapters.retrieval.vector_items import item_of
from factbook.domain.retrieval import documents
from factbook.domain.retrieval.searchable import scope_fields
from factbook.domain.scope import Scope
from factbook_cli import cost
from factbook_cli.main import main

PAGE = (ROOT / "docs" / "cost.md").read_text()


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["cost", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("load", ["small", "large"])
def test_the_page_says_what_the_command_says(capsys: pytest.CaptureFixture[str], load: str) -> None:
    said = printed(capsys, "--load", load)
    column = {"small": 0, "large": 1}[load]
    (together,) = re.findall(r"\| \*\*together\*\* \| \*\*\$([\d.]+)\*\* \| \*\*\$([\d.]+)\*\* \|", PAGE)
    assert f"{said['aMonth']['together']:.2f}" == together[column]
    (peer,) = re.findall(r"\| Amazon Bedrock AgentCore Memory \| \$([\d.,]+) \| \$([\d.,]+) \|", PAGE)
    assert f"{said['peers']['Amazon Bedrock AgentCore Memory']:,.2f}" == peer[column]


def test_the_page_quotes_every_price_of_an_operation(capsys: pytest.CaptureFixture[str]) -> None:
    quoted = {
        said: f"{price:.2f}" for said, price in printed(capsys)["perMillion"].items() if f"| {said} |" in PAGE
    }
    found = {said: re.findall(rf"\| {re.escape(said)} \|.*\| \$([\d.]+) \|\n", PAGE) for said in quoted}
    assert found == {said: [price] for said, price in quoted.items()}
    assert len(quoted) >= 6


def test_an_idle_deployment_pays_for_its_ticks_its_polling_and_its_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys, "--load", "idle")["aMonth"]
    paid = {name for name, price in lines.items() if price} - {"together"}
    assert paid == {
        "ticks of the schedules",
        "polling of queues",
        "sweeps of mirrored facts",
        "KMS keys",
        "secret of the ledger",
    }


def test_what_is_paid_at_rest_is_what_the_template_has() -> None:
    resources = declared().template.resources.values()
    events = [event for each in resources for event in each.get("Properties", {}).get("Events", {}).values()]
    kinds = [event["Type"] for event in events]
    assert kinds.count("ScheduleV2") == cost.SCHEDULES
    assert kinds.count("SQS") == cost.QUEUES
    types = [each["Type"] for each in resources]
    assert types.count("AWS::KMS::Key") == cost.KEYS
    assert types.count("AWS::SecretsManager::Secret") == cost.SECRETS


def test_a_domain_costs_its_nodes_by_the_hour_and_their_disks_and_the_small_one_is_the_templates_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small, production = cost.SEARCHES["small"], cost.SEARCHES["production"]
    assert small is not None
    assert production is not None
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    defaults = dict(re.findall(r"^  (\w+):\n    Type: \w+\n    Default: (.*?)$", text, re.MULTILINE))
    kind, count, disk = (defaults[f"Search{each}"] for each in ("InstanceType", "InstanceCount", "VolumeGiB"))
    what = cost.price_table()["prices"][small.hour]["what"]
    assert (what, f"{small.nodes}", f"{small.disk_gb}") == (f"{kind}, hour", count, disk)
    kind = cost.price_table()["prices"][production.hour]["what"].removesuffix(", hour")
    guide = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    sizes = f"SearchInstanceType={kind} SearchInstanceCount={production.nodes} SearchVolumeGiB={production.disk_gb}"
    assert sizes in guide
    for name in ("small", "production"):
        paid = printed(capsys, "--load", "idle", "--search", name)["aMonth"]["search domain"]
        assert f"${paid:.0f} a month" in PAGE, name


def test_a_price_that_nobody_checked_is_marked_on_the_page_and_beside_what_is_made_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unchecked = {name for name, price in cost.price_table()["prices"].items() if "unchecked" in price}
    assert unchecked == {"searchSmallHour", "searchProductionHour", "searchGb"}
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| OpenSearch")]
    assert "†" in row
    assert PAGE.count("†") >= 3  # what it means, the row, the sums below
    assert len(printed(capsys)["unchecked"]) == len(unchecked)
    for search, said in (("none", False), ("small", True)):
        assert main(["cost", "--search", search]) == 0
        assert ("prices that nobody checked: https://" in capsys.readouterr().out) is said


def test_the_parts_add_up_and_a_load_changes_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = printed(capsys), printed(capsys, "--searches", "1000000", "--search", "small")
    lines = after["aMonth"]
    assert sum(price for name, price in lines.items() if name != "together") == pytest.approx(
        lines["together"]
    )
    changed = {name for name in lines if lines[name] != before["aMonth"][name]}
    assert changed == {"search, 10 results", "search domain", "together"}
    assert after["load"]["searches"] == 1_000_000


def test_it_prints_a_table_of_operations_of_the_month_and_of_peers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cost", "--load", "large"]) == 0
    text = capsys.readouterr().out
    assert [
        part for part in ("A million of each", "A month", "elsewhere", "together", "$") if part not in text
    ] == []


@pytest.mark.parametrize(
    "words",
    [
        ["--facts", "-1"],
        ["--facts", "many"],
        ["--facts", "1,00"],
        ["--stored-gb", "nan"],
        ["--load", "huge"],
        ["--search", "big"],
    ],
)
def test_a_load_that_cannot_be_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["cost", *words])
    except SystemExit as stopped:
        code = int(str(stopped.code))
    assert code == 2
    told = capsys.readouterr().err.strip()
    assert len(told.splitlines()) == 1
    assert "invalid int value" not in told


def test_an_amount_may_be_written_as_the_command_prints_it() -> None:
    assert cost.amount("1,000,000") == cost.amount("1000000") == 1_000_000


@pytest.mark.parametrize("word", [1, 5, 12, 60])
def test_a_long_text_is_priced_in_the_pieces_that_it_is_cut_into(word: int) -> None:
    """Leaning high, and by one at most in ten."""
    for characters in (1, 400, 1_100, 1_101, 4_000, 4_001, 10_000, 39_000):
        text = (("x" * word + " ") * characters)[:characters]
        for cut, first, following in (
            (documents.passages, cost.PASSAGE, cost.NEXT_PASSAGE),
            (documents.chunks, cost.PIECE, cost.NEXT_PIECE),
        ):
            made, priced = len(list(cut(text))), cost.texts_of(characters, first, following)
            assert made - made // 20 <= priced <= made + 1 + made // 10, characters


@pytest.mark.parametrize("dimensions", [256, 384, 512, 1_024])
def test_an_item_of_the_vector_index_takes_the_units_that_are_priced(dimensions: int) -> None:
    chance = random.Random(7)
    passages = tuple(
        documents.Chunk("", tuple(chance.gauss(0, 1) for _ in range(dimensions))) for _ in range(3)
    )
    fields = {
        **scope_fields(Scope(tenant_id="acme", project_id="support")),
        "source": "facts",
        "trust": "asserted",
    }
    put = documents.Put(
        "acme", str(uuid.UUID(int=7)), 2**60, passages, fields | {"type": "acme.note", "revision": 1}
    )
    size = item_size(item_of("universal-sentence-encoder-multilingual--c153f069", put))
    assert size <= cost.VECTOR_ITEM + cost.BYTES_A_NUMBER * dimensions
    assert math.ceil(size / 1_024) == cost.vector_units(dimensions)


def test_what_is_indexed_grows_with_its_length_but_for_an_index_of_one_vector_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    load = ("--load", "idle", "--messages", "1000", "--characters")
    short, long = (printed(capsys, *load, each, "--search", "small")["index"] for each in ("400", "5000"))
    assert (short["passagesEach"], short["documents"], short["embeddings"]) == (1, 1_000, 2_000)
    assert (long["passagesEach"], long["documents"], long["embeddings"]) == (5, 5_000, 6_000)
    vectors = [printed(capsys, *load, each, "--search", "dynamodb") for each in ("400", "5000")]
    assert vectors[0]["aMonth"] == vectors[1]["aMonth"]
    assert vectors[0]["aMonth"]["vectors, written and kept a month"] > 0
    assert printed(capsys)["index"] == {}
