"""The local cloud, measured: `python benchmarks/local_runner.py [--items 1000 10000] [--seconds 10] [--svg FILE]`.

* **start**: until ready, on a new folder and on one that holds the items; in seconds and in seconds of one core.
* **overhead**: `GET /health` over HTTP against the same handler called in this process; the rest is the gateway, one
  hop to a worker and back, and the client.
* **saves**: facts written by eight clients until there are N; the longest save and the longest pause it made.
* **load**: half reads, half writes at 1, 8 and 32 clients; and which share of all processors' time was the emulator's.

Everything is a ratio or was taken in one run; figures of other machines differ, their proportions hold.
"""

import argparse
import contextlib
import http.client
import importlib.util
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from factbook_local.dataplane.process import control
from factbook_local.testing import Ready, descendants, running

ROOT = Path(__file__).parents[1]
CLIENTS = (1, 8, 32)
TICKS = os.sysconf("SC_CLK_TCK")


class Client:
    """One kept connection of the administrator's."""

    def __init__(self, ready: Ready) -> None:
        where = urlsplit(ready.url)
        self._connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {ready.tokens['demo']}",
            "Content-Type": "application/json",
        }

    def call(self, method: str, path: str, body: Any = None) -> Any:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return json.loads(text)


def note(number: int) -> dict[str, Any]:
    return {
        "type": "note",
        "scope": {"projectId": f"p{number % 50}"},
        "content": {"n": number, "text": "words " * 40},
    }


def processor_seconds(pids: list[int]) -> float:
    """Seconds of one core that processes and their ended children have used."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(int(field) for field in fields[11:15])
    return total / TICKS


def emulator_of(ready: Ready) -> int:
    return next(
        pid
        for pid in descendants(ready.process.pid)
        if b"dataplane.emulator" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


def everything_of(ready: Ready) -> list[int]:
    return [ready.process.pid, *descendants(ready.process.pid)]


class Processors:
    """Seconds of one core so far, of the gateway, the functions and the emulator."""

    def __init__(self, ready: Ready) -> None:
        emulator = emulator_of(ready)
        others = [pid for pid in descendants(ready.process.pid) if pid != emulator]
        self.spent = (
            processor_seconds([ready.process.pid]),
            processor_seconds(others),
            processor_seconds([emulator]),
        )

    def since(self, earlier: "Processors") -> tuple[float, ...]:
        return tuple(now - then for now, then in zip(self.spent, earlier.spent, strict=True))


def milliseconds(what: Callable[[], Any], count: int) -> list[float]:
    found = []
    for _ in range(count):
        began = time.perf_counter()
        what()
        found.append((time.perf_counter() - began) * 1000)
    return found


def in_this_process(count: int) -> float:
    """Median milliseconds of the read function's handler answering GET /health; what it logs goes nowhere."""
    event = {
        "version": "2.0",
        "routeKey": "GET /health",
        "rawPath": "/health",
        "rawQueryString": "",
        "headers": {},
        "requestContext": {"requestId": "r", "http": {"method": "GET", "path": "/health"}},
        "isBase64Encoded": False,
    }
    os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "benchmark")
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        spec = importlib.util.spec_from_file_location("read_app", ROOT / "functions" / "read" / "app.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return statistics.median(milliseconds(lambda: module.lambda_handler(event, None), count))


def measure_overhead(ready: Ready, count: int = 500) -> None:
    client = Client(ready)
    client.call("GET", "/health")
    before = Processors(ready)
    over_http = statistics.median(milliseconds(lambda: client.call("GET", "/health"), count))
    spent = Processors(ready).since(before)
    direct = in_this_process(count)
    print(
        f"overhead: GET /health {over_http:.2f} ms over HTTP, {direct:.2f} ms in the handler; processor time "
        f"of a request {sum(spent) / count * 1000:.2f} ms, {spent[0] / count * 1000:.2f} of it the gateway's"
    )


def fill(ready: Ready, count: int) -> float:
    """Write facts until there are `count`. Answers facts a second."""
    own = threading.local()

    def write(start: int) -> None:
        if not hasattr(own, "client"):
            own.client = Client(ready)
        items = [note(number) for number in range(start, min(start + 25, count))]
        own.client.call("POST", "/v1/memory/facts/batch", {"items": items})

    began = time.perf_counter()
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(write, range(0, count, 25)))
    return count / (time.perf_counter() - began)


def measure_saves(folder: Path, count: int) -> None:
    data = folder / f"data-{count}"
    with running(folder, data=data) as ready:
        used = processor_seconds(everything_of(ready))
        rate = fill(ready, count)
        control(ready.aws["endpoint"], "save")
        saves = control(ready.aws["endpoint"], "saves")
    size = sum(file.stat().st_size for file in data.rglob("*") if file.is_file()) / 1e6
    print(
        f"saves: {count} facts at {rate:.0f}/s, {size:.1f} MB, {saves['count']} saves; longest {saves['longestSeconds'] * 1000:.0f} ms, "
        f"of which the service stood still {saves['cutSeconds'] * 1000:.0f} ms; failed {saves['failed']}"
    )
    began = time.perf_counter()
    with running(folder, data=data) as ready:
        seconds, again = time.perf_counter() - began, processor_seconds(everything_of(ready))
        print(
            f"start with {count} facts: {seconds:.1f} s, {again:.1f} s of one core ({again / used:.2f} × a new folder's)"
        )


@dataclass(frozen=True)
class Load:
    clients: int
    rate: float
    median: float
    late: float
    spent: tuple[float, ...]
    """Milliseconds of one core per request: the gateway's, the functions', the emulator's."""

    @property
    def share(self) -> float:
        return self.spent[2] / sum(self.spent)


def measure_load(ready: Ready, clients: int, seconds: float) -> Load:
    """Each client writes a fact and reads one, in turn, until the time is over."""
    times: list[float] = []
    known = [Client(ready).call("POST", "/v1/memory/facts", note(number))["id"] for number in range(20)]
    until = time.monotonic() + seconds

    def work(number: int) -> None:
        client, turn = Client(ready), number
        while time.monotonic() < until:
            turn += 1
            began = time.perf_counter()
            if turn % 2:
                client.call("POST", "/v1/memory/facts", note(turn))
            else:
                client.call("GET", f"/v1/memory/facts/{known[turn % len(known)]}")
            times.append((time.perf_counter() - began) * 1000)

    before = Processors(ready)
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    spent = tuple(seconds / len(times) * 1000 for seconds in Processors(ready).since(before))
    return Load(
        clients, len(times) / seconds, statistics.median(times), statistics.quantiles(times, n=20)[-1], spent
    )


def svg(loads: list[Load]) -> str:
    """Bars of requests a second, the emulator's share of processor time darker."""
    highest = max(load.rate for load in loads)
    bars = []
    for place, load in enumerate(loads):
        left, height = 60 + place * 150, 200 * load.rate / highest
        below = height * load.share
        bars.append(
            f'<rect x="{left}" y="{230 - height:.0f}" width="90" height="{height - below:.0f}" fill="#7aa6c2"/>'
            f'<rect x="{left}" y="{230 - below:.0f}" width="90" height="{below:.0f}" fill="#30566e"/>'
            f'<text x="{left + 45}" y="{222 - height:.0f}">{load.rate:.0f}/s</text>'
            f'<text x="{left + 45}" y="250">{load.clients} clients</text>'
            f'<text x="{left + 45}" y="268">p50 {load.median:.0f} ms, p95 {load.late:.0f} ms</text>'
        )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="520" height="300" font-family="sans-serif" font-size="12" text-anchor="middle">'
        '<rect width="100%" height="100%" fill="#fff"/>'
        + "".join(bars)
        + '<text x="260" y="292">requests a second, half writes; dark: the emulator\'s share of processor time</text></svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--seconds", type=float, default=10.0, help="of load at each number of clients")
    parser.add_argument("--svg", type=Path, help="draw the load into this file")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        with running(folder) as ready:
            seconds = time.perf_counter() - began
            print(f"start: {seconds:.1f} s, {processor_seconds(everything_of(ready)):.1f} s of one core")
            measure_overhead(ready)
            loads = [measure_load(ready, clients, arguments.seconds) for clients in CLIENTS]
        for load in loads:
            gateway, functions, emulator = load.spent
            print(
                f"load: {load.clients:2} clients {load.rate:6.1f}/s, p50 {load.median:.1f} ms, p95 {load.late:.1f} ms; processor time "
                f"of a request: gateway {gateway:.1f} ms, functions {functions:.1f} ms, emulator {emulator:.1f} ms ({load.share:.0%})"
            )
        for count in arguments.items:
            measure_saves(folder, count)
    if arguments.svg:
        arguments.svg.write_text(svg(loads))


if __name__ == "__main__":
    main()
