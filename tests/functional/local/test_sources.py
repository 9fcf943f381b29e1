"""Mirrored facts on the local runner: many processes read one at once, the queue and the commands do the rest."""

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
from support.gateway import ROOT
from support.local_cloud import eventually
from support.source_server import Exchange, SourceServer, json_reply, reply, source_server

from factbook_cli.main import main
from factbook_local.testing import Ready, running

FACTS = "/v1/memory/facts"
READERS = 50


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, as `python3 -m http.server` serves them."""

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Nothing."""

    def log_error(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Nothing."""


@dataclass
class Service:
    ready: Ready
    ready_file: Path
    server: SourceServer
    http: urllib3.PoolManager

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.ready.tokens['demo']}", "Content-Type": "application/json"}
        url = self.ready.url + path + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")
        sent = None if body is None else json.dumps(body)
        answer = self.http.request(method, url, body=sent, headers=headers, retries=False)
        return answer.status, json.loads(answer.data)

    def mirror(self, path: str, strategy: str = "on-read", ttl: int = 0) -> str:
        """A fact that is stale at once, unless it has a time to live."""
        refresh = {"strategy": strategy}
        source = {"kind": "http-api", "uri": self.server.url(path), "freshness": {"ttlSeconds": ttl}}
        body = {"type": "acme.price", "content": "old", "source": source | {"refresh": refresh}}
        status, fact = self.call("POST", FACTS, body)
        assert status == 201, fact
        return str(fact["id"])

    def asked(self, path: str) -> int:
        return len([request for request in self.server.requests if request.target == path])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("sources")
    ready_file = folder / "ready.json"
    with (
        source_server() as server,
        running(folder, ["demo"], {"REFRESH_ALLOW": server.netloc}) as ready,
    ):
        ready_file.write_text(json.dumps({"aws": ready.aws}))
        yield Service(ready, ready_file, server, urllib3.PoolManager(maxsize=READERS))


def at_once(service: Service, fact_id: str, **query: str) -> list[tuple[int, Any]]:
    barrier = threading.Barrier(READERS)

    def read(_: int) -> tuple[int, Any]:
        barrier.wait()
        return service.call("GET", f"{FACTS}/{fact_id}", **query)

    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(read, range(READERS)))


def test_of_fifty_readers_of_a_stale_fact_one_asks_and_all_are_answered(service: Service) -> None:
    """A reader that is served after the answer came finds the fact fresh: its time to live is a minute from then on. One whose
    two seconds are nearly over, on a busy machine, asks and waits for nobody.
    """
    fact_id = service.mirror("/once", ttl=60)
    status, fact = service.call("POST", f"{FACTS}/{fact_id}/supersede", {"source": _stale_source(service)})
    assert (status, fact["stale"]) == (200, True)
    released = threading.Event()

    def slow(exchange: Exchange) -> None:
        released.wait(0.5)
        exchange.send(json_reply('"new"'))

    service.server.behaviours["/once"] = slow

    answers = at_once(service, fact_id)

    assert service.asked("/once") == 1
    assert {status for status, _ in answers} == {200}
    told = Counter((fact["content"], fact.get("staleReason")) for _, fact in answers)
    old = {("old", "busy"), ("old", "ttl-passed")}
    assert set(told) <= {("new", None), *old}, "fresh, or old and said to be"
    assert told["new", None] >= 1
    assert service.call("GET", f"{FACTS}/{fact_id}")[1]["version"] == 3


def _stale_source(service: Service) -> dict[str, Any]:
    """Of a minute, and last seen long ago."""
    return {
        "kind": "http-api",
        "uri": service.server.url("/once"),
        "freshness": {"ttlSeconds": 60, "lastVerifiedAt": "2026-01-01T00:00:00Z"},
        "refresh": {"strategy": "on-read"},
    }


def test_a_source_that_hangs_keeps_no_reader_and_is_asked_once(service: Service) -> None:
    fact_id = service.mirror("/hangs")
    service.server.behaviours["/hangs"] = lambda exchange: exchange.hang()

    answers = at_once(service, fact_id)

    assert service.asked("/hangs") == 1
    assert {(status, fact["content"], fact["stale"]) for status, fact in answers} == {(200, "old", True)}
    reasons = {fact["staleReason"] for _, fact in answers}
    assert reasons <= {"busy", "source-unavailable"}, (
        "nobody has waited for the end of the source's ten seconds"
    )
    assert "busy" in reasons
    status, refused = service.call("GET", f"{FACTS}/{fact_id}", requireFresh="true")
    assert (status, refused["error"]["code"]) == (503, "source-unavailable")
    assert service.asked("/hangs") == 1


def test_what_a_list_shows_stale_is_refreshed_behind_it(service: Service) -> None:
    fact_id = service.mirror("/listed", ttl=1)
    service.server.behaviours["/listed"] = json_reply('"new"')

    def listed() -> bool:
        _, page = service.call("GET", FACTS, limit="100")
        (fact,) = [each for each in page["data"] if each["id"] == fact_id]
        return bool(fact["content"] == "new")

    eventually(listed)


def test_a_sweep_reaches_what_is_due_through_the_queue(service: Service) -> None:
    facts = [service.mirror(f"/due{number}", "background") for number in range(12)]
    for number in range(12):
        service.server.behaviours[f"/due{number}"] = json_reply(str(number))

    status, swept = service.call("POST", "/v1/memory/refresh/sweep", {})
    assert (status, swept["queued"] >= 12) == (202, True)
    eventually(
        lambda: (
            [service.call("GET", f"{FACTS}/{fact_id}")[1]["content"] for fact_id in facts] == list(range(12))
        )
    )


def test_the_page_on_sources_can_be_followed_line_by_line(tmp_path: Path) -> None:
    page, tour = (ROOT / "docs" / "sources.md").read_text(), (ROOT / "README.md").read_text()
    (pick,) = re.findall(r"^pick\(\) .*?^auth=[^\n]*$", tour, re.MULTILINE | re.DOTALL)
    block, told = re.findall(r"^```bash\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    (list_port,) = re.findall(r"^python3 -m http.server (\d+)", page, re.MULTILINE)
    (started,) = re.findall(
        rf'^REFRESH_ALLOW=127.0.0.1:{list_port} make local ARGS="(.*)"$', page, re.MULTILINE
    )
    assert f'make local ARGS="{started}"' in tour, "the service whose URL and token are at hand"
    assert f"--port {list_port}" not in started, "two cannot have one port"
    (tmp_path / "prices").mkdir()
    (tmp_path / ".venv").symlink_to(sys.prefix)
    serving = partial(Quiet, directory=str(tmp_path / "prices"))
    with ThreadingHTTPServer(("127.0.0.1", 0), serving) as files:
        threading.Thread(target=files.serve_forever, daemon=True).start()
        netloc = f"127.0.0.1:{files.server_port}"
        with running(tmp_path, ["demo"], {"REFRESH_ALLOW": netloc}):
            (ready_file,) = tmp_path.glob("ready-*.json")
            (tmp_path / "memory.json").symlink_to(ready_file)
            commands = f"{pick}\n{block}".replace("127.0.0.1:8000", netloc)
            done = subprocess.run(
                ["sh", "-e", "-c", commands],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        files.shutdown()
    assert (done.stdout, done.stderr) == (told, "")


def test_an_operator_sees_which_source_failed_and_sends_its_fact_again(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    fact_id = service.mirror("/forbidden", "background")
    service.server.behaviours["/forbidden"] = reply(403)
    service.call("POST", "/v1/memory/refresh/sweep", {})
    where = ["--ready-file", str(service.ready_file)]

    def letters() -> list[Any]:
        assert main(["refresh", "letters", *where]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [each for each in found if each["factId"] == fact_id]

    (letter,) = eventually(letters)
    assert (letter["why"], letter["host"]) == ("source-refused", service.server.netloc)
    service.server.behaviours["/forbidden"] = json_reply('"allowed"')

    def sent() -> bool:
        assert main(["refresh", "resend", *where]) == 0
        return service.call("GET", f"{FACTS}/{fact_id}")[1]["content"] == "allowed"

    eventually(sent)
    capsys.readouterr()
    assert main(["refresh", "sweep", *where]) == 0
    assert capsys.readouterr().out.startswith("queued: ")
