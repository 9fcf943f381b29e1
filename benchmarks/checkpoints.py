"""How long a checkpoint takes to come: one tenant with very many marked runs beside many tenants with one each.

python benchmarks/checkpoints.py [--runs 100000] [--tenants 100] [--read-ms 4] [--write-ms 8] [--publish-ms 60]

The rules, passes, deadlines and threads are the service's; the stores are dictionaries in this process, and each call
takes the time given for its kind, because no emulator here carries 100,000 runs. Passes of 58 seconds follow each other
at the next full minute, as the schedule has them. Printed: how long after the first pass began each tenant's runs were
all under a published checkpoint.
"""

import argparse
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

HUGE = "huge"
PASS_SECONDS = 58.0
MINUTE = 60.0
KINDS = {"grow": "write", "keep_note": "write", "clear": "clear", "publish": "publish", "sign": "publish"}
FREE = {"key", "micros", "dirty_of"}


class Slow:
    """A port each of whose calls takes a while; `calls` counts them."""

    def __init__(self, port: Any, seconds: dict[str, float], calls: dict[str, int]) -> None:
        self._port, self._seconds, self._calls = port, seconds, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name in FREE:
            return found
        seconds = self._seconds[KINDS.get(name, "read")]

        def call(*arguments: Any) -> Any:
            self._calls[name] += 1
            time.sleep(seconds)
            return found(*arguments)

        return call


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5_000, help="marked runs of the one tenant")
    parser.add_argument("--tenants", type=int, default=100, help="other tenants, with one run each")
    parser.add_argument("--read-ms", type=float, default=4, help="a read of DynamoDB")
    parser.add_argument(
        "--write-ms", type=float, default=8, help="a write of DynamoDB; a transaction takes five"
    )
    parser.add_argument("--publish-ms", type=float, default=60, help="a call of S3 or KMS")
    options = parser.parse_args()
    seconds = {
        "read": options.read_ms / 1000,
        "clear": options.write_ms / 1000,
        "write": 5 * options.write_ms / 1000,
        "publish": options.publish_ms / 1000,
    }
    measure(options.runs, options.tenants, seconds)


def stores() -> tuple[Any, Any]:
    """A log of runs of one entry, and a tree that finds a run's last leaf at once."""
    from support.log_fakes import FakeTree

    from factbook.domain.log.chain import FORMAT, text_hash
    from factbook.ports.log.entries import StoredEntry

    class Tree(FakeTree):
        def __init__(self) -> None:
            super().__init__()
            self.last: dict[tuple[str, str], Any] = {}

        def grow(self, tenant: str, growth: Any) -> bool:
            grown = super().grow(tenant, growth)
            self.last |= {(tenant, leaf.run_id): leaf for leaf, _ in growth.leaves} if grown else {}
            return grown

        def last_leaf(self, tenant: str, run_id: str) -> Any:
            return self.last.get((tenant, run_id))

    class Log:
        def entry(self, tenant: str, run_id: str, sequence: int) -> StoredEntry:
            text = f'{{"runId":"{run_id}"}}'
            return StoredEntry(tenant, run_id, sequence, text, text_hash(text), FORMAT)

        def newest(self, tenant: str, run_id: str, _: int) -> list[StoredEntry]:
            return [self.entry(tenant, run_id, 0)]

    return Log(), Tree()


class Published:
    """Keeps notes, and when the last of a tenant's runs came under one."""

    def __init__(self, wanted: dict[str, int]) -> None:
        from support.log_fakes import FakeCheckpoints

        self._notes = FakeCheckpoints()
        self.wanted = wanted
        self.done: dict[str, float] = {}
        self.began = time.monotonic()

    def newest(self, tenant: str) -> str | None:
        return self._notes.newest(tenant)

    def publish(self, tenant: str, size: int, note: str) -> None:
        self._notes.publish(tenant, size, note)
        if size >= self.wanted[tenant]:
            self.done.setdefault(tenant, time.monotonic() - self.began)


def measure(runs: int, tenants: int, seconds: dict[str, float]) -> None:
    from support.logs import StandingClock

    from factbook.ports.deadline import Deadline
    from factbook.ports.log.checkpoints import DirtyRun
    from factbook.usecases.log.checkpoints import CheckpointPorts, checkpoint_all
    from factbook.wiring.log.services import RUNS_AT_ONCE, TENANTS_AT_ONCE

    log, tree = stores()
    others = [f"tenant-{number}" for number in range(tenants)]
    wanted = dict.fromkeys(others, 1) | {HUGE: runs}
    for tenant, count in wanted.items():
        for number in range(count):
            tree.mark_dirty(DirtyRun(tenant, f"run-{number}", 0))
    published, calls = Published(wanted), defaultdict(int)
    ports = (Slow(port, seconds, calls) for port in (log, tree, published, signer()))
    work = CheckpointPorts(*ports, StandingClock(), ThreadPoolExecutor(RUNS_AT_ONCE).map, TENANTS_AT_ONCE)
    passes = 0
    while len(published.done) < len(wanted):
        started = time.monotonic()
        checkpoint_all(work, Deadline(PASS_SECONDS))
        passes += 1
        if len(published.done) < len(wanted):
            time.sleep(max(0.0, MINUTE - (time.monotonic() - started)))
    waits = sorted(published.done[other] for other in others)
    print(f"{tenants} tenants of one run: half within {waits[len(waits) // 2]:.1f} s, all {waits[-1]:.1f} s")
    print(f"one tenant of {runs:,} runs: {published.done[HUGE]:.1f} s, in {passes} passes")
    print("calls:", ", ".join(f"{name} {count:,}" for name, count in sorted(calls.items())))


def signer() -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from factbook.domain.log.notes import NoteKey

    class Local:
        """A key of this process."""

        private = Ed25519PrivateKey.generate()
        key = NoteKey("factbook.benchmark", private.public_key().public_bytes_raw())

        def sign(self, text: bytes) -> bytes:
            return self.private.sign(text)

    return Local()


if __name__ == "__main__":
    main()
