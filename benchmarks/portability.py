"""Move a tenant between two services, killing export and import twice each, and compare what the tables hold.

    python benchmarks/portability.py [--facts 10000] [--blobs 500] [--entries 50000]

Both services stand on one emulator and share nothing but that. Each try of a command is a process of its own, in which the
service runs as well, so its peak memory is both theirs. Seconds are of this machine, worth ratios alone.
"""

import argparse
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from support import emulators  # noqa: E402 - the tests' own emulator and services
from support.two_services import FACTS, OneService, ok  # noqa: E402

from factbook.domain import times  # noqa: E402
from factbook.domain.access.principals import Actor, Principal  # noqa: E402
from factbook.domain.facts.fact import FactChanges, Payload  # noqa: E402
from factbook.domain.facts.transitions import open_fact, supersede  # noqa: E402
from factbook.domain.log.chain import text_hash  # noqa: E402
from factbook.domain.scope import Scope  # noqa: E402
from factbook.domain.strict_json import dump_json  # noqa: E402
from factbook.ports.facts.store import Head, Mark  # noqa: E402
from factbook.ports.portability.stores import Revision  # noqa: E402
from factbook_cli.tenant_check import check_file  # noqa: E402
from factbook_cli.tenant_export import TenantExport  # noqa: E402
from factbook_cli.tenant_import import TenantImport  # noqa: E402

FORK = multiprocessing.get_context("fork")
ENTRIES_A_RUN = 250
AT = "2026-01-01T00:00:00.000Z"


def fill(service: OneService, facts: int, blobs: int, entries: int) -> None:
    """Facts of one to three revisions, payloads above what stands in an item, runs half of which are sealed.

    The facts are put as they would be stored, a hundred at a time: ten thousand requests would take most of the hour.
    """
    admin, copies = service.admin, service.services.portability.importing.copies
    for start in range(0, facts, 50):
        heads, revisions = [], []
        for number in range(start, min(start + 50, facts)):
            head, closed = history(service.tenant, number)
            heads.append(head)
            revisions += closed
        assert {*copies.put(heads), *copies.put(revisions)} == {"written"}
        told("filled", facts=start)
    for number in range(blobs):
        text = f"large {number} " * 9_000
        scope = {"projectId": f"p{number % 20}"}
        ok(admin.call("POST", FACTS, {"type": "bench.large", "scope": scope, "content": {"text": text}}))
        told("filled", blobs=number)
    for start in range(0, entries, 50):
        run = start // ENTRIES_A_RUN
        scope = {"projectId": f"p{run % 20}"} | ({"threadId": f"t{run}"} if run % 2 else {})
        said = [
            {"kind": "user-message", "payload": {"text": f"message {start + number}"}, "scope": scope}
            for number in range(min(50, entries - start))
        ]
        ok(admin.call("POST", f"/v1/memory/runs/run-{run}/log", {"entries": said}))
        told("filled", entries=start + len(said))
    while service.checkpoint().get("more"):
        pass


def history(tenant: str, number: int) -> tuple[Head, list[Revision]]:
    writer = Principal(tenant, Actor(kind="user", id="ann"), admin=True)
    scope = Scope(tenant_id=tenant, project_id=f"p{number % 20}")
    at = AT
    fact = open_fact(
        str(uuid.uuid4()), f"bench.type-{number % 7}", scope, FactChanges(), content(number, 0), writer, at
    )
    head = Head.first(fact, Mark(f"{number:012d}", "b" * 12, 1))
    closed = []
    for version in range(1, 1 + number % 3):
        at = times.add(at, seconds=60)
        before, fact = supersede(head.fact, FactChanges(), content(number, version), writer, at)
        closed.append(Revision(before, head.life))
        head = head.followed_by(fact, Mark(f"{number:012d}", f"{version:012d}", fact.version))
    return head, closed


def content(number: int, version: int) -> Payload:
    text = dump_json({"text": f"what is known of {number}, {version}"})
    return Payload(text=text, content_hash=text_hash(text), size=len(text))


_last = [0.0]


def told(step: str, **said: Any) -> None:
    if time.monotonic() - _last[0] > 10:
        _last[0] = time.monotonic()
        print(json.dumps({"step": step, **said}), file=sys.stderr, flush=True)


def attempt(name: str, work: Callable[[], Any], killed_when: Callable[[], bool] | None = None) -> bool:
    """One process of a command, killed when it is time; whether it came to its end. Prints seconds and peak memory."""
    result: Any = FORK.Queue()
    process = FORK.Process(target=_child, args=(work, result))
    begun = time.monotonic()
    process.start()
    killed = False
    while process.is_alive():
        process.join(0.2)
        if killed_when is not None and not killed and killed_when() and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
            killed = True
    said = result.get() if process.exitcode == 0 else {"exit": process.exitcode}
    print(json.dumps({"step": name, "seconds": round(time.monotonic() - begun, 1), **said}), flush=True)
    return process.exitcode == 0


def _child(work: Callable[[], Any], result: Any) -> None:
    said = work()
    result.put({"peakMB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, **said})


def again(service: OneService) -> OneService:
    """The service in another process: connections of its own."""
    service.client = cache(service.aws.client)
    service.services = service.process()
    service.admin.services = service.services
    for app in service.admin.apps.values():
        app.services = lambda: service.services
    return service


def export(service: OneService, path: Path) -> Any:
    counts = TenantExport(again(service).api, path, quiet=True).run()  # type: ignore[arg-type]
    return {"lines": counts, "megabytes": path.stat().st_size // 1_000_000}


def import_(service: OneService, path: Path) -> Any:
    begun = time.monotonic()
    contents = check_file(path)
    checked = round(time.monotonic() - begun, 1)
    done = TenantImport(again(service).api, path, contents, dry_run=False, quiet=True)  # type: ignore[arg-type]
    done.run([])
    totals: Counter[str] = Counter()
    for outcomes in done.counts.values():
        totals.update(outcomes)
    return {"checkedIn": checked, "records": contents.records, "outcomes": totals, "uploaded": done.uploaded}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--blobs", type=int, default=500)
    parser.add_argument("--entries", type=int, default=50_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, emulators.ministack() as aws:
        folder, tenant = Path(name), f"t-{uuid.uuid4().hex[:8]}"
        source, target = (OneService(aws, folder, tenant) for _ in range(2))
        begun = time.monotonic()
        fill(source, wanted.facts, wanted.blobs, wanted.entries)
        print(json.dumps({"step": "filled", "seconds": round(time.monotonic() - begun, 1)}), flush=True)
        return int(not moved(source, target, folder / "tenant.ndjson", wanted.facts / 10_000))


def moved(source: OneService, target: OneService, path: Path, scale: float) -> bool:
    """Whether the tenant has come over whole. `scale`: of its size, so that each export is killed before its end."""
    state = path.with_name(path.name + ".part.json")

    def pages() -> int:
        try:
            return int(json.loads(state.read_text())["bytes"])
        except (OSError, ValueError):
            return 0

    for number, size in enumerate((8_000_000, 24_000_000), start=1):
        attempt(
            f"export, killed {number}", lambda: export(source, path), lambda size=size: pages() > scale * size
        )
    attempt("export", lambda: export(source, path))

    records = check_file(path).records

    def imported() -> int:
        job = target.services.jobs.job("import", target.tenant)
        return 0 if job is None else int(job.cursor or 0)

    for number, part in enumerate((0.3, 0.7), start=1):
        attempt(
            f"import, killed {number}",
            lambda: import_(target, path),
            lambda part=part: imported() > part * records,
        )
    attempt("import", lambda: import_(target, path))
    attempt("import again", lambda: import_(target, path))
    here, there = again(source).stored(), again(target).stored()
    equal = {name: here[name] == there[name] for name in here}
    objects = source.objects() == target.objects()
    target.checkpoint()
    verdict = target.audit(path.with_name("log"))
    print(
        json.dumps(
            {
                "step": "compared",
                "items": {name: len(kept) for name, kept in there.items()},
                "equal": equal | {"objects": objects},
                "audit": {
                    "holds": verdict.holds,
                    "entries": verdict.entries,
                    "leaves": verdict.leaves,
                    "newer": verdict.newer,
                },
            }
        )
    )
    return all(equal.values()) and objects and verdict.holds


if __name__ == "__main__":
    sys.exit(main())
