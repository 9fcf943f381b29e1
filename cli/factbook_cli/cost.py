"""What a deployment costs a month, from how much you do with it: counted reads and writes times public prices.

Begin with one of two loads and change what differs: factbook cost --load small --searches 200000. The units of each
operation are those that tests count; prices are a dated table of the package. It leans high, and it is no bill.
"""

import argparse
import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from importlib.resources import files
from typing import Any

MINUTES = 43_200
"""Of a month of 30 days."""
REQUEST_SECONDS, FUNCTION_GB = 0.1, 1.0
"""What a request is taken to last, some ten times what the handlers take, in a function of 1 GB."""
SCHEDULES = 4
"""Functions that are woken each minute."""
QUEUES = 3
"""Queues that Lambda reads for a function, with five pollers that ask three times a minute each."""
POLLS_A_MINUTE = 15
SWEEP_READS, SWEEP_WRITES = 40, 2
"""A minute, for finding that no mirrored fact is due: 80 queries of half a unit, and how far the round is."""
KEYS, SECRETS = 2, 1
PASSAGE, NEXT_PASSAGE = 1_100, 1_035
"""Characters of a text that its first vector is made of, and that each further one adds; the same of words:"""
PIECE, NEXT_PIECE = 4_000, 3_780
VECTOR_ITEM, BYTES_A_NUMBER = 500, 5.5
"""Of an item of DynamoDB's vector index: what stands beside its vector, and each number of that."""
GRAPH_LINKS = 16
"""Of a vector in OpenSearch, which takes 1.1 · (4 · dimensions + 8 · links) bytes by its own reckoning."""


@dataclass(frozen=True)
class Units:
    """What one operation takes of what is paid for. `background`: invocations by a stream, alone in their batch."""

    writes: float = 0
    reads: float = 0
    requests: int = 0
    background: int = 0
    signatures: int = 0
    object_writes: int = 0
    key_requests: int = 0


OPERATIONS: dict[str, tuple[str, Units]] = {
    "facts": ("new fact", Units(writes=5, requests=1, background=1)),
    "changes": ("change", Units(reads=1, writes=12, requests=1, background=1)),
    "remembers": ("memory, a new key", Units(reads=0.5, writes=6, requests=1, background=1)),
    "messages": ("message of a thread, appended alone", Units(writes=3, requests=1, background=2)),
    "reads": ("read by id", Units(reads=1, requests=1)),
    "searches": ("search, 10 results", Units(reads=15, requests=1)),
    "runs_changed": ("leaf: a run that changed in a minute", Units(writes=5, reads=2)),
    "minutes_changed": (
        "pass: a minute in which a tenant's log changed",
        Units(writes=3, reads=3, signatures=1, object_writes=2),
    ),
    "key_uses": ("first use of a sealing key by a process in a minute", Units(key_requests=1)),
}
"""Of items of at most 1 KB. docs/cost.md says how each is counted."""


@dataclass(frozen=True)
class Load:
    """How much is done in a month, and how many GB are stored."""

    facts: int
    changes: int
    remembers: int
    messages: int
    reads: int
    searches: int
    runs_changed: int
    minutes_changed: int
    key_uses: int
    stored_gb: float
    characters: int = 400
    dimensions: int = 384

    @property
    def indexed(self) -> int:
        """Records that are written to a search index; the latter of them, `kept`, are new ones."""
        return self.kept + self.changes

    @property
    def kept(self) -> int:
        return self.facts + self.remembers + self.messages


LOADS = {
    "small": Load(10_000, 2_000, 0, 50_000, 50_000, 50_000, 25_000, 25_000, 50_000, 0.1),
    "large": Load(1_000_000, 200_000, 0, 5_000_000, 5_000_000, 5_000_000, 2_500_000, 432_000, 5_000_000, 10),
    "idle": Load(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
}


@dataclass(frozen=True)
class Domain:
    """A search domain: the price of an hour of its nodes, how many there are, the disk of each."""

    hour: str
    nodes: int
    disk_gb: int


VECTORS = "dynamodb"
SEARCHES: dict[str, Domain | None] = {
    "none": None,
    VECTORS: None,
    "small": Domain("searchSmallHour", 1, 10),
    "production": Domain("searchProductionHour", 3, 100),
}
"""DynamoDB's vector index; the cheapest domain that the template makes, and what docs/deploy.md has for production."""
_HELP = {
    "facts": "new facts a month",
    "changes": "supersedes and verifications a month",
    "remembers": "new memories a month",
    "messages": "log entries a month",
    "reads": "reads by id a month",
    "searches": "searches and memory blocks a month",
    "runs_changed": "run-minutes with a new entry a month",
    "minutes_changed": "minutes a month in which a tenant's log changed, of all tenants together",
    "key_uses": "first uses of a sealing key by a process in a minute",
    "stored_gb": "GB stored in all tables",
    "characters": "characters of a fact or message that is indexed, in the mean",
    "dimensions": "dimensions of the embedding model",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--load", choices=LOADS, default="small", help="where to begin (small)")
    for field in fields(Load):
        name = field.name.replace("_", "-")
        kind = gigabytes if field.name == "stored_gb" else amount
        parser.add_argument(f"--{name}", type=kind, metavar="N", help=_HELP[field.name])
    parser.add_argument("--search", choices=SEARCHES, default="none", help="the search index (none)")
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def amount(text: str) -> int:
    """Digits, and the commas that the command itself prints."""
    if not re.fullmatch(r"\d+(,\d{3})*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount: give a whole number such as 200000")
    return int(text.replace(",", ""))


def gigabytes(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount: give a number such as 0.5")
    return float(text)


def run(arguments: argparse.Namespace) -> int:
    stated = {field.name: getattr(arguments, field.name) for field in fields(Load)}
    load = replace(
        LOADS[arguments.load], **{name: value for name, value in stated.items() if value is not None}
    )
    table = price_table()
    lines = dict(monthly(load, table, arguments.search))
    index = indexing(load, arguments.search)
    operations = {said: 1e6 * price_of(units, table) for said, units in OPERATIONS.values()}
    peers = {peer["name"]: peer_cost(load, peer) for peer in table["peers"].values()}
    told = _told(load, table, operations, lines, peers, index)
    print(json.dumps(told, indent=2) if arguments.json else _as_text(told))
    return 0


def price_table() -> dict[str, Any]:
    """The dated table of public prices that comes with the package."""
    table: dict[str, Any] = json.loads(files("factbook_cli").joinpath("prices.json").read_text("utf-8"))
    return table


def price_of(units: Units, table: dict[str, Any]) -> float:
    """One operation. A request also looks up its token: a read more."""
    each = _prices(table)
    run = each["invocation"] + REQUEST_SECONDS * FUNCTION_GB * each["gbSecond"]
    return (
        units.writes * each["writeUnit"]
        + (units.reads + units.requests) * each["readUnit"]
        + units.requests * each["apiRequest"]
        + (units.requests + units.background) * run
        + units.signatures * each["signature"]
        + units.object_writes * each["objectWrite"]
        + units.key_requests * each["keyRequest"]
    )


def texts_of(characters: int, first: int, following: int) -> int:
    """Into how many pieces a text is cut, of which the first has so many characters."""
    return 1 + math.ceil(max(0, characters - first) / following)


def vector_units(dimensions: int) -> int:
    """Write units of an item in DynamoDB's vector index, which has one vector however long its text is."""
    return math.ceil((VECTOR_ITEM + BYTES_A_NUMBER * dimensions) / 1_024)


def indexing(load: Load, search: str) -> dict[str, float]:
    """What a month's records are in the search index: each passage of a long text has a vector of its own.

    `embeddings`: texts that a model is asked for; each message may ask for the one before it as well.
    """
    if search == "none":
        return {}
    passages = texts_of(load.characters, PASSAGE, NEXT_PASSAGE)
    known: dict[str, float] = {
        "records": load.indexed,
        "passagesEach": passages,
        "embeddings": load.indexed * passages + load.messages,
    }
    if search == VECTORS:
        size = VECTOR_ITEM + BYTES_A_NUMBER * load.dimensions
        return known | {"writeUnitsEach": vector_units(load.dimensions), "gb": load.kept * size / 1e9}
    documents = load.kept * max(passages, texts_of(load.characters, PIECE, NEXT_PIECE))
    size = round(1.1 * (4 * load.dimensions + 8 * GRAPH_LINKS))
    return known | {"documents": documents, "vectorGb": load.kept * passages * size / 1e9}


def monthly(load: Load, table: dict[str, Any], search: str) -> Iterator[tuple[str, float]]:
    """What each part costs a month; the last is their sum."""
    each, done = _prices(table), asdict(load)
    parts = {said: done[name] * price_of(units, table) for name, (said, units) in OPERATIONS.items()}
    background = price_of(Units(background=1), table)
    parts["ticks of the schedules"] = SCHEDULES * MINUTES * background
    parts["polling of queues"] = QUEUES * POLLS_A_MINUTE * MINUTES * each["queueRequest"]
    sweep = price_of(Units(writes=SWEEP_WRITES, reads=SWEEP_READS), table)
    parts["sweeps of mirrored facts"] = MINUTES * sweep
    parts["KMS keys"] = KEYS * each["keyMonth"]
    parts["secret of the ledger"] = SECRETS * each["secretMonth"]
    parts["storage and its recovery"] = load.stored_gb * (each["storedGb"] + each["recoveryGb"])
    domain, index = SEARCHES[search], indexing(load, search)
    parts["search domain"] = 0.0 if domain is None else _domain_cost(domain, each)
    if search == VECTORS:
        writes = index["records"] * index["writeUnitsEach"] * each["writeUnit"]
        parts["vectors, written and kept a month"] = writes + index["gb"] * each["storedGb"]
    yield from parts.items()
    yield "together", sum(parts.values())


def _domain_cost(domain: Domain, each: dict[str, float]) -> float:
    hours = MINUTES / 60
    return domain.nodes * (hours * each[domain.hour] + domain.disk_gb * each["searchGb"])


def peer_cost(load: Load, peer: dict[str, Any]) -> float:
    """The same load there: a message is an event, a fact or memory a record kept all month, a search a retrieval."""
    records = load.facts + load.remembers
    amounts = {"messages": load.messages, "records": records, "searches": load.searches}
    return float(sum(amount * peer[name]["each"] for name, amount in amounts.items()))


def _prices(table: dict[str, Any]) -> dict[str, float]:
    return {name: price["each"] for name, price in table["prices"].items()}


def _unchecked(table: dict[str, Any]) -> dict[str, str]:
    """Prices that were not read off their source, and where to look them up."""
    unchecked = {name: price for name, price in table["prices"].items() if "unchecked" in price}
    return {price["what"]: price["source"] for price in unchecked.values()}


def _told(
    load: Load,
    table: dict[str, Any],
    operations: dict[str, float],
    lines: dict[str, float],
    peers: dict[str, float],
    index: dict[str, float],
) -> dict[str, Any]:
    units = {said: asdict(units) for said, units in OPERATIONS.values()}
    return {
        "pricesAsOf": table["asOf"],
        "region": table["region"],
        "unchecked": _unchecked(table),
        "load": asdict(load),
        "units": units,
        "perMillion": operations,
        "aMonth": lines,
        "peers": peers,
        "index": index,
    }


def _as_text(told: dict[str, Any]) -> str:
    operations, lines = told["perMillion"], told["aMonth"]
    width = max(map(len, [*operations, *lines])) + 2
    done = ", ".join(f"--{name.replace('_', '-')} {value:,}" for name, value in told["load"].items() if value)
    text = [
        f"Prices of {told['pricesAsOf']}, {told['region']}, without free tier.",
        f"Load: {done or 'none'}",
        "",
    ]
    text.append(f"{'A million of each':{width}}")
    text += [f"  {said:{width}}{f'${price:,.2f}':>12}" for said, price in operations.items()]
    text += ["", "A month"]
    text += [f"  {said:{width}}{f'${price:,.2f}':>12}" for said, price in lines.items()]
    if lines["search domain"]:
        text += [
            f"  The search domain is by prices that nobody checked: {', '.join({*told['unchecked'].values()})}"
        ]
    if told["index"]:
        text += ["", "Indexed a month (vector indexes and models are priced by their own)"]
        text += [f"  {said:{width}}{value:>12,.6g}" for said, value in told["index"].items()]
    text += ["", "The same messages, records and searches elsewhere, by published prices"]
    text += [f"  {name:{width}}{f'${price:,.2f}':>12}" for name, price in told["peers"].items()]
    return "\n".join(text)
